// A workgroup writes the ids of a block.

struct Own {
    thread: u32,
}

var<workgroup> thread_sums: array<vec3<u32>, BLOCK_THREADS>;
var<workgroup> own_places: array<u32, BLOCK_THREADS>;
var<workgroup> own_survivors: array<u32, BLOCK_THREADS>;
var<workgroup> block_words: array<u32, BLOCK_WORDS>;
// Survivors of the block before each word.
var<workgroup> before_word: array<u32, BLOCK_WORDS>;

// The sum of `value` over all threads.
fn add_up(own: Own, value: vec3<u32>) -> vec3<u32> {
    thread_sums[own.thread] = value;
    workgroupBarrier();
    for (var span = BLOCK_THREADS / 2u; span > 0u; span /= 2u) {
        if (own.thread < span) {
            thread_sums[own.thread] += thread_sums[own.thread + span];
        }
        workgroupBarrier();
    }
    let total = thread_sums[0];
    // The next call overwrites the sums.
    workgroupBarrier();
    return total;
}

// The sum of `value` over the threads before.
fn scan_up(own: Own, value: u32) -> u32 {
    var inclusive = value;
    thread_sums[own.thread].x = inclusive;
    workgroupBarrier();
    for (var reach = 1u; reach < BLOCK_THREADS; reach *= 2u) {
        var before = 0u;
        if (own.thread >= reach) {
            before = thread_sums[own.thread - reach].x;
        }
        workgroupBarrier();
        inclusive += before;
        thread_sums[own.thread].x = inclusive;
        workgroupBarrier();
    }
    return inclusive - value;
}

// Writes the ids of one count from `place` on.
fn compact_count(count: u32, place: u32, survivors: u32, own: Own) {
    let chunk = chunks[chunk_of_count(count)];
    let block = (count - chunk.first_count) % chunk.block_count;
    let len = min(chunk.instance_count - block * BLOCK, BLOCK);
    let first_id = chunk.first_instance + block * BLOCK;
    let thread = own.thread;
    if (survivors == len) {
        // All of them: there may be no words.
        for (var i = thread; i < len; i += BLOCK_THREADS) {
            store(place + i, first_id + i);
        }
        return;
    }
    if (thread < BLOCK_WORDS) {
        block_words[thread] = words[count * BLOCK_WORDS + thread];
    }
    workgroupBarrier();
    if (thread < BLOCK_WORDS) {
        var sum = 0u;
        for (var w = 0u; w < thread; w += 1u) {
            sum += countOneBits(block_words[w]);
        }
        before_word[thread] = sum;
    }
    workgroupBarrier();
    for (var i = thread; i < BLOCK; i += BLOCK_THREADS) {
        let word = block_words[i / 32u];
        let bit = 1u << (i % 32u);
        if ((word & bit) != 0u) {
            store(place + before_word[i / 32u] + countOneBits(word & (bit - 1u)), first_id + i);
        }
    }
    // The next block overwrites the words.
    workgroupBarrier();
}

fn compact_few(first_count: u32, end_count: u32, place: u32, own: Own) {
    var before = place;
    for (var count = first_count; count < end_count; count += 1u) {
        let survivors = counts[count];
        if (survivors > 0u) {
            compact_count(count, before, survivors, own);
        }
        before += survivors;
    }
}

fn compact_many(workgroup: u32, workgroups: u32, own: Own) {
    for (var first = workgroup; first < batch.count_len; first += workgroups * BLOCK_THREADS) {
        // Most counts may be zero: as many as there are threads at once.
        let ahead = first + own.thread * workgroups;
        var survivors = 0u;
        if (ahead < batch.count_len) {
            let place = place_of(ahead);
            survivors = place_of(ahead + 1u) - place;
            own_places[own.thread] = place;
        }
        own_survivors[own.thread] = survivors;
        workgroupBarrier();
        for (var k = 0u; k < BLOCK_THREADS && first + k * workgroups < batch.count_len; k += 1u) {
            // The same for all threads.
            if (own_survivors[k] > 0u) {
                compact_count(first + k * workgroups, own_places[k], own_survivors[k], own);
            }
        }
        workgroupBarrier();
    }
}

@compute @workgroup_size(BLOCK_THREADS)
fn compact(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    compact_all(workgroup.x, workgroups.x, Own(thread));
}
