//! Passes that expansions share.

use super::passes::{ExpandPass, Groups};
use crate::cull::shaders::wgsl;

/// Prefixes of N.
pub(super) const SCAN_ITEMS: ExpandPass = ExpandPass {
    name: "expand_scan_items",
    parts: |sources| {
        sources.scanning(&[
            sources.counting,
            wgsl!("expand_weight_items"),
            wgsl!("expand_scan"),
        ])
    },
    entry: "scan",
    groups: Groups::Tiles,
};

/// Prefixes of the table of tiles and buckets.
pub(super) const SCAN_TABLE: ExpandPass = ExpandPass {
    name: "expand_scan_table",
    parts: |sources| sources.scanning(&[wgsl!("expand_scan_table")]),
    entry: "scan_table",
    groups: Groups::TableTiles,
};
