//! The shapes of occlusion culling: projections and depth pyramids.

use bytemuck::{Pod, Zeroable};
use glam::{UVec2, Vec4};

/// Number of threads in a workgroup of `pyramid`.
pub const PYRAMID_THREADS: u32 = 256;
/// Number of pixels along a side of the tile that a workgroup of `pyramid` reduces.
pub const PYRAMID_TILE: u32 = 64;
/// Largest number of levels of a depth pyramid.
pub const MAX_PYRAMID_LEVELS: u32 = 16;

/// What 32-bit arithmetic may lose of a place, relative to its largest operand. A row times a
/// position rounds at most 5 times, by 2^-24 each; drawing the position rounds as much again.
pub const ROUNDING: f32 = 1.0 / (1 << 20) as f32;

/// [`OcclusionRow::flags`]: the history says nothing of the row.
pub const OCCLUSION_IS_NEW: u32 = 1;
/// [`OcclusionRow::flags`]: only what the history says is drawn; all, if it says nothing.
pub const OCCLUSION_IS_FROZEN: u32 = 2;
/// [`OcclusionRow::flags`]: the view sees something else than in the frame before.
pub const OCCLUSION_IS_CUT: u32 = 4;
/// [`OcclusionRow::near_pixels`] is divided by this for what the history does not know.
pub const NEAR_DIVISOR: u32 = 16;
/// Number of words of a record of the history: what the last frames know of one block of one row.
pub const RECORD_WORDS: u32 = 66;

/// A sphere is compared with at most 2^FOOTPRINT_BITS columns and rows of a depth pyramid.
pub const FOOTPRINT_BITS: u32 = 2;

/// What the depth says of a sphere: it may be seen.
pub const VISIBLE: u32 = 0;
/// It reaches no sample of the viewport, so no triangle in it draws anything. Lines may.
pub const COVERS_NO_SAMPLE: u32 = 1;
/// Everything that it may cover is nearer than its nearest point.
pub const HIDDEN: u32 = 2;

/// From the set's space to pixels and depth, of a view with reverse z.
///
/// The default hides nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Projection {
    /// First row of the matrix: divided by w, the number of pixels right of the viewport's left
    /// border.
    pub x: Vec4,
    /// Second row: the number of pixels below the viewport's upper border.
    pub y: Vec4,
    /// Third row: the depth, which is 1 near and 0 far.
    pub z: Vec4,
    /// Fourth row.
    pub w: Vec4,
    /// With n the first three components of `x`, and m the first three of `w`:
    /// n.n, n.m, |n x m|^2, m.m.
    pub gram_x: Vec4,
    /// The same of `y`.
    pub gram_y: Vec4,
    /// The same of `z`.
    pub gram_z: Vec4,
    /// The same of `x + y`.
    pub gram_sum: Vec4,
    /// The same of `x - y`.
    pub gram_difference: Vec4,
    /// Where the samples of a pixel are: least and greatest x, least and greatest y. The ranges are
    /// widened by what a device may round.
    pub samples: Vec4,
    /// The same along the diagonals: least and greatest x + y, least and greatest x - y.
    pub diagonal_samples: Vec4,
    /// The rows expect positions times this power of two. It keeps squares within range.
    pub unit: f32,
    /// Added to the radius, after [`Self::unit`]: what is rounded at any position.
    pub margin: f32,
    /// Length of m.
    pub slope: f32,
    /// 1 if the diagonals can be used, 0 if `x` and `y` are nearly parallel.
    pub has_diagonals: u32,
}

/// A level of a depth pyramid. Its rows follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct PyramidLevel {
    /// Index of its first texel in the buffer.
    pub first: u32,
    /// Number of columns.
    pub width: u32,
    /// Number of rows.
    pub height: u32,
    /// Padding.
    pub pad: u32,
}

