//! The shapes of the far-first sort.

use super::{CHUNK_OFF_CENTER, Chunk, ChunkView, ViewOrder, exact::head};
use bytemuck::{Pod, Zeroable};
use core::cmp::Reverse;
use glam::Vec3;

/// Number of survivors that one workgroup of `far_first` moves.
pub const FAR_FIRST_TILE: u32 = 2048;
/// Number of threads in a workgroup of `far_first`: one per digit.
pub const FAR_FIRST_THREADS: u32 = 256;
/// Number of values of a digit of 8 bits of a depth key.
pub const DIGITS: u32 = 256;

/// A row whose survivors are sorted far first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct FarFirstJob {
    /// Direction towards the viewer, in the set's space. Its largest component is 1.
    pub axis: Vec3,
    /// Index of the row in the batch.
    pub row: u32,
    /// Center of the mesh's bounding sphere, times 4096 / 8355872, with 12 bits per coordinate.
    pub center: Vec3,
    /// [`Chunk::flags`].
    pub flags: u32,
    /// Number of instances of the row.
    pub max_survivors: u32,
    /// 1 if the mesh has indices.
    pub is_indexed: u32,
    /// Padding.
    pub pad_a: u32,
    /// Padding.
    pub pad_b: u32,
}

/// What `far_first` sorts of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct FarFirstSpan {
    /// Index of its first survivor in the arena.
    pub first_survivor: u32,
    /// Number of its survivors; 0 if they are not sorted.
    pub len: u32,
    /// Index of its first key, counted over the rows of the batch.
    pub first_key: u32,
    /// Index of its first tile, counted over the rows of the batch.
    pub first_tile: u32,
}

/// A round of `far_first`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct FarFirstRound {
    /// Number of rows that are sorted.
    pub job_count: u32,
    /// Number of rows that may have several tiles. They are the first ones.
    pub large_count: u32,
    /// Number of keys that there is room for.
    pub key_capacity: u32,
    /// The lowest bit of the digit.
    pub shift: u32,
    /// 1 in the round that writes to the arena.
    pub is_last: u32,
    /// Padding.
    pub pad_a: u32,
    /// Padding.
    pub pad_b: u32,
    /// Padding.
    pub pad_c: u32,
}

/// The smallest component of a far-first axis: 2^-40 (`shaders/cull/far_first.wesl`).
const MIN_COMPONENT: f32 = 1.0 / (1u64 << 40) as f32;

impl ViewOrder {
    /// The far-first order along an axis towards the viewer, which need not have a length of one.
    pub(crate) fn far_first(axis: Vec3) -> Self {
        let axis = axis / axis.abs().max_element();
        if !axis.is_finite() {
            return Self::default();
        }
        // What is too small would make products that a device may take for zero.
        let is_small = axis.abs().cmplt(Vec3::splat(MIN_COMPONENT));
        Self {
            eye: Vec3::select(is_small, Vec3::ZERO, axis).extend(0.0),
            is_far_first: 1,
            ..Self::default()
        }
    }
}

/// Largest magnitude of a coordinate of a mesh's center: sums with it stay finite.
const MAX_CENTER: f32 = (1u64 << 60) as f32;

impl FarFirstJob {
    /// What a row sorts; `None` if its survivors keep their order.
    #[must_use]
    pub fn of_row(row: u32, chunk: &Chunk, view: &ChunkView) -> Option<Self> {
        let order = &view.planes.order;
        if order.is_far_first == 0 {
            return None;
        }
        let center = chunk.sphere.truncate() * (4096.0 / 8_355_872.0);
        let bounded = center.clamp(Vec3::splat(-MAX_CENTER), Vec3::splat(MAX_CENTER));
        Some(Self {
            axis: order.eye.truncate(),
            row,
            center: head(bounded),
            // Without an offset, scales need not be read.
            flags: match chunk.flags & CHUNK_OFF_CENTER {
                0 => 0,
                _ => chunk.flags,
            },
            max_survivors: chunk.instance_count,
            is_indexed: u32::from(view.is_indexed()),
            ..Self::default()
        })
    }

    /// What the rows of a batch sort. Rows with many instances come first.
    #[must_use]
    pub fn of_batch(chunks: &[Chunk], chunk_views: &[ChunkView]) -> Vec<Self> {
        let mut jobs = Vec::new();
        for chunk in chunks {
            let rows = chunk.first_row..chunk.first_row + chunk.row_count;
            let job = |row: u32| Self::of_row(row, chunk, chunk_views.get(row as usize)?);
            jobs.extend(rows.filter_map(job));
        }
        jobs.sort_by_key(|job| Reverse(job.max_survivors));
        jobs
    }
}
