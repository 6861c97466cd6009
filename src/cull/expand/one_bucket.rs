//! Solution 3's later form: one entry for each source, in bucket floor(log2 N).

use super::{
    passes::{Arena, ExpandPass, Groups, Strategy, table, table_tiles},
    shared::SCAN_TABLE,
};
use crate::cull::shaders::kernels;
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
        entry: 1,
        max_entries: Some(|sources| sources),
    },
    passes: &[
        ExpandPass {
            name: "expand_count_one_bucket",
            kernel: &kernels::EXPAND_BITS_ONE_BUCKET,
            entry: "count",
            groups: Groups::Tiles,
        },
        SCAN_TABLE,
        ExpandPass {
            name: "expand_spine_one_bucket",
            kernel: &kernels::EXPAND_SPINE_ONE_BUCKET,
            entry: "spine",
            groups: Groups::One,
        },
        ExpandPass {
            name: "expand_write_one_bucket",
            kernel: &kernels::EXPAND_BITS_ONE_BUCKET,
            entry: "write",
            groups: Groups::Tiles,
        },
    ],
    few: &[
        ExpandPass {
            name: "expand_count_few_one_bucket",
            kernel: &kernels::EXPAND_FEW_ONE_BUCKET,
            entry: "count_few",
            groups: Groups::Tiles,
        },
        ExpandPass {
            name: "expand_write_few_one_bucket",
            kernel: &kernels::EXPAND_FEW_ONE_BUCKET,
            entry: "write_few",
            groups: Groups::TilesAndPlan,
        },
    ],
    items: ExpandPass {
        name: "expand_items_one_bucket",
        kernel: &kernels::EXPAND_ITEMS_ONE_BUCKET,
        entry: "expand",
        groups: Groups::Items,
    },
};
