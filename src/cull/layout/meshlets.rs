//! Every shape that a meshlet kernel reads or writes, in the order of
//! `shaders/meshlets/layout.wesl`; the test `layout` compares the two.

use crate::{
    cull::layout::{Chunk, Projection, ViewPlanes},
    meshlet::Meshlet,
};
use bytemuck::{Pod, Zeroable};
use glam::Vec4;

/// Number of survivors in a tile. It is also the number of threads in a workgroup of `meshlet_vote`
/// and `meshlet_compact`, and the number of bits in a cell.
pub const MESHLET_TILE: u32 = 128;
/// Number of words in a cell.
pub const CELL_WORDS: u32 = MESHLET_TILE / 32;
/// Number of meshlets that one work item tests for the survivors of one tile.
pub const ITEM_MESHLETS: u32 = 8;
/// Number of cells per workgroup of `meshlet_scan`.
pub const CELL_TILE: u32 = 256;
/// Number of threads in a workgroup of `meshlet_args`, which processes one row.
pub const ROW_THREADS: u32 = 128;

/// A run of a mesh's indices, and what a view needs to test it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct GpuMeshlet {
    /// Bounding sphere in the mesh's space: center, radius.
    pub sphere: Vec4,
    /// Axis and cutoff of the cone of normals: four signed normalized bytes.
    pub cone: u32,
    /// Index of the first index, counted from the mesh's first.
    pub first_index: u32,
    /// Number of indices.
    pub index_count: u32,
    /// Padding.
    pub pad_a: u32,
}

impl From<&Meshlet> for GpuMeshlet {
    fn from(meshlet: &Meshlet) -> Self {
        Self {
            sphere: meshlet.center.extend(meshlet.radius),
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
    /// Number of rows whose mesh has meshlets.
    pub row_count: u32,
    /// Number of cells that fit.
    pub cell_capacity: u32,
    /// Number of ids that fit.
    pub survivor_capacity: u32,
    /// Padding.
    pub pad_a: u32,
}

/// A view of a chunk whose mesh has meshlets, at one level of detail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct MeshletRow {
    /// The view, without the distances of its level of detail.
    pub planes: ViewPlanes,
    /// The chunk.
    pub chunk: Chunk,
    /// The view's eye in the set's space, homogeneous
    /// ([`CullView::eye_in`](crate::cull::CullView::eye_in)); zero if cones cannot be used.
    pub eye: Vec4,
    /// How the view sees the set: of rows of late lists. The others have the default.
    pub projection: Projection,
    /// Index of the row among the batch's rows.
    pub draw_row: u32,
    /// Index in the table of the level's first meshlet.
    pub first_meshlet: u32,
    /// Number of meshlets of the level.
    pub meshlet_count: u32,
    /// Index of the command that draws whole meshes; the commands of the meshlets follow it.
    pub first_draw: u32,
    /// Index of the full mesh's first index in the bound index buffer.
    pub first_index: u32,
    /// Value added to each index.
    pub base_vertex: i32,
    /// Padding.
    pub pad_a: u32,
    /// Padding.
    pub pad_b: u32,
}

/// What the survivors of a row expand to. A cell is one meshlet of the survivors of one tile; its
/// index is `first_cell + meshlet * tile_count + tile`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct MeshletSpan {
    /// Number of work items of the rows before this one.
    pub first_item: u32,
    /// Number of cells of the rows before this one.
    pub first_cell: u32,
    /// Number of tiles; 0 if the row has no survivors, or if its cells do not fit and it is drawn
    /// whole.
    pub tile_count: u32,
    /// Number of survivors of the row.
    pub survivor_count: u32,
    /// Index of the first survivor in the batch's arena.
    pub first_survivor: u32,
    /// Number of meshlets of survivors that lie outside the view.
    pub outside: u32,
    /// Number of survivors of the rows before this one: the first source of an expansion of all
    /// rows.
    pub first_source: u32,
    /// Number of meshlets of survivors that the depth of the view hides: of late lists.
    pub hidden: u32,
}

/// Sums over all rows of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct MeshletTotals {
    /// Number of work items.
    pub item_count: u32,
    /// Number of cells.
    pub cell_count: u32,
    /// Number of cells that must fit so that no row is drawn whole; at most 2^32 - 1.
    pub needed_cells: u32,
    /// Number of ids that must fit so that no row is drawn whole.
    pub needed_survivors: u32,
    /// Number of survivors of all rows whose cells fit: the sources of an expansion of all rows.
    pub source_count: u32,
}

/// What was drawn of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct MeshletResult {
    /// Number of commands that draw something; they come first.
    pub draw_count: u32,
    /// Number of survivors of the row.
    pub survivor_count: u32,
    /// Number of meshlets drawn, over all survivors.
    pub visible: u32,
    /// Number of meshlets outside the view, over all survivors.
    pub outside: u32,
    /// Number of triangles drawn: low word.
    pub triangles: u32,
    /// Number of triangles drawn: high word.
    pub triangles_high: u32,
    /// 1 if whole meshes are drawn because the meshlets do not fit.
    pub whole: u32,
    /// Number of meshlets that the depth of the view hides, over all survivors: of late lists.
    pub hidden: u32,
}

impl MeshletResult {
    /// Number of triangles drawn.
    #[must_use]
    pub fn triangle_count(&self) -> u64 {
        u64::from(self.triangles) | u64::from(self.triangles_high) << 32
    }
}

/// Byte offset of a row's [`MeshletResult`] in the result buffer, which starts with
/// [`MeshletTotals`].
#[must_use]
pub const fn result_offset(row: u32) -> u64 {
    size_of::<MeshletTotals>() as u64 + row as u64 * size_of::<MeshletResult>() as u64
}
