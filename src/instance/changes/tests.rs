#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;

use super::*;
use crate::instance::test_sets::{at, line};
use crate::instance::{InstanceSet, PackedInstance};

#[test]
fn neighbors_join_and_the_end_is_clipped() {
    const G: usize = GRANULE;
    let mut stamps = Stamps::default();
    stamps.mark(10..11, 2);
    stamps.mark(G..G + 1, 3);
    stamps.mark(5 * G - 1..5 * G + 1, 4);
    stamps.mark(7..7, 5);
    let len = 5 * G + 7;
    let since = |revision, len| pairs(stamps.since(revision, len));
    assert_eq!(since(1, len), [(0, 2 * G), (4 * G, len)]);
    assert_eq!(since(2, len), [(G, 2 * G), (4 * G, len)]);
    assert_eq!(since(3, 5 * G), [(4 * G, 5 * G)]);
    assert_eq!(since(3, 4 * G), []);
    assert_eq!(since(4, len), []);
    assert_eq!(since(1, 0), []);
}

#[test]
fn strangers_start_over() {
    let mut log = ChangeLog::default();
    assert_eq!(log.since(0, 10), SetChanges::Everything);
    assert_eq!(log.since(1, 10), SetChanges::Nothing);
    assert_eq!(
        log.since(2, 10),
        SetChanges::Everything,
        "a revision from the future"
    );
    log.begin();
    assert_eq!(
        log.since(1, 10),
        SetChanges::Ranges(ChangedRanges::default())
    );
    log.begin();
    log.mark_everything();
    assert_eq!(log.since(2, 10), SetChanges::Everything);
    assert_eq!(log.since(3, 10), SetChanges::Nothing);
}

type Pairs = Vec<(usize, usize)>;

fn pairs(ranges: Vec<Range<usize>>) -> Pairs {
    ranges
        .into_iter()
        .map(|range| (range.start, range.end))
        .collect()
}

