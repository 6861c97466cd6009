//! Twins of `shaders/occlusion/recall.wesl`, of `occlude.wesl` and of the bounds in `history.wesl`,
//! for one block of a row.

use super::{classify::word_bound, footprint::occlusion_of, vote::load_sphere};
use crate::{
    cull::layout::{
        BLOCK, BLOCK_WORDS, Bound, COVERS_NO_SAMPLE, Chunk, DepthPyramid, NEAR_DIVISOR,
        OCCLUSION_IS_CUT, OCCLUSION_IS_FROZEN, OCCLUSION_IS_NEW, OcclusionRow, Projection, VISIBLE,
    },
    instance::PackedInstance,
};
use glam::{Vec3, Vec4, Vec4Swizzles};

/// The words of a block.
pub type BlockWords = [u32; BLOCK_WORDS as usize];

/// A sphere that holds the spheres of some instances, and the largest radius of these.
#[derive(Clone, Copy, Debug)]
pub struct Within {
    /// Center and radius, in the set's space.
    pub sphere: Vec4,
    /// The largest radius.
    pub largest: f32,
}

/// A sphere around what a block of a row draws.
#[must_use]
pub fn bound_of_block(row: &OcclusionRow, bound: &Bound) -> Within {
    widened_bound(row, bound, bound.center, bound.radius)
}

/// A sphere around what a word of the block draws.
#[must_use]
pub fn bound_of_word(row: &OcclusionRow, bound: &Bound, word: usize) -> Within {
    if bound.is_loose() {
        return bound_of_block(row, bound);
    }
    let (center, radius) = word_bound(bound, word);
    widened_bound(row, bound, center, radius)
}

fn widened_bound(row: &OcclusionRow, bound: &Bound, center: Vec3, radius: f32) -> Within {
    let largest = row.sphere.w * bound.max_scale;
    let reach = radius + row.sphere.xyz().length() * bound.max_scale + largest;
    let slack = 1e-5 * (center.abs().element_sum() + reach);
    Within {
        sphere: center.extend(reach + slack),
        largest,
    }
}

/// Whether an instance within a bound may be at least `pixels` wide.
#[must_use]
pub fn is_large(projection: &Projection, within: &Within, pixels: f32) -> bool {
    let sphere = within.sphere * projection.unit;
    let nearest = projection.w.dot(sphere.xyz().extend(1.0)) - sphere.w * projection.slope;
    let gram = projection.gram_x;
    let square = if gram.w > 0.0 {
        gram.z / gram.w
    } else {
        gram.x
    };
    2.0 * within.largest * projection.unit * square.sqrt() >= pixels * nearest
}

/// What is drawn early of a block of a row: of `kept`, what the frustum keeps, what is in `last` or
/// large. In a frozen view, only what is in `last`. `instances` and `scales` are the page's.
#[must_use]
pub fn recall(
    (row, projection): (&OcclusionRow, &Projection),
    (block, bound): (u32, &Bound),
    (instances, scales): (&[PackedInstance], &[f32]),
    kept: &BlockWords,
    last: &BlockWords,
) -> BlockWords {
    let is_new = row.flags & OCCLUSION_IS_NEW != 0;
    let is_frozen = row.flags & OCCLUSION_IS_FROZEN != 0;
    let is_known = row.flags & (OCCLUSION_IS_NEW | OCCLUSION_IS_CUT) == 0;
    let divisor = if is_known { 1.0 } else { NEAR_DIVISOR as f32 };
    let near_pixels = row.near_pixels / divisor;
    let is_large = |within: &Within| is_large(projection, within, near_pixels);
    let chunk = chunk_of(row);
    let is_large_one = |instance: u32| {
        let sphere = load_sphere(&chunk, instances, scales, instance).sphere;
        let largest = sphere.w;
        is_large(&Within { sphere, largest })
    };
    let mut early = *kept;
    for (word, early) in early.iter_mut().enumerate() {
        let seen = if is_new { 0 } else { last[word] };
        *early &= if is_frozen {
            if is_new { u32::MAX } else { seen }
        } else if !bound.is_loose() {
            let all = is_large(&bound_of_word(row, bound, word));
            if all { u32::MAX } else { seen }
        } else if is_known {
            seen
        } else {
            let first = block * BLOCK + word as u32 * 32;
            let kept = (0..32).filter(|bit| *early >> bit & 1 != 0);
            let large = kept.filter(|bit| is_large_one(first + bit));
            large.fold(seen, |early, bit| early | 1 << bit)
        };
    }
    early
}

/// What the tests of instances read of the row's chunk.
fn chunk_of(row: &OcclusionRow) -> Chunk {
    Chunk {
        sphere: row.sphere,
        first_instance: row.first_instance,
        instance_count: row.instance_count,
        flags: row.chunk_flags,
        ..Chunk::default()
    }
}

/// What `occlude` finds out of a block.
#[derive(Clone, Copy, Debug, Default)]
pub struct Occluded {
    /// What is visible.
    pub visible: BlockWords,
    /// What reaches no sample of the viewport. What is hidden as a group is not looked at.
    pub too_small: BlockWords,
}

/// What is visible of a block of a row: of `kept`, what the depth does not hide.
#[must_use]
pub fn occlude(
    (pyramid, pyramid_shape): (&[f32], &DepthPyramid),
    (row, projection): (&OcclusionRow, &Projection),
    (block, bound): (u32, &Bound),
    (instances, scales): (&[PackedInstance], &[f32]),
    kept: &BlockWords,
) -> Occluded {
    let found = |sphere: Vec4| occlusion_of(pyramid, pyramid_shape, projection, sphere);
    let mut occluded = Occluded::default();
    match found(bound_of_block(row, bound).sphere) {
        VISIBLE => {}
        COVERS_NO_SAMPLE => {
            occluded.too_small = *kept;
            return occluded;
        }
        _ => return occluded,
    }
    let chunk = chunk_of(row);
    for (word, kept) in kept.iter().enumerate().filter(|(_, kept)| **kept != 0) {
        match found(bound_of_word(row, bound, word).sphere) {
            VISIBLE => {}
            COVERS_NO_SAMPLE => {
                occluded.too_small[word] = *kept;
                continue;
            }
            _ => continue,
        }
        for bit in (0..32).filter(|bit| kept >> bit & 1 != 0) {
            let instance = block * BLOCK + word as u32 * 32 + bit;
            match found(load_sphere(&chunk, instances, scales, instance).sphere) {
                VISIBLE => occluded.visible[word] |= 1 << bit,
                COVERS_NO_SAMPLE => occluded.too_small[word] |= 1 << bit,
                _ => {}
            }
        }
    }
    occluded
}
