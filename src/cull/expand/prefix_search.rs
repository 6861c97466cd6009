//! Solution 2: prefixes in two levels, a binary search a thread.

use super::{
    passes::{Arena, ExpandPass, Groups, Strategy, tiles},
    shared::SCAN_ITEMS,
};
use crate::cull::shaders::wgsl;
use wgpu::Features;

pub(super) const STRATEGY: Strategy = Strategy {
    ordered: true,
    buckets: false,
    packed: false,
    features: Features::empty(),
    arena: Arena {
        prefixes: u64::from,
        partials: tiles,
        sums: false,
        entry: 0,
        most_entries: Some(|_| 0),
    },
    passes: &[SCAN_ITEMS, SPINE],
    few: &[],
    items: ExpandPass {
        name: "expand_items_search",
        parts: |sources| sources.expanding(&[wgsl!("expand_search"), wgsl!("expand_items_search")]),
        entry: "expand",
        groups: Groups::Items,
    },
};

const SPINE: ExpandPass = ExpandPass {
    name: "expand_spine_items",
    parts: |sources| {
        sources.scanning(&[
            wgsl!("expand_plan"),
            wgsl!("expand_plan_items"),
            wgsl!("expand_spine"),
        ])
    },
    entry: "spine",
    groups: Groups::One,
};
