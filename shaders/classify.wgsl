// Stage 0. A thread a block tests the block's bounds against every view of its chunk. Counts start as what is
// known: all of the block's instances where it is inside, else none. Blocks that some view crosses go to a list;
// the others cost nothing further.

@group(0) @binding(0) var<uniform> batch: Batch;
@group(0) @binding(1) var<storage, read> chunks: array<Chunk>;
@group(0) @binding(2) var<storage, read> rows: array<Row>;
@group(0) @binding(6) var<storage, read_write> counts: array<u32>;

var<workgroup> own_count: atomic<u32>;
var<workgroup> own_first: u32;

@compute @workgroup_size(CLASSIFY_THREADS)
fn classify(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let block_in_batch = workgroup.x * CLASSIFY_THREADS + thread;
    if (block_in_batch == 0u) {
        atomicStore(&lists.live_count, 0u);
    }
    var is_crossed = false;
    if (block_in_batch < batch.block_count) {
        let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
        let block = block_in_batch - chunk.first_block;
        let at = chunk.first_instance / BLOCK + block;
        let centre = bounds[at].centre;
        let radius = bounds[at].radius;
        let max_scale = bounds[at].max_scale;
        for (var r = 0u; r < chunk.row_count; r += 1u) {
            let state = bound_state(chunk, rows[chunk.first_row + r], centre, radius, max_scale);
            is_crossed = is_crossed | (state == PARTIAL);
            counts[chunk.first_count + r * chunk.block_count + block] =
                select(0u, block_len(chunk, block), state == INSIDE);
        }
    }
    // One global atomic a workgroup.
    var place = 0u;
    if (is_crossed) {
        place = atomicAdd(&own_count, 1u);
    }
    workgroupBarrier();
    if (thread == 0u) {
        let own = atomicLoad(&own_count);
        if (own > 0u) {
            own_first = atomicAdd(&lists.crossed_count, own);
        }
    }
    workgroupBarrier();
    // A list that nobody has emptied (a frame without `compact`) loses blocks rather than overflow.
    if (is_crossed && own_first + place < batch.block_count) {
        lists.entries[own_first + place].x = block_in_batch;
    }
}
