// Sums over a workgroup through its memory.

struct Own {
    thread: u32,
}

// Twice, as `block_words`.
var<workgroup> sums: array<atomic<u32>, 4>;

// The sum of `value` over all threads; keeps the words, of the threads below 32, on a side of `block_words`.
fn add_up(own: Own, value: vec2<u32>, word: u32, side: u32) -> vec2<u32> {
    let at = select(0u, 2u, side != 0u);
    if (value.x != 0u) {
        atomicAdd(&sums[at], value.x);
    }
    if (value.y != 0u) {
        atomicAdd(&sums[at + 1u], value.y);
    }
    if (own.thread < BLOCK_WORDS) {
        block_words[side + own.thread] = word;
    }
    workgroupBarrier();
    if (own.thread < BLOCK_WORDS) {
        var before = 0u;
        for (var w = 0u; w < own.thread; w += 1u) {
            before += countOneBits(block_words[side + w]);
        }
        before_word[side + own.thread] = before;
    }
    let total = vec2<u32>(atomicLoad(&sums[at]), atomicLoad(&sums[at + 1u]));
    workgroupBarrier();
    if (own.thread < 2u) {
        atomicStore(&sums[at + own.thread], 0u);
    }
    return total;
}

@compute @workgroup_size(BLOCK_THREADS)
fn compact(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    compact_all(workgroup.x, workgroups.x, Own(thread));
}
