// A subgroup, of any size from 4 to 128, writes the ids of a block; subgroups do not wait for each other.

struct Own {
    // Threads are numbered subgroup by subgroup.
    thread: u32,
    subgroup: u32,
    lane: u32,
    size: u32,
}

// Of each subgroup: 32 when subgroups have four lanes.
var<workgroup> subgroup_sums: array<vec3<u32>, 32>;

// The sum of `value` over all threads.
fn add_up(own: Own, value: vec3<u32>) -> vec3<u32> {
    let sum = subgroupAdd(value);
    if (own.lane == 0u) {
        subgroup_sums[own.subgroup] = sum;
    }
    workgroupBarrier();
    var total = vec3<u32>(0u);
    for (var s = 0u; s < BLOCK_THREADS / own.size; s += 1u) {
        total += subgroup_sums[s];
    }
    // The next call overwrites the sums.
    workgroupBarrier();
    return total;
}

// The sum of `value` over the threads before.
fn scan_up(own: Own, value: u32) -> u32 {
    var before = subgroupExclusiveAdd(value);
    if (own.lane == own.size - 1u) {
        subgroup_sums[own.subgroup].x = before + value;
    }
    workgroupBarrier();
    for (var s = 0u; s < own.subgroup; s += 1u) {
        before += subgroup_sums[s].x;
    }
    return before;
}

// Writes the ids of one count from `place` on.
//
//     words of a block (4 bits each here)    0110 1001
//     survivors before each word             0    2
//     bit 4 of the block: 2 + bits below it in its word (0) = place 2 in the block
fn compact_count(count: u32, place: u32, survivors: u32, own: Own) {
    let chunk = chunks[chunk_of_count(count)];
    let block = (count - chunk.first_count) % chunk.block_count;
    let len = min(chunk.instance_count - block * BLOCK, BLOCK);
    let first_id = chunk.first_instance + block * BLOCK;
    if (survivors == len) {
        // All of them: there may be no words.
        for (var i = own.lane; i < len; i += own.size) {
            store(place + i, first_id + i);
        }
        return;
    }
    // A word a lane; small subgroups take several turns.
    var before_turn = place;
    for (var turn = 0u; turn < BLOCK_WORDS; turn += own.size) {
        var word = 0u;
        if (turn + own.lane < BLOCK_WORDS) {
            word = words[count * BLOCK_WORDS + turn + own.lane];
        }
        let bits = countOneBits(word);
        let before = before_turn + subgroupExclusiveAdd(bits);
        before_turn += subgroupAdd(bits);
        let end = min(own.size, BLOCK_WORDS - turn) * 32u;
        for (var i = own.lane; i < end; i += own.size) {
            let its_word = subgroupShuffle(word, i / 32u);
            let its_before = subgroupShuffle(before, i / 32u);
            let bit = 1u << (i % 32u);
            if ((its_word & bit) != 0u) {
                store(its_before + countOneBits(its_word & (bit - 1u)), first_id + turn * 32u + i);
            }
        }
    }
}

fn compact_few(first_count: u32, end_count: u32, place: u32, own: Own) {
    for (var count = first_count + own.subgroup; count < end_count; count += BLOCK_THREADS / own.size) {
        var before = place;
        for (var c = first_count; c < count; c += 1u) {
            before += counts[c];
        }
        let survivors = counts[count];
        if (survivors > 0u) {
            compact_count(count, before, survivors, own);
        }
    }
}

fn compact_many(workgroup: u32, workgroups: u32, own: Own) {
    let subgroups = BLOCK_THREADS / own.size;
    let step = workgroups * subgroups;
    for (var first = workgroup * subgroups + own.subgroup; first < batch.count_len; first += step * own.size) {
        // Most counts may be zero: as many as there are lanes at once.
        let ahead = first + own.lane * step;
        var place = 0u;
        var survivors = 0u;
        if (ahead < batch.count_len) {
            place = place_of(ahead);
            survivors = place_of(ahead + 1u) - place;
        }
        let some = subgroupBallot(survivors > 0u);
        for (var part = 0u; part < 4u; part += 1u) {
            var left = component(some, part);
            while (left != 0u) {
                let lane = part * 32u + firstTrailingBit(left);
                left &= left - 1u;
                compact_count(first + lane * step, subgroupShuffle(place, lane), subgroupShuffle(survivors, lane), own);
            }
        }
    }
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
