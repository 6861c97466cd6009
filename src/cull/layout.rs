//! Every shape that a kernel reads or writes, in the order of `shaders/shared/layout.wesl`; the
//! test `layout` compares the two.
//!
//! This file is long because it has one struct per table.
#![cfg_attr(
    not(feature = "testing"),
    allow(
        dead_code,
        unused_imports,
        reason = "the test `layout` compares all with the shaders"
    )
)]

mod exact;
pub mod expand;
mod far_first;
pub mod meshlets;
mod occlusion;
mod place;
mod rows;
mod scatter;

pub(crate) use exact::{exact_dot, head};
pub use far_first::{
    DIGITS, FAR_FIRST_THREADS, FAR_FIRST_TILE, FarFirstJob, FarFirstRound, FarFirstSpan,
};
pub use occlusion::{
    COVERS_NO_SAMPLE, DepthPyramid, FOOTPRINT_BITS, HIDDEN, MAX_PYRAMID_LEVELS, NEAR_DIVISOR,
    OCCLUSION_IS_CUT, OCCLUSION_IS_FROZEN, OCCLUSION_IS_NEW, OcclusionRow, PYRAMID_THREADS,
    PYRAMID_TILE, Projection, PyramidLevel, RECORD_WORDS, ROUNDING, VISIBLE,
};

pub(crate) use place::greatest_stretch;
pub(crate) use rows::RING_STEPS;
pub use rows::{RowSource, ViewSource};
pub use scatter::{
    MAX_SLOPE_STEPS, SCATTER_HAS_DENSITY, SCATTER_HAS_EXCLUSION, SCATTER_HAS_HEIGHT, SCATTER_ITEMS,
    SCATTER_SIDE, SCATTER_STEPS, SCATTER_THREADS, SCATTER_TURNS, SLOPE_STEPS, ScatterLayer,
    ScatterTile, ScatterTurn,
};

use bytemuck::{Pod, Zeroable};
use glam::{Vec3, Vec4};

/// Number of instances in a block: the unit of work of `vote` and `compact`.
pub const BLOCK: u32 = 1024;
/// Number of instances in a granule, the unit in which small sets get room in the pages that they
/// share. Other pages are allocated in blocks.
pub const GRANULE: u32 = 128;
/// Number of threads in a workgroup of `vote` and of `compact`.
pub const BLOCK_THREADS: u32 = 128;
/// Number of instances per thread of `vote` or `compact`.
pub const BLOCK_ITEMS: u32 = BLOCK / BLOCK_THREADS;
/// Number of visibility words per block and row.
pub const BLOCK_WORDS: u32 = BLOCK / 32;
/// Number of block counts per workgroup of `scan`.
pub const SCAN_TILE: u32 = 1024;
/// Number of threads in a workgroup of `scan`.
pub const SCAN_THREADS: u32 = 256;
/// Largest number of tiles of counts in a batch: for each count, `compact` adds up the tiles before
/// it.
pub const MAX_TILES: u32 = 512;
/// Number of blocks per workgroup of `vote_block_per_subgroup`: one per subgroup of 32 lanes.
pub const BLOCKS_PER_WORKGROUP: u32 = 4;
/// Number of counts that a workgroup of `compact` handles at once, with 32 threads each.
pub const COUNTS_PER_WORKGROUP: u32 = 4;
/// Number of blocks in the largest strip, which a workgroup processes in one pass.
pub const MAX_STRIP_BLOCKS: u32 = 8;
/// Number of visibility words in the largest strip.
pub const MAX_STRIP_WORDS: u32 = MAX_STRIP_BLOCKS * BLOCK_WORDS;
/// Number of turns in which a workgroup votes on the largest strip, with [`BLOCK_THREADS`] words
/// per turn. A smaller strip takes one turn for all its words.
pub const MAX_STRIP_TURNS: u32 = MAX_STRIP_WORDS / BLOCK_THREADS;
/// Number of threads in a workgroup of `classify`, which takes one thread per block.
pub const CLASSIFY_THREADS: u32 = 256;
/// Number of units that one workgroup of `order` sorts.
pub const ORDER_TILE: u32 = 1024;
/// Number of threads in a workgroup of `order`, which takes one thread per two rings.
pub const ORDER_THREADS: u32 = 256;
/// Number of rings of distance from a view, the nearest first.
pub const RINGS: u32 = 512;

