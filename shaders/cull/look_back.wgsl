// All stages in one pass: a workgroup takes a strip, some blocks of one row, votes on its words,
// finds the strip's place by look-back and writes its ids. A strip that ends a row writes the row's
// command.
//
// The place of a strip is the sum of all strips before it. It is found in the very pass that counts
// them, by decoupled look-back (Merrill and Garland, "Single-pass Parallel Prefix Scan with
// Decoupled Look-back", 2016,
// https://research.nvidia.com/publication/single-pass-parallel-prefix-scan-decoupled-look-back).
// A strip publishes its total. It adds up the totals of the strips before it until it meets a strip
// that knows its prefix. Then it publishes its own prefix.
//
//     totals       3  1  4  2
//     published    P3 P4 A4 .      P: prefix, its own total included; A: its total
//     strip 3      4 + 4 = 8       looks back over A4, up to P4
//
// Workgroups take strips in order. So if a workgroup has a strip, other workgroups have taken all
// strips before it. But WGSL does not promise that they make progress while this workgroup waits.
// After SPINS looks, this workgroup counts the missing strip itself (`count_strip`) and publishes
// the total for all, as in Smith, Levien and Owens, "Decoupled Fallback: A Portable Single-Pass GPU
// Scan", 2025 (https://doi.org/10.1145/3694906.3743326). Every loop limits its turns, so nothing
// here waits forever, whatever other workgroups do.

import package::shared::ballot::{component, keep_ballot};
import package::shared::instance::INSTANCE_IS_RIGID;
import package::shared::layout::{
    BLOCK, BLOCK_THREADS, BLOCK_WORDS, Chunk, MOST_STRIP_TURNS, MOST_STRIP_WORDS, MOST_TILES,
    SCAN_TILE, batch, chunks, chunk_views,
};
import package::shared::survivors::{store, write_command, write_totals};
import package::shared::visibility::{
    INSIDE, OUTSIDE, PARTIAL, block_state, full_word, is_visible, load_sphere, vote_crossed_words,
    word_state,
};

struct LookBack {
    // Dispatches so far. The last bit selects the half of the statuses that this dispatch uses.
    epoch: atomic<u32>,
    // Strips of this dispatch that have a workgroup.
    taken: atomic<u32>,
    // Workgroups of this dispatch that no longer need a status.
    finished: atomic<u32>,
    // Two per strip: zero until the strip has published something. A dispatch clears the other half
    // for the next dispatch. Behind them, the first word of each rank (`Rank`), if rows are near
    // first: the kernel has no binding left for `ranks`.
    statuses: array<atomic<u32>>,
}

// The room has two parts for statuses, each long enough, and BLOCK_WORDS such parts for ranks.
const ROOM_PARTS: u32 = 2u + BLOCK_WORDS;

// The first status of the second half.
fn half_len() -> u32 {
    return arrayLength(&look_back.statuses) / ROOM_PARTS;
}

// Where the ranks begin.
fn first_rank() -> u32 {
    return 2u * half_len();
}

@group(0) @binding(13) var<storage, read_write> look_back: LookBack;

const AGGREGATE: u32 = 0x40000000u;
const PREFIX: u32 = 0x80000000u;
const STATUS_VALUE: u32 = 0x3fffffffu;
// The number of survivors of a batch fits into a status.
const_assert MOST_TILES * SCAN_TILE * BLOCK <= STATUS_VALUE;
// Number of looks at a strip that has published nothing. After them, the waiting workgroup counts
// the strip itself.
override SPINS: u32;

// What a strip has published. No survivors come before strip 0, so the prefix there is 0.
fn status_of(half: u32, strip: i32) -> u32 {
    var status = PREFIX;
    if (strip >= 0) {
        status = atomicLoad(&look_back.statuses[half + u32(strip)]);
    }
    return status;
}

