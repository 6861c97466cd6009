// Compact: words to ids. A cell is one block in one row, and has one count. Its words become ids,
// in instance order, at the place of the cell: the sum of all counts before its own. This stage
// also writes the commands of the rows and empties the list of crossed blocks.
//
// If cells are few (batch.is_scanned is 0), a workgroup has COUNTS_PER_WORKGROUP contiguous cells
// and adds up all counts before them. If they are many, `scan` has added up tiles and listed the
// occupied cells. Workgroups stride over that list, COUNTS_PER_WORKGROUP cells at a time, and add
// up the tiles before each.
//
// 32 contiguous threads write the ids of a cell. Each reads all words and takes one bit of every
// word, so no thread waits for another. The tier's file (compact_subgroup.wgsl,
// compact_workgroup.wgsl) adds up over a workgroup, and may have a faster way for words with few
// bits (`write_count_together`).
//
//     words of a block (4 bits each here)    0110 1001
//     survivors before each word             0    2
//     bit 3 of the second: 2 + bits below it in its word (1) = place 3 in the block

import package::cull::lists::{OCCUPIED_SHIFT, OCCUPIED_SURVIVORS, lists};
import package::shared::layout::{
    BLOCK, BLOCK_THREADS, BLOCK_WORDS, COUNTS_PER_WORKGROUP, SCAN_TILE, batch, chunks, chunk_views,
};
import package::shared::survivors::{put, room_for, store, write_command, write_totals};
@if(subgroup) import package::cull::compact_subgroup::{
    Thread, add_up, compact, tiles_before_occupied, word_of, write_count_together,
};
@if(!subgroup) import package::cull::compact_workgroup::{
    Thread, add_up, compact, tiles_before_occupied, word_of, write_count_together,
};

@group(0) @binding(6) var<storage, read> words: array<vec4<u32>>;
@group(0) @binding(7) var<storage, read> counts: array<u32>;
@group(0) @binding(9) var<storage, read> partials: array<u32>;

// Survivors of all tiles before each of four.
fn tiles_before(thread: Thread, tiles: vec4<u32>) -> vec4<u32> {
    var sum = vec4<u32>(0u);
    let end = max(max(tiles.x, tiles.y), max(tiles.z, tiles.w));
    for (var tile = thread.index; tile < end; tile += BLOCK_THREADS) {
        sum += select(vec4<u32>(0u), vec4<u32>(partials[tile]), vec4<u32>(tile) < tiles);
    }
    return add_up(thread, sum);
}

// Survivors before each of four counts, if counts are few.
fn sums_before(thread: Thread, ends: vec4<u32>) -> vec4<u32> {
    var sum = vec4<u32>(0u);
    let end = max(max(ends.x, ends.y), max(ends.z, ends.w));
    for (var i = thread.index; i < end; i += BLOCK_THREADS) {
        sum += select(vec4<u32>(0u), vec4<u32>(counts[i]), vec4<u32>(i) < ends);
    }
    return add_up(thread, sum);
}

// Writes the command of a row. The end of the last row is the total.
fn write_row(row: u32, place: u32, end: u32) {
    write_command(row, place, end);
    if (row + 1u == batch.row_count) {
        // Empties the list of crossed blocks for the next frame.
        write_totals(end, atomicExchange(&lists.crossed_count, 0u));
    }
}

fn compact_all(workgroup: u32, workgroups: u32, thread: Thread) {
    let is_scanned = batch.is_scanned != 0u;
    let first_cell = workgroup * COUNTS_PER_WORKGROUP;
    var place = 0u;
    // Each workgroup writes the command of one row, from the same sum as its place.
    for (
        var row = workgroup;
        (row == workgroup && !is_scanned) || row < batch.row_count;
        row += workgroups
    ) {
        var first = 0u;
        var end = 0u;
        if (row < batch.row_count) {
            first = chunk_views[row].first_count;
            end = first + chunk_views[row].block_count;
        }
        var sums: vec4<u32>;
        if (is_scanned) {
            sums = tiles_before(thread, vec4<u32>(0u, first / SCAN_TILE, end / SCAN_TILE, 0u));
            sums += vec4<u32>(0u, counts[first], counts[end], 0u);
        } else {
            sums = sums_before(thread, vec4<u32>(first_cell, first, end, 0u));
        }
        place = sums.x;
        if (thread.index == 0u && row < batch.row_count) {
            write_row(row, sums.y, sums.z);
        }
    }
    if (is_scanned) {
        compact_occupied(first_cell, workgroups * COUNTS_PER_WORKGROUP, thread);
    } else {
        compact_few(first_cell, place, thread);
    }
}

