// Compact: words to ids. A cell is one block in one row, and has one count. The first place of a
// cell is the sum of the counts of all lower ranks. Without `order`, ranks are cells. This stage
// also writes the commands of the rows and empties the list of crossed blocks.
//
// If cells are few (batch.is_scanned is 0), a workgroup has COUNTS_PER_WORKGROUP contiguous ranks
// and adds up all counts before them. If they are many, `scan` has added up tiles and listed the
// occupied ranks. Workgroups stride over that list, COUNTS_PER_WORKGROUP ranks at a time, and add
// up the tiles before each. Units of less than a block (batch.unit_words) have a thread per word.
//
// 32 contiguous threads write the ids of a cell. Each reads every word and writes the id of its
// bit, so no thread waits for another. compact_tier.wgsl adds up over a workgroup, and may have a
// faster way for words with few bits (`write_count_together`).
//
//     words of a block (4 bits each here)    0110 1001
//     survivors before each word             0    2
//     bit 3 of the second: 2 + bits below it in its word (1) = place 3 in the block

import package::cull::compact_tier::{
    Thread, add_up, compact, tiles_before_occupied, word_of, write_count_together,
};
import package::cull::lists::{OCCUPIED_SHIFT, OCCUPIED_SURVIVORS, Ranks, lists};
import package::shared::layout::{
    BLOCK, BLOCK_THREADS, BLOCK_WORDS, COUNTS_PER_WORKGROUP, SCAN_TILE, batch, chunks, chunk_views,
};
import package::shared::survivors::{put, room_for, store, write_command, write_totals};

@group(0) @binding(6) var<storage, read> words: array<vec4<u32>>;
@group(0) @binding(7) var<storage, read> counts: array<u32>;
@group(0) @binding(9) var<storage, read> ranks: Ranks;

// For each of four tiles: the survivors in all earlier tiles.
fn tiles_before(thread: Thread, tiles: vec4<u32>) -> vec4<u32> {
    var sum = vec4<u32>(0u);
    let end = max(max(tiles.x, tiles.y), max(tiles.z, tiles.w));
    for (var tile = thread.index; tile < end; tile += BLOCK_THREADS) {
        sum += select(vec4<u32>(0u), vec4<u32>(ranks.tiles[tile]), vec4<u32>(tile) < tiles);
    }
    return add_up(thread, sum);
}

// The first word of the unit at a rank, plus its flip (`Rank`).
fn first_word_at(rank: u32) -> u32 {
    if (batch.is_near_first == 0u) {
        return rank * batch.unit_words;
    }
    return ranks.entries[rank].first_word;
}

// Survivors before each of four ranks, if cells are few.
fn sums_before(thread: Thread, ends: vec4<u32>) -> vec4<u32> {
    var sum = vec4<u32>(0u);
    let end = max(max(ends.x, ends.y), max(ends.z, ends.w));
    for (var i = thread.index; i < end; i += BLOCK_THREADS) {
        let survivors = counts[first_word_at(i) / BLOCK_WORDS];
        sum += select(vec4<u32>(0u), vec4<u32>(survivors), vec4<u32>(i) < ends);
    }
    return add_up(thread, sum);
}

// Writes the command of a row. The end of the last row is the total.
fn write_row(row: u32, place: u32, end: u32) {
    write_command(row, place, end);
    if (row + 1u == batch.row_count) {
        // Empties the list of crossed blocks for the next frame.
        let crossed = atomicExchange(&lists.crossed_count, 0u);
        let in_frustum = atomicExchange(&lists.in_frustum, 0u);
        write_totals(end, crossed, in_frustum, atomicExchange(&lists.too_small, 0u));
    }
}

fn compact_all(workgroup: u32, workgroups: u32, thread: Thread) {
    let is_scanned = batch.is_scanned != 0u;
    let first_rank = workgroup * COUNTS_PER_WORKGROUP;
    // Units per block.
    let units = BLOCK_WORDS / batch.unit_words;
    var place = 0u;
    // A workgroup writes the commands of the rows that it strides over; the first one with the same
    // sum as its place.
    for (
        var row = workgroup;
        (row == workgroup && !is_scanned) || row < batch.row_count;
        row += workgroups
    ) {
        var first = 0u;
        var end = 0u;
        if (row < batch.row_count) {
            first = chunk_views[row].first_count * units;
            end = first + chunk_views[row].block_count * units;
        }
        var sums: vec4<u32>;
        if (is_scanned) {
            sums = tiles_before(thread, vec4<u32>(0u, first / SCAN_TILE, end / SCAN_TILE, 0u));
            sums += vec4<u32>(0u, ranks.entries[first].place, ranks.entries[end].place, 0u);
        } else {
            sums = sums_before(thread, vec4<u32>(first_rank, first, end, 0u));
        }
        place = sums.x;
        if (thread.index == 0u && row < batch.row_count) {
            write_row(row, sums.y, sums.z);
        }
    }
    if (units > 1u) {
        let each = BLOCK_THREADS / batch.unit_words;
        compact_units(workgroup * each, workgroups * each, thread);
    } else if (is_scanned) {
        compact_occupied(first_rank, workgroups * COUNTS_PER_WORKGROUP, thread);
    } else {
        compact_few(first_rank, place, thread);
    }
}

