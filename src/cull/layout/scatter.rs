//! The shapes of the scatter, in the order of `shaders/scatter/layout.wesl`.

use bytemuck::{Pod, Zeroable};

/// Number of cells along a side of a tile. A tile has one candidate per cell, and so as many as a
/// block has instances.
pub const SCATTER_SIDE: u32 = 32;
/// Number of steps along a side of a cell: the lattice on which candidates stand.
pub const SCATTER_STEPS: u32 = 256;
/// Number of threads in a workgroup of `scatter`, which fills one tile.
pub const SCATTER_THREADS: u32 = 256;
/// Number of candidates per thread of `scatter`.
pub const SCATTER_ITEMS: u32 = 4;
/// Number of directions that candidates can face.
pub const SCATTER_TURNS: u32 = 256;
/// Steps of a slope whose tangent is 1.
pub const SLOPE_STEPS: f32 = 1024.0;
/// Steepest slope that is told from others, in steps.
pub const MAX_SLOPE_STEPS: f32 = 32767.0;

/// [`ScatterLayer::flags`]: there is a density map.
pub const SCATTER_HAS_DENSITY: u32 = 1;
/// [`ScatterLayer::flags`]: there is a height map.
pub const SCATTER_HAS_HEIGHT: u32 = 2;
/// [`ScatterLayer::flags`]: there is an exclusion map.
pub const SCATTER_HAS_EXCLUSION: u32 = 4;

/// What grows where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct ScatterLayer {
    /// Length of a step, in the set's units.
    pub step: f32,
    /// What makes layers differ.
    pub seed: u32,
    /// Side of the part of a cell in which its candidate stands, in steps: 0 to `SCATTER_STEPS`.
    pub jitter: u32,
    /// Square of the distance, in steps, within which only one of two candidates stands: at most
    /// the square of `SCATTER_STEPS`.
    pub min_apart: u32,
    /// First step of the maps' area along X.
    pub first_x: i32,
    /// First step of the maps' area along Z.
    pub first_z: i32,
    /// Number of steps of the maps' area along X.
    pub len_x: u32,
    /// Number of steps of the maps' area along Z.
    pub len_z: u32,
    /// `(step * factor) >> shift` is the step's place in the area, in parts of 2^32.
    pub factor_x: u32,
    /// Same as [`Self::factor_x`], along Z.
    pub factor_z: u32,
    /// 1 to 31; see [`Self::factor_x`].
    pub shift_x: u32,
    /// Same as [`Self::shift_x`], along Z.
    pub shift_z: u32,
    /// Which maps there are.
    pub flags: u32,
    /// Share of the candidates that grow where the density map is white: 2^15 is all.
    pub density: u32,
    /// The height in the set's units is `((height >> height_shift) + height_first) * height_step`,
    /// where `height` is of 24 bits.
    pub height_first: i32,
    /// 0 to 31; see [`Self::height_first`].
    pub height_shift: u32,
    /// See [`Self::height_first`].
    pub height_step: f32,
    /// Least height, of 24 bits, at which candidates grow.
    pub min_height: u32,
    /// Greatest height, of 24 bits, at which candidates grow.
    pub max_height: u32,
    /// What turns a difference of 24 bits between neighboring texels into steps of a slope, along
    /// X.
    pub gradient_x: f32,
    /// Same as [`Self::gradient_x`], along Z.
    pub gradient_z: f32,
    /// Square of the gentlest slope, in steps, on which candidates grow.
    pub min_slope: u32,
    /// Square of the steepest slope, in steps, on which candidates grow.
    pub max_slope: u32,
    /// How far candidates lean with the slope, per step of it.
    pub align: f32,
    /// The smallest scale: 2^16 is the largest.
    pub min_scale: u32,
    /// The largest scale, over 2^16.
    pub scale_step: f32,
    /// Padding.
    pub pad_a: u32,
    /// Padding.
    pub pad_b: u32,
}

/// A tile that is filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ScatterTile {
    /// Number of the tile along X, counted from the origin.
    pub x: i32,
    /// Number of the tile along Z, counted from the origin.
    pub z: i32,
    /// The block of instances that it fills, counted from the start of the buffer.
    pub slot: u32,
    /// Its place in the list of the tiles' counts.
    pub live: u32,
    /// 0 if the slot is emptied.
    pub is_wanted: u32,
}

/// A direction: a turn about Y.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct ScatterTurn {
    /// Sine of half the angle.
    pub half_sin: f32,
    /// Cosine of half the angle.
    pub half_cos: f32,
    /// The same, packed.
    pub rotation: u32,
}
