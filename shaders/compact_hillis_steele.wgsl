// The naive scan of article 4 (Hillis and Steele): log2(n) passes over global memory, each of which adds to
// every sum the one `reach` before it; reach doubles from pass to pass.
//
//     flags      1 0 1 1 0
//     reach 1    1 1 1 2 1
//     reach 2    1 1 2 3 2
//     reach 4    1 1 2 3 3     inclusive sums: a survivor is where a sum differs from the one before,
//                              and that one is its place

struct Doubling {
    reach: u32,
    pad_a: u32,
    pad_b: u32,
    pad_c: u32,
}

@group(0) @binding(7) var<uniform> doubling: Doubling;
@group(0) @binding(8) var<storage, read> sums: array<u32>;
@group(0) @binding(9) var<storage, read_write> next_sums: array<u32>;

// A thread a sum, as plain as the article's.
@compute @workgroup_size(BLOCK_THREADS)
fn scan(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let group = block_of(workgroup, groups.x);
    if (group >= batch.count_len * BLOCK_ITEMS) {
        return;
    }
    let at = group * BLOCK_THREADS + thread;
    var sum = sums[at];
    if (at >= doubling.reach) {
        sum += sums[at - doubling.reach];
    }
    next_sums[at] = sum;
}

@compute @workgroup_size(BLOCK_THREADS)
fn compact(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let block_in_batch = block_of(workgroup, batch.dispatch_width);
    if (block_in_batch >= batch.block_count) {
        return;
    }
    let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
    let block = block_in_batch - chunk.first_block;

    for (var r = 0u; r < chunk.row_count; r += 1u) {
        let first = (chunk.first_count + r * chunk.block_count + block) * BLOCK;
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            let i = k * BLOCK_THREADS + thread;
            let at = first + i;
            var before = 0u;
            if (at > 0u) {
                before = sums[at - 1u];
            }
            if (sums[at] != before) {
                store(before, chunk.first_instance + block * BLOCK + i);
            }
        }
    }
}
