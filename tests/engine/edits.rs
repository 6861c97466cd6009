//! What each edit of a set uploads: the table in `docs/guide/editing.md`.
//!
//! `UPDATE_DOCS=1` rewrites it.

use crate::common::generated::assert_generated;
use bevy_gpu_culling::instance::{InstanceError, InstanceSet, SetChanges};
use glam::Vec3;
use std::fmt::Write as _;

const COUNT: usize = 1_000_000;
const MIDDLE: u32 = COUNT as u32 / 2;

/// An edit of a set of [`COUNT`] instances.
type Edit = fn(&mut InstanceSet) -> Result<(), InstanceError>;

const EDITS: [(&str, &str, Edit); 15] = [
    ("`set`", "constant", |set| set.set(MIDDLE, Vec3::Y)),
    ("`hide`, `show`", "constant", |set| set.hide(MIDDLE)),
    ("`set_tag` in a set with tags", "constant", |set| {
        set.set_tag(MIDDLE, 7)
    }),
    ("`push`", "constant", |set| set.push(Vec3::Y).map(drop)),
    ("`pop`", "constant", |set| {
        assert!(set.pop().is_some());
        Ok(())
    }),
    ("`swap_remove`", "constant", |set| {
        set.swap_remove(MIDDLE).map(drop)
    }),
    ("`set_range` of 10,000", "the 10,000", |set| {
        set.set_range(MIDDLE, [Vec3::Y; 10_000])
    }),
    ("`extend` by 10,000", "the 10,000", |set| {
        set.extend([Vec3::Y; 10_000])
    }),
    ("`splice` of 10,000, same length", "the 10,000", |set| {
        set.splice(500_000..510_000, [Vec3::Y; 10_000]).map(drop)
    }),
    (
        "`insert`, `remove`, other `splice`",
        "all behind it",
        |set| set.remove(MIDDLE).map(drop),
    ),
    ("`remove_range` of 10,000", "all behind it", |set| {
        set.remove_range(500_000..510_000)
    }),
    ("`retain`", "all", |set| {
        set.retain(|index, _| index != MIDDLE)
    }),
    (
        "`truncate`",
        "all that stay, to tighten the bounds",
        |set| {
            set.truncate(COUNT / 2);
            Ok(())
        },
    ),
    ("the first scale", "all", |set| {
        set.set(MIDDLE, glam::Affine3A::from_scale(Vec3::splat(2.0)))
    }),
    ("the first scale per axis", "all", |set| {
        set.set(MIDDLE, glam::Affine3A::from_scale(Vec3::new(2.0, 1.0, 1.0)))
    }),
];

/// Bytes that a renderer uploads to follow an edit.
fn uploaded(set: &InstanceSet, seen: u64) -> usize {
    let floats = set.scale_kind().floats();
    let bytes = 16 + 4 * floats + set.data_size();
    match set.changes_since(seen) {
        SetChanges::Nothing => 0,
        SetChanges::Everything => set.len() * bytes,
        SetChanges::Ranges(changed) => {
            let [instances, scales, data] = [&changed.instances, &changed.scales, &changed.data]
                .map(|ranges| ranges.iter().map(|range| range.len()).sum::<usize>());
            instances * 16 + scales * floats * 4 + data * set.data_size()
        }
    }
}

/// A number with thousands separators.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The table of the guide.
fn table() -> String {
    let mut text =
        String::from("| edit | work on the CPU | bytes uploaded |\n| --- | --- | --: |\n");
    for (name, work, edit) in EDITS {
        let places = (0..COUNT).map(|i| Vec3::new((i % 1000) as f32, 0.0, (i / 1000) as f32));
        let mut set = InstanceSet::from_transforms(places).unwrap();
        if name.contains("with tags") {
            set = set.with_tags(vec![1; COUNT]).unwrap();
        }
        let seen = set.revision();
        edit(&mut set).unwrap();
        assert!(set.revision() > seen, "{name} is an edit");
        let bytes = uploaded(&set, seen);
        if name.contains("hide") {
            assert!(bytes < 5_000, "hide uploads {bytes} bytes");
        }
        writeln!(text, "| {name} | {work} | {} |", grouped(bytes)).unwrap();
    }
    text
}

#[test]
fn the_guide_says_what_each_edit_uploads() {
    let part = [
        "<!-- edits: written by tests/engine/edits.rs -->\n",
        "<!-- end of edits -->\n",
    ];
    let table = format!("\n{}\n", table());
    assert_generated("docs/guide/editing.md", part, &table, "engine edits");
}
