//! The pass that the buckets share.

use super::passes::{ExpandPass, Groups};
use crate::cull::shaders::kernels;

/// Prefixes of the table of tiles and buckets.
pub(super) const SCAN_TABLE: ExpandPass = ExpandPass {
    name: "expand_scan_table",
    kernel: &kernels::EXPAND_SCAN_TABLE,
    entry: "scan_table",
    groups: Groups::TableTiles,
};