/// [`Chunk::flags`]: the page has scales.
pub const CHUNK_HAS_SCALE: u32 = 1;
/// [`Chunk::flags`]: the center of the mesh's bounding sphere is not the mesh's origin, so
/// rotations move it.
pub const CHUNK_OFF_CENTER: u32 = 2;
/// [`Chunk::flags`], only with [`CHUNK_HAS_SCALE`]: a scale is three numbers, one per axis of the
/// mesh.
pub const CHUNK_NON_UNIFORM_SCALE: u32 = 4;
/// [`Chunk::flags`]: rows may thin the instances out.
pub const CHUNK_IS_THINNED: u32 = 8;
/// [`ChunkView::flags`]: the mesh has indices.
pub const VIEW_INDEXED: u32 = 1;
/// [`RowSource::flags`], besides the bits of [`ChunkView::flags`]: near blocks come first.
pub const ROW_IS_NEAR_FIRST: u32 = 2;
/// [`DrawCommand::first_instance`] of a sibling command without indices. No arena has `u32::MAX`
/// ids.
pub const NOT_INDEXED: u32 = u32::MAX;
/// [`DistanceBand::flags`]: `low` and `high` limit the distance from the eye.
pub const BAND_BY_DISTANCE: u32 = 1;
/// [`DistanceBand::flags`]: they limit the size alone, because all instances have distance 1, as in
/// orthographic views.
pub const BAND_BY_SIZE: u32 = 2;
/// [`DistanceBand::flags`]: `start` and `end` limit the distance of the instance's origin.
pub const BAND_OF_ORIGINS: u32 = 4;
/// [`DistanceBand::flags`]: they limit the distance of the sphere's center.
pub const BAND_OF_CENTERS: u32 = 8;
/// [`DistanceBand::flags`]: `thin` says which share of the instances is kept.
pub const BAND_IS_THINNED: u32 = 16;
/// [`DistanceBand::flags`], with [`BAND_IS_THINNED`]: all instances have distance 1, as in
/// orthographic views.
pub const BAND_THINS_BY_SIZE: u32 = 32;

/// The sizes of one batch, for its stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Batch {
    /// Number of blocks of all chunks, which is the number of `vote` workgroups.
    pub block_count: u32,
    /// Number of workgroups in x of a two-dimensional dispatch.
    pub dispatch_width: u32,
    /// Number of counts (one per row and block), without the closing total.
    pub count_len: u32,
    /// Number of chunks in the batch.
    pub chunk_count: u32,
    /// Number of rows in the batch.
    pub row_count: u32,
    /// Number of ids that the survivor arena holds.
    pub survivor_capacity: u32,
    /// 1 if `scan` runs, because there are many counts.
    pub is_scanned: u32,
    /// Number of strips of all rows.
    pub strip_count: u32,
    /// Number of blocks in a strip: a power of two up to [`MAX_STRIP_BLOCKS`]. The last strip of a
    /// row may be shorter.
    pub strip_blocks: u32,
    /// 1 if `order` runs, because some row is near first. Otherwise all rows are in set order.
    pub is_near_first: u32,
    /// Number of tiles of [`ORDER_TILE`] units of all rows.
    pub order_tile_count: u32,
    /// Number of words per unit, a power of two up to [`BLOCK_WORDS`]: what `order` sorts. A batch
    /// with few words has small units.
    pub unit_words: u32,
    /// Number of rows that may be hidden ([`OcclusionRow`]).
    pub occluded_rows: u32,
    /// Number of their blocks: one cell per row and block.
    pub occluded_cells: u32,
    /// Padding.
    pub pad_a: u32,
    /// Padding.
    pub pad_b: u32,
}

impl Batch {
    /// Number of units per block.
    #[must_use]
    pub const fn block_units(&self) -> u32 {
        BLOCK_WORDS / self.unit_words
    }

    /// Number of ranks, one per unit of each row.
    #[must_use]
    pub const fn rank_count(&self) -> u32 {
        self.count_len * self.block_units()
    }
}

