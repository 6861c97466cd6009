// Every shape of the expansions that both a kernel and the host see. `src/cull/layout/expand.rs` holds the same
// shapes in the same order; the test `layout` compares the two.

// Threads of a workgroup of pass 1, and sources that it takes at a time.
const EXPAND_THREADS: u32 = 256u;
const EXPAND_TILE: u32 = 1024u;
// Values that a thread takes at a time in a scan of all tiles by one workgroup.
const EXPAND_SPINE_RUN: u32 = 16u;
// Threads of a workgroup of pass 2: a chunk.
const EXPAND_CHUNK: u32 = 128u;
// Items that a workgroup of `workgroup-search` takes at a time.
const EXPAND_SPAN: u32 = 1024u;
// Bucket b is for 2^b items.
const EXPAND_BUCKETS: u32 = 32u;
// More items than this are refused, so that no index wraps.
const EXPAND_MOST_ITEMS: u32 = 0xff000000u;

// ExpandParams.source_word: the number of sources is `source_capacity`.
const EXPAND_KNOWN: u32 = 0xffffffffu;

// ExpandState.status
const EXPAND_TOO_MANY_ITEMS: u32 = 1u;
const EXPAND_TOO_MANY_THREADS: u32 = 2u;
const EXPAND_NO_ROOM: u32 = 4u;

// What pass 1 is told. `*_at` are places in the arena, counted in words.
struct ExpandParams {
    // Sources, or the most that may be asked for.
    source_capacity: u32,
    // The word of `source_words` that holds the number of sources.
    source_word: u32,
    entry_capacity: u32,
    // Workgroups of the passes that stride over tiles.
    workgroups: u32,
    prefix_at: u32,
    partials_at: u32,
    sums_at: u32,
    entries_at: u32,
}

// What pass 1 tells pass 2 and the host.
struct ExpandState {
    sources: u32,
    // Items of all sources, also those that find no room; the greatest u32 where it is at least 2^32 - 1.
    items: u32,
    // Entries that the arena must hold so that no item is lost.
    needed: u32,
    status: u32,
    // Chunks of pass 2.
    chunks: u32,
    // The greatest number of items of a source (`fixed-max`), else entries.
    width: u32,
    pad_a: u32,
    pad_b: u32,
    buckets: array<ExpandBucket, 32>,
    // Workgroups in x, y, z of an indirect dispatch of pass 2: all buckets, then each.
    dispatches: array<vec4<u32>, 33>,
}

struct ExpandBucket {
    first_entry: u32,
    entry_count: u32,
    // Chunks of a bucket are its own: no workgroup works for two.
    first_chunk: u32,
    // Binary logarithm of the threads for each entry.
    lanes: u32,
}

// Which buckets a dispatch of pass 2 is for.
struct ExpandSlice {
    // A bucket, or EXPAND_BUCKETS for all.
    bucket: u32,
    pad_a: u32,
    pad_b: u32,
    pad_c: u32,
}