/// The ranges in instances, scales and data.
fn ranges(changes: SetChanges) -> (Pairs, Pairs, Pairs) {
    match changes {
        SetChanges::Ranges(changed) => (
            pairs(changed.instances),
            pairs(changed.scales),
            pairs(changed.data),
        ),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_channel_logs_its_own_writes() {
    let mut set = line(1000)
        .with_scales(vec![1.0; 1000])
        .unwrap()
        .with_tags(vec![0; 1000])
        .unwrap();
    let mut seen = set.revision();
    assert_eq!(set.changes_since(seen), SetChanges::Nothing);

    set.set(0, at(1.0)).unwrap();
    assert_eq!(
        ranges(set.changes_since(seen)),
        (vec![(0, 256)], vec![], vec![])
    );
    seen = set.revision();
    set.set(300, at(1.0).with_scale(2.0)).unwrap();
    set.set_tag(999, 1).unwrap();
    assert_eq!(
        ranges(set.changes_since(seen)),
        (vec![(256, 512)], vec![(256, 512)], vec![(768, 1000)])
    );
    seen = set.revision();
    set.set_tag(999, 1).unwrap();
    assert_eq!(set.changes_since(seen), SetChanges::Nothing, "the same tag");
    set.push(at(0.0)).unwrap();
    assert_eq!(
        ranges(set.changes_since(seen)),
        (vec![(768, 1001)], vec![(768, 1001)], vec![(768, 1001)])
    );
    set.truncate(500);
    assert_eq!(ranges(set.changes_since(seen)), Default::default());
    assert_eq!(
        set.changes_since(set.revision() + 1),
        SetChanges::Everything
    );
}

#[test]
fn a_channel_that_comes_or_goes_changes_everything() {
    type Edit = fn(&mut InstanceSet);
    let edits: [(&str, Edit); 5] = [
        ("a scale by push", |set| {
            drop(set.push(at(0.0).with_scale(2.0)));
        }),
        ("a scale by set", |set| {
            drop(set.set(0, at(0.0).with_scale(2.0)));
        }),
        ("a tag by push", |set| drop(set.push_tagged(at(0.0), 1))),
        ("a tag by set", |set| drop(set.set_tag(0, 1))),
        ("a scale by extend", |set| {
            drop(set.extend([at(0.0).with_scale(2.0)]));
        }),
    ];
    for (name, edit) in edits {
        let mut set = line(3);
        let seen = set.revision();
        edit(&mut set);
        assert_eq!(set.changes_since(seen), SetChanges::Everything, "{name}");
        let seen = set.revision();
        set.set(0, at(1.0)).unwrap();
        assert!(
            matches!(set.changes_since(seen), SetChanges::Ranges(_)),
            "{name}"
        );
        let seen = set.revision();
        set.clear();
        assert_eq!(
            set.changes_since(seen),
            SetChanges::Everything,
            "clear after {name}"
        );
    }
    let mut set = line(3);
    set.clear();
    assert_eq!(ranges(set.changes_since(1)), Default::default());
}

#[test]
fn a_clone_is_another_set_with_the_same_log() {
    let mut set = line(3);
    set.set(0, at(5.0)).unwrap();
    let clone = set.clone();
    assert_ne!(clone.lineage(), set.lineage());
    assert_ne!(InstanceSet::new().lineage(), InstanceSet::new().lineage());
    assert_eq!(clone.revision(), set.revision());
    assert_eq!(clone.changes_since(1), set.changes_since(1));
    let lineage = set.lineage();
    set.clear();
    assert_eq!(set.lineage(), lineage, "edits keep the lineage");
}

#[derive(Clone, Debug)]
enum Edit {
    Push {
        scaled: bool,
        tag: u32,
    },
    Extend {
        count: usize,
        scaled: bool,
    },
    Set {
        at: u32,
        scaled: bool,
    },
    SetTag {
        at: u32,
        tag: u32,
    },
    Truncate(usize),
    Clear,
    /// A reader catches up.
    Read(usize),
}

fn edits() -> impl Strategy<Value = Edit> {
    // Scales and tags are rare: most runs should stay without them for a while.
    let rarely = || prop::bool::weighted(0.1);
    let tags = || prop_oneof![9 => Just(0u32), 1 => 1..4u32];
    prop_oneof![
        3 => (rarely(), tags()).prop_map(|(scaled, tag)| Edit::Push { scaled, tag }),
        4 => (0..900usize, rarely()).prop_map(|(count, scaled)| Edit::Extend { count, scaled }),
        6 => (0..3000u32, rarely()).prop_map(|(at, scaled)| Edit::Set { at, scaled }),
        2 => (0..3000u32, tags()).prop_map(|(at, tag)| Edit::SetTag { at, tag }),
        2 => (0..3000usize).prop_map(Edit::Truncate),
        1 => Just(Edit::Clear),
        6 => (0..3usize).prop_map(Edit::Read),
    ]
}

/// What a renderer keeps of a set, updated with the changed ranges only.
#[derive(Default)]
struct Mirror {
    revision: u64,
    packed: Vec<PackedInstance>,
    scales: Option<Vec<f32>>,
    tags: Option<Vec<u32>>,
}

fn copy<T: Copy + Default>(to: &mut Vec<T>, from: &[T], ranges: &[Range<usize>]) {
    to.resize(from.len(), T::default());
    let mut end = None;
    for range in ranges {
        assert!(
            range.start < range.end && range.end <= from.len(),
            "{range:?} of {}",
            from.len()
        );
        assert!(end.is_none_or(|end| end < range.start), "sorted, with gaps");
        assert!(
            range.start % GRANULE == 0 && (range.end % GRANULE == 0 || range.end == from.len())
        );
        end = Some(range.end);
        to[range.clone()].copy_from_slice(&from[range.clone()]);
    }
}

impl Mirror {
    fn catch_up(&mut self, set: &InstanceSet) {
        match set.changes_since(self.revision) {
            SetChanges::Nothing => {}
            SetChanges::Everything => {
                self.packed = set.packed().to_vec();
                self.scales = set.scales().map(<[f32]>::to_vec);
                self.tags = set.tags().map(<[u32]>::to_vec);
            }
            SetChanges::Ranges(changed) => {
                copy(&mut self.packed, set.packed(), &changed.instances);
                match (&mut self.scales, set.scales()) {
                    (Some(to), Some(from)) => copy(to, from, &changed.scales),
                    (to, from) => {
                        assert!(to.is_none() && from.is_none() && changed.scales.is_empty());
                    }
                }
                match (&mut self.tags, set.tags()) {
                    (Some(to), Some(from)) => copy(to, from, &changed.data),
                    (to, from) => {
                        assert!(to.is_none() && from.is_none() && changed.data.is_empty());
                    }
                }
            }
        }
        self.revision = set.revision();
        assert_eq!(self.packed, set.packed());
        assert_eq!(self.scales.as_deref(), set.scales());
        assert_eq!(self.tags.as_deref(), set.tags());
    }
}

proptest! {
    #[test]
    fn readers_that_copy_only_the_changes_see_the_whole_set(edits in prop::collection::vec(edits(), 1..60)) {
        let mut set = InstanceSet::new();
        let mut readers: [Mirror; 3] = Default::default();
        // Only the values, kept in the naive way.
        let mut model: Vec<(f32, f32, u32)> = Vec::new();
        let mut next = 0.0;
        let mut value = |scaled: bool| {
            next += 1.0;
            (next, if scaled { 1.0 + next } else { 1.0 })
        };
        for edit in edits {
            let before = set.revision();
            match edit {
                Edit::Push { scaled, tag } => {
                    let (x, scale) = value(scaled);
                    set.push_tagged(at(x).with_scale(scale), tag).unwrap();
                    model.push((x, scale, tag));
                    prop_assert!(set.revision() > before);
                }
                Edit::Extend { count, scaled } => {
                    let new: Vec<_> = (0..count).map(|_| value(scaled)).collect();
                    set.extend(new.iter().map(|&(x, scale)| at(x).with_scale(scale))).unwrap();
                    model.extend(new.into_iter().map(|(x, scale)| (x, scale, 0)));
                    prop_assert_eq!(set.revision() > before, count > 0);
                }
                Edit::Set { at: index, scaled } => {
                    let (x, scale) = value(scaled);
                    let done = set.set(index, at(x).with_scale(scale));
                    prop_assert_eq!(done.is_ok(), (index as usize) < model.len());
                    prop_assert_eq!(set.revision() > before, done.is_ok());
                    if let Some(entry) = model.get_mut(index as usize) {
                        (entry.0, entry.1) = (x, scale);
                    }
                }
                Edit::SetTag { at: index, tag } => {
                    prop_assert_eq!(set.set_tag(index, tag).is_ok(), (index as usize) < model.len());
                    if let Some(entry) = model.get_mut(index as usize) {
                        entry.2 = tag;
                    }
                }
                Edit::Truncate(len) => {
                    set.truncate(len);
                    model.truncate(len);
                }
                Edit::Clear => {
                    set.clear();
                    model.clear();
                }
                Edit::Read(reader) => readers[reader].catch_up(&set),
            }
            prop_assert_eq!(set.len(), model.len());
        }
        for reader in &mut readers {
            reader.catch_up(&set);
        }
        for (index, &(x, scale, tag)) in (0u32..).zip(&model) {
            let got = set.get(index).unwrap();
            prop_assert_eq!((got.translation.x, got.scale.x, set.tag(index)), (x, scale, Some(tag)));
        }
        let (low, high) = model.iter().fold((f32::MAX, f32::MIN), |(low, high), m| (low.min(m.0), high.max(m.0)));
        match set.bounds() {
            Some(bounds) => prop_assert!(bounds.min.x <= low && bounds.max.x >= high),
            None => prop_assert!(model.is_empty()),
        }
    }
}