/// A run of instances of one set in one page, as one entity uses it. It is tested against
/// `row_count` views.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Chunk {
    /// First row of the affine matrix from the set's space to the world.
    pub world_x: Vec4,
    /// Second row of the matrix.
    pub world_y: Vec4,
    /// Third row of the matrix.
    pub world_z: Vec4,
    /// First row of the inverse of the matrix, without its translation. All three rows are zero if
    /// there is no inverse.
    pub local_x: Vec3,
    /// 1 over the scale of the matrix, if it scales evenly; otherwise 0.
    pub inverse_scale: f32,
    /// Second row of the inverse.
    pub local_y: Vec3,
    /// Largest stretch of the affine matrix: world radius = local radius * world_scale.
    pub world_scale: f32,
    /// Third row of the inverse.
    pub local_z: Vec3,
    /// Index of the first row's first strip, counted over the batch. A row has
    /// `block_count / strip_blocks` strips, rounded up.
    pub first_strip: u32,
    /// Bounding sphere of the mesh in the mesh's space: center, radius.
    pub sphere: Vec4,
    /// Index of the first instance, counted from the start of the page.
    pub first_instance: u32,
    /// Number of instances in the chunk, at least one.
    pub instance_count: u32,
    /// Index of the first block, counted over the chunks of the batch.
    pub first_block: u32,
    /// Number of blocks in the chunk.
    pub block_count: u32,
    /// Index of the first row, counted over the batch.
    pub first_row: u32,
    /// Number of views that test the chunk.
    pub row_count: u32,
    /// Index of the count of the first row's first block. The count of row r's block b is at
    /// `first_count + r * block_count + b`.
    pub first_count: u32,
    /// Bits: [`CHUNK_HAS_SCALE`], [`CHUNK_OFF_CENTER`], [`CHUNK_NON_UNIFORM_SCALE`],
    /// [`CHUNK_IS_THINNED`].
    pub flags: u32,
    /// Index of the first row's first tile of `order`, counted over the batch. A row has
    /// one tile per [`ORDER_TILE`] units, rounded up.
    pub first_order_tile: u32,
    /// Index of the first block's [`Bound`], counted from the start of the page
    /// ([`Region::first_bound`](crate::cull::Region::first_bound)).
    pub first_bound: u32,
    /// Padding.
    pub pad_a: u32,
    /// Padding.
    pub pad_b: u32,
}

/// What a view keeps: planes in the set's space, with normals of length one that point inwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct ViewPlanes {
    /// Left plane.
    pub left: Vec4,
    /// Right plane.
    pub right: Vec4,
    /// Top plane.
    pub top: Vec4,
    /// Bottom plane.
    pub bottom: Vec4,
    /// Near plane.
    pub near: Vec4,
    /// Far plane.
    pub far: Vec4,
    /// A light's reach in world space: center, range. A negative range reaches everything.
    pub reach: Vec4,
    /// The same planes, in pairs.
    pub pairs: PlanePairs,
    /// The order of the blocks.
    pub order: ViewOrder,
    /// The distances that the row keeps.
    pub band: DistanceBand,
}

/// The distances at which a row keeps instances: of one level of detail, and of a visibility range.
/// All are squares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct DistanceBand {
    /// The eye, in the world.
    pub eye: Vec3,
    /// [`BAND_BY_DISTANCE`] and so on; 0 keeps every distance.
    pub flags: u32,
    /// With `d` the distance of a sphere's center in the world over the sphere's radius in the
    /// set's units, a row keeps `low <= d * d < high`. The bands of a view's levels adjoin, so each
    /// sphere is in one of them; or they overlap, so that levels fade.
    pub low: f32,
    /// See [`Self::low`]. Negative: without limit.
    pub high: f32,
    /// Distances in the world, whatever the size: a row keeps `start <= d * d < end`.
    pub start: f32,
    /// See [`Self::start`].
    pub end: f32,
    /// With [`BAND_IS_THINNED`]: the share of the instances that is kept is this, over `d * d`.
    pub thin: f32,
    /// Padding.
    pub pad_a: u32,
    /// Padding.
    pub pad_b: u32,
    /// Padding.
    pub pad_c: u32,
}

