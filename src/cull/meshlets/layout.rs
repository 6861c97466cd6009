//! Every shape that a meshlet kernel sees, in the order of `shaders/meshlets/layout.wgsl`; the test `layout` compares
//! the two.

use crate::{
    cull::layout::{Chunk, Row},
    meshlet::Meshlet,
};
use bytemuck::{Pod, Zeroable};
use glam::Vec4;

/// Survivors of a tile: threads of a workgroup of `meshlet_vote` and `meshlet_compact`, bits of a cell.
pub const MESHLET_TILE: u32 = 128;
/// Words of a cell.
pub const CELL_WORDS: u32 = MESHLET_TILE / 32;
/// Meshlets that one work item tests for the survivors of one tile.
pub const ITEM_MESHLETS: u32 = 8;
/// Cells that one workgroup of `meshlet_scan` handles.
pub const CELL_TILE: u32 = 256;
/// Threads of a workgroup of `meshlet_args`: a workgroup a row.
pub const ROW_THREADS: u32 = 128;

/// A run of a mesh's indices, and what a view needs to cull it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct GpuMeshlet {
    /// In the mesh's space: centre, radius.
    pub sphere: Vec4,
    /// Axis and cutoff of the cone of normals: four signed normalised bytes.
    pub cone: u32,
    /// First index, counted from the mesh's first.
    pub first_index: u32,
    /// Indices.
    pub index_count: u32,
    /// Padding.
    pub pad_a: u32,
}

impl From<&Meshlet> for GpuMeshlet {
    fn from(meshlet: &Meshlet) -> Self {
        Self {
            sphere: meshlet.centre.extend(meshlet.radius),
            cone: meshlet.cone.to_bits(),
            first_index: meshlet.first_index,
            index_count: meshlet.triangle_count * 3,
            pad_a: 0,
        }
    }
}

/// Sizes of a batch's meshlet stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct MeshletSizes {
    /// Rows whose mesh has meshlets.
    pub row_count: u32,
    /// Cells for which there is room.
    pub cell_capacity: u32,
    /// Ids for which there is room.
    pub pair_capacity: u32,
    /// Padding.
    pub pad_a: u32,
}

/// A view of a chunk whose mesh has meshlets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct MeshletRow {
    /// The view.
    pub row: Row,
    /// The chunk.
    pub chunk: Chunk,
    /// Where the view looks from in the set's space, homogeneous ([`CullView::eye_in`](crate::cull::CullView::eye_in));
    /// zero when cones are of no use.
    pub eye: Vec4,
    /// Index of the row among the batch's rows.
    pub draw_row: u32,
    /// First meshlet of the mesh in the table.
    pub first_meshlet: u32,
    /// Meshlets of the mesh.
    pub meshlet_count: u32,
    /// The command that draws whole meshes; those of the meshlets follow.
    pub first_draw: u32,
    /// First index of the mesh in the index buffer that is bound.
    pub first_index: u32,
    /// Added to each index.
    pub base_vertex: i32,
    /// Padding.
    pub pad_a: u32,
    /// Padding.
    pub pad_b: u32,
}

/// What the survivors of a row expand to. A cell is one meshlet of the survivors of one tile:
/// `first_cell + meshlet * tile_count + tile`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct MeshletSpan {
    /// Work items before the row's.
    pub first_item: u32,
    /// Cells before the row's.
    pub first_cell: u32,
    /// 0 when the row has no survivors, or when there is no room for its cells: it is drawn whole then.
    pub tile_count: u32,
    /// Survivors of the row.
    pub survivor_count: u32,
    /// The first survivor in the batch's arena.
    pub first_survivor: u32,
    /// Meshlets of survivors that lie outside the view.
    pub outside: u32,
    /// Padding.
    pub pad_a: u32,
    /// Padding.
    pub pad_b: u32,
}

/// Sums over all rows of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct MeshletTotals {
    /// Work items.
    pub item_count: u32,
    /// Cells.
    pub cell_count: u32,
    /// Cells that there must be room for so that no row is drawn whole; at most 2^32 - 1.
    pub needed_cells: u32,
    /// Ids that there must be room for.
    pub needed_pairs: u32,
}

/// What was drawn of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct MeshletResult {
    /// Commands that draw something: they come first.
    pub draw_count: u32,
    /// Survivors of the row.
    pub survivor_count: u32,
    /// Meshlets drawn, over all survivors.
    pub visible: u32,
    /// Meshlets of survivors outside the view.
    pub outside: u32,
    /// Triangles drawn: low word.
    pub triangles: u32,
    /// High word.
    pub triangles_high: u32,
    /// 1 when whole meshes are drawn for want of room.
    pub whole: u32,
    /// Padding.
    pub pad_a: u32,
}

impl MeshletResult {
    /// Triangles drawn.
    #[must_use]
    pub fn triangle_count(&self) -> u64 {
        u64::from(self.triangles) | u64::from(self.triangles_high) << 32
    }
}

/// Byte offset of a row's [`MeshletResult`] in the result buffer, which starts with [`MeshletTotals`].
#[must_use]
pub const fn result_offset(row: u32) -> u64 {
    size_of::<MeshletTotals>() as u64 + row as u64 * size_of::<MeshletResult>() as u64
}