// The chunk of a cell: the last one whose first cell is not after it.
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

// The instances of a cell. Their ids begin with `first_id`.
struct Counted {
    first_id: u32,
    len: u32,
}

fn counted(cell: u32) -> Counted {
    let chunk = chunks[chunk_of_count(cell)];
    let block = (cell - chunk.first_count) % chunk.block_count;
    let len = min(chunk.instance_count - block * BLOCK, BLOCK);
    return Counted(chunk.first_instance + block * BLOCK, len);
}

// Writes the ids of one cell from `place` on, with 32 threads.
fn write_count(cell: u32, block: Counted, place: u32, survivors: u32, bit: u32) {
    if (survivors == block.len) {
        // All instances survive: there may be no words.
        write_run(place, block.first_id, room_for(place, survivors), bit);
    } else {
        write_words(cell, place, block.first_id, bit);
    }
}

// Writes `len` contiguous ids from `place` on, one line of 128 bytes after another. The ids fit
// into the arena. A run begins anywhere, and 32 threads that write into two lines take longer.
//
//     lines of 4, place 6, ids 40 ..    . . . . | . . 40 41 | 42 43 44 45 | 46
fn write_run(place: u32, first_id: u32, len: u32, bit: u32) {
    let before = place % 32u;
    let at = place - before + bit;
    // Wraps around before the first id.
    let id = first_id + bit - before;
    if (len == BLOCK) {
        // The first and the last line share the 32 threads. A loop with a known number of turns is
        // a fifth faster.
        if (bit >= before) {
            put(at, id);
        }
        for (var line = 1u; line < BLOCK / 32u; line += 1u) {
            put(at + line * 32u, id + line * 32u);
        }
        if (bit < before) {
            put(at + BLOCK, id + BLOCK);
        }
    } else {
        for (var line = 0u; line * 32u < before + len; line += 1u) {
            let i = line * 32u + bit;
            if (i >= before && i < before + len) {
                put(at + line * 32u, id + line * 32u);
            }
        }
    }
}

fn write_words(cell: u32, first_place: u32, first_id: u32, bit: u32) {
    let fours = BLOCK_WORDS / 4u;
    var place = first_place;
    var next = words[cell * fours];
    for (var w = 0u; w < fours; w += 1u) {
        let four = next;
        next = words[cell * fours + min(w + 1u, fours - 1u)];
        if ((four.x | four.y | four.z | four.w) != 0u) {
            let id = first_id + w * 128u;
            place = write_word(four.x, place, id, bit);
            place = write_word(four.y, place, id + 32u, bit);
            place = write_word(four.z, place, id + 64u, bit);
            place = write_word(four.w, place, id + 96u, bit);
        }
    }
}

// Compacts the cells from `first_cell` on. `place` is the place of the first.
fn compact_few(first_cell: u32, place: u32, thread: Thread) {
    let cell = first_cell + thread.index / 32u;
    var before = place;
    var survivors = 0u;
    if (cell < batch.count_len) {
        for (var c = first_cell; c < cell; c += 1u) {
            before += counts[c];
        }
        survivors = counts[cell];
    }
    write_count_together(cell, word_of(cell, survivors, thread), before, survivors, thread);
}

var<workgroup> occupied_end: u32;

// A cell with survivors. After the end of the list it has none.
struct Occupied {
    cell: u32,
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

// Compacts the occupied cells from `first` on, COUNTS_PER_WORKGROUP at every `step`.
fn compact_occupied(first: u32, step: u32, thread: Thread) {
    if (thread.index == 0u) {
        occupied_end = min(atomicLoad(&lists.occupied_count), batch.count_len);
    }
    let end = workgroupUniformLoad(&occupied_end);
    for (var at = first; at < end; at += step) {
        let occupied = occupied_at(at + thread.index / 32u, end);
        // Loaded before the sums are waited for.
        let word = word_of(occupied.cell, occupied.survivors, thread);
        let place = tiles_before_occupied(at, end, occupied, thread) + occupied.in_tile;
        write_count_together(occupied.cell, word, place, occupied.survivors, thread);
    }
}

// Survivors of all tiles before the tile of the thread's cell, at any subgroup size.
fn tiles_before_any(at: u32, end: u32, thread: Thread) -> u32 {
    let cells = vec4<u32>(
        occupied_at(at, end).cell,
        occupied_at(at + 1u, end).cell,
        occupied_at(at + 2u, end).cell,
        occupied_at(at + 3u, end).cell);
    return tiles_before(thread, cells / SCAN_TILE)[thread.index / 32u];
}
