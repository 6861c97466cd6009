//! Solution 2.5: one pass makes the prefixes, by a 64-bit counter of sources and items.

use super::{Arena, ExpandPass, Features, Groups, Strategy, kernels};

pub(in crate::cull::expand) const STRATEGY: Strategy = Strategy {
    is_ordered: false,
    has_buckets: false,
    features: Features::SHADER_INT64.union(Features::SHADER_INT64_ATOMIC_ALL_OPS),
    list_entries: |_| 0,
    is_fixed: false,
    arena: Arena {
        prefixes: u64::from,
        partials: |_| 0,
        has_sums: false,
        // Which source a prefix is of.
        entry: 1,
        max_entries: Some(|sources| sources),
    },
    passes: &[
        ExpandPass {
            name: "expand_clear_packed",
            kernel: &kernels::EXPAND_PACK,
            entry: "clear_packed",
            groups: Groups::One,
        },
        ExpandPass {
            name: "expand_pack",
            kernel: &kernels::EXPAND_PACK,
            entry: "pack",
            groups: Groups::Tiles,
        },
        ExpandPass {
            name: "expand_plan_packed",
            kernel: &kernels::EXPAND_PACK,
            entry: "plan_packed",
            groups: Groups::One,
        },
    ],
    few: &[],
    items: ExpandPass {
        name: "expand_items_packed",
        kernel: &kernels::EXPAND_ITEMS_PACKED,
        entry: "expand",
        groups: Groups::Items,
    },
};
