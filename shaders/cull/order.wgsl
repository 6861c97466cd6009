// The order of each row: near units first, so that what is drawn first hides what comes later. A
// unit is some words of a block, or the block (batch.unit_words). Units are sorted by rings of
// distance from the view. Units of one ring stay in set order, so a view that stands still gets the
// same order in every frame, on every tier. The twin is `reference::order`.
//
//     units of a row        0  1  2  3  4  5
//     rings                 2  0  5  2  0  1
//     ranks -> units        1  4  5  0  3  2
//
// One workgroup sorts a tile of ORDER_TILE units. In a row of several tiles, `order_rings` counts
// the units of each tile and ring first, and the place of a unit among the tiles is the sum of the
// rings before its own, and of the tiles before its own in its ring.
//
// A unit gets a flip, too: its words in near-first order. The words of a block are halved five
// times. If the second half is nearer to the view, the halves change places, which is one bit of an
// exclusive or: word `k ^ flip` comes at place k.
//
//     8 words along x, the view at the far end of x      flip 111: 7 6 5 4 3 2 1 0
//
// Every step is exact, in integers, or a single rounded operation. No product is added to a sum
// before it is rounded, so a device that fuses the two gets the same order.

import package::shared::layout::{
    BLOCK, BLOCK_WORDS, ORDER_THREADS, ORDER_TILE, RINGS, ViewOrder, batch, chunk_views, chunks,
};
import package::shared::visibility::{bounds, is_loose, word_steps};
@if(!strips) import package::cull::lists::ranks;
@if(strips) import package::cull::look_back::{first_rank, look_back};

// Units per tile and ring of rows with several tiles.
@group(0) @binding(12) var<storage, read_write> rings: array<u32>;

// A tile of a row.
struct Tile {
    chunk: u32,
    row: u32,
    // Its number in the row, and the number of tiles of the row.
    in_row: u32,
    of_row: u32,
    // Units of the tile.
    len: u32,
}

// The tile of a workgroup: of the last chunk whose first tile is not after it.
fn tile_at(tile: u32) -> Tile {
    var low = 0u;
    var high = batch.chunk_count;
    while (high - low > 1u) {
        let middle = (low + high) / 2u;
        if (chunks[middle].first_order_tile <= tile) {
            low = middle;
        } else {
            high = middle;
        }
    }
    let units = chunks[low].block_count * (BLOCK_WORDS / batch.unit_words);
    let each = (units + ORDER_TILE - 1u) / ORDER_TILE;
    let in_chunk = tile - chunks[low].first_order_tile;
    let in_row = in_chunk % each;
    let len = min(units - in_row * ORDER_TILE, ORDER_TILE);
    return Tile(low, chunks[low].first_row + in_chunk / each, in_row, each, len);
}

// Shift of a float's bits that leaves 32 steps per doubling.
const STEP_BITS: u32 = 18u;
// Steps of a depth per ring.
const RING_STEPS: i32 = 64;
const MOST_STEPS: f32 = 2.68435456e8;

// The ring of a place, in the set's space.
//
// From a point, rings are 32 per doubling of |x| + |y| + |z|. Like the distance, it grows along
// every ray from the eye. Without a point of view, they are slices of the depth.
fn ring_of(order: ViewOrder, center: vec3<f32>) -> u32 {
    var step = 0;
    if (order.eye.w != 0.0) {
        let away = abs(center - order.eye.xyz);
        step = i32(bitcast<u32>((away.x + away.y) + away.z) >> STEP_BITS);
    } else {
        let along = clamp(
            center * order.eye.xyz, vec3<f32>(-MOST_STEPS), vec3<f32>(MOST_STEPS));
        let steps = vec3<i32>(along);
        step = (steps.x + steps.y + steps.z) / RING_STEPS;
    }
    return u32(clamp(step - order.first_step, 0, i32(RINGS) - 1));
}

