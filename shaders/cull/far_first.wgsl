// Sorts the survivors of far-first rows by depth, the farthest first, and writes their ids back to
// the same places of the arena. Survivors of one depth stay in set order. The twin is
// `reference::far_first`.
//
// It is a radix sort [Satish, Harris and Garland 2009]: four rounds, each of which sorts by a digit
// of 8 bits, from the lowest digit to the highest, and keeps the order of equal digits. A row is a
// segment that is sorted alone. Its survivors come in tiles of FAR_FIRST_TILE.
//
//     make_spans     commands of the rows -> the keys and tiles of each row        (once)
//     make_keys      ids -> keys; digits of each tile are counted                  (once)
//     count_digits   the same counts for the digits of the later rounds
//     scan_counts    counts of a row and digit -> sums over the tiles before
//     scatter        keys and ids -> their places by digit
//
//     keys of a row, tiles of 3       2 1 2 | 0 1 2
//     counts of digit 0, 1, 2         0 1 2 | 1 1 1
//     sums over the tiles before      0 0 0 | 0 1 2        totals 1 2 3
//     first places of the digits      0 1 3 | 0 2 5
//     places                          3 1 4 | 0 2 5
//
// No workgroup waits for another one: each entry point is a dispatch. Only the GPU knows how many
// tiles there are, so workgroups stride over them.

import package::shared::layout::{
    CHUNK_HAS_SCALE, CHUNK_NON_UNIFORM_SCALE, CHUNK_OFF_CENTER, DIGITS, DrawCommand,
    FAR_FIRST_THREADS, FAR_FIRST_TILE, FarFirstJob, FarFirstSpan, FarFirstRound, PackedInstance, Totals,
};

@group(0) @binding(0) var<uniform> round_of_sort: FarFirstRound;
@group(0) @binding(1) var<storage, read> jobs: array<FarFirstJob>;
@group(0) @binding(2) var<storage, read> args: Args;
@if(makes_spans)
@group(0) @binding(3) var<storage, read_write> spans: Spans;
@if(!makes_spans)
@group(0) @binding(3) var<storage, read> spans: Spans;
@group(0) @binding(4) var<storage, read> survivors: array<u32>;
@group(0) @binding(5) var<storage, read> instances: array<PackedInstance>;
@group(0) @binding(6) var<storage, read> scales: array<f32>;
@group(0) @binding(7) var<storage, read> keys_in: array<u32>;
@group(0) @binding(8) var<storage, read> ids_in: array<u32>;
@group(0) @binding(9) var<storage, read_write> keys_out: array<u32>;
// The arena in the last round.
@group(0) @binding(10) var<storage, read_write> ids_out: array<u32>;
// Keys per row, digit and tile of the row.
@group(0) @binding(11) var<storage, read_write> counts: array<u32>;
// Keys per row and digit, of rows with several tiles.
@group(0) @binding(12) var<storage, read_write> totals: array<u32>;

struct Args {
    totals: Totals,
    draws: array<DrawCommand>,
}

struct Spans {
    // Tiles of all rows.
    tile_count: u32,
    pad_a: u32,
    pad_b: u32,
    pad_c: u32,
    entries: array<FarFirstSpan>,
}

const_assert FAR_FIRST_THREADS == DIGITS;

// Keys per thread and tile.
const ITEMS: u32 = FAR_FIRST_TILE / FAR_FIRST_THREADS;

var<workgroup> sums: array<u32, FAR_FIRST_THREADS>;

// The sum of the values of this thread and of those before it. All threads call it. `sums` then
// ends with the sum of all.
fn inclusive_sum(value: u32, thread: u32) -> u32 {
    // All threads have read what the last call left.
    workgroupBarrier();
    var sum = value;
    sums[thread] = sum;
    workgroupBarrier();
    for (var reach = 1u; reach < FAR_FIRST_THREADS; reach *= 2u) {
        var other = 0u;
        if (thread >= reach) {
            other = sums[thread - reach];
        }
        workgroupBarrier();
        sum += other;
        sums[thread] = sum;
        workgroupBarrier();
    }
    return sum;
}

fn tiles_of(len: u32) -> u32 {
    return (len + FAR_FIRST_TILE - 1u) / FAR_FIRST_TILE;
}

// ---- Where the keys of each row lie.

