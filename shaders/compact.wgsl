// Stage 3. The words of each block and row become ids, in instance order, at the place that its count has: the
// sum of all counts before it. It also writes the commands of the rows, and empties the list of crossed blocks.
//
// Few counts (batch.is_scanned is 0): a workgroup has COUNTS_EACH counts side by side and adds up all before them.
// Many: `scan` has added up tiles and listed the live counts, which have survivors; workgroups stride over these, COUNTS_EACH
// at a time, and add up the tiles before each.
//
// 32 threads side by side write the ids of a count: each reads all words and has a bit of every one, so that nobody
// waits for anybody. The tier's file (compact_subgroup.wgsl, compact_workgroup.wgsl) adds up over a workgroup, and may
// know a better way for words of few bits (`write_count_together`).
//
//     words of a block (4 bits each here)    0110 1001
//     survivors before each word             0    2
//     bit 3 of the second: 2 + bits below it in its word (1) = place 3 in the block

@group(0) @binding(2) var<storage, read> words: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> counts: array<u32>;
@group(0) @binding(8) var<storage, read> partials: array<u32>;

// Survivors of all tiles before each of four.
fn tiles_before(own: Own, tiles: vec4<u32>) -> vec4<u32> {
    var sum = vec4<u32>(0u);
    let end = max(max(tiles.x, tiles.y), max(tiles.z, tiles.w));
    for (var tile = own.thread; tile < end; tile += BLOCK_THREADS) {
        sum += select(vec4<u32>(0u), vec4<u32>(partials[tile]), vec4<u32>(tile) < tiles);
    }
    return add_up(own, sum);
}

// Survivors before each of four counts, where counts are few.
fn sums_before(own: Own, ends: vec4<u32>) -> vec4<u32> {
    var sum = vec4<u32>(0u);
    let end = max(max(ends.x, ends.y), max(ends.z, ends.w));
    for (var i = own.thread; i < end; i += BLOCK_THREADS) {
        sum += select(vec4<u32>(0u), vec4<u32>(counts[i]), vec4<u32>(i) < ends);
    }
    return add_up(own, sum);
}

// The command of a row; the last row ends where all end.
fn write_row(row: u32, place: u32, end: u32) {
    write_draw(row, place, end);
    if (row + 1u == batch.row_count) {
        // The list is empty for the next frame.
        write_totals(end, atomicExchange(&lists.crossed_count, 0u));
    }
}

fn compact_all(workgroup: u32, workgroups: u32, own: Own) {
    let is_scanned = batch.is_scanned != 0u;
    let first_count = workgroup * COUNTS_EACH;
    var place = 0u;
    // A row a workgroup, in the same sum as the workgroup's own place.
    for (var row = workgroup; (row == workgroup && !is_scanned) || row < batch.row_count; row += workgroups) {
        var first = 0u;
        var end = 0u;
        if (row < batch.row_count) {
            first = row_draws[row].first_count;
            end = first + row_draws[row].block_count;
        }
        var sums: vec4<u32>;
        if (is_scanned) {
            sums = tiles_before(own, vec4<u32>(0u, first / SCAN_TILE, end / SCAN_TILE, 0u));
            sums += vec4<u32>(0u, counts[first], counts[end], 0u);
        } else {
            sums = sums_before(own, vec4<u32>(first_count, first, end, 0u));
        }
        place = sums.x;
        if (own.thread == 0u && row < batch.row_count) {
            write_row(row, sums.y, sums.z);
        }
    }
    if (is_scanned) {
        compact_live(first_count, workgroups * COUNTS_EACH, own);
    } else {
        compact_few(first_count, place, own);
    }
}

