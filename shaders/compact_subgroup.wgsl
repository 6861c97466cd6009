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

// Survivors of all tiles before those of four live counts. A subgroup of 32 lanes has live counts of its own.
fn tiles_before_lives(firsts: vec4<u32>, end: u32, lives: Lives, own: Own) -> vec4<u32> {
    if (own.size != 32u) {
        return tiles_before_all(firsts, end, own);
    }
    let tiles = lives.counts / SCAN_TILE;
    let last = max(max(tiles.x, tiles.y), max(tiles.z, tiles.w));
    var sums = vec4<u32>(0u);
    for (var tile = own.lane; tile < last; tile += 32u) {
        sums += select(vec4<u32>(0u), vec4<u32>(partials[tile]), vec4<u32>(tile) < tiles);
    }
    return subgroupAdd(sums);
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
        for (var i = first_of_line(place, own.lane); i < i32(survivors); i += 32) {
            if (i >= 0) {
                store(place + u32(i), staged[first_staged + u32(i)]);
            }
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
