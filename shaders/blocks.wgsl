// Which block and which chunk a workgroup works on.

fn block_of(workgroup: vec3<u32>, dispatch_width: u32) -> u32 {
    return workgroup.y * dispatch_width + workgroup.x;
}

// The last chunk whose first block is not after `block`. Chunks are in block order and never empty.
fn chunk_of(block: u32, chunk_count: u32) -> u32 {
    var low = 0u;
    var high = chunk_count;
    while (high - low > 1u) {
        let middle = (low + high) / 2u;
        if (chunks[middle].first_block <= block) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}
