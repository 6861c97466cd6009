// Stage 3, with the scan of the counts in it. Workgroups stride over the counts (one for each block and row) and turn
// the words of each into ids, in instance order, at its place: the sum of all counts before it. Sums of whole tiles
// come from `vote` and `classify`; a workgroup's counts lie in rising order, so it adds up every tile once.
//
//     counts, tiles of 4          3 0 4 1 | 2 0 0 5 | 1 ...      tiles 8 7 ...
//     a workgroup has 3 and 8     place of 3: 3 + 0 + 4 = 7, of 8: 8 + 7 = 15
//
// It also writes the commands of the rows; the last workgroup clears `progress` for the next frame. The tier's file
// (compact_subgroup.wgsl, compact_workgroup.wgsl) adds up over a workgroup.

@group(0) @binding(2) var<storage, read> words: array<u32>;

var<workgroup> own_counts: array<u32, BLOCK_THREADS>;
// Words of a block, and the block's survivors before each. Twice: a thread may still write ids of the last block.
var<workgroup> block_words: array<u32, 2u * BLOCK_WORDS>;
var<workgroup> before_word: array<u32, 2u * BLOCK_WORDS>;
var<workgroup> is_last: u32;

// The thread's part of the sum before `count`: of the tiles from `first_tile` on, and of counts within the last tile.
fn sum_before(first_tile: u32, count: u32, thread: u32) -> vec2<u32> {
    let tile = count / SCAN_TILE;
    var sum = vec2<u32>(0u);
    for (var t = first_tile + thread; t < tile; t += BLOCK_THREADS) {
        sum.x += atomicLoad(&progress.tiles[t]);
    }
    for (var c = tile * SCAN_TILE + thread; c < count; c += BLOCK_THREADS) {
        sum.y += counts[c];
    }
    return sum;
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

fn write_survivors(place: u32, first_id: u32, side: u32, thread: u32) {
    for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
        let i = k * BLOCK_THREADS + thread;
        let w = side + i / 32u;
        let word = block_words[w];
        let bit = 1u << (i % 32u);
        if ((word & bit) != 0u) {
            store(place + before_word[w] + countOneBits(word & (bit - 1u)), first_id + i);
        }
    }
}

fn compact_counts(workgroup: u32, workgroups: u32, own: Own) {
    let thread = own.thread;
    var tile = 0u;
    var before_tile = 0u;
    var side = 0u;
    for (var first = workgroup; first < batch.count_len; first += workgroups * BLOCK_THREADS) {
        // Most counts may be zero: the next 128 of the workgroup at once.
        let ahead = first + thread * workgroups;
        var own_count = 0u;
        if (ahead < batch.count_len) {
            own_count = counts[ahead];
        }
        own_counts[thread] = own_count;
        workgroupBarrier();
        for (var k = 0u; k < BLOCK_THREADS; k += 1u) {
            // The same for all threads.
            let survivors = own_counts[k];
            if (survivors == 0u) {
                continue;
            }
            let count = first + k * workgroups;
            let chunk = chunks[chunk_of_count(count)];
            let block = (count - chunk.first_count) % chunk.block_count;
            let len = min(chunk.instance_count - block * BLOCK, BLOCK);
            let is_whole = survivors == len;
            var word = 0u;
            if (thread < BLOCK_WORDS && !is_whole) {
                word = words[count * BLOCK_WORDS + thread];
            }
            let sum = add_up(own, sum_before(tile, count, thread), word, side);
            tile = count / SCAN_TILE;
            before_tile += sum.x;
            let place = before_tile + sum.y;
            let first_id = chunk.first_instance + block * BLOCK;
            if (is_whole) {
                for (var i = thread; i < len; i += BLOCK_THREADS) {
                    store(place + i, first_id + i);
                }
            } else {
                write_survivors(place, first_id, side, thread);
            }
            side ^= BLOCK_WORDS;
        }
        workgroupBarrier();
    }
}

fn write_args(workgroup: u32, workgroups: u32, own: Own) {
    for (var row = workgroup; row < batch.row_count; row += workgroups) {
        let first = row_draws[row].first_count;
        let end = first + row_draws[row].block_count;
        let before = add_up(own, sum_before(0u, first, own.thread), 0u, 0u);
        let after = add_up(own, sum_before(first / SCAN_TILE, end, own.thread), 0u, BLOCK_WORDS);
        if (own.thread == 0u) {
            write_draw(row, before.x + before.y, before.x + after.x + after.y);
        }
    }
    if (workgroup == 0u) {
        let all = add_up(own, sum_before(0u, batch.count_len, own.thread), 0u, 0u);
        if (own.thread == 0u) {
            let survivors = all.x + all.y;
            let overflow = max(survivors, batch.survivor_capacity) - batch.survivor_capacity;
            args.totals = Totals(survivors, overflow, 1u, survivors);
        }
    }
    workgroupBarrier();
}

fn clear_progress(workgroups: u32, own: Own) {
    // Everything that this workgroup reads of `progress` has been read.
    storageBarrier();
    if (own.thread == 0u) {
        is_last = u32(atomicAdd(&progress.finished, 1u) == workgroups - 1u);
    }
    workgroupBarrier();
    if (is_last != 0u) {
        for (var t = own.thread; t <= batch.count_len / SCAN_TILE; t += BLOCK_THREADS) {
            atomicStore(&progress.tiles[t], 0u);
        }
        if (own.thread == 0u) {
            atomicStore(&progress.finished, 0u);
            atomicStore(&progress.crossed, 0u);
        }
    }
}

fn compact_all(workgroup: u32, workgroups: u32, own: Own) {
    compact_counts(workgroup, workgroups, own);
    write_args(workgroup, workgroups, own);
    clear_progress(workgroups, own);
}
