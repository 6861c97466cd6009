//! Solution 1 as the article notes it for large N: an entry for each workgroup of items.

use crate::cull::layout::expand::EXPAND_CHUNK;

use super::{Arena, ExpandPass, Features, Groups, Strategy, kernels, tiles};

pub(in crate::cull::expand) const STRATEGY: Strategy = Strategy {
    is_ordered: true,
    has_buckets: false,
    features: Features::empty(),
    list_entries: |items| items.div_ceil(EXPAND_CHUNK),
    is_fixed: false,
    arena: Arena {
        prefixes: u64::from,
        partials: tiles,
        has_sums: true,
        entry: 2,
        max_entries: None,
    },
    passes: &[SCAN, SPINE, LIST],
    few: &[],
    items: ExpandPass {
        name: "expand_items_groups",
        kernel: &kernels::EXPAND_ITEMS_GROUPS,
        entry: "expand",
        groups: Groups::Items,
    },
};

const SCAN: ExpandPass = ExpandPass {
    name: "expand_scan_groups",
    kernel: &kernels::EXPAND_SCAN_GROUPS,
    entry: "scan",
    groups: Groups::Tiles,
};

const SPINE: ExpandPass = ExpandPass {
    name: "expand_spine_groups",
    kernel: &kernels::EXPAND_SPINE_GROUPS,
    entry: "spine",
    groups: Groups::One,
};

const LIST: ExpandPass = ExpandPass {
    name: "expand_list_groups",
    kernel: &kernels::EXPAND_LIST_GROUPS,
    entry: "list",
    groups: Groups::Threads,
};
