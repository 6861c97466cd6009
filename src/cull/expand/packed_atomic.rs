//! Solution 2.5: one pass makes the prefixes, by a 64-bit counter of sources and items.

use super::passes::{Arena, ExpandPass, Groups, Strategy, WgslSources};
use crate::cull::shaders::wgsl;
use wgpu::Features;

pub(super) const STRATEGY: Strategy = Strategy {
    ordered: false,
    buckets: false,
    packed: true,
    features: Features::SHADER_INT64.union(Features::SHADER_INT64_ATOMIC_ALL_OPS),
    arena: Arena {
        prefixes: u64::from,
        partials: |_| 0,
        sums: false,
        // Which source a prefix is of.
        entry: 1,
        most_entries: Some(|sources| sources),
    },
    passes: &[
        ExpandPass {
            name: "expand_clear_packed",
            parts: pack,
            entry: "clear_packed",
            groups: Groups::One,
        },
        ExpandPass {
            name: "expand_pack",
            parts: pack,
            entry: "pack",
            groups: Groups::Tiles,
        },
        ExpandPass {
            name: "expand_plan_packed",
            parts: pack,
            entry: "plan_packed",
            groups: Groups::One,
        },
    ],
    few: &[],
    items: ExpandPass {
        name: "expand_items_packed",
        parts: |sources| sources.expanding(&[wgsl!("expand_items_packed")]),
        entry: "expand",
        groups: Groups::Items,
    },
};

fn pack<'a>(sources: &WgslSources<'a>) -> Vec<&'a str> {
    sources.scanning(&[sources.counting, wgsl!("expand_plan"), wgsl!("expand_pack")])
}
