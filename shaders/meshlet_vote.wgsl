// Meshlet stage 2. A workgroup takes one tile of survivors, a thread each, and some meshlets; each answer is a bit.
// The bits of a cell are four words, its count goes to the scan.

@group(0) @binding(0) var<uniform> sizes: MeshletSizes;
@group(0) @binding(6) var<storage, read_write> spans: VoteSpans;
@group(0) @binding(8) var<storage, read_write> words: array<u32>;
@group(0) @binding(9) var<storage, read_write> counts: array<u32>;

// MeshletSpan, of which this stage adds up one field.
struct VoteSpan {
    first_item: u32,
    first_cell: u32,
    tile_count: u32,
    survivor_count: u32,
    first_survivor: u32,
    outside: atomic<u32>,
    pad_a: u32,
    pad_b: u32,
}

struct VoteSpans {
    totals: MeshletTotals,
    rows: array<VoteSpan>,
}

var<workgroup> item_words: array<atomic<u32>, 32>; // ITEM_MESHLETS * CELL_WORDS
var<workgroup> item_outside: atomic<u32>;

// The body of the expansion: `source` is the row, `item` counts from the row's first.
fn expand_item(source: u32, item: u32, thread: u32, subgroup: u32, lane: u32, size: u32) {
    let row = meshlet_rows[source].row;
    let chunk = meshlet_rows[source].chunk;
    let eye = meshlet_rows[source].eye;
    let first_meshlet = meshlet_rows[source].first_meshlet;
    let work = item_of(item, meshlet_rows[source].meshlet_count);
    let i = work.tile * MESHLET_TILE + thread;
    let survives = i < spans.rows[source].survivor_count;
    // A thread without a survivor tests the row's first once more, and its answer does not count.
    let id = survivors[spans.rows[source].first_survivor + select(0u, i, survives)];
    let survivor = load_survivor(chunk.flags, id);

    var outside = 0u;
    for (var k = 0u; k < ITEM_MESHLETS; k += 1u) {
        let m = work.first + k;
        // The same for all threads.
        if (m >= work.end) {
            break;
        }
        let meshlet = meshlets[first_meshlet + m];
        let cone = unpack4x8snorm(meshlet.cone);
        let sphere = place_sphere(survivor, meshlet.sphere);
        var inside = sphere_in_view(row, sphere);
        if (row.reach.w >= 0.0) {
            inside = inside & sphere_in_reach(row, chunk, sphere);
        }
        let axis = rotate(survivor.rotation, cone.xyz);
        let visible = inside & !faces_away(eye, axis, cone.w, sphere);
        outside += select(0u, 1u, survives & !inside);
        add_votes(k * CELL_WORDS, survives & visible, thread, subgroup, lane, size);
    }
    atomicAdd(&item_outside, outside);
    workgroupBarrier();

    if (thread < ITEM_MESHLETS * CELL_WORDS) {
        let m = work.first + thread / CELL_WORDS;
        if (m < work.end) {
            let cell = spans.rows[source].first_cell + m * spans.rows[source].tile_count + work.tile;
            words[cell * CELL_WORDS + thread % CELL_WORDS] = atomicLoad(&item_words[thread]);
            if (thread % CELL_WORDS == 0u) {
                var count = 0u;
                for (var w = 0u; w < CELL_WORDS; w += 1u) {
                    count += countOneBits(atomicLoad(&item_words[thread + w]));
                }
                counts[cell] = count;
            }
        }
    }
    if (thread == 0u) {
        atomicAdd(&spans.rows[source].outside, atomicLoad(&item_outside));
    }
    workgroupBarrier();
    // The next item starts from nothing.
    if (thread < ITEM_MESHLETS * CELL_WORDS) {
        atomicStore(&item_words[thread], 0u);
    }
    if (thread == 0u) {
        atomicStore(&item_outside, 0u);
    }
    workgroupBarrier();
}
