// Stage 0. A thread a block tests the block's bounds against every view of its chunk. Counts start as what is
// known: all of the block's instances where it is inside, else none. Blocks that some view keeps or
// crosses go to the list of live blocks, in any order; the others cost nothing further.

@group(0) @binding(0) var<uniform> batch: Batch;
@group(0) @binding(1) var<storage, read> chunks: array<Chunk>;
@group(0) @binding(2) var<storage, read> rows: array<Row>;
@group(0) @binding(3) var<storage, read_write> counts: array<u32>;
@group(0) @binding(4) var<storage, read_write> live: Live;

struct Live {
    count: atomic<u32>,
    // Blocks of the batch; the highest bit says that a view crosses it.
    blocks: array<u32>,
}

const CROSSED: u32 = 0x80000000u;

var<workgroup> own_count: atomic<u32>;
var<workgroup> own_first: u32;

@compute @workgroup_size(1)
fn clear_live() {
    atomicStore(&live.count, 0u);
}

@compute @workgroup_size(CLASSIFY_THREADS)
fn classify(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let block_in_batch = workgroup.x * CLASSIFY_THREADS + thread;
    var is_live = false;
    var is_crossed = false;
    if (block_in_batch < batch.block_count) {
        let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
        let block = block_in_batch - chunk.first_block;
        let bound = bounds[chunk.first_instance / BLOCK + block];
        for (var r = 0u; r < chunk.row_count; r += 1u) {
            let state = block_state(chunk, rows[chunk.first_row + r], bound);
            is_live = is_live | (state != OUTSIDE);
            is_crossed = is_crossed | (state == PARTIAL);
            counts[chunk.first_count + r * chunk.block_count + block] =
                select(0u, block_len(chunk, block), state == INSIDE);
        }
    }
    // One global atomic a workgroup.
    var place = 0u;
    if (is_live) {
        place = atomicAdd(&own_count, 1u);
    }
    workgroupBarrier();
    if (thread == 0u) {
        own_first = atomicAdd(&live.count, atomicLoad(&own_count));
    }
    workgroupBarrier();
    if (is_live) {
        live.blocks[own_first + place] = block_in_batch | select(0u, CROSSED, is_crossed);
    }
}