// The sum of all strips before `strip`, for all lanes of the calling subgroup. The statuses of this
// dispatch begin at `half`.
fn sum_before(half: u32, strip: u32, lane: u32, size: u32) -> u32 {
    let lanes = min(size, 32u);
    var sum = 0u;
    var at = strip;
    // A turn advances, or it waits until the missing strip is published. Then the next turn
    // advances. So two turns per strip are enough. It is a third slower to add the published value
    // in the turn that waits (docs/internals/tried.md).
    for (var turns = 2u * strip; turns > 0u && at > 0u; turns -= 1u) {
        // One strip per lane, backwards from the last.
        let status = status_of(half, i32(at) - 1 - i32(lane));
        let has_prefix = (lane < lanes) & (status >= PREFIX);
        let is_missing = (lane < lanes) & (status == 0u);
        let first_prefix = firstTrailingBit(subgroupBallot(has_prefix).x);
        let first_missing = firstTrailingBit(subgroupBallot(is_missing).x);
        // Lanes whose strips are added: up to the first prefix, and before the first missing
        // status.
        let end = min(min(first_prefix, lanes - 1u) + 1u, first_missing);
        sum += subgroupAdd(select(0u, status & STATUS_VALUE, lane < end));
        if (first_prefix < first_missing) {
            break;
        }
        at -= end;
        if (first_missing < lanes && !is_published(half + at - 1u, lane)) {
            let total = count_strip(at - 1u, lane, size);
            if (lane == 0u) {
                // Never replaces a prefix that was published meanwhile.
                atomicMax(&look_back.statuses[half + at - 1u], AGGREGATE | total);
            }
        }
    }
    return sum;
}

// Waits for a strip, for SPINS looks. Only one lane looks: if all lanes looked, they would slow
// down the strip that they wait for.
fn is_published(at: u32, lane: u32) -> bool {
    for (var spin = 0u; spin < SPINS; spin += 1u) {
        var is_there = false;
        if (lane == 0u) {
            is_there = atomicLoad(&look_back.statuses[at]) != 0u;
        }
        if (subgroupAny(is_there)) {
            return true;
        }
    }
    return false;
}

// ---- The strip.

// A strip: some blocks of one row.
struct Strip {
    chunk: u32,
    row: u32,
    // Its number in the row, and the number of strips of the row.
    in_row: u32,
    of_row: u32,
}

var<workgroup> strip_words: array<u32, MOST_STRIP_WORDS>;
// Which word of the chunk each is.
@if(near_first)
var<workgroup> word_numbers: array<u32, MOST_STRIP_WORDS>;
// Survivors of the strip before each word.
var<workgroup> word_places: array<u32, MOST_STRIP_WORDS>;
// Survivors of each subgroup's words in each turn. A subgroup has at least four lanes.
var<workgroup> turn_sums: array<u32, BLOCK_THREADS / 4u * MOST_STRIP_TURNS>;
var<workgroup> taken_strip: u32;
var<workgroup> strip_place: u32;

