//! Solution 1 as the article notes it for large N: an entry for each workgroup of items.

use super::passes::{Arena, ExpandPass, Groups, Strategy, tiles};
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
        sums: true,
        entry: 2,
        most_entries: None,
    },
    passes: &[SCAN, SPINE, LIST],
    few: &[],
    items: ExpandPass {
        name: "expand_items_groups",
        parts: |sources| sources.expanding(&[wgsl!("expand_items_groups")]),
        entry: "expand",
        groups: Groups::Items,
    },
};

const SCAN: ExpandPass = ExpandPass {
    name: "expand_scan_groups",
    parts: |sources| {
        sources.scanning(&[
            sources.counting,
            wgsl!("expand_sums"),
            wgsl!("expand_weight_groups"),
            wgsl!("expand_scan"),
        ])
    },
    entry: "scan",
    groups: Groups::Tiles,
};

const SPINE: ExpandPass = ExpandPass {
    name: "expand_spine_groups",
    parts: |sources| {
        sources.scanning(&[
            wgsl!("expand_sums"),
            wgsl!("expand_plan"),
            wgsl!("expand_plan_groups"),
            wgsl!("expand_spine"),
        ])
    },
    entry: "spine",
    groups: Groups::One,
};

const LIST: ExpandPass = ExpandPass {
    name: "expand_list_groups",
    parts: |sources| {
        vec![
            wgsl!("expand_sources"),
            sources.counting,
            wgsl!("expand_weight_groups"),
            wgsl!("expand_list"),
        ]
    },
    entry: "list",
    groups: Groups::Threads,
};
