//! Every shape that a kernel sees, in the order of `shaders/shared/layout.wgsl`; the test `layout` compares the two.

pub mod expand;

use bytemuck::{Pod, Zeroable};
use glam::{Vec3, Vec4};

/// Instances of one block: the unit of work of `vote` and `compact`, and the grain in which pages are divided.
pub const BLOCK: u32 = 1024;
/// Threads of a workgroup of `vote` and of `compact`.
pub const BLOCK_THREADS: u32 = 128;
/// Instances that one thread of `vote` or `compact` handles.
pub const BLOCK_ITEMS: u32 = BLOCK / BLOCK_THREADS;
/// Visibility words of one block in one row.
pub const BLOCK_WORDS: u32 = BLOCK / 32;
/// Block counts that one workgroup of `scan` handles.
pub const SCAN_TILE: u32 = 1024;
/// Threads of a workgroup of `scan`.
pub const SCAN_THREADS: u32 = 256;
/// Tiles of counts of a batch: `compact` adds up those before each count's.
pub const MOST_TILES: u32 = 512;
/// Blocks of a workgroup of `vote_block_per_subgroup`: one per subgroup of 32 lanes.
pub const OWN_BLOCKS: u32 = 4;
/// Counts that a workgroup of `compact` handles at once: 32 threads each.
pub const COUNTS_EACH: u32 = 4;
/// Blocks of the largest strip: what a workgroup culls in one pass.
pub const MOST_STRIP_BLOCKS: u32 = 8;
/// Visibility words of the largest strip.
pub const MOST_STRIP_WORDS: u32 = MOST_STRIP_BLOCKS * BLOCK_WORDS;
/// Turns in which a workgroup votes on it, [`BLOCK_THREADS`] words in each; smaller strips have one turn of what words they have.
pub const MOST_STRIP_TURNS: u32 = MOST_STRIP_WORDS / BLOCK_THREADS;
/// Threads of a workgroup of `classify`: a thread a block.
pub const CLASSIFY_THREADS: u32 = 256;

/// [`Chunk::flags`]: the page has a scale for each instance.
pub const CHUNK_HAS_SCALE: u32 = 1;
/// [`Chunk::flags`]: the centre of the mesh's bounding sphere is not its origin, so rotations move it.
pub const CHUNK_OFF_CENTRE: u32 = 2;

/// What the stages of one batch need to know of its sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Batch {
    /// Blocks of all chunks: workgroups of `vote`.
    pub block_count: u32,
    /// Workgroups in x of a two-dimensional dispatch.
    pub dispatch_width: u32,
    /// Counts (one for each row and block), without the closing total.
    pub count_len: u32,
    /// Chunks of the batch.
    pub chunk_count: u32,
    /// Rows of the batch.
    pub row_count: u32,
    /// Ids that the survivor arena holds.
    pub survivor_capacity: u32,
    /// 1 when `scan` runs: there are many counts.
    pub is_scanned: u32,
    /// Strips of all rows.
    pub strip_count: u32,
    /// Blocks of a strip: a power of two up to [`MOST_STRIP_BLOCKS`]; a row ends with a shorter one.
    pub strip_blocks: u32,
    /// Padding.
    pub pad_a: u32,
    /// Padding.
    pub pad_b: u32,
    /// Padding.
    pub pad_c: u32,
}

/// A run of instances of one set in one page, as one entity uses it: tested against `row_count` views.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Chunk {
    /// First row of the affine matrix that takes the set to the world.
    pub world_x: Vec4,
    /// Second row.
    pub world_y: Vec4,
    /// Third row.
    pub world_z: Vec4,
    /// Bounding sphere of the mesh in its own space: centre, radius.
    pub sphere: Vec4,
    /// The first instance, counted from the start of the page.
    pub first_instance: u32,
    /// Instances of the chunk, at least one.
    pub instance_count: u32,
    /// The first block, counted over the chunks of the batch.
    pub first_block: u32,
    /// Blocks of the chunk.
    pub block_count: u32,
    /// The first row, counted over the batch.
    pub first_row: u32,
    /// Views that test the chunk.
    pub row_count: u32,
    /// The count of the first row's first block; row r's block b is at `first_count + r * block_count + b`.
    pub first_count: u32,
    /// [`CHUNK_HAS_SCALE`], [`CHUNK_OFF_CENTRE`].
    pub flags: u32,
    /// The greatest stretch of the affine matrix: world radius = local radius * world_scale.
    pub world_scale: f32,
    /// The first row's first strip, counted over the batch; a row has `block_count / strip_blocks` of them, rounded up.
    pub first_strip: u32,
    /// What a survivor draws: as [`RowDraw::element_count`].
    pub element_count: u32,
    /// As [`RowDraw::first_element`].
    pub first_element: u32,
    /// As [`RowDraw::base_vertex`].
    pub base_vertex: i32,
    /// As [`RowDraw::indexed`].
    pub indexed: u32,
    /// Padding.
    pub pad_a: u32,
    /// Padding.
    pub pad_b: u32,
}

