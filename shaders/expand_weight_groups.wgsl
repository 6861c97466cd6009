// An entry for each workgroup of items. The items are summed by expand_sums.wgsl.

fn weight_of(items: u32) -> u32 {
    return items / EXPAND_CHUNK + select(0u, 1u, items % EXPAND_CHUNK != 0u);
}
