//! Solution 3's later form: one entry for each source, in bucket floor(log2 N).

use super::{
    passes::{Arena, ExpandPass, Groups, Strategy, WgslSources, table, table_tiles},
    shared::SCAN_TABLE,
};
use crate::cull::shaders::wgsl;
use wgpu::Features;

pub(super) const STRATEGY: Strategy = Strategy {
    ordered: true,
    buckets: true,
    packed: false,
    features: Features::empty(),
    arena: Arena {
        prefixes: table,
        partials: table_tiles,
        sums: true,
        entry: 1,
        most_entries: Some(|sources| sources),
    },
    passes: &[
        ExpandPass {
            name: "expand_count_one_bucket",
            parts: bits,
            entry: "count",
            groups: Groups::Tiles,
        },
        SCAN_TABLE,
        ExpandPass {
            name: "expand_spine_one_bucket",
            parts: |sources| {
                sources.scanning(&[
                    wgsl!("expand_sums"),
                    wgsl!("expand_plan"),
                    wgsl!("expand_lanes_one_bucket"),
                    wgsl!("expand_plan_buckets"),
                    wgsl!("expand_plan_table"),
                    wgsl!("expand_spine"),
                ])
            },
            entry: "spine",
            groups: Groups::One,
        },
        ExpandPass {
            name: "expand_write_one_bucket",
            parts: bits,
            entry: "write",
            groups: Groups::Tiles,
        },
    ],
    few: &[
        ExpandPass {
            name: "expand_count_few_one_bucket",
            parts: few,
            entry: "count",
            groups: Groups::Tiles,
        },
        ExpandPass {
            name: "expand_write_few_one_bucket",
            parts: few,
            entry: "write",
            groups: Groups::TilesAndPlan,
        },
    ],
    items: ExpandPass {
        name: "expand_items_one_bucket",
        parts: |sources| {
            sources.expanding(&[
                wgsl!("expand_find_bucket"),
                wgsl!("expand_items_one_bucket"),
            ])
        },
        entry: "expand",
        groups: Groups::Items,
    },
};

fn bits<'a>(sources: &WgslSources<'a>) -> Vec<&'a str> {
    sources.transposing(&[wgsl!("expand_one_bucket"), wgsl!("expand_bits_many")])
}

fn few<'a>(sources: &WgslSources<'a>) -> Vec<&'a str> {
    sources.transposing(&[
        wgsl!("expand_one_bucket"),
        wgsl!("expand_plan"),
        wgsl!("expand_lanes_one_bucket"),
        wgsl!("expand_plan_buckets"),
        wgsl!("expand_bits_few"),
    ])
}
