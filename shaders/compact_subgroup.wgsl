// Sums over a workgroup by subgroup operations, at any subgroup size from 4 to 128.

struct Own {
    // Threads are numbered subgroup by subgroup.
    thread: u32,
    subgroup: u32,
    lane: u32,
    size: u32,
}

// Of each subgroup: 32 when subgroups have four lanes. Twice, as `block_words`.
var<workgroup> subgroup_sums: array<vec2<u32>, 64>;
// Survivors of each subgroup's words.
var<workgroup> word_totals: array<u32, 8>;

// The sum of `value` over all threads; keeps the words, of the threads below 32, on a side of `block_words`.
fn add_up(own: Own, value: vec2<u32>, word: u32, side: u32) -> vec2<u32> {
    let sum = subgroupAdd(value);
    let bits = countOneBits(word);
    let before = subgroupExclusiveAdd(bits);
    if (own.lane == 0u) {
        subgroup_sums[side + own.subgroup] = sum;
    }
    if (own.thread < BLOCK_WORDS) {
        block_words[side + own.thread] = word;
        before_word[side + own.thread] = before;
        if (own.lane == own.size - 1u && own.size < BLOCK_WORDS) {
            word_totals[own.subgroup] = before + bits;
        }
    }
    workgroupBarrier();
    // A subgroup smaller than the 32 words: add those of the subgroups before.
    if (own.size < BLOCK_WORDS) {
        if (own.thread < BLOCK_WORDS) {
            var sum_of_words = before;
            for (var s = 0u; s < own.subgroup; s += 1u) {
                sum_of_words += word_totals[s];
            }
            before_word[side + own.thread] = sum_of_words;
        }
        workgroupBarrier();
    }
    var total = vec2<u32>(0u);
    for (var s = 0u; s < BLOCK_THREADS / own.size; s += 1u) {
        total += subgroup_sums[side + s];
    }
    return total;
}

@compute @workgroup_size(BLOCK_THREADS)
fn compact(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
) {
    compact_all(workgroup.x, workgroups.x, Own(subgroup * size + lane, subgroup, lane, size));
}