// The last chunk whose first count is not after `count`.
fn chunk_of_count(count: u32) -> u32 {
    var low = 0u;
    var high = batch.chunk_count;
    while (high - low > 1u) {
        let middle = (low + high) / 2u;
        if (chunks[middle].first_count <= count) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

// Writes the ids of a word's bit, if it is set, and returns the place behind the word.
fn write_word(word: u32, place: u32, first_id: u32, bit: u32) -> u32 {
    if (((word >> bit) & 1u) != 0u) {
        store(place + countOneBits(word & ((1u << bit) - 1u)), first_id + bit);
    }
    return place + countOneBits(word);
}

// What a count counts: instances whose ids begin with `first_id`.
struct Counted {
    first_id: u32,
    len: u32,
}

fn counted(count: u32) -> Counted {
    let chunk = chunks[chunk_of_count(count)];
    let block = (count - chunk.first_count) % chunk.block_count;
    return Counted(chunk.first_instance + block * BLOCK, min(chunk.instance_count - block * BLOCK, BLOCK));
}

// Writes the ids of one count from `place` on, by 32 threads.
fn write_count(count: u32, block: Counted, place: u32, survivors: u32, bit: u32) {
    if (survivors == block.len) {
        // All of them: there may be no words.
        write_run(place, block.first_id, room_for(place, survivors), bit);
    } else {
        write_words(count, place, block.first_id, bit);
    }
}

// Writes `len` ids from `place` on, for which there is room, a line of 128 bytes after the other: runs begin anywhere, and
// 32 threads that write into two lines take longer.
//
//     lines of 4, place 6, ids 40 ..    . . . . | . . 40 41 | 42 43 44 45 | 46
fn write_run(place: u32, first_id: u32, len: u32, bit: u32) {
    let before = place % 32u;
    let at = place - before + bit;
    // Wraps around where it comes before the first id.
    let id = first_id + bit - before;
    if (len == BLOCK) {
        // The first and the last line share 32 threads. A loop whose turns are known is a fifth faster.
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

fn write_words(count: u32, first_place: u32, first_id: u32, bit: u32) {
    let fours = BLOCK_WORDS / 4u;
    var place = first_place;
    var next = words[count * fours];
    for (var w = 0u; w < fours; w += 1u) {
        let four = next;
        next = words[count * fours + min(w + 1u, fours - 1u)];
        if ((four.x | four.y | four.z | four.w) != 0u) {
            let id = first_id + w * 128u;
            place = write_word(four.x, place, id, bit);
            place = write_word(four.y, place, id + 32u, bit);
            place = write_word(four.z, place, id + 64u, bit);
            place = write_word(four.w, place, id + 96u, bit);
        }
    }
}

// The counts from `first_count` on; `place` is that of the first.
fn compact_few(first_count: u32, place: u32, own: Own) {
    let count = first_count + own.thread / 32u;
    var before = place;
    var survivors = 0u;
    if (count < batch.count_len) {
        for (var c = first_count; c < count; c += 1u) {
            before += counts[c];
        }
        survivors = counts[count];
    }
    write_count_together(count, word_of(count, survivors, own), before, survivors, own);
}

var<workgroup> live_end: u32;

// A count with survivors; without any behind the list.
struct Live {
    count: u32,
    survivors: u32,
    // Survivors of its tile before it.
    in_tile: u32,
}

fn live_at(place: u32, end: u32) -> Live {
    var live: Live;
    if (place < end) {
        let entry = lists.entries[place];
        live = Live(entry.x >> LIVE_SHIFT, entry.x & LIVE_SURVIVORS, entry.y);
    }
    return live;
}

// The live counts from `first` on, COUNTS_EACH at every `step`.
fn compact_live(first: u32, step: u32, own: Own) {
    if (own.thread == 0u) {
        live_end = min(atomicLoad(&lists.live_count), batch.count_len);
    }
    let end = workgroupUniformLoad(&live_end);
    for (var at = first; at < end; at += step) {
        let live = live_at(at + own.thread / 32u, end);
        // On its way before the sums are waited for.
        let word = word_of(live.count, live.survivors, own);
        let place = tiles_before_live(at, end, live, own) + live.in_tile;
        write_count_together(live.count, word, place, live.survivors, own);
    }
}

// Survivors of all tiles before that of the thread's live count, for any size of subgroup.
fn tiles_before_any(at: u32, end: u32, own: Own) -> u32 {
    let counts_at = vec4<u32>(
        live_at(at, end).count,
        live_at(at + 1u, end).count,
        live_at(at + 2u, end).count,
        live_at(at + 3u, end).count);
    return tiles_before(own, counts_at / SCAN_TILE)[own.thread / 32u];
}
