// Shapes of the meshlet stages that the host shares. `src/cull/meshlets/layout.rs` holds the same
// shapes in the same order; the test `layout` compares the two.
//
// Hooks: spans. Each kernel declares it, because the vote adds to it atomically.

import package::shared::layout::{Chunk, Projection, ViewPlanes};

// Survivors of a tile: threads of a workgroup of `vote` and `compact`, bits of a cell.
const MESHLET_TILE: u32 = 128u;
// Words of a cell.
const CELL_WORDS: u32 = 4u;
// Meshlets that one work item tests for the survivors of one tile.
const ITEM_MESHLETS: u32 = 8u;
// Cells that one workgroup of `scan` handles.
const CELL_TILE: u32 = 256u;
// Threads of a workgroup of `write_args`: one workgroup per row.
const ROW_THREADS: u32 = 128u;

// A run of a mesh's indices, and its bounds.
struct GpuMeshlet {
    // In the mesh's space: center, radius.
    sphere: vec4<f32>,
    // Axis and cutoff of the cone of normals: four signed normalized bytes.
    cone: u32,
    // First index, counted from the mesh's first.
    first_index: u32,
    index_count: u32,
    pad_a: u32,
}

struct MeshletSizes {
    row_count: u32,
    // Capacity of the cells.
    cell_capacity: u32,
    // Capacity of the ids.
    survivor_capacity: u32,
    pad_a: u32,
}

// A view of a chunk whose mesh has meshlets, at one level of detail.
struct MeshletRow {
    // Without the distances of the level: the instance decided it.
    planes: ViewPlanes,
    chunk: Chunk,
    // The eye in the set's space, homogeneous. Zero if cones do not help (see CullView::eye).
    eye: vec4<f32>,
    // How the view sees the set. Used in late lists alone.
    projection: Projection,
    // Index of the row among the batch's rows.
    draw_row: u32,
    // The run of the level's meshlets.
    first_meshlet: u32,
    meshlet_count: u32,
    // The command that draws whole meshes. The commands of the meshlets follow.
    first_draw: u32,
    // Place of the full mesh in the bound index and vertex buffers.
    first_index: u32,
    base_vertex: i32,
    pad_a: u32,
    pad_b: u32,
}

// The cells and work items of a row's survivors. A cell is one meshlet of the survivors of one
// tile:
//     cell = first_cell + meshlet * tile_count + tile
struct MeshletSpan {
    // Work items before the row.
    first_item: u32,
    // Cells before the row.
    first_cell: u32,
    // 0 if the row has no survivors, or if its cells do not fit: then it is drawn whole.
    tile_count: u32,
    survivor_count: u32,
    first_survivor: u32,
    // Meshlets of survivors that lie outside the view.
    outside: u32,
    // Survivors of the rows before, if all rows' survivors are expanded together (vote_items.wgsl).
    first_source: u32,
    // Meshlets of survivors that the view's depth hides.
    hidden: u32,
}

// Sums over all rows.
struct MeshletTotals {
    item_count: u32,
    cell_count: u32,
    // Capacity with which no row is drawn whole for lack of cells, at most 2^32 - 1.
    needed_cells: u32,
    // Capacity with which all ids fit.
    needed_survivors: u32,
    // Survivors of all rows whose cells fit.
    source_count: u32,
}

// The drawn meshlets of a row.
struct MeshletResult {
    // Commands that draw something. They come first.
    draw_count: u32,
    survivor_count: u32,
    // Meshlets drawn, over all survivors.
    visible: u32,
    outside: u32,
    // Triangles drawn: low and high word.
    triangles: u32,
    triangles_high: u32,
    // 1 if whole meshes are drawn because something did not fit.
    whole: u32,
    hidden: u32,
}

// ---- The tables of a batch, and what its work items are.

@group(0) @binding(0) var<uniform> sizes: MeshletSizes;
@group(0) @binding(1) var<storage, read> meshlet_rows: array<MeshletRow>;

// The row of a work item: the last one whose first item is not after it. A row without items has
// the same first item as the next row, and the next row comes after it.
fn row_of(item: u32) -> u32 {
    var low = 0u;
    var high = sizes.row_count;
    while (high - low > 1u) {
        let middle = (low + high) / 2u;
        if (spans.rows[middle].first_item <= item) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

// Some meshlets of the survivors of one tile.
struct Item {
    tile: u32,
    // The first of ITEM_MESHLETS meshlets, and the end of the mesh's.
    first: u32,
    end: u32,
}

// Item `item` of a row with `meshlet_count` meshlets. All items of a tile are contiguous.
fn item_of(item: u32, meshlet_count: u32) -> Item {
    let groups = (meshlet_count + ITEM_MESHLETS - 1u) / ITEM_MESHLETS;
    return Item(item / groups, item % groups * ITEM_MESHLETS, meshlet_count);
}