/// In which order a view takes the blocks of a set
/// ([`reference::order`](crate::cull::reference::order)), or sorts its survivors
/// ([`reference::far_first`](crate::cull::reference::far_first)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct ViewOrder {
    /// The eye of the view, in the set's space, and 1; or the direction of a view without an eye
    /// point, in steps per unit, and 0. In a far-first row, the axis towards the viewer.
    pub eye: Vec4,
    /// The step at which the nearest ring begins.
    pub first_step: i32,
    /// 1 if near blocks come first; 0 for set order.
    pub is_near_first: u32,
    /// 1 if the survivors are sorted far first. Then the blocks are in set order.
    pub is_far_first: u32,
    /// Padding.
    pub pad: u32,
}

/// Planes that face each other about an axis. With `d = dot(depth, (center, 1))`, a sphere is kept
/// if `|dot(x, (center, 1))|` is less than `slopes.x * d + slopes.y + radius`, the same holds for
/// `y` with `slopes.z` and `slopes.w`, and `low - radius < d < high + radius`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct PlanePairs {
    /// Half of left minus right.
    pub x: Vec4,
    /// Half of top minus bottom.
    pub y: Vec4,
    /// Distance along the view.
    pub depth: Vec4,
    /// Half the width as a function of the depth: slope, offset. Then the same for half the height.
    pub slopes: Vec4,
    /// Depth of the near plane.
    pub low: f32,
    /// Depth of the far plane.
    pub high: f32,
    /// 1 if the pairs are equivalent to the planes; otherwise the planes are tested one by one.
    pub is_paired: u32,
    /// Padding.
    pub pad: u32,
}

impl ViewPlanes {
    /// Left, right, top, bottom, near, far, and a reach: without pairs, order and band.
    pub(crate) fn of_planes(planes: [Vec4; 6], reach: Vec4) -> Self {
        let [left, right, top, bottom, near, far] = planes;
        Self {
            left,
            right,
            top,
            bottom,
            near,
            far,
            reach,
            ..Self::default()
        }
    }

    /// The six planes.
    #[must_use]
    pub fn planes(&self) -> [Vec4; 6] {
        [
            self.left,
            self.right,
            self.top,
            self.bottom,
            self.near,
            self.far,
        ]
    }
}

/// One view of one chunk, at one level of detail: what it keeps, what its survivors draw, and the
/// place of its counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct ChunkView {
    /// The planes of the view, in the set's space.
    pub planes: ViewPlanes,
    /// Number of indices of the mesh, or of vertices if it has no indices.
    pub element_count: u32,
    /// First index, or first vertex without indices.
    pub first_element: u32,
    /// Value that is added to each index; unused without indices.
    pub base_vertex: i32,
    /// [`VIEW_INDEXED`].
    pub flags: u32,
    /// Index of the first block's count.
    pub first_count: u32,
    /// Number of blocks.
    pub block_count: u32,
    /// Index of the row's first sibling command, which draws a further mesh with the row's
    /// survivors. Siblings come after the commands of all rows.
    pub first_sibling: u32,
    /// Number of the row's sibling commands.
    pub sibling_count: u32,
}

impl ChunkView {
    /// Whether the mesh has indices.
    #[must_use]
    pub const fn is_indexed(&self) -> bool {
        self.flags & VIEW_INDEXED != 0
    }
}

/// [`Bound::halves`]: the bounds of the words are not worth reading, because neighbors are not near
/// each other.
pub const BOUND_IS_LOOSE: u32 = 1 << 31;

