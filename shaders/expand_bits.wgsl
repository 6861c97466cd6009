// Pass 1 of the buckets. A tile's sources are transposed to bits: bit s of masks[w * 32 + b] says that source
// 32 w + s of the tile has an entry in bucket b. A first kernel counts the entries
// of each tile and bucket; a scan of them, bucket after bucket, lets all buckets lie side by side in the arena, as
// large as they must be; a last kernel does the same again and writes.
//
//     N of 4 sources       5 = 0101   2 = 0010   7 = 0111   0 = 0000
//     bit 0 of each        1 0 1 0    bucket 0: items of size 1 of sources 0 and 2
//     bit 1 of each        0 1 1 0    bucket 1: items of size 2 of sources 1 and 2
//     bit 2 of each        1 0 1 0    bucket 2: items of size 4 of sources 0 and 2

const TILE_WORDS: u32 = EXPAND_TILE / 32u;

var<workgroup> masks: array<atomic<u32>, EXPAND_TILE>;
// Entries of bucket t % 32 in the four words from t / 32 * 4 on.
var<workgroup> segments: array<u32, EXPAND_THREADS>;

const SEGMENT: u32 = TILE_WORDS * EXPAND_BUCKETS / EXPAND_THREADS;

const RUN: u32 = EXPAND_TILE / EXPAND_THREADS;

// N of sources `index`, `index` + 256 and so on of the tile: all are on their way before the first is used.
fn tile_items(tile: u32, sources: u32, index: u32) -> array<u32, RUN> {
    var items: array<u32, RUN>;
    for (var r = 0u; r < RUN; r += 1u) {
        let source = tile * EXPAND_TILE + r * EXPAND_THREADS + index;
        if (source < sources) {
            items[r] = items_of(source);
        }
    }
    return items;
}

fn load_masks(tile: u32, sources: u32, thread: Thread) {
    let index = index_of(thread);
    var items = tile_items(tile, sources, index);
    for (var i = index; i < EXPAND_TILE; i += EXPAND_THREADS) {
        atomicStore(&masks[i], 0u);
    }
    workgroupBarrier();
    for (var r = 0u; r < RUN; r += 1u) {
        note_items(items[r]);
        transpose(bits_of(items[r]), r * EXPAND_THREADS + index, thread);
    }
    workgroupBarrier();
    var entries = 0u;
    for (var k = 0u; k < SEGMENT; k += 1u) {
        entries += entries_of(mask_at(index, k));
    }
    segments[index] = entries;
    workgroupBarrier();
}

// Word k of the thread's segment.
fn word_at(index: u32, k: u32) -> u32 {
    return index / EXPAND_BUCKETS * SEGMENT + k;
}

fn mask_at(index: u32, k: u32) -> u32 {
    return atomicLoad(&masks[word_at(index, k) * EXPAND_BUCKETS + index % EXPAND_BUCKETS]);
}

// Entries of bucket index % 32 in the segments before `segment`.
fn entries_before(index: u32, segment: u32) -> u32 {
    var entries = 0u;
    for (var s = 0u; s < segment; s += 1u) {
        entries += segments[s * EXPAND_BUCKETS + index % EXPAND_BUCKETS];
    }
    return entries;
}