// The chunk of a strip: the last one whose first strip is not after it.
fn chunk_of_strip(strip: u32) -> u32 {
    var low = 0u;
    var high = batch.chunk_count;
    while (high - low > 1u) {
        let middle = (low + high) / 2u;
        if (chunks[middle].first_strip <= strip) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

fn strip_at(strip: u32) -> Strip {
    let chunk = chunk_of_strip(strip);
    let each = (chunks[chunk].block_count + batch.strip_blocks - 1u) / batch.strip_blocks;
    let in_chunk = strip - chunks[chunk].first_strip;
    let row = chunks[chunk].first_row + in_chunk / each;
    return Strip(chunk, row, in_chunk % each, each);
}

// The word of the chunk at place `place` of a row's words, in the row's order.
@if(!near_first)
fn word_at(chunk: Chunk, row: u32, place: u32) -> u32 {
    return place;
}

@if(near_first)
fn word_at(chunk: Chunk, row: u32, place: u32) -> u32 {
    // After the last word, the last word.
    let word = min(place, chunk.block_count * BLOCK_WORDS - 1u);
    let first_cell = chunk.first_count + (row - chunk.first_row) * chunk.block_count;
    let rank = (first_cell * BLOCK_WORDS + word) / batch.unit_words;
    let first_word = atomicLoad(&look_back.statuses[first_rank() + rank]);
    return (first_word - first_cell * BLOCK_WORDS) ^ (word % batch.unit_words);
}

// Words that a subgroup votes on in a turn: one per lane, or fewer, so that all subgroups share a
// small strip.
fn words_of_turn(size: u32) -> u32 {
    return size / BLOCK_SHARES * min(batch.strip_blocks, BLOCK_SHARES);
}

// Blocks that have as many words as a workgroup has threads.
const BLOCK_SHARES: u32 = BLOCK_THREADS / BLOCK_WORDS;

// Counts the survivors of a strip that has published nothing, in the subgroup that waits for it. It
// uses the same vote as the strip, so both get the same answer.
fn count_strip(strip: u32, lane: u32, size: u32) -> u32 {
    let this_strip = strip_at(strip);
    let words_each = words_of_turn(size);
    let word_count = batch.strip_blocks * BLOCK_WORDS;
    var total = 0u;
    for (var w = 0u; w < word_count; w += words_each) {
        let first = this_strip.in_row * word_count + w;
        let chunk = this_strip.chunk;
        let row = this_strip.row;
        let number = word_at(chunks[chunk], row, first + lane);
        let word = vote_words(chunks[chunk], row, first, number, words_each, lane, size);
        total += subgroupAdd(countOneBits(word));
    }
    return total;
}

@compute @workgroup_size(BLOCK_THREADS)
fn cull(
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
) {
    let thread = subgroup * size + lane;
    if (thread == 0u) {
        taken_strip = atomicAdd(&look_back.taken, 1u);
    }
    let strip = workgroupUniformLoad(&taken_strip);
    let half = select(0u, half_len(), (atomicLoad(&look_back.epoch) & 1u) != 0u);
    // A two-dimensional dispatch may have more workgroups than strips.
    if (strip < batch.strip_count) {
        cull_strip(strip, half, subgroup, lane, size);
    }
    if (thread == 0u && atomicAdd(&look_back.finished, 1u) + 1u == workgroups.x * workgroups.y) {
        atomicStore(&look_back.taken, 0u);
        atomicStore(&look_back.finished, 0u);
        atomicAdd(&look_back.epoch, 1u);
    }
}

// Votes on a strip, publishes its total, finds its place and writes its ids.
fn cull_strip(strip: u32, half: u32, subgroup: u32, lane: u32, size: u32) {
    let thread = subgroup * size + lane;
    let this_strip = strip_at(strip);
    let chunk = chunks[this_strip.chunk];
    let word_count = batch.strip_blocks * BLOCK_WORDS;
    let first_word = this_strip.in_row * word_count;

    let words_each = words_of_turn(size);
    let subgroups = BLOCK_THREADS / size;
    let turns = word_count / (words_each * subgroups);
    for (var turn = 0u; turn < turns; turn += 1u) {
        let first = (turn * subgroups + subgroup) * words_each;
        let at = first_word + first;
        let number = word_at(chunk, this_strip.row, at + lane);
        let word = vote_words(chunk, this_strip.row, at, number, words_each, lane, size);
        let survivors = countOneBits(word);
        let before = subgroupExclusiveAdd(survivors);
        if (lane < words_each) {
            strip_words[first + lane] = word;
            keep_number(first + lane, number);
            word_places[first + lane] = before;
        }
        if (lane == size - 1u) {
            turn_sums[turn * subgroups + subgroup] = before + survivors;
        }
    }
    workgroupBarrier();
    var total = 0u;
    for (var t = 0u; t < turns * subgroups; t += 1u) {
        if (t % subgroups == subgroup && lane < words_each) {
            word_places[t * words_each + lane] += total;
        }
        total += turn_sums[t];
    }
    if (thread == 0u) {
        let kind = select(AGGREGATE, PREFIX, strip == 0u);
        atomicStore(&look_back.statuses[half + strip], kind | total);
    }
    if (subgroup == 0u) {
        place_strip(this_strip, strip, total, half, lane, size);
    }
    let place = workgroupUniformLoad(&strip_place);
    if (total > 0u) {
        write_strip(chunk.first_instance, first_word, place, total, thread);
    }
    // Clears the statuses of the next dispatch.
    let stride = batch.strip_count * BLOCK_THREADS;
    for (var i = strip * BLOCK_THREADS + thread; i < half_len(); i += stride) {
        atomicStore(&look_back.statuses[half_len() - half + i], 0u);
    }
}

// Finds the strip's place. If the strip ends a row, it also finds the row's place and writes the
// row's command.
fn place_strip(this_strip: Strip, strip: u32, total: u32, half: u32, lane: u32, size: u32) {
    let is_end = this_strip.in_row + 1u == this_strip.of_row;
    let row_strip = strip - this_strip.in_row;
    var at = strip;
    var end = 0u;
    loop {
        let place = sum_before(half, at, lane, size);
        if (at == strip) {
            end = place + total;
            if (lane == 0u) {
                strip_place = place;
                if (strip > 0u) {
                    atomicStore(&look_back.statuses[half + strip], PREFIX | end);
                }
            }
        }
        if (is_end && at == row_strip && lane == 0u) {
            write_command(this_strip.row, place, end);
            if (strip + 1u == batch.strip_count) {
                write_totals(end, 0u, 0u, 0u);
            }
        }
        if (!is_end || at == row_strip) {
            break;
        }
        at = row_strip;
    }
}

// Up to this average number of survivors per word, each thread writes the ids of whole words. Above
// it, 32 threads share a word.
override FEW_IN_WORD: u32;

// Notes which word of the chunk the word `w` of the strip is.
@if(near_first)
fn keep_number(w: u32, number: u32) {
    word_numbers[w] = number;
}

@if(!near_first)
fn keep_number(w: u32, number: u32) {
}

// Which word of the chunk the word `w` of a strip is that begins with word `first_word`.
@if(near_first)
fn number_of(first_word: u32, w: u32) -> u32 {
    return word_numbers[w];
}

@if(!near_first)
fn number_of(first_word: u32, w: u32) -> u32 {
    return first_word + w;
}

// Writes the ids of the strip's survivors from `place` on. The chunk's ids begin with `first_id`.
fn write_strip(first_id: u32, first_word: u32, place: u32, survivors: u32, thread: u32) {
    let word_count = batch.strip_blocks * BLOCK_WORDS;
    if (survivors <= FEW_IN_WORD * word_count) {
        for (var w = thread; w < word_count; w += BLOCK_THREADS) {
            var word = strip_words[w];
            var at = place + word_places[w];
            while (word != 0u) {
                store(at, first_id + number_of(first_word, w) * 32u + firstTrailingBit(word));
                at += 1u;
                word &= word - 1u;
            }
        }
        return;
    }
    // 32 threads per word, one bit each, so that their writes are contiguous.
    let bit = thread % 32u;
    for (var w = thread / 32u; w < word_count; w += BLOCK_THREADS / 32u) {
        let word = strip_words[w];
        if (((word >> bit) & 1u) != 0u) {
            let before = countOneBits(word & ((1u << bit) - 1u));
            store(place + word_places[w] + before, first_id + number_of(first_word, w) * 32u + bit);
        }
    }
}

// ---- The vote on a strip's words.

// The state of a word of a row. A block that is inside or outside answers for its words.
fn state_of_word(chunk: Chunk, row: u32, word: u32) -> u32 {
    let at = chunk.first_instance / BLOCK + word / BLOCK_WORDS;
    let state = block_state(chunk, row, at);
    if (state != PARTIAL) {
        return state;
    }
    return word_state(chunk, row, at, word % BLOCK_WORDS);
}

// The vote of one subgroup on `words_each` words of a row, from place `first_word` on in the row's
// order: one word per lane, zero in the lanes after them. `number` is the lane's word of the chunk.
fn vote_words(
    chunk: Chunk,
    row: u32,
    first_word: u32,
    number: u32,
    words_each: u32,
    lane: u32,
    size: u32,
) -> u32 {
    var state = OUTSIDE;
    if (lane < words_each && (first_word + lane) / BLOCK_WORDS < chunk.block_count) {
        state = state_of_word(chunk, row, number);
    }
    // Only crossed words read their instances.
    let crossed = subgroupBallot(state == PARTIAL);
    let is_whole = subgroupAll(state != PARTIAL || number * 32u + 32u <= chunk.instance_count);
    var word = 0u;
    if (INSTANCE_IS_RIGID & (chunk.flags == 0u) & (size == 32u) & is_whole) {
        let at = chunk.first_instance + lane;
        word = vote_crossed_words(chunk, chunk_views[row].planes, crossed.x, at, number, lane);
    } else {
        word = vote_crossed_ballots(chunk, row, crossed, first_word, words_each, lane, size);
    }
    if (state == INSIDE) {
        word = full_word(number, chunk.instance_count);
    }
    return select(word, 0u, state == OUTSIDE);
}

// The vote on crossed words from bounding spheres, at any subgroup size. `first_word` is the place
// of the first one, in the row's order.
fn vote_crossed_ballots(
    chunk: Chunk,
    row: u32,
    crossed: vec4<u32>,
    first_word: u32,
    words_each: u32,
    lane: u32,
    size: u32,
) -> u32 {
    var word = 0u;
    for (var k = 0u; k * size < words_each * 32u; k += 1u) {
        let in_words = (k * size + lane) / 32u;
        var visible = false;
        if (((component(crossed, in_words / 32u) >> (in_words % 32u)) & 1u) != 0u) {
            let number = word_at(chunk, row, first_word + in_words);
            let i = number * 32u + (k * size + lane) % 32u;
            visible = is_visible(chunk, chunk_views[row].planes, load_sphere(chunk, i), i);
        }
        word = keep_ballot(word, k, subgroupBallot(visible), lane, size);
    }
    return word;
}