/// Bounds of the positions of a block's instances, in the set's space. They do not depend on the
/// mesh. Instances that can never be drawn do not count: their position or scale is not finite, or
/// a scale is below 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Bound {
    /// Center of the bounding box of the positions.
    pub center: Vec3,
    /// Largest distance of a position from the center; below 0 if no instance can be drawn.
    pub radius: f32,
    /// Largest scale of any axis of an instance.
    pub max_scale: f32,
    /// One bit per word with an instance that can never be drawn. Such a word is never inside a
    /// view, and its block is not either.
    pub gaps: u32,
    /// How the words lie to each other: 3 bits per halving of the block. 0 says nothing; otherwise
    /// `1 + 2 * axis`, plus 1 if the second half lies towards the negative end of the axis. The
    /// halving into 16 words each has the lowest bits. [`BOUND_IS_LOOSE`] besides.
    pub halves: u32,
    /// Smallest of the instances' largest scales.
    pub min_scale: f32,
    /// Bounds of each word's 32 instances: center as three signed bytes (128 is zero) and radius,
    /// in steps of `radius / 127`. The radius is 0 if no instance can be drawn, and only then.
    pub words: [u32; BLOCK_WORDS as usize],
}

impl Bound {
    /// Whether the bounds of the words are not worth reading.
    #[must_use]
    pub const fn is_loose(&self) -> bool {
        self.halves & BOUND_IS_LOOSE != 0
    }
}

/// A run of blocks of one region whose bounds must be computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct BoundJob {
    /// First instance of the first block, counted from the start of the page.
    pub first_instance: u32,
    /// Index of the first block's [`Bound`], counted from the start of the page.
    pub first_bound: u32,
    /// Number of blocks.
    pub block_count: u32,
    /// End of the instances, counted from the start of the page: the last block may not be full.
    pub end: u32,
    /// Numbers per scale: 0 if the page has no scales, 1, or 3 for a scale per axis.
    pub scale_floats: u32,
    /// Padding.
    pub pad_a: u32,
    /// Padding.
    pub pad_b: u32,
    /// Padding.
    pub pad_c: u32,
}

/// An indirect draw command, as wgpu reads it. A command without indices has four words: its fourth
/// is the first instance, and the last field is unused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct DrawCommand {
    /// Number of indices, or of vertices without indices.
    pub element_count: u32,
    /// Number of instances: the survivors of the row.
    pub instance_count: u32,
    /// First index, or first vertex without indices.
    pub first_element: u32,
    /// With indices, the value that is added to each index (an `i32`); without, the first instance.
    pub base_vertex_or_first_instance: u32,
    /// First instance with indices; without, 0 or [`NOT_INDEXED`].
    pub first_instance: u32,
}

impl DrawCommand {
    /// Index of the row's first survivor in the arena.
    #[must_use]
    pub const fn first_survivor(&self, indexed: bool) -> u32 {
        if indexed {
            self.first_instance
        } else {
            self.base_vertex_or_first_instance
        }
    }
}

/// Sums of a batch, read back a few frames later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Totals {
    /// Number of survivors of all rows, including those that did not fit.
    pub survivors: u32,
    /// Number of survivors that did not fit.
    pub overflow: u32,
    /// Always 1: the draw count of a `multi_draw_*_indirect_count` with one draw.
    pub draw_count: u32,
    /// Number of ids that the arena must hold so that no survivor is lost.
    pub needed: u32,
    /// Number of blocks that some view crosses, if the compaction classifies blocks.
    pub crossed: u32,
    /// Of a view's late lists: number of instances that the frustum keeps, hidden or not.
    pub in_frustum: u32,
    /// Number of these that reach no sample of the viewport. Of what is hidden as a group, none is
    /// looked at.
    pub too_small: u32,
}

/// What stands at one rank of a batch: the k-th unit of a row, in the row's order. The ranks of a
/// row have the places of its units, row after row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Rank {
    /// The unit's first word of the batch, plus a flip below [`Batch::unit_words`]: word k of the
    /// unit, in the row's order, is word `first_word ^ k`. Unused in set order.
    pub first_word: u32,
    /// Number of survivors before it in its tile of the scan, if ranks are scanned.
    pub place: u32,
}

/// Byte offset of [`Totals::draw_count`] in the argument buffer.
pub const DRAW_COUNT_OFFSET: u64 = 8;

/// Byte offset of a [`DrawCommand`] in the argument buffer, which starts with [`Totals`]. Each row
/// has the command with its index; sibling commands follow.
#[must_use]
pub const fn args_offset(command: u32) -> u64 {
    size_of::<Totals>() as u64 + command as u64 * size_of::<DrawCommand>() as u64
}
