// Sums over a workgroup by subgroup operations, at any subgroup size from 4 to 128.

struct Own {
    // Threads are numbered subgroup by subgroup.
    thread: u32,
    subgroup: u32,
    lane: u32,
    size: u32,
}

// Of each subgroup: 32 when subgroups have four lanes.
var<workgroup> subgroup_sums: array<vec4<u32>, 32>;

// The sum of `value` over all threads.
fn add_up(own: Own, value: vec4<u32>) -> vec4<u32> {
    let sum = subgroupAdd(value);
    if (own.lane == 0u) {
        subgroup_sums[own.subgroup] = sum;
    }
    workgroupBarrier();
    var total = vec4<u32>(0u);
    for (var s = 0u; s < BLOCK_THREADS / own.size; s += 1u) {
        total += subgroup_sums[s];
    }
    // The next call overwrites the sums.
    workgroupBarrier();
    return total;
}

// Where a subgroup has 32 lanes, each can have a word of a block and go through its bits: a lane with eight bits takes
// eight steps, where 32 lanes with a bit each take one for every word. Up to so many survivors of a block, lanes store
// what they find.
const FEW_SURVIVORS: u32 = 64u;
// Up to so many, what they find is put side by side in workgroup memory first, and stored in one go. Beyond, words are
// so full that lanes with a bit each have enough to do.
const MOST_STAGED: u32 = 320u;

var<workgroup> staged: array<u32, COUNTS_EACH * MOST_STAGED>;

// The lane's word of a count, where survivors are few.
fn word_of(count: u32, survivors: u32, own: Own) -> u32 {
    var word = 0u;
    if (own.size == 32u && survivors > 0u && survivors <= MOST_STAGED) {
        word = words[count * (BLOCK_WORDS / 4u) + own.lane / 4u][own.lane & 3u];
    }
    return word;
}

// Survivors of all tiles before that of the thread's live count. A subgroup of 32 lanes has one of its own.
fn tiles_before_live(at: u32, end: u32, live: Live, own: Own) -> u32 {
    if (own.size != 32u) {
        return tiles_before_any(at, end, own);
    }
    var sum = 0u;
    for (var tile = own.lane; tile < live.count / SCAN_TILE; tile += 32u) {
        sum += partials[tile];
    }
    return subgroupAdd(sum);
}

// Writes the ids of one count a 32 threads; to be called by all threads of the workgroup.
fn write_count_together(count: u32, own_word: u32, place: u32, survivors: u32, own: Own) {
    var block = Counted(0u, 0u);
    if (survivors > 0u) {
        block = counted(count);
    }
    let by_words = (own.size == 32u) & (survivors < block.len) & (survivors <= MOST_STAGED);
    let is_staged = by_words & (survivors > FEW_SURVIVORS);
    let first_staged = own.subgroup * MOST_STAGED;
    if (by_words) {
        let first_id = block.first_id + own.lane * 32u;
        var word = own_word;
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
        write_count(count, block, place, survivors, own.thread % 32u);
    }
    workgroupBarrier();
    if (is_staged) {
        let room = room_for(place, survivors);
        for (var i = own.lane; i < room; i += 32u) {
            put(place + i, staged[first_staged + i]);
        }
    }
    // The next call overwrites what is staged.
    workgroupBarrier();
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