/// One view of one chunk: planes in the set's own space, normals of length one inwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Row {
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
    /// A light's reach in world space: centre, range. A negative range reaches everywhere.
    pub reach: Vec4,
    /// The same planes in pairs.
    pub pairs: Pairs,
}

/// Planes that face each other about an axis. With `d = dot(depth, (centre, 1))`, a sphere is kept when `|dot(x, (centre, 1))|` is
/// less than `slopes.x * d + slopes.y + radius`, as much for `y` and the other slope, and `low - radius < d < high + radius`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Pairs {
    /// Half of left minus right.
    pub x: Vec4,
    /// Half of top minus bottom.
    pub y: Vec4,
    /// Distance along the view.
    pub depth: Vec4,
    /// Half the width at a depth: slope, offset; half the height.
    pub slopes: Vec4,
    /// The near plane's depth.
    pub low: f32,
    /// The far plane's depth.
    pub high: f32,
    /// 1 when the planes are as said above; else they are tested one by one.
    pub is_paired: u32,
    /// Padding.
    pub pad: u32,
}

impl Row {
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

/// What `args` writes besides the instance count and the first instance, and where the row's counts lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RowDraw {
    /// Indices of the mesh, or vertices when it has no indices.
    pub element_count: u32,
    /// First index or first vertex.
    pub first_element: u32,
    /// Added to each index; unused without indices.
    pub base_vertex: i32,
    /// 1 when the mesh has indices.
    pub indexed: u32,
    /// The row's first count.
    pub first_count: u32,
    /// The row's blocks.
    pub block_count: u32,
    /// Padding.
    pub pad_a: u32,
    /// Padding.
    pub pad_b: u32,
}

/// Around the positions of a block's instances, in the set's space, whatever mesh they draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Bound {
    /// Centre of the box around the positions.
    pub centre: Vec3,
    /// The greatest distance of a position from it. Infinite when a position is not finite: no view can then take
    /// the block as a whole.
    pub radius: f32,
    /// The greatest scale of an instance.
    pub max_scale: f32,
    /// 1 when the words' bounds are not worth a look: neighbours are not near each other.
    pub loose: u32,
    /// Padding.
    pub pad_a: u32,
    /// Padding.
    pub pad_b: u32,
    /// Around each word's 32 instances: centre as three signed bytes (128 is zero) and radius, in steps of
    /// `radius / 127`.
    pub words: [u32; BLOCK_WORDS as usize],
}

/// A run of blocks of one page whose bounds are to be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct BoundJob {
    /// The first block, counted from the start of the page.
    pub first_block: u32,
    /// Blocks.
    pub block_count: u32,
    /// End of the instances, counted from the start of the page: the last block may not be full.
    pub end: u32,
    /// 1 when the page has a scale for each instance.
    pub has_scale: u32,
}

/// An indirect command. Indexed: index count, instance count, first index, base vertex, first instance.
/// Else: vertex count, instance count, first vertex, first instance, 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct DrawArgs {
    /// Index or vertex count.
    pub a: u32,
    /// Instance count.
    pub b: u32,
    /// First index or first vertex.
    pub c: u32,
    /// Base vertex, or first instance without indices.
    pub d: u32,
    /// First instance with indices.
    pub e: u32,
}

impl DrawArgs {
    /// First survivor of the row in the arena.
    #[must_use]
    pub fn first_instance(&self, indexed: bool) -> u32 {
        if indexed { self.e } else { self.d }
    }

    /// Survivors of the row.
    #[must_use]
    pub fn instance_count(&self) -> u32 {
        self.b
    }
}

/// Sums of a batch, read back a few frames later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Totals {
    /// Survivors of all rows, also those that found no room.
    pub survivors: u32,
    /// Survivors that found no room.
    pub overflow: u32,
    /// Always 1: the count of a `multi_draw_*_indirect_count` of one draw.
    pub draw_count: u32,
    /// Ids that the arena must hold so that none is lost.
    pub needed: u32,
    /// Blocks that some view crosses, where the compaction classifies blocks.
    pub crossed: u32,
}

/// Byte offset of [`Totals::draw_count`] in the argument buffer.
pub const DRAW_COUNT_OFFSET: u64 = 8;

/// Byte offset of a row's [`DrawArgs`] in the argument buffer, which starts with [`Totals`].
#[must_use]
pub const fn args_offset(row: u32) -> u64 {
    size_of::<Totals>() as u64 + row as u64 * size_of::<DrawArgs>() as u64
}
