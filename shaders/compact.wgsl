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
        for (var i = first_of_line(place, bit); i < i32(survivors); i += 32) {
            if (i >= 0) {
                store(place + u32(i), block.first_id + u32(i));
            }
        }
    } else {
        write_words(count, place, block.first_id, bit);
    }
}

// What a thread writes first of a run that begins at `place`, so that 32 threads write 128 bytes of one line at a time;
// what comes before the run is negative.
fn first_of_line(place: u32, bit: u32) -> i32 {
    return i32(bit) - i32(place % 32u);
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

// Live counts at four places of the list.
struct Lives {
    counts: vec4<u32>,
    // Zero behind the list.
    survivors: vec4<u32>,
    // Survivors of its tile before each.
    in_tile: vec4<u32>,
}

fn lives_at(places: vec4<u32>, end: u32) -> Lives {
    var lives: Lives;
    for (var k = 0u; k < 4u; k += 1u) {
        if (places[k] < end) {
            let entry = lists.entries[places[k]];
            lives.counts[k] = entry.x >> LIVE_SHIFT;
            lives.survivors[k] = entry.x & LIVE_SURVIVORS;
            lives.in_tile[k] = entry.y;
        }
    }
    return lives;
}

// The live counts from `first` on, COUNTS_EACH at every `step`; those of four steps are on their way at once.
fn compact_live(first: u32, step: u32, own: Own) {
    if (own.thread == 0u) {
        live_end = min(atomicLoad(&lists.live_count), batch.count_len);
    }
    let end = workgroupUniformLoad(&live_end);
    for (var at = first; at < end; at += 4u * step) {
        let firsts = vec4<u32>(at) + vec4<u32>(0u, step, 2u * step, 3u * step);
        let lives = lives_at(firsts + own.thread / 32u, end);
        var own_words: vec4<u32>;
        for (var k = 0u; k < 4u; k += 1u) {
            own_words[k] = word_of(lives.counts[k], lives.survivors[k], own);
        }
        let places = tiles_before_lives(firsts, end, lives, own) + lives.in_tile;
        for (var k = 0u; k < 4u && firsts[k] < end; k += 1u) {
            write_count_together(lives.counts[k], own_words[k], places[k], lives.survivors[k], own);
        }
    }
}

// Survivors of all tiles before those of the thread's four live counts, for any size of subgroup.
fn tiles_before_all(firsts: vec4<u32>, end: u32, own: Own) -> vec4<u32> {
    var sums: vec4<u32>;
    for (var k = 0u; k < 4u && firsts[k] < end; k += 1u) {
        let lives = lives_at(vec4<u32>(firsts[k]) + vec4<u32>(0u, 1u, 2u, 3u), end);
        sums[k] = tiles_before(own, lives.counts / SCAN_TILE)[own.thread / 32u];
    }
    return sums;
}