// One workgroup. A row whose keys do not fit is not sorted.
@compute @workgroup_size(FAR_FIRST_THREADS)
fn make_spans(@builtin(local_invocation_index) thread: u32) {
    var first_key = 0u;
    var first_tile = 0u;
    for (var first = 0u; first < round_of_sort.job_count; first += FAR_FIRST_THREADS) {
        let j = first + thread;
        var first_survivor = 0u;
        var len = 0u;
        if (j < round_of_sort.job_count) {
            let job = jobs[j];
            let command = args.draws[job.row];
            first_survivor = select(
                command.base_vertex_or_first_instance, command.first_instance,
                job.is_indexed != 0u);
            len = min(command.instance_count, job.most_survivors);
            // A single survivor is sorted.
            len = select(0u, len, len > 1u);
        }
        let end_key = first_key + inclusive_sum(len, thread);
        first_key += sums[FAR_FIRST_THREADS - 1u];
        let first_of_row = end_key - len;
        len = select(0u, len, end_key <= round_of_sort.key_capacity);
        let end_tile = first_tile + inclusive_sum(tiles_of(len), thread);
        first_tile += sums[FAR_FIRST_THREADS - 1u];
        if (j < round_of_sort.job_count) {
            let tile = end_tile - tiles_of(len);
            spans.entries[j] = FarFirstSpan(first_survivor, len, first_of_row, tile);
        }
    }
    if (thread == 0u) {
        spans.tile_count = first_tile;
    }
}

// A tile of a row.
struct Tile {
    job: u32,
    // Its number in the row, and the number of tiles of the row.
    in_row: u32,
    of_row: u32,
    // Its first key in the row, and the end of its keys.
    first: u32,
    end: u32,
}

// The tile with a number: of the last row whose first tile is not after it.
fn tile_at(tile: u32) -> Tile {
    var low = 0u;
    var high = round_of_sort.job_count;
    while (high - low > 1u) {
        let middle = (low + high) / 2u;
        if (spans.entries[middle].first_tile <= tile) {
            low = middle;
        } else {
            high = middle;
        }
    }
    let len = spans.entries[low].len;
    let in_row = tile - spans.entries[low].first_tile;
    let first = in_row * FAR_FIRST_TILE;
    return Tile(low, in_row, tiles_of(len), first, min(len, first + FAR_FIRST_TILE));
}

// The place in `counts` of a digit of a tile.
fn count_at(tile: Tile, digit: u32) -> u32 {
    let first = spans.entries[tile.job].first_tile * DIGITS;
    return first + digit * tile.of_row + tile.in_row;
}

// ---- The keys.
//
// Bevy sorts its blended entities by the depth of the center of their meshes' boxes, ascending
// along the axis towards the viewer. A key has the order of the depth's float. The depth is exact
// on every device that multiplies and adds as IEEE 754 says: each factor is divided into parts of
// at most 12 bits, so products are exact, and a device that fuses a product with a sum gets the
// same sum. Numbers below 2^-40 count as zero: then no sum is a subnormal number, which a device
// may take for zero. The offset of the depth is left out, because it is the same for the whole row.

const LEAST: f32 = 0x1p-40;
const MOST: f32 = 0x1p100;
const MOST_SCALE: f32 = 0x1p30;

// The 12 highest bits of each number.
fn head(value: vec3<f32>) -> vec3<f32> {
    return bitcast<vec3<f32>>(bitcast<vec3<u32>>(value) & vec3<u32>(0xfffff000u));
}

// The sum of the coordinates along the axis.
fn depth_of(center: vec3<f32>, axis: vec3<f32>) -> f32 {
    let bounded = clamp(center, vec3<f32>(-MOST), vec3<f32>(MOST));
    let at = select(vec3<f32>(0.0), bounded, abs(bounded) >= vec3<f32>(LEAST));
    let at_head = head(at);
    let axis_head = head(axis);
    let at_tail = at - at_head;
    let axis_tail = axis - axis_head;
    let a = at_tail * axis_tail;
    let b = at_head * axis_tail;
    let c = at_tail * axis_head;
    let d = at_head * axis_head;
    let low = (((((((a.x + a.y) + a.z) + b.x) + b.y) + b.z) + c.x) + c.y) + c.z;
    return ((d.x + d.y) + d.z) + low;
}

// Sum of the squares of a rotation's components, in units of a quarter of a code of the packed
// rotation: 16 * 2 * 511 * 511.
const SQUARES: i32 = 8355872;

// 1 / 4096 of a part of a rotation matrix, rounded.
fn part(value: i32) -> f32 {
    return f32((value + 2048) >> 12u);
}

