//! The article's first solution: MAX_N threads for each source. MAX_N is measured, not guessed.

use super::passes::{Arena, ExpandPass, Groups, Strategy, WgslSources};
use crate::cull::shaders::wgsl;
use wgpu::Features;

pub(super) const STRATEGY: Strategy = Strategy {
    ordered: true,
    buckets: false,
    packed: false,
    features: Features::empty(),
    arena: Arena {
        prefixes: |_| 0,
        // A maximum for each workgroup.
        partials: |sources| u64::from(Groups::Tiles.count(sources)),
        sums: true,
        entry: 0,
        most_entries: Some(|_| 0),
    },
    passes: &[
        ExpandPass {
            name: "expand_measure",
            parts: measure,
            entry: "measure",
            groups: Groups::Tiles,
        },
        ExpandPass {
            name: "expand_plan_fixed",
            parts: measure,
            entry: "plan_fixed",
            groups: Groups::One,
        },
    ],
    few: &[],
    items: ExpandPass {
        name: "expand_items_fixed",
        parts: |sources| sources.expanding(&[wgsl!("expand_items_fixed")]),
        entry: "expand",
        groups: Groups::Items,
    },
};

fn measure<'a>(sources: &WgslSources<'a>) -> Vec<&'a str> {
    vec![
        wgsl!("expand_sources"),
        sources.counting,
        wgsl!("expand_sums"),
        wgsl!("expand_plan"),
        wgsl!("expand_measure"),
    ]
}
