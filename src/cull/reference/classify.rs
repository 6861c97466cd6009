//! Twin of `shaders/cull/bound.wesl`.

#[cfg(feature = "testing")]
mod states;

use crate::{
    cull::{
        layout::{BLOCK_WORDS, BOUND_IS_LOOSE, Bound},
        policy::LOOSE_REACH,
    },
    instance::PackedInstance,
};
use core::ops::Range;
use glam::Vec3;
#[cfg(feature = "testing")]
pub use states::{BoundState, block_state, bound_state, word_bound, word_state};

/// Number of steps of a word's bounds in the block's radius.
const WORD_STEPS: f32 = 127.0;

/// [`Bound::words`] of a word without an instance that can be drawn: a point at the block's center.
const EMPTY_WORD: u32 = 0x0080_8080;

/// The bounds of a block's instances; `scales` has one number or three per instance, or nothing.
#[must_use]
pub fn bound(instances: &[PackedInstance], scales: &[f32]) -> Bound {
    let floats = scales.len() / instances.len().max(1);
    // The position and the scale of an instance, if it can be drawn.
    let drawn = |at: usize| {
        let scale = &scales[at * floats..][..floats];
        let is_allowed = |scale: &f32| scale.is_finite() && *scale >= 0.0;
        let position = instances[at].position();
        (position.is_finite() && scale.iter().all(is_allowed)).then(|| {
            let largest = scale.iter().copied().reduce(f32::max);
            (position, largest.unwrap_or(1.0))
        })
    };
    let all: Vec<_> = (0..instances.len()).map(drawn).collect();
    let positions =
        |range: Range<usize>| all[range].iter().flatten().map(|(position, _)| *position);
    let scales = || all.iter().flatten().map(|(_, scale)| *scale);
    let (low, high) = corners(positions(0..all.len()));
    let center = (low + high) * 0.5;
    if scales().next().is_none() {
        return Bound {
            center,
            radius: -1.0,
            gaps: u32::MAX,
            halves: BOUND_IS_LOOSE,
            words: [EMPTY_WORD; BLOCK_WORDS as usize],
            ..Bound::default()
        };
    }
    let radius = reach_from(center, positions(0..all.len()));
    let mut words = [EMPTY_WORD; BLOCK_WORDS as usize];
    let mut middles = [center; BLOCK_WORDS as usize];
    let mut gaps = 0;
    for (w, (word, middle)) in words.iter_mut().zip(&mut middles).enumerate() {
        // A word behind the last instance gets the bounds of that instance.
        let first = (w * 32).min(all.len() - 1);
        let range = first..(w * 32 + 32).clamp(first + 1, all.len());
        let count = positions(range.clone()).count();
        gaps |= u32::from(count < range.len()) << w;
        if count > 0 {
            let (low, high) = corners(positions(range.clone()));
            *middle = (low + high) * 0.5;
            *word = word_code(center, radius, *middle, positions(range));
        }
    }
    let reach: u32 = words.iter().map(|word| word >> 24).sum();
    Bound {
        center,
        radius,
        max_scale: scales().fold(0.0, f32::max),
        gaps,
        min_scale: scales().fold(3e38, f32::min),
        halves: if reach >= LOOSE_REACH * BLOCK_WORDS {
            BOUND_IS_LOOSE
        } else {
            halves_of_words(&middles, center, high - low)
        },
        words,
    }
}

/// [`Bound::halves`]: of each halving, the axis along which the middles of the two halves are
/// farthest apart. Steps are powers of two, so the numbers are exact.
fn halves_of_words(middles: &[Vec3; BLOCK_WORDS as usize], center: Vec3, size: Vec3) -> u32 {
    let exponent = (size.max_element().to_bits() >> 23).clamp(32, 222);
    let per_unit = 64.0 * f32::from_bits((254 - exponent) << 23);
    let mut halves = 0;
    for level in 0..5 {
        let mut apart = [0i32; 3];
        for (w, middle) in middles.iter().enumerate() {
            let is_second = w as u32 & ((BLOCK_WORDS / 2) >> level) != 0;
            let steps = ((*middle - center) * per_unit).to_array();
            for (apart, step) in apart.iter_mut().zip(steps) {
                *apart += if is_second {
                    step as i32
                } else {
                    -(step as i32)
                };
            }
        }
        // The first of the axes that are equally far apart.
        let axis = (0..3)
            .rev()
            .max_by_key(|axis| apart[*axis].abs())
            .unwrap_or(0);
        if apart[axis] != 0 {
            let code = 1 + 2 * axis as u32 + u32::from(apart[axis] < 0);
            halves |= code << (3 * level);
        }
    }
    halves
}

fn corners(positions: impl Iterator<Item = Vec3>) -> (Vec3, Vec3) {
    positions.fold(
        (Vec3::splat(3e38), Vec3::splat(-3e38)),
        |(low, high), position| (low.min(position), high.max(position)),
    )
}

fn reach_from(center: Vec3, positions: impl Iterator<Item = Vec3>) -> f32 {
    positions
        .map(|position| position.distance(center))
        .fold(0.0, f32::max)
}

/// The bounds of a word's instances around `middle`, in steps of the block's radius / 127 from the
/// block's center: three signed bytes (128 is zero) for the center, one byte for the radius,
/// rounded up, which is never 0.
fn word_code(
    center: Vec3,
    radius: f32,
    middle: Vec3,
    positions: impl Iterator<Item = Vec3>,
) -> u32 {
    let step = radius / WORD_STEPS;
    let away = (middle - center) / step.max(1e-30);
    let steps = away
        .to_array()
        .map(|away| (away.clamp(-WORD_STEPS, WORD_STEPS).round_ties_even() as i32 + 128) as u32);
    let reach = reach_from(word_center(center, step, steps), positions);
    let reach = ((reach / step.max(1e-30) + 0.01).ceil() as u32).min(255);
    steps[0] | steps[1] << 8 | steps[2] << 16 | reach << 24
}

fn word_center(center: Vec3, step: f32, steps: [u32; 3]) -> Vec3 {
    center + Vec3::from(steps.map(|steps| steps as f32 - 128.0)) * step
}

#[cfg(all(test, feature = "testing"))]
mod tests;
