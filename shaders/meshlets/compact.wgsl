// Compact: bits to ids. Per meshlet of a row, the ids of the survivors that show it, in the order
// of the survivors. A thread writes the id of one survivor for the meshlets of a work item.

import package::meshlets::layout::{
    CELL_TILE, ITEM_MESHLETS, MESHLET_TILE, MeshletSpan, MeshletTotals, item_of, meshlet_rows, row_of,
    sizes,
};

@group(0) @binding(5) var<storage, read> survivors: array<u32>;
@group(0) @binding(6) var<storage, read> spans: MeshletSpans;
@group(0) @binding(8) var<storage, read> words: array<vec4<u32>>; // CELL_WORDS each
@group(0) @binding(9) var<storage, read> counts: array<u32>;
@group(0) @binding(10) var<storage, read> partials: array<u32>;
@group(0) @binding(11) var<storage, read_write> meshlet_survivors: array<u32>;

struct MeshletSpans {
    totals: MeshletTotals,
    rows: array<MeshletSpan>,
}

@compute @workgroup_size(MESHLET_TILE)
fn compact(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    for (var item = workgroup.x; item < spans.totals.item_count; item += workgroups.x) {
        let r = row_of(item);
        let span = spans.rows[r];
        let work = item_of(item - span.first_item, meshlet_rows[r].meshlet_count);
        let i = work.tile * MESHLET_TILE + thread;
        if (i >= span.survivor_count) {
            continue;
        }
        let id = survivors[span.first_survivor + i];
        for (var m = work.first; m < min(work.first + ITEM_MESHLETS, work.end); m += 1u) {
            let cell = span.first_cell + m * span.tile_count + work.tile;
            let cell_words = words[cell];
            let word = cell_words[thread / 32u];
            let bit = 1u << (thread % 32u);
            if ((word & bit) == 0u) {
                continue;
            }
            let is_before = vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(thread / 32u);
            let before = select(vec4<u32>(0u), countOneBits(cell_words), is_before);
            let place = counts[cell] + partials[cell / CELL_TILE] + before.x + before.y + before.z
                + countOneBits(word & (bit - 1u));
            // A row whose ids do not all fit is drawn whole.
            if (place < sizes.survivor_capacity) {
                meshlet_survivors[place] = id;
            }
        }
    }
}
