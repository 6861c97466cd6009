// Shapes of the meshlet stages, after those of layout.wgsl. `src/cull/meshlets/layout.rs` holds the same in the same
// order; the test `layout` compares the two.

// Survivors of a tile: threads of a workgroup of `meshlet_vote` and `meshlet_compact`, bits of a cell.
const MESHLET_TILE: u32 = 128u;
// Words of a cell.
const CELL_WORDS: u32 = 4u;
// Meshlets that one work item tests for the survivors of one tile.
const ITEM_MESHLETS: u32 = 8u;
// Cells that one workgroup of `meshlet_scan` handles.
const CELL_TILE: u32 = 256u;
// Threads of a workgroup of `meshlet_args`: a workgroup a row.
const ROW_THREADS: u32 = 128u;

// A run of a mesh's indices, and what a view needs to cull it.
struct GpuMeshlet {
    // In the mesh's space: centre, radius.
    sphere: vec4<f32>,
    // Axis and cutoff of the cone of normals: four signed normalised bytes.
    cone: u32,
    // First index, counted from the mesh's first.
    first_index: u32,
    index_count: u32,
    pad_a: u32,
}

struct MeshletSizes {
    row_count: u32,
    // Cells for which there is room.
    cell_capacity: u32,
    // Ids for which there is room.
    pair_capacity: u32,
    pad_a: u32,
}

// A view of a chunk whose mesh has meshlets.
struct MeshletRow {
    row: Row,
    chunk: Chunk,
    // Where the view looks from in the set's space, homogeneous; zero when cones are of no use (see CullView::eye).
    eye: vec4<f32>,
    // Index of the row among the batch's rows.
    draw_row: u32,
    first_meshlet: u32,
    meshlet_count: u32,
    // The command that draws whole meshes; those of the meshlets follow.
    first_draw: u32,
    // Where the mesh lies in the buffers that are bound.
    first_index: u32,
    base_vertex: i32,
    pad_a: u32,
    pad_b: u32,
}

// What the survivors of a row expand to. A cell is one meshlet of the survivors of one tile:
//     cell = first_cell + meshlet * tile_count + tile
struct MeshletSpan {
    // Work items before the row's.
    first_item: u32,
    // Cells before the row's.
    first_cell: u32,
    // 0 when the row has no survivors, or when there is no room for its cells: it is drawn whole then.
    tile_count: u32,
    survivor_count: u32,
    first_survivor: u32,
    // Meshlets of survivors that lie outside the view.
    outside: u32,
    pad_a: u32,
    pad_b: u32,
}

// Sums over all rows.
struct MeshletTotals {
    item_count: u32,
    cell_count: u32,
    // Cells that there must be room for so that no row is drawn whole; at most 2^32 - 1.
    needed_cells: u32,
    // Ids that there must be room for.
    needed_pairs: u32,
}

// What was drawn of a row.
struct MeshletResult {
    // Commands that draw something: they come first.
    draw_count: u32,
    survivor_count: u32,
    // Meshlets drawn, over all survivors.
    visible: u32,
    outside: u32,
    // Triangles drawn: low and high word.
    triangles: u32,
    triangles_high: u32,
    // 1 when whole meshes are drawn for want of room.
    whole: u32,
    pad_a: u32,
}