// The center of a mesh, rotated as an instance is, to about 10 bits. In integers until the sums:
// the decoding in shared/instance.wgsl is not exact.
fn turn(rotation: u32, center: vec3<f32>) -> vec3<f32> {
    let codes = vec3<u32>(rotation, rotation >> 10u, rotation >> 20u) & vec3<u32>(1023u);
    let v = (vec3<i32>(codes) - 511) * 4;
    let rest = u32(max(0, SQUARES - (v.x * v.x + v.y * v.y + v.z * v.z)));
    // The square root, rounded down: the device's own may be off by one.
    var root = u32(sqrt(f32(rest)));
    root -= select(0u, 1u, root * root > rest);
    root += select(0u, 1u, (root + 1u) * (root + 1u) <= rest);
    let largest = i32(root);
    var q = vec4<i32>(v, largest);
    switch rotation >> 30u {
        case 0u: { q = vec4<i32>(largest, v); }
        case 1u: { q = vec4<i32>(v.x, largest, v.yz); }
        case 2u: { q = vec4<i32>(v.xy, largest, v.z); }
        default: {}
    }
    let x = vec3<f32>(
        part(SQUARES - 2 * (q.y * q.y + q.z * q.z)),
        part(2 * (q.x * q.y + q.w * q.z)),
        part(2 * (q.x * q.z - q.w * q.y)));
    let y = vec3<f32>(
        part(2 * (q.x * q.y - q.w * q.z)),
        part(SQUARES - 2 * (q.x * q.x + q.z * q.z)),
        part(2 * (q.y * q.z + q.w * q.x)));
    let z = vec3<f32>(
        part(2 * (q.x * q.z + q.w * q.y)),
        part(2 * (q.y * q.z - q.w * q.x)),
        part(SQUARES - 2 * (q.x * q.x + q.y * q.y)));
    return (x * center.x + y * center.y) + z * center.z;
}

fn key_of(job: FarFirstJob, id: u32) -> u32 {
    let instance = instances[id];
    var center = instance.position;
    if ((job.flags & CHUNK_OFF_CENTER) != 0u) {
        if ((job.flags & CHUNK_NON_UNIFORM_SCALE) != 0u) {
            let scale = vec3<f32>(scales[id * 3u], scales[id * 3u + 1u], scales[id * 3u + 2u]);
            let stretched = job.center * head(clamp(scale, vec3<f32>(-MOST_SCALE), vec3<f32>(MOST_SCALE)));
            center += head(turn(instance.rotation, head(stretched)));
        } else {
            var scale = 1.0;
            if ((job.flags & CHUNK_HAS_SCALE) != 0u) {
                scale = clamp(scales[id], -MOST_SCALE, MOST_SCALE);
            }
            let offset = head(turn(instance.rotation, job.center));
            center += offset * head(vec3<f32>(scale));
        }
    }
    let depth = depth_of(center, job.axis);
    let bits = select(bitcast<u32>(depth), 0u, depth == 0.0);
    return bits ^ select(0x80000000u, 0xffffffffu, (bits >> 31u) == 1u);
}

var<workgroup> digit_counts: array<atomic<u32>, DIGITS>;

fn add_digit(key: u32) {
    atomicAdd(&digit_counts[(key >> round_of_sort.shift) % DIGITS], 1u);
}

// Makes the keys of the first round.
@compute @workgroup_size(FAR_FIRST_THREADS)
fn make_keys(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    for (var t = workgroup.x; t < spans.tile_count; t += workgroups.x) {
        let tile = tile_at(t);
        let job = jobs[tile.job];
        let span = spans.entries[tile.job];
        atomicStore(&digit_counts[thread], 0u);
        workgroupBarrier();
        for (var i = tile.first + thread; i < tile.end; i += FAR_FIRST_THREADS) {
            let id = survivors[span.first_survivor + i];
            let key = key_of(job, id);
            keys_out[span.first_key + i] = key;
            ids_out[span.first_key + i] = id;
            add_digit(key);
        }
        workgroupBarrier();
        counts[count_at(tile, thread)] = atomicLoad(&digit_counts[thread]);
    }
}

@compute @workgroup_size(FAR_FIRST_THREADS)
fn count_digits(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    for (var t = workgroup.x; t < spans.tile_count; t += workgroups.x) {
        let tile = tile_at(t);
        let first_key = spans.entries[tile.job].first_key;
        atomicStore(&digit_counts[thread], 0u);
        workgroupBarrier();
        for (var i = tile.first + thread; i < tile.end; i += FAR_FIRST_THREADS) {
            add_digit(keys_in[first_key + i]);
        }
        workgroupBarrier();
        counts[count_at(tile, thread)] = atomicLoad(&digit_counts[thread]);
    }
}

