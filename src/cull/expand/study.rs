//! The expansions that lead to the buckets, for study, and the pass that they share.

pub(super) mod fixed_max;
pub(super) mod item_list;
pub(super) mod packed_atomic;
pub(super) mod prefix_search;
pub(super) mod workgroup_items;
pub(super) mod workgroup_search;

use super::passes::{Arena, ExpandPass, Groups, Strategy, tiles};
use crate::cull::shaders::kernels;
use wgpu::Features;

/// Prefixes of N.
const SCAN_ITEMS: ExpandPass = ExpandPass {
    name: "expand_scan_items",
    kernel: &kernels::EXPAND_SCAN_ITEMS,
    entry: "scan",
    groups: Groups::Tiles,
};