// The flip of a block: one bit per halving whose second half is nearer.
fn flip_of(order: ViewOrder, center: vec3<f32>, halves: u32) -> u32 {
    let away = select(order.eye.xyz, center - order.eye.xyz, order.eye.w != 0.0);
    var flip = 0u;
    for (var level = 0u; level < 5u; level += 1u) {
        let code = (halves >> (3u * level)) & 7u;
        if (code != 0u) {
            let along = away[min((code - 1u) / 2u, 2u)];
            if (select(along, -along, (code & 1u) == 0u) < 0.0) {
                flip |= (BLOCK_WORDS / 2u) >> level;
            }
        }
    }
    return flip;
}

// The place by which a unit is sorted: the center of its block, or of its middle word. The product
// is exact, so a fused sum is the same.
fn unit_center(at: u32, first_word: u32) -> vec3<f32> {
    let center = bounds[at].center;
    if (batch.unit_words == BLOCK_WORDS || is_loose(at)) {
        return center;
    }
    let steps = word_steps(bounds[at].words[first_word + batch.unit_words / 2u]);
    // About a 128th of the radius, with 8 bits of precision.
    let step = bitcast<f32>(bitcast<u32>(bounds[at].radius) & 0xffff0000u) * (1.0 / 128.0);
    return center + (vec3<f32>(steps.xyz) - 128.0) * step;
}

// A unit: its ring, and its first word in the row plus its flip.
struct Unit {
    ring: u32,
    first_word: u32,
}

fn unit_at(tile: Tile, in_tile: u32) -> Unit {
    let word = (tile.in_row * ORDER_TILE + in_tile) * batch.unit_words;
    let order = chunk_views[tile.row].planes.order;
    if (order.is_near_first == 0u) {
        return Unit(0u, word);
    }
    let block = word / BLOCK_WORDS;
    let at = chunks[tile.chunk].first_instance / BLOCK + block;
    // A flip would bring the gap of a block that is not full to its beginning.
    let is_full = (block + 1u) * BLOCK <= chunks[tile.chunk].instance_count;
    let flip = select(0u, flip_of(order, bounds[at].center, bounds[at].halves), is_full);
    let ring = ring_of(order, unit_center(at, word % BLOCK_WORDS));
    return Unit(ring, word | (flip % batch.unit_words));
}

var<workgroup> ring_sums: array<atomic<u32>, RINGS>;

@compute @workgroup_size(ORDER_THREADS)
fn order_rings(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let index = workgroup.y * workgroups.x + workgroup.x;
    if (index >= batch.order_tile_count) {
        return;
    }
    let tile = tile_at(index);
    if (tile.of_row == 1u) {
        return;
    }
    for (var i = thread; i < tile.len; i += ORDER_THREADS) {
        atomicAdd(&ring_sums[unit_at(tile, i).ring], 1u);
    }
    workgroupBarrier();
    for (var ring = thread; ring < RINGS; ring += ORDER_THREADS) {
        rings[index * RINGS + ring] = atomicLoad(&ring_sums[ring]);
    }
}

// ---- The sort of a tile: a counting sort by ring. The units come in groups of GROUP, and a byte
// counts the units of each group and ring.

const GROUP: u32 = 64u;
const GROUPS: u32 = ORDER_TILE / GROUP;
const ITEMS: u32 = ORDER_TILE / ORDER_THREADS;
// Four groups per word.
const RING_COUNTS: u32 = GROUPS / 4u;
const_assert GROUP <= 255u;
const_assert RINGS == 2u * ORDER_THREADS;
const NO_RING: u32 = 0xffffffffu;

var<workgroup> unit_rings: array<u32, ORDER_TILE>;
var<workgroup> group_counts: array<atomic<u32>, RINGS * RING_COUNTS>;
// The rank in the row of the tile's first unit of each ring.
var<workgroup> ring_ranks: array<u32, RINGS>;

// The sum of the four bytes of a word.
fn byte_sum(bytes: u32) -> u32 {
    let pairs = (bytes & 0x00ff00ffu) + ((bytes >> 8u) & 0x00ff00ffu);
    return (pairs & 0xffffu) + (pairs >> 16u);
}

