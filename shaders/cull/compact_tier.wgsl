// How the threads of `compact` work together: by subgroup operations, at any subgroup size from 4
// to 128, or through workgroup memory.

@if(subgroup) import package::cull::compact::{Counted, ranks, words};
import package::cull::compact::{Occupied, compact_all, counted, tiles_before_any, write_count};
import package::shared::layout::BLOCK_THREADS;
@if(subgroup) import package::shared::layout::{COUNTS_PER_WORKGROUP, SCAN_TILE};
@if(subgroup) import package::shared::survivors::{put, room_for, store};

// By subgroup operations.

@if(subgroup)
struct Thread {
    // Threads are numbered subgroup by subgroup.
    index: u32,
    subgroup: u32,
    lane: u32,
    size: u32,
}

// One sum per subgroup: at most 32, of BLOCK_THREADS threads in subgroups of four lanes.
@if(subgroup) var<workgroup> subgroup_sums: array<vec4<u32>, 32>;

// The sum of `value` over all threads.
@if(subgroup)
fn add_up(thread: Thread, value: vec4<u32>) -> vec4<u32> {
    let sum = subgroupAdd(value);
    if (thread.lane == 0u) {
        subgroup_sums[thread.subgroup] = sum;
    }
    workgroupBarrier();
    var total = vec4<u32>(0u);
    for (var s = 0u; s < BLOCK_THREADS / thread.size; s += 1u) {
        total += subgroup_sums[s];
    }
    // The next call overwrites the sums.
    workgroupBarrier();
    return total;
}

// In a subgroup of 32 lanes, one word per lane takes a step per bit that is set, and one bit per
// lane takes a step per word. The first is faster if few bits are set. Up to FEW_SURVIVORS
// survivors of a block, each lane stores the ids that it finds.
@if(subgroup) override FEW_SURVIVORS: u32;
// Up to MOST_STAGED survivors, the ids become contiguous in workgroup memory first and are stored
// together. Beyond that, words are so full that one bit per lane is faster. No override, because it
// is the size of `staged`.
@if(subgroup) const MOST_STAGED: u32 = 320u;

@if(subgroup) var<workgroup> staged: array<u32, COUNTS_PER_WORKGROUP * MOST_STAGED>;

// The lane's word of a cell, in the row's order, if its survivors are few.
@if(subgroup)
fn word_of(first_word: u32, survivors: u32, thread: Thread) -> u32 {
    var word = 0u;
    if (thread.size == 32u && survivors > 0u && survivors <= MOST_STAGED) {
        let at = first_word ^ thread.lane;
        word = words[at / 4u][at & 3u];
    }
    return word;
}

// Survivors of all tiles before the tile of the thread's cell. A subgroup of 32 lanes has one cell.
@if(subgroup)
fn tiles_before_occupied(at: u32, end: u32, occupied: Occupied, thread: Thread) -> u32 {
    if (thread.size != 32u) {
        return tiles_before_any(at, end, thread);
    }
    var sum = 0u;
    for (var tile = thread.lane; tile < occupied.rank / SCAN_TILE; tile += 32u) {
        sum += ranks.tiles[tile];
    }
    return subgroupAdd(sum);
}

// Writes the ids of one cell per 32 threads. Called by all threads of the workgroup.
@if(subgroup)
fn write_count_together(
    first_word: u32,
    lane_word: u32,
    place: u32,
    survivors: u32,
    thread: Thread,
) {
    var block = Counted(0u, 0u, 0u);
    if (survivors > 0u) {
        block = counted(first_word);
    }
    let by_words = (thread.size == 32u) & (survivors < block.len) & (survivors <= MOST_STAGED);
    let is_staged = by_words & (survivors > FEW_SURVIVORS);
    let first_staged = thread.subgroup * MOST_STAGED;
    if (by_words) {
        let first_id = block.first_id + (thread.lane ^ block.flip) * 32u;
        var word = lane_word;
        var at = subgroupExclusiveAdd(countOneBits(word));
        while (word != 0u) {
            let id = first_id + firstTrailingBit(word);
            if (is_staged) {
                staged[first_staged + at] = id;
            } else {
                store(place + at, id);
            }
            at += 1u;
            word &= word - 1u;
        }
    } else if (survivors > 0u) {
        write_count(first_word, block, place, survivors, thread.index % 32u);
    }
    workgroupBarrier();
    if (is_staged) {
        let room = room_for(place, survivors);
        for (var i = thread.lane; i < room; i += 32u) {
            put(place + i, staged[first_staged + i]);
        }
    }
    // The next call overwrites the staged ids.
    workgroupBarrier();
}

@if(subgroup)
@compute @workgroup_size(BLOCK_THREADS)
fn compact(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
) {
    let thread = Thread(subgroup * size + lane, subgroup, lane, size);
    compact_all(workgroup.x, workgroups.x, thread);
}

// Through workgroup memory.

@if(!subgroup)
struct Thread {
    index: u32,
}

@if(!subgroup) var<workgroup> thread_sums: array<vec4<u32>, BLOCK_THREADS>;

// The sum of `value` over all threads.
@if(!subgroup)
fn add_up(thread: Thread, value: vec4<u32>) -> vec4<u32> {
    thread_sums[thread.index] = value;
    workgroupBarrier();
    for (var span = BLOCK_THREADS / 2u; span > 0u; span /= 2u) {
        if (thread.index < span) {
            thread_sums[thread.index] += thread_sums[thread.index + span];
        }
        workgroupBarrier();
    }
    let total = thread_sums[0];
    // The next call overwrites the sums.
    workgroupBarrier();
    return total;
}

// Without subgroups, `write_count` reads the words.
@if(!subgroup)
fn word_of(first_word: u32, survivors: u32, thread: Thread) -> u32 {
    return 0u;
}

@if(!subgroup)
fn tiles_before_occupied(at: u32, end: u32, occupied: Occupied, thread: Thread) -> u32 {
    return tiles_before_any(at, end, thread);
}

@if(!subgroup)
fn write_count_together(
    first_word: u32,
    lane_word: u32,
    place: u32,
    survivors: u32,
    thread: Thread,
) {
    if (survivors > 0u) {
        write_count(first_word, counted(first_word), place, survivors, thread.index % 32u);
    }
}

@if(!subgroup)
@compute @workgroup_size(BLOCK_THREADS)
fn compact(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    compact_all(workgroup.x, workgroups.x, Thread(thread));
}
