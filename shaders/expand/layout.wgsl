// Every shape of the expansions that a kernel and the host share. `src/cull/layout/expand.rs` holds
// the same shapes in the same order; the test `layout` compares the two.

// Threads of a workgroup of pass 1, and sources that it handles at a time.
const EXPAND_THREADS: u32 = 256u;
const EXPAND_TILE: u32 = 1024u;
// Values per thread and turn in a scan of all tiles by one workgroup.
const EXPAND_SPINE_RUN: u32 = 16u;
// Threads of a workgroup of pass 2: one chunk.
const EXPAND_CHUNK: u32 = 128u;
// Items that a workgroup of `workgroup-search` handles at a time.
const EXPAND_SPAN: u32 = 1024u;
// Number of buckets. Bucket b is for 2^b items.
const EXPAND_BUCKETS: u32 = 32u;
// Most items. More are refused, so that no index wraps.
const EXPAND_MOST_ITEMS: u32 = 0xff000000u;

// ExpandParams.source_word if the number of sources is `source_capacity`.
const EXPAND_KNOWN: u32 = 0xffffffffu;

// ExpandState.status
const EXPAND_TOO_MANY_ITEMS: u32 = 1u;
const EXPAND_TOO_MANY_THREADS: u32 = 2u;
const EXPAND_NO_ROOM: u32 = 4u;

// The parameters of pass 1. `*_at` are places in the arena, counted in words.
struct ExpandParams {
    // Number of sources, or the most that a buffer may ask for.
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

// The results of pass 1, for pass 2 and the host.
struct ExpandState {
    sources: u32,
    // Items of all sources, including those that do not fit. Saturates at the largest u32.
    items: u32,
    // Entries with which every item fits.
    needed: u32,
    status: u32,
    // Chunks of pass 2.
    chunks: u32,
    // Most items of a source (`fixed-max`), otherwise entries or items.
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
    // No chunk is shared by two buckets.
    first_chunk: u32,
    // Binary logarithm of the threads per entry.
    lanes: u32,
}

// The buckets of one dispatch of pass 2.
struct ExpandSlice {
    // A bucket, or EXPAND_BUCKETS for all.
    bucket: u32,
    pad_a: u32,
    pad_b: u32,
    pad_c: u32,
}

// ---- The tables of an expansion. The constant `EXPAND_LAYOUT` ends here. Pass 1 writes `state`
// and `arena`, pass 2 reads them.

@group(0) @binding(0) var<uniform> params: ExpandParams;
@if(!items) @group(0) @binding(3) var<storage, read_write> state: ExpandState;
@if(!items) @group(0) @binding(4) var<storage, read_write> arena: array<u32>;
@if(items) @group(0) @binding(3) var<storage, read> state: ExpandState;
@if(items) @group(0) @binding(4) var<storage, read> arena: array<u32>;
