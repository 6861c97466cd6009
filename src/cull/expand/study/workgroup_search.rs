//! Solution 2 with the search shared: one binary search per workgroup, the rest in workgroup
//! memory.

use super::{Arena, ExpandPass, Features, Groups, SCAN_ITEMS, Strategy, kernels, tiles};

pub(in crate::cull::expand) const STRATEGY: Strategy = Strategy {
    is_ordered: true,
    has_buckets: false,
    features: Features::empty(),
    list_entries: |_| 0,
    is_fixed: false,
    arena: Arena {
        prefixes: u64::from,
        partials: tiles,
        has_sums: false,
        entry: 0,
        max_entries: Some(|_| 0),
    },
    passes: &[SCAN_ITEMS, SPINE],
    few: &[],
    items: ExpandPass {
        name: "expand_items_spans",
        kernel: &kernels::EXPAND_ITEMS_SPANS,
        entry: "expand",
        groups: Groups::Items,
    },
};

const SPINE: ExpandPass = ExpandPass {
    name: "expand_spine_spans",
    kernel: &kernels::EXPAND_SPINE_SPANS,
    entry: "spine",
    groups: Groups::One,
};
