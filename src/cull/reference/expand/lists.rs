//! Twin of `shaders/study/list.wesl`, `item_list.wesl` and `workgroup_items.wesl`.

use super::expand_place_of;
use crate::cull::layout::expand::EXPAND_CHUNK;

/// Number of entries of a source: one per workgroup of its items.
#[must_use]
pub fn weight_of_groups(items: u32) -> u32 {
    items.div_ceil(EXPAND_CHUNK)
}

/// The entries (source, index of the entry in the source) of sources with these weights, as far as
/// they fit.
#[must_use]
pub fn item_list(
    weights: &[u32],
    prefixes: &[u32],
    partials: &[u32],
    entry_capacity: u32,
) -> Vec<[u32; 2]> {
    let mut entries = Vec::new();
    for (weight, source) in weights.iter().zip(0..) {
        let place = expand_place_of(prefixes, partials, source);
        let count = (*weight).min(entry_capacity.saturating_sub(place));
        entries.extend((0..count).map(|k| [source, k]));
    }
    entries
}

/// The items of a list of items.
pub fn list_items(entries: &[[u32; 2]], mut expand: impl FnMut(u32, u32)) {
    for [source, item] in entries {
        expand(*source, *item);
    }
}

/// The items of a list of workgroups.
pub fn workgroup_items(entries: &[[u32; 2]], counts: &[u32], mut expand: impl FnMut(u32, u32)) {
    for [source, group] in entries {
        for thread in 0..EXPAND_CHUNK {
            let item = group * EXPAND_CHUNK + thread;
            if item < counts[*source as usize] {
                expand(*source, item);
            }
        }
    }
}
