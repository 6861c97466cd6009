// All stages in one pass: a workgroup takes a strip, some blocks of one row, votes on its words, finds the strip's place
// by look-back (look_back.wgsl) and writes its ids. A strip that ends a row writes the row's command.

// Which strip it is.
struct Strip {
    chunk: u32,
    row: u32,
    // Its number in the row, and how many the row has.
    in_row: u32,
    of_row: u32,
}

var<workgroup> strip_words: array<u32, MOST_STRIP_WORDS>;
// Survivors of the strip before each word.
var<workgroup> word_places: array<u32, MOST_STRIP_WORDS>;
// Survivors of each subgroup's words in each turn; a subgroup has four lanes or more.
var<workgroup> turn_sums: array<u32, BLOCK_THREADS / 4u * MOST_STRIP_TURNS>;
var<workgroup> taken_strip: u32;
var<workgroup> strip_place: u32;

// The last chunk whose first strip is not after `strip`.
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
    let own = strip - chunks[chunk].first_strip;
    return Strip(chunk, chunks[chunk].first_row + own / each, own % each, each);
}

// Words that a subgroup votes on in a turn: one a lane, or fewer, so that all subgroups have a part of a small strip.
fn words_of_turn(size: u32) -> u32 {
    return size / BLOCK_SHARES * min(batch.strip_blocks, BLOCK_SHARES);
}

// Blocks that have as many words as a workgroup has threads.
const BLOCK_SHARES: u32 = BLOCK_THREADS / BLOCK_WORDS;

// Survivors of a strip whose workgroup has not shown up, by the subgroup that waits for it: by the strip's own vote, so
// that both have the same answer.
fn count_strip(strip: u32, lane: u32, size: u32) -> u32 {
    let own = strip_at(strip);
    let words_each = words_of_turn(size);
    let word_count = batch.strip_blocks * BLOCK_WORDS;
    var total = 0u;
    for (var w = 0u; w < word_count; w += words_each) {
        let word = vote_words(chunks[own.chunk], own.row, own.in_row * word_count + w, words_each, lane, size);
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
    let half_len = arrayLength(&look_back.statuses) / 2u;
    let half = select(0u, half_len, (atomicLoad(&look_back.epoch) & 1u) != 0u);
    // A two-dimensional dispatch has some workgroups more than strips.
    if (strip < batch.strip_count) {
        cull_strip(strip, half, half_len, subgroup, lane, size);
    }
    if (thread == 0u && atomicAdd(&look_back.finished, 1u) + 1u == workgroups.x * workgroups.y) {
        atomicStore(&look_back.taken, 0u);
        atomicStore(&look_back.finished, 0u);
        atomicAdd(&look_back.epoch, 1u);
    }
}

fn cull_strip(strip: u32, half: u32, half_len: u32, subgroup: u32, lane: u32, size: u32) {
    let thread = subgroup * size + lane;
    let own = strip_at(strip);
    let chunk = chunks[own.chunk];
    let word_count = batch.strip_blocks * BLOCK_WORDS;
    let first_word = own.in_row * word_count;

    let words_each = words_of_turn(size);
    let subgroups = BLOCK_THREADS / size;
    let turns = word_count / (words_each * subgroups);
    for (var turn = 0u; turn < turns; turn += 1u) {
        let first = (turn * subgroups + subgroup) * words_each;
        let word = vote_words(chunk, own.row, first_word + first, words_each, lane, size);
        let survivors = countOneBits(word);
        let before = subgroupExclusiveAdd(survivors);
        if (lane < words_each) {
            strip_words[first + lane] = word;
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
        atomicStore(&look_back.statuses[half + strip], select(AGGREGATE, PREFIX, strip == 0u) | total);
    }
    if (subgroup == 0u) {
        place_strip(own, strip, total, half, lane, size);
    }
    let place = workgroupUniformLoad(&strip_place);
    if (total > 0u) {
        write_strip(chunk.first_instance + first_word * 32u, place, total, thread);
    }
    // Nothing where the next dispatch's statuses will be.
    for (var i = strip * BLOCK_THREADS + thread; i < half_len; i += batch.strip_count * BLOCK_THREADS) {
        atomicStore(&look_back.statuses[half_len - half + i], 0u);
    }
}

// The strip's place; where the strip ends a row, the row's as well, and with it the row's command.
fn place_strip(own: Strip, strip: u32, total: u32, half: u32, lane: u32, size: u32) {
    let is_end = own.in_row + 1u == own.of_row;
    let row_strip = strip - own.in_row;
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
            let shape = chunks[own.chunk];
            write_command(own.row, shape.element_count, shape.first_element, shape.base_vertex, shape.indexed, place, end);
            if (strip + 1u == batch.strip_count) {
                write_totals(end, 0u);
            }
        }
        if (!is_end || at == row_strip) {
            break;
        }
        at = row_strip;
    }
}

// Survivors of a word, on average, up to which each thread writes the ids of words of its own.
const FEW_IN_WORD: u32 = 2u;

fn write_strip(first_id: u32, place: u32, survivors: u32, thread: u32) {
    let word_count = batch.strip_blocks * BLOCK_WORDS;
    if (survivors <= FEW_IN_WORD * word_count) {
        for (var w = thread; w < word_count; w += BLOCK_THREADS) {
            var word = strip_words[w];
            var at = place + word_places[w];
            while (word != 0u) {
                store(at, first_id + w * 32u + firstTrailingBit(word));
                at += 1u;
                word &= word - 1u;
            }
        }
        return;
    }
    // 32 threads a word, a bit each, so that they write side by side.
    let bit = thread % 32u;
    for (var w = thread / 32u; w < word_count; w += BLOCK_THREADS / 32u) {
        let word = strip_words[w];
        if (((word >> bit) & 1u) != 0u) {
            store(place + word_places[w] + countOneBits(word & ((1u << bit) - 1u)), first_id + w * 32u + bit);
        }
    }
}
