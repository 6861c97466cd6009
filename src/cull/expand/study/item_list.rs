//! Solution 1: an entry for each item, at the place that a scan of N gives.

use super::{Arena, ExpandPass, Features, Groups, SCAN_ITEMS, Strategy, kernels, tiles};

pub(in crate::cull::expand) const STRATEGY: Strategy = Strategy {
    is_ordered: true,
    has_buckets: false,
    features: Features::empty(),
    list_entries: |items| items,
    is_fixed: false,
    arena: Arena {
        prefixes: u64::from,
        partials: tiles,
        has_sums: false,
        entry: 2,
        max_entries: None,
    },
    passes: &[SCAN_ITEMS, SPINE, LIST],
    few: &[],
    items: ExpandPass {
        name: "expand_items_list",
        kernel: &kernels::EXPAND_ITEMS_LIST,
        entry: "expand",
        groups: Groups::Items,
    },
};

const SPINE: ExpandPass = ExpandPass {
    name: "expand_spine_list",
    kernel: &kernels::EXPAND_SPINE_LIST,
    entry: "spine",
    groups: Groups::One,
};

const LIST: ExpandPass = ExpandPass {
    name: "expand_list",
    kernel: &kernels::EXPAND_LIST,
    entry: "list",
    groups: Groups::Threads,
};
