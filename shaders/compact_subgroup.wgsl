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

// Up to so many survivors of every word, each lane writes those of its own, one after the other.
const SPARSE: u32 = 12u;

// A word a lane, where a subgroup has 32 lanes and survivors are few in all words; false elsewhere.
fn write_words_together(count: u32, first_place: u32, survivors: u32, first_id: u32, own: Own) -> bool {
    if (own.size != 32u || survivors > SPARSE * BLOCK_WORDS) {
        return false;
    }
    let lane = own.lane;
    var word = words[count * (BLOCK_WORDS / 4u) + lane / 4u][lane & 3u];
    let bits = countOneBits(word);
    if (subgroupMax(bits) > SPARSE) {
        return false;
    }
    var place = first_place + subgroupExclusiveAdd(bits);
    while (word != 0u) {
        store(place, first_id + lane * 32u + firstTrailingBit(word));
        place += 1u;
        word &= word - 1u;
    }
    return true;
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
