//! The first solution: MAX_N threads for each source. MAX_N is measured, not guessed.

use super::{Arena, ExpandPass, Features, Groups, Strategy, kernels};

pub(in crate::cull::expand) const STRATEGY: Strategy = Strategy {
    is_ordered: true,
    has_buckets: false,
    features: Features::empty(),
    list_entries: |_| 0,
    is_fixed: true,
    arena: Arena {
        prefixes: |_| 0,
        // A maximum for each workgroup.
        partials: |sources| u64::from(Groups::Tiles.count(sources)),
        has_sums: true,
        entry: 0,
        max_entries: Some(|_| 0),
    },
    passes: &[
        ExpandPass {
            name: "expand_measure",
            kernel: &kernels::EXPAND_MEASURE,
            entry: "measure",
            groups: Groups::Tiles,
        },
        ExpandPass {
            name: "expand_plan_fixed",
            kernel: &kernels::EXPAND_MEASURE,
            entry: "plan_fixed",
            groups: Groups::One,
        },
    ],
    few: &[],
    items: ExpandPass {
        name: "expand_items_fixed",
        kernel: &kernels::EXPAND_ITEMS_FIXED,
        entry: "expand",
        groups: Groups::Items,
    },
};
