// Stage 3. The words of each block and row become ids, in instance order, at the place that its count has: the
// sum of all counts before it. It also writes the commands of the rows, and empties the list of crossed blocks.
//
// Few counts (batch.is_scanned is 0): a workgroup has COUNTS_EACH counts side by side and adds up all before them.
// Many: `scan` has added up tiles; a workgroup adds up the tiles' totals once, and strides over the counts.
//
// 32 threads side by side write the ids of a count: each reads all words and has a bit of every one, so that nobody
// waits for anybody. The tier's file (compact_subgroup.wgsl, compact_workgroup.wgsl) adds up over a workgroup.
//
//     words of a block (4 bits each here)    0110 1001
//     survivors before each word             0    2
//     bit 3 of the second: 2 + bits below it in its word (1) = place 3 in the block

@group(0) @binding(2) var<storage, read> words: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> counts: array<u32>;
@group(0) @binding(8) var<storage, read> partials: array<u32>;

// Survivors before each tile.
var<workgroup> tile_places: array<u32, MOST_TILES>;

fn add_up_tiles(own: Own) {
    let tiles = batch.count_len / SCAN_TILE + 1u;
    // Tiles side by side belong to a thread.
    let each = (tiles + BLOCK_THREADS - 1u) / BLOCK_THREADS;
    let first = own.thread * each;
    let end = min(first + each, tiles);
    var sum = 0u;
    for (var tile = first; tile < end; tile += 1u) {
        sum += partials[tile];
    }
    var place = scan_up(own, sum);
    for (var tile = first; tile < end; tile += 1u) {
        tile_places[tile] = place;
        place += partials[tile];
    }
    workgroupBarrier();
}

fn place_of(count: u32) -> u32 {
    return counts[count] + tile_places[count / SCAN_TILE];
}

// Survivors before `a`, before `b` and before `c`, where counts are few.
fn sums_before(own: Own, a: u32, b: u32, c: u32) -> vec3<u32> {
    var sum = vec3<u32>(0u);
    for (var i = own.thread; i < max(a, c); i += BLOCK_THREADS) {
        let survivors = counts[i];
        sum += vec3<u32>(select(0u, survivors, i < a), select(0u, survivors, i < b), select(0u, survivors, i < c));
    }
    return add_up(own, sum);
}

// The command of a row; the last row ends where all end.
fn write_row(row: u32, place: u32, end: u32) {
    write_draw(row, place, end);
    if (row + 1u == batch.row_count) {
        let overflow = max(end, batch.survivor_capacity) - batch.survivor_capacity;
        // The list is empty for the next frame.
        args.totals = Totals(end, overflow, 1u, end, atomicExchange(&crossed.count, 0u));
    }
}

fn compact_all(workgroup: u32, workgroups: u32, own: Own) {
    if (batch.is_scanned != 0u) {
        add_up_tiles(own);
        for (var row = workgroup * BLOCK_THREADS + own.thread; row < batch.row_count; row += workgroups * BLOCK_THREADS) {
            let first = row_draws[row].first_count;
            write_row(row, place_of(first), place_of(first + row_draws[row].block_count));
        }
        compact_many(workgroup, workgroups, own);
        return;
    }
    let first_count = workgroup * COUNTS_EACH;
    var place = 0u;
    // A row a workgroup, in the same sum as the workgroup's own place.
    for (var row = workgroup; row == workgroup || row < batch.row_count; row += workgroups) {
        var first = 0u;
        var end = 0u;
        if (row < batch.row_count) {
            first = row_draws[row].first_count;
            end = first + row_draws[row].block_count;
        }
        let sums = sums_before(own, first_count, first, end);
        place = sums.x;
        if (own.thread == 0u && row < batch.row_count) {
            write_row(row, sums.y, sums.z);
        }
    }
    compact_few(first_count, place, own);
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

// Writes the ids of one count from `first_place` on.
fn write_count(count: u32, first_place: u32, survivors: u32, own: Own) {
    let bit = own.thread % 32u;
    let chunk = chunks[chunk_of_count(count)];
    let block = (count - chunk.first_count) % chunk.block_count;
    let len = min(chunk.instance_count - block * BLOCK, BLOCK);
    let first_id = chunk.first_instance + block * BLOCK;
    if (survivors == len) {
        // All of them: there may be no words.
        for (var i = bit; i < len; i += 32u) {
            store(first_place + i, first_id + i);
        }
        return;
    }
    if (!write_words_together(count, first_place, survivors, first_id, own)) {
        write_words(count, first_place, first_id, bit);
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
    if (count >= batch.count_len) {
        return;
    }
    var before = place;
    for (var c = first_count; c < count; c += 1u) {
        before += counts[c];
    }
    let survivors = counts[count];
    if (survivors > 0u) {
        write_count(count, before, survivors, own);
    }
}

fn compact_many(workgroup: u32, workgroups: u32, own: Own) {
    let step = workgroups * COUNTS_EACH;
    for (var count = workgroup * COUNTS_EACH + own.thread / 32u; count < batch.count_len; count += 4u * step) {
        // Most counts may be zero: four at a time. A count behind the last stands for the closing entry.
        let counts_of = min(vec4<u32>(count, count + step, count + 2u * step, count + 3u * step), vec4<u32>(batch.count_len));
        let places = vec4<u32>(
            place_of(counts_of.x), place_of(counts_of.y), place_of(counts_of.z), place_of(counts_of.w));
        let ends = min(counts_of + 1u, vec4<u32>(batch.count_len));
        let survivors = vec4<u32>(place_of(ends.x), place_of(ends.y), place_of(ends.z), place_of(ends.w)) - places;
        for (var k = 0u; k < 4u; k += 1u) {
            if (survivors[k] > 0u) {
                write_count(counts_of[k], places[k], survivors[k], own);
            }
        }
    }
}