// The chunk of a cell: the last one whose `first_count` is at most the cell.
fn chunk_of_count(cell: u32) -> u32 {
    var low = 0u;
    var high = batch.chunk_count;
    while (high - low > 1u) {
        let middle = (low + high) / 2u;
        if (chunks[middle].first_count <= cell) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

// Writes the id of one bit of a word if the bit is set, and returns the place after the word.
fn write_word(word: u32, place: u32, first_id: u32, bit: u32) -> u32 {
    if (((word >> bit) & 1u) != 0u) {
        store(place + countOneBits(word & ((1u << bit) - 1u)), first_id + bit);
    }
    return place + countOneBits(word);
}

// The instances of a cell. Their ids begin with `first_id`. Word k in the row's order is word
// `k ^ flip` of the block.
struct Counted {
    first_id: u32,
    len: u32,
    flip: u32,
}

fn counted(first_word: u32) -> Counted {
    let cell = first_word / BLOCK_WORDS;
    let chunk = chunks[chunk_of_count(cell)];
    let block = (cell - chunk.first_count) % chunk.block_count;
    let len = min(chunk.instance_count - block * BLOCK, BLOCK);
    return Counted(chunk.first_instance + block * BLOCK, len, first_word % BLOCK_WORDS);
}

// Writes the ids of one cell from `place` on, with 32 threads.
fn write_count(first_word: u32, block: Counted, place: u32, survivors: u32, bit: u32) {
    if (survivors == block.len) {
        // All instances survive: the words may not have been written.
        write_run(place, block, room_for(place, survivors), bit);
    } else {
        write_words(first_word / BLOCK_WORDS, place, block, bit);
    }
}

// Writes the ids of a block's first `len` instances from `place` on, one line of 128 bytes after
// another. The ids fit into the arena. Runs are rarely aligned, and a
// store across two lines is slower.
//
//     lines of 4, place 6, ids 40 ..    . . . . | . . 40 41 | 42 43 44 45 | 46
fn write_run(place: u32, block: Counted, len: u32, bit: u32) {
    let before = place % 32u;
    let at = place - before + bit;
    // The thread's instance in the first line. The subtraction wraps for threads before the first
    // instance.
    let first = bit - before;
    let flip = block.flip * 32u;
    if (len == BLOCK) {
        // The first and the last line share the 32 threads. A loop with a known number of turns is
        // a fifth faster.
        if (bit >= before) {
            put(at, block.first_id + (first ^ flip));
        }
        for (var line = 1u; line < BLOCK / 32u; line += 1u) {
            put(at + line * 32u, block.first_id + ((first + line * 32u) ^ flip));
        }
        if (bit < before) {
            put(at + BLOCK, block.first_id + ((first + BLOCK) ^ flip));
        }
    } else {
        for (var line = 0u; line * 32u < before + len; line += 1u) {
            let i = line * 32u + bit;
            if (i >= before && i < before + len) {
                put(at + line * 32u, block.first_id + ((first + line * 32u) ^ flip));
            }
        }
    }
}

// The words of a cell from word `k` on in the row's order, k a multiple of four.
fn four_words(cell: u32, k: u32, flip: u32) -> vec4<u32> {
    var four = words[cell * (BLOCK_WORDS / 4u) + (k ^ flip) / 4u];
    four = select(four, four.yxwz, (flip & 1u) != 0u);
    return select(four, four.zwxy, (flip & 2u) != 0u);
}

fn write_words(cell: u32, first_place: u32, block: Counted, bit: u32) {
    let flip = block.flip;
    var place = first_place;
    var next = four_words(cell, 0u, flip);
    for (var k = 0u; k < BLOCK_WORDS; k += 4u) {
        let four = next;
        next = four_words(cell, min(k + 4u, BLOCK_WORDS - 4u), flip);
        if ((four.x | four.y | four.z | four.w) != 0u) {
            place = write_word(four.x, place, block.first_id + (k ^ flip) * 32u, bit);
            place = write_word(four.y, place, block.first_id + ((k + 1u) ^ flip) * 32u, bit);
            place = write_word(four.z, place, block.first_id + ((k + 2u) ^ flip) * 32u, bit);
            place = write_word(four.w, place, block.first_id + ((k + 3u) ^ flip) * 32u, bit);
        }
    }
}

// Compacts the cells from rank `first_rank` on. `place` is the place of the first.
fn compact_few(first_rank: u32, place: u32, thread: Thread) {
    let rank = first_rank + thread.index / 32u;
    var before = place;
    var first_word = 0u;
    var survivors = 0u;
    if (rank < batch.count_len) {
        for (var r = first_rank; r < rank; r += 1u) {
            before += counts[first_word_at(r) / BLOCK_WORDS];
        }
        first_word = first_word_at(rank);
        survivors = counts[first_word / BLOCK_WORDS];
    }
    let word = word_of(first_word, survivors, thread);
    write_count_together(first_word, word, before, survivors, thread);
}

var<workgroup> occupied_end: u32;

// A rank with survivors. After the end of the list it has none.
struct Occupied {
    rank: u32,
    survivors: u32,
    // Survivors of its tile before it.
    in_tile: u32,
}

fn occupied_at(place: u32, end: u32) -> Occupied {
    var occupied: Occupied;
    if (place < end) {
        let entry = lists.entries[place];
        occupied = Occupied(entry.x >> OCCUPIED_SHIFT, entry.x & OCCUPIED_SURVIVORS, entry.y);
    }
    return occupied;
}

fn occupied_len(thread: Thread) -> u32 {
    if (thread.index == 0u) {
        let ranks_of_all = batch.count_len * (BLOCK_WORDS / batch.unit_words);
        occupied_end = min(atomicLoad(&lists.occupied_count), ranks_of_all);
    }
    return workgroupUniformLoad(&occupied_end);
}

// A word of the batch. Its block must have survivors.
fn unit_word(word: u32) -> u32 {
    if (counts[word / BLOCK_WORDS] == BLOCK) {
        // The words may not have been written.
        return 0xffffffffu;
    }
    return words[word / 4u][word % 4u];
}

// Compacts the occupied units from `first` on, BLOCK_THREADS words at every `step`.
fn compact_units(first: u32, step: u32, thread: Thread) {
    let end = occupied_len(thread);
    let each = batch.unit_words;
    let k = thread.index % each;
    for (var at = first + thread.index / each; at < end; at += step) {
        let occupied = occupied_at(at, end);
        let first_word = first_word_at(occupied.rank);
        var place = occupied.in_tile;
        for (var tile = 0u; tile < occupied.rank / SCAN_TILE; tile += 1u) {
            place += ranks.tiles[tile];
        }
        for (var j = 0u; j < k; j += 1u) {
            place += countOneBits(unit_word(first_word ^ j));
        }
        let number = first_word ^ k;
        let first_id = counted(first_word).first_id + number % BLOCK_WORDS * 32u;
        for (var word = unit_word(number); word != 0u; word &= word - 1u) {
            store(place, first_id + firstTrailingBit(word));
            place += 1u;
        }
    }
}

// Compacts the occupied blocks from `first` on, COUNTS_PER_WORKGROUP at every `step`.
fn compact_occupied(first: u32, step: u32, thread: Thread) {
    let end = occupied_len(thread);
    for (var at = first; at < end; at += step) {
        let occupied = occupied_at(at + thread.index / 32u, end);
        // Loaded early, so that the load overlaps the sum.
        var first_word = 0u;
        if (occupied.survivors > 0u) {
            first_word = first_word_at(occupied.rank);
        }
        let word = word_of(first_word, occupied.survivors, thread);
        let place = tiles_before_occupied(at, end, occupied, thread) + occupied.in_tile;
        write_count_together(first_word, word, place, occupied.survivors, thread);
    }
}

// Survivors of all tiles before the tile of the thread's cell, at any subgroup size.
fn tiles_before_any(at: u32, end: u32, thread: Thread) -> u32 {
    let four = vec4<u32>(
        occupied_at(at, end).rank,
        occupied_at(at + 1u, end).rank,
        occupied_at(at + 2u, end).rank,
        occupied_at(at + 3u, end).rank);
    return tiles_before(thread, four / SCAN_TILE)[thread.index / 32u];
}