// Units of the ring in the groups before `group`.
fn before_group(ring: u32, group: u32) -> u32 {
    var sum = 0u;
    for (var w = 0u; w < group / 4u; w += 1u) {
        sum += byte_sum(atomicLoad(&group_counts[ring * RING_COUNTS + w]));
    }
    if (group % 4u != 0u) {
        let bytes = atomicLoad(&group_counts[ring * RING_COUNTS + group / 4u]);
        sum += byte_sum(bytes & ((1u << (8u * (group % 4u))) - 1u));
    }
    return sum;
}

// What the row and the tiles of the row before this one have of a ring.
struct RingUnits {
    all: u32,
    before: u32,
}

fn units_of_ring(index: u32, tile: Tile, ring: u32) -> RingUnits {
    if (tile.of_row == 1u) {
        return RingUnits(before_group(ring, GROUPS), 0u);
    }
    let first = index - tile.in_row;
    var all = 0u;
    var before = 0u;
    for (var t = 0u; t < tile.of_row; t += 1u) {
        let units = rings[(first + t) * RINGS + ring];
        all += units;
        before += select(0u, units, t < tile.in_row);
    }
    return RingUnits(all, before);
}

// Finds the rank of the tile's first unit of each ring. A thread has two neighboring rings.
fn rank_rings(index: u32, tile: Tile, thread: u32) {
    let near = units_of_ring(index, tile, 2u * thread);
    let far = units_of_ring(index, tile, 2u * thread + 1u);
    var sum = near.all + far.all;
    ring_ranks[thread] = sum;
    workgroupBarrier();
    for (var reach = 1u; reach < ORDER_THREADS; reach *= 2u) {
        var other = 0u;
        if (thread >= reach) {
            other = ring_ranks[thread - reach];
        }
        workgroupBarrier();
        sum += other;
        ring_ranks[thread] = sum;
        workgroupBarrier();
    }
    let first = sum - near.all - far.all;
    // All threads have read the sums.
    ring_ranks[2u * thread] = first + near.before;
    ring_ranks[2u * thread + 1u] = first + near.all + far.before;
    workgroupBarrier();
}

@compute @workgroup_size(ORDER_THREADS)
fn order(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let index = workgroup.y * workgroups.x + workgroup.x;
    if (index >= batch.order_tile_count) {
        return;
    }
    let tile = tile_at(index);
    var units: array<Unit, ITEMS>;
    for (var k = 0u; k < ITEMS; k += 1u) {
        let i = k * ORDER_THREADS + thread;
        units[k].ring = NO_RING;
        if (i < tile.len) {
            units[k] = unit_at(tile, i);
            let byte = 8u * (i / GROUP % 4u);
            let word = units[k].ring * RING_COUNTS + i / GROUP / 4u;
            atomicAdd(&group_counts[word], 1u << byte);
        }
        unit_rings[i] = units[k].ring;
    }
    workgroupBarrier();
    rank_rings(index, tile, thread);
    let chunk_cell = chunk_views[tile.row].first_count;
    for (var k = 0u; k < ITEMS; k += 1u) {
        let i = k * ORDER_THREADS + thread;
        let ring = units[k].ring;
        if (ring != NO_RING) {
            var rank = ring_ranks[ring] + before_group(ring, i / GROUP);
            for (var other = i / GROUP * GROUP; other < i; other += 1u) {
                rank += select(0u, 1u, unit_rings[other] == ring);
            }
            let first_word = chunk_cell * BLOCK_WORDS + units[k].first_word;
            write_rank(chunk_cell * (BLOCK_WORDS / batch.unit_words) + rank, first_word);
        }
    }
}

@if(!strips)
fn write_rank(rank: u32, first_word: u32) {
    ranks.entries[rank].first_word = first_word;
}

@if(strips)
fn write_rank(rank: u32, first_word: u32) {
    atomicStore(&look_back.statuses[first_rank() + rank], first_word);
}
