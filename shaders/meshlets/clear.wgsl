// Clear, before a vote by items (vote_items.wgsl), which only sets bits: no survivor shows any
// meshlet yet. The number of sources is copied, because no kernel may bind `spans` twice, once to
// read that number and once to write.

import package::meshlets::layout::{CELL_TILE, MeshletSpan, MeshletTotals};

@group(0) @binding(6) var<storage, read> spans: MeshletSpans;
@group(0) @binding(8) var<storage, read_write> words: array<vec4<u32>>; // CELL_WORDS each
@group(0) @binding(14) var<storage, read_write> source_count: u32;

struct MeshletSpans {
    totals: MeshletTotals,
    rows: array<MeshletSpan>,
}

@compute @workgroup_size(CELL_TILE)
fn clear(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let cells = spans.totals.cell_count;
    let stride = workgroups.x * CELL_TILE;
    for (var cell = workgroup.x * CELL_TILE + thread; cell < cells; cell += stride) {
        words[cell] = vec4<u32>(0u);
    }
    if (workgroup.x == 0u && thread == 0u) {
        source_count = spans.totals.source_count;
    }
}