// ---- The places.

const SCAN_ITEMS: u32 = 4u;

// A workgroup scans the counts of a digit and row, and strides over the rows that may have several
// tiles. They come first.
@compute @workgroup_size(FAR_FIRST_THREADS)
fn scan_counts(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let digit = workgroup.x;
    for (var j = workgroup.y; j < round_of_sort.large_count; j += workgroups.y) {
        let tiles = tiles_of(spans.entries[j].len);
        let first = spans.entries[j].first_tile * DIGITS + digit * tiles;
        var before = 0u;
        // The tile of a row with a single one needs no sums.
        for (var t = 0u; t < tiles && tiles > 1u; t += SCAN_ITEMS * FAR_FIRST_THREADS) {
            var values: vec4<u32>;
            let begin = t + SCAN_ITEMS * thread;
            for (var k = 0u; k < SCAN_ITEMS; k += 1u) {
                if (begin + k < tiles) {
                    values[k] = counts[first + begin + k];
                }
            }
            let of_thread = values.x + values.y + values.z + values.w;
            var sum = before + inclusive_sum(of_thread, thread) - of_thread;
            before += sums[FAR_FIRST_THREADS - 1u];
            for (var k = 0u; k < SCAN_ITEMS; k += 1u) {
                if (begin + k < tiles) {
                    counts[first + begin + k] = sum;
                }
                sum += values[k];
            }
        }
        if (thread == 0u) {
            totals[j * DIGITS + digit] = before;
        }
    }
}

// The place in the row of the tile's next key of each digit.
var<workgroup> places: array<u32, DIGITS>;

const LANES: u32 = 32u;
const GROUPS: u32 = FAR_FIRST_THREADS / LANES;

// Which of the 32 threads of each group have a key with a digit.
var<workgroup> holders: array<atomic<u32>, GROUPS * DIGITS>;

// Moves the keys and ids of a tile. 256 keys at a time, one per thread: a key's place is the next
// one of its digit, plus the keys of the same digit of the threads before, which are bits.
@compute @workgroup_size(FAR_FIRST_THREADS)
fn scatter(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let group = thread / LANES;
    let bit = 1u << (thread % LANES);
    for (var t = workgroup.x; t < spans.tile_count; t += workgroups.x) {
        let tile = tile_at(t);
        let span = spans.entries[tile.job];
        let first_place = select(span.first_key, span.first_survivor, round_of_sort.is_last != 0u);
        // Loaded before the barriers, so that the loads overlap.
        var keys: array<u32, ITEMS>;
        var ids: array<u32, ITEMS>;
        for (var k = 0u; k < ITEMS; k += 1u) {
            let i = tile.first + k * FAR_FIRST_THREADS + thread;
            if (i < tile.end) {
                keys[k] = keys_in[span.first_key + i];
                ids[k] = ids_in[span.first_key + i];
            }
        }
        let count = counts[count_at(tile, thread)];
        let is_alone = tile.of_row == 1u;
        var total = count;
        if (!is_alone) {
            total = totals[tile.job * DIGITS + thread];
        }
        let of_smaller = inclusive_sum(total, thread) - total;
        places[thread] = of_smaller + select(count, 0u, is_alone);
        workgroupBarrier();
        for (var k = 0u; k < ITEMS; k += 1u) {
            let is_key = tile.first + k * FAR_FIRST_THREADS + thread < tile.end;
            let digit = (keys[k] >> round_of_sort.shift) % DIGITS;
            if (is_key) {
                atomicOr(&holders[group * DIGITS + digit], bit);
            }
            workgroupBarrier();
            if (is_key) {
                let before = atomicLoad(&holders[group * DIGITS + digit]) & (bit - 1u);
                var place = places[digit] + countOneBits(before);
                for (var other = 0u; other < group; other += 1u) {
                    place += countOneBits(atomicLoad(&holders[other * DIGITS + digit]));
                }
                ids_out[first_place + place] = ids[k];
                if (round_of_sort.is_last == 0u) {
                    keys_out[first_place + place] = keys[k];
                }
            }
            workgroupBarrier();
            // A thread per digit.
            var held = 0u;
            for (var other = 0u; other < GROUPS; other += 1u) {
                let slot = other * DIGITS + thread;
                held += countOneBits(atomicLoad(&holders[slot]));
                atomicStore(&holders[slot], 0u);
            }
            places[thread] += held;
            workgroupBarrier();
        }
    }
}
