// Reduces a list of survivors to sums that do not depend on its order, and counts the places at
// which the list does not increase. Another list of the same length has the same sums with a
// probability of 1 in 2^64.

struct Digest {
    survivors: atomic<u32>,
    hash_a: atomic<u32>,
    hash_b: atomic<u32>,
    descents: atomic<u32>,
    overflow: atomic<u32>,
}

struct Page {
    // Added to the ids, which count from the start of their page.
    first: u32,
    // Added to the first id to spoil the result. The host must then reject it.
    spoil: u32,
    // Index of the command that is checked, in words.
    command: u32,
    // 1 if the batch has other commands.
    several: u32,
}

@group(0) @binding(0) var<uniform> page: Page;
// `cull::layout::Totals`, whose first word is the number of survivors, then the commands.
@group(0) @binding(1) var<storage, read> args: array<u32>;
@group(0) @binding(2) var<storage, read> survivors: array<u32>;
@group(0) @binding(3) var<storage, read_write> digest: Digest;

var<workgroup> sums: array<vec3<u32>, 256>;

// PCG's output function.
fn hash(value: u32) -> u32 {
    let state = value * 747796405u + 2891336453u;
    let word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
    return (word >> 22u) ^ word;
}

@compute @workgroup_size(256)
fn digest_survivors(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    // The draw has no indices, so the command holds vertices, instances, first vertex and first
    // instance.
    let last = arrayLength(&survivors);
    let command = page.command;
    let count = min(args[command + 1u], last);
    let first = min(args[command + 3u], last - count);
    var sum = vec3<u32>(0u);
    for (var i = id.x; i < count; i += groups.x * 256u) {
        var survivor = survivors[first + i];
        if (i == 0u) {
            survivor += page.spoil;
        }
        let whole = survivor + page.first;
        sum += vec3<u32>(hash(whole), hash(whole ^ 0x9e3779b9u), 0u);
        if (i > 0u && survivors[first + i - 1u] >= survivors[first + i]) {
            sum.z += 1u;
        }
    }
    sums[thread] = sum;
    workgroupBarrier();
    if (thread == 0u) {
        for (var t = 1u; t < 256u; t += 1u) {
            sum += sums[t];
        }
        atomicAdd(&digest.hash_a, sum.x);
        atomicAdd(&digest.hash_b, sum.y);
        atomicAdd(&digest.descents, sum.z);
        if (id.x == 0u) {
            atomicAdd(&digest.survivors, count);
            // With several rows, the totals are the sum over all rows. Then only an excess is
            // visible here.
            atomicAdd(&digest.overflow, args[1] + max(args[0], count) - select(min(args[0], count), args[0], page.several == 1u));
        }
    }
}