/// The farthest depth of squares of pixels: texel (i, j) of level k is the least depth of the
/// pixels `[i * 2^k, (i + 1) * 2^k)` x `[j * 2^k, (j + 1) * 2^k)` of the viewport. Sizes are
/// rounded up, and the last level has one texel.
///
/// The default has no levels and hides nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct DepthPyramid {
    /// Column of the viewport's first pixel in the depth texture.
    pub first_x: u32,
    /// Row of the viewport's first pixel.
    pub first_y: u32,
    /// Width of the viewport, in pixels.
    pub width: u32,
    /// Height of the viewport, in pixels.
    pub height: u32,
    /// Number of levels; 0 if there is no pyramid.
    pub level_count: u32,
    /// Number of samples per pixel of the depth texture.
    pub samples: u32,
    /// Padding.
    pub pad_a: u32,
    /// Padding.
    pub pad_b: u32,
    /// The levels, the finest first.
    pub levels: [PyramidLevel; MAX_PYRAMID_LEVELS as usize],
}

impl DepthPyramid {
    /// The pyramid of a viewport of `size` pixels, from `first` of a depth texture with `samples`
    /// samples per pixel. Without pixels, it has no levels. Beyond 32,768 pixels per side, its last
    /// level has several texels.
    #[must_use]
    pub fn new(first: UVec2, size: UVec2, samples: u32) -> Self {
        if size.min_element() == 0 {
            return Self::default();
        }
        let mut shape = Self {
            first_x: first.x,
            first_y: first.y,
            width: size.x,
            height: size.y,
            samples,
            ..Self::default()
        };
        let mut texels = 0u64;
        for number in 0..MAX_PYRAMID_LEVELS {
            let [width, height] = [size.x, size.y].map(|side| side.div_ceil(1 << number));
            shape.levels[number as usize] = PyramidLevel {
                // A pyramid with more texels is larger than any binding.
                first: u32::try_from(texels).unwrap_or(u32::MAX),
                width,
                height,
                pad: 0,
            };
            shape.level_count += 1;
            texels = texels.saturating_add(u64::from(width) * u64::from(height));
            if width == 1 && height == 1 {
                break;
            }
        }
        shape
    }

    /// The levels, the finest first.
    #[must_use]
    pub fn levels(&self) -> &[PyramidLevel] {
        &self.levels[..self.level_count as usize]
    }

    /// Number of texels of all levels; the greatest u64 also for more.
    #[must_use]
    pub fn texel_count(&self) -> u64 {
        let texels = |level: &PyramidLevel| u64::from(level.width) * u64::from(level.height);
        let mut all = self.levels().iter().map(texels);
        all.try_fold(0, u64::checked_add).unwrap_or(u64::MAX)
    }
}

/// A row whose instances may be hidden behind what a view has drawn. `recall` and `occlude` have
/// one table of them per batch, and behind them the [`Projection`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct OcclusionRow {
    /// [`Chunk::sphere`](super::Chunk::sphere).
    pub sphere: Vec4,
    /// [`Chunk::first_instance`](super::Chunk::first_instance).
    pub first_instance: u32,
    /// [`Chunk::instance_count`](super::Chunk::instance_count).
    pub instance_count: u32,
    /// [`Chunk::flags`](super::Chunk::flags).
    pub chunk_flags: u32,
    /// Number of blocks.
    pub block_count: u32,
    /// Number of cells of the rows before it in the table.
    pub first_cell: u32,
    /// Index of the first block's count: in `recall` of the row, in `occlude` of the row of late
    /// survivors.
    pub first_count: u32,
    /// In `occlude`, the index of the first block's count of the row of all visible survivors.
    pub first_visible: u32,
    /// Index of the first block's record in the history.
    pub first_record: u32,
    /// Words with an instance of this diameter, in pixels, are drawn early in any case.
    pub near_pixels: f32,
    /// [`OCCLUSION_IS_NEW`], [`OCCLUSION_IS_FROZEN`], [`OCCLUSION_IS_CUT`].
    pub flags: u32,
    /// [`Chunk::first_bound`](super::Chunk::first_bound).
    pub first_bound: u32,
    /// Index of the projection. Successive rows of one view whose sets have the same transform
    /// share it.
    pub projection: u32,
}
