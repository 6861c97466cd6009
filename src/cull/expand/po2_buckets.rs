//! Solution 3: a set bit b of N is an entry in bucket b. The entries of 32 neighboring sources
//! share one mask.

use super::{
    passes::{Arena, ExpandPass, Groups, Strategy, table, table_tiles},
    shared::SCAN_TABLE,
};
use crate::cull::{layout::expand::EXPAND_BUCKETS, shaders::kernels};
use wgpu::Features;

pub(super) const STRATEGY: Strategy = Strategy {
    is_ordered: true,
    has_buckets: true,
    features: Features::empty(),
    list_entries: |_| 0,
    is_fixed: false,
    arena: Arena {
        prefixes: table,
        partials: table_tiles,
        has_sums: true,
        // The index of a word of 32 sources, and which of them have the bit.
        entry: 2,
        max_entries: Some(max_entries),
    },
    passes: &[
        ExpandPass {
            name: "expand_count_po2_buckets",
            kernel: &kernels::EXPAND_BITS_PO2_BUCKETS,
            entry: "count",
            groups: Groups::Tiles,
        },
        SCAN_TABLE,
        ExpandPass {
            name: "expand_spine_po2_buckets",
            kernel: &kernels::EXPAND_SPINE_PO2_BUCKETS,
            entry: "spine",
            groups: Groups::One,
        },
        ExpandPass {
            name: "expand_write_po2_buckets",
            kernel: &kernels::EXPAND_BITS_PO2_BUCKETS,
            entry: "write",
            groups: Groups::Tiles,
        },
    ],
    few: &[
        ExpandPass {
            name: "expand_count_few_po2_buckets",
            kernel: &kernels::EXPAND_FEW_PO2_BUCKETS,
            entry: "count_few",
            groups: Groups::Tiles,
        },
        ExpandPass {
            name: "expand_write_few_po2_buckets",
            kernel: &kernels::EXPAND_FEW_PO2_BUCKETS,
            entry: "write_few",
            groups: Groups::TilesAndPlan,
        },
    ],
    items: ExpandPass {
        name: "expand_items_po2_buckets",
        kernel: &kernels::EXPAND_ITEMS_PO2_BUCKETS,
        entry: "expand",
        groups: Groups::Items,
    },
};

/// A bit that all W words have costs W 2^b items, and there are less than 2^32: with P whole
/// buckets, W (2^P - 1) items, and what is left is less than one more.
fn max_entries(sources: u32) -> u32 {
    let words = u64::from(sources.div_ceil(32)).max(1);
    let whole = ((1u64 << 32) / words + 1).ilog2();
    (words * u64::from((whole + 1).min(EXPAND_BUCKETS))) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_counts_below_the_limit_need_more_entries() {
        // The cheapest way to many entries: each word's next bit, the cheapest first.
        for sources in [1u32, 32, 33, 64, 1000, 32_768, 100_000] {
            let words = u64::from(sources.div_ceil(32));
            let (mut items, mut entries) = (0u64, 0u64);
            'full: for bit in 0..EXPAND_BUCKETS {
                for _ in 0..words {
                    items += 1 << bit;
                    if items >= 1 << 32 {
                        break 'full;
                    }
                    entries += 1;
                }
            }
            let max = u64::from(max_entries(sources));
            assert!(entries <= max, "{sources}: {entries} > {max}");
            assert!(max <= entries + words, "{sources}: {max} for {entries}");
        }
    }
}
