//! Twin of `shaders/cull/bound.wesl` and of the bounds in `shaders/shared/visibility.wesl`.

use super::{
    thin::{THIN_GROWTH, THIN_SHARE},
    vote::{BAND_OF_LEVEL, BAND_OF_RANGE, in_world},
};
use crate::{
    cull::{
        layout::{
            BAND_BY_DISTANCE, BAND_IS_THINNED, BAND_THINS_BY_SIZE, BLOCK_WORDS, BOUND_IS_LOOSE,
            Bound, Chunk, DistanceBand, ViewPlanes,
        },
        policy::LOOSE,
    },
    instance::PackedInstance,
};
use core::ops::Range;
use glam::Vec3;

/// The state of a block, or of a word of it, in a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BoundState {
    /// No instance can be visible.
    Outside,
    /// The view's border crosses the bounds.
    Partial,
    /// All instances are visible.
    Inside,
}

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
        least_scale: scales().fold(3e38, f32::min),
        halves: if reach >= LOOSE * BLOCK_WORDS {
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

/// Center and radius of the bounds of word `word` of the block.
#[must_use]
pub fn word_bound(bound: &Bound, word: usize) -> (Vec3, f32) {
    let step = bound.radius / WORD_STEPS;
    let [x, y, z, reach] = bound.words[word].to_le_bytes().map(u32::from);
    (
        word_center(bound.center, step, [x, y, z]),
        reach as f32 * step,
    )
}

/// The state of a block in the view: not all of a block with gaps is inside.
#[must_use]
pub fn block_state(chunk: &Chunk, row: &ViewPlanes, bound: &Bound) -> BoundState {
    let state = bound_state(chunk, row, bound.center, bound.radius, scales_of(bound));
    match bound.gaps {
        0 => state,
        _ => state.min(BoundState::Partial),
    }
}

/// The state of word `word` of a block that the view crosses.
#[must_use]
pub fn word_state(chunk: &Chunk, row: &ViewPlanes, bound: &Bound, word: usize) -> BoundState {
    if bound.is_loose() {
        return BoundState::Partial;
    }
    if bound.words[word] >> 24 == 0 {
        return BoundState::Outside;
    }
    let (center, radius) = word_bound(bound, word);
    let state = bound_state(chunk, row, center, radius, scales_of(bound));
    match bound.gaps >> word & 1 {
        0 => state,
        _ => state.min(BoundState::Partial),
    }
}

fn scales_of(bound: &Bound) -> Range<f32> {
    bound.least_scale..bound.max_scale
}

/// The state of the bounds in the view. `scales` has the smallest and the largest scale of the
/// block's instances. The state is conservative in both directions: rounding never turns a crossed
/// bound into an inside or outside one.
#[must_use]
pub fn bound_state(
    chunk: &Chunk,
    row: &ViewPlanes,
    center: Vec3,
    radius: f32,
    scales: Range<f32>,
) -> BoundState {
    if radius < 0.0 {
        return BoundState::Outside;
    }
    let max_scale = scales.end;
    let p = center.extend(1.0);
    let least = row
        .planes()
        .map(|plane| plane.dot(p))
        .into_iter()
        .fold(f32::INFINITY, f32::min);
    let aside = chunk.sphere.truncate().length() * max_scale;
    let mut reach = radius + aside + chunk.sphere.w * max_scale;
    let mut thins = false;
    if row.band.flags & BAND_IS_THINNED != 0 {
        let widest = widest_grown(chunk, &row.band, center, radius + aside, &scales);
        thins = widest > 0.0;
        reach = reach.max(radius + aside + widest);
    }
    let slack = 1e-5 * (center.abs().element_sum() + least.abs() + reach);
    if least + reach + slack <= 0.0 {
        return BoundState::Outside;
    }
    if row.reach.w >= 0.0 {
        let world = Vec3::new(
            chunk.world_x.dot(p),
            chunk.world_y.dot(p),
            chunk.world_z.dot(p),
        );
        let range = row.reach.w + (reach + slack) * chunk.world_scale;
        if world.distance(row.reach.truncate()) * 0.99999 > range {
            return BoundState::Outside;
        }
    }
    let state = if row.reach.w < 0.0 && !thins && least - radius - aside - slack > 0.0 {
        BoundState::Inside
    } else {
        BoundState::Partial
    };
    if row.band.flags == 0 {
        return state;
    }
    state.min(band_state(chunk, &row.band, center, radius + aside, scales))
}

/// The radius of the largest sphere around a kept instance of a bound; 0 if the row keeps all of
/// them as large as they are.
fn widest_grown(
    chunk: &Chunk,
    band: &DistanceBand,
    center: Vec3,
    reach: f32,
    scales: &Range<f32>,
) -> f32 {
    let apart = if band.flags & BAND_THINS_BY_SIZE == 0 {
        distances_of_bound(chunk, band, center, reach).end
    } else {
        1.0
    };
    let [small, large] = [scales.start, scales.end].map(|scale| chunk.sphere.w * scale);
    if band.thin * small * small * 0.99999 >= THIN_SHARE * apart {
        return 0.0;
    }
    let radius = THIN_GROWTH * 1.00001 * large.max((apart / band.thin).sqrt());
    radius * (1.0 + chunk.sphere.truncate().length() / chunk.sphere.w)
}

/// The squares of the least and the largest distance from the eye of a band that a point within
/// `reach` of `center` may have. They cover rounding.
fn distances_of_bound(chunk: &Chunk, band: &DistanceBand, center: Vec3, reach: f32) -> Range<f32> {
    let world = in_world(chunk, center);
    let apart = world.distance(band.eye);
    let wide = reach * chunk.world_scale;
    let slack = 1e-5 * (world.abs().element_sum() + apart + wide);
    let nearest = (apart - wide - slack).max(0.0);
    let farthest = apart + wide + slack;
    nearest * nearest * 0.99999..farthest * farthest * 1.00001
}

/// The state of a bound in a band, if all origins and all spheres' centers are within `reach` of
/// `center`.
fn band_state(
    chunk: &Chunk,
    band: &DistanceBand,
    center: Vec3,
    reach: f32,
    scales: Range<f32>,
) -> BoundState {
    let Range {
        start: low,
        end: high,
    } = distances_of_bound(chunk, band, center, reach);
    let mut state = BoundState::Inside;
    if band.flags & BAND_OF_RANGE != 0 {
        if high < band.start || low >= band.end {
            return BoundState::Outside;
        }
        if low < band.start || high >= band.end {
            state = BoundState::Partial;
        }
    }
    if band.flags & BAND_OF_LEVEL != 0 {
        let by_distance = band.flags & BAND_BY_DISTANCE != 0;
        let (low, high) = if by_distance {
            (low, high)
        } else {
            (0.99999, 1.00001)
        };
        let [small, large] = [scales.start, scales.end].map(|scale| chunk.sphere.w * scale);
        let is_limited = band.high >= 0.0;
        if high < band.low * small * small || is_limited && low >= band.high * large * large {
            return BoundState::Outside;
        }
        let is_beyond = low >= band.low * large * large;
        let is_within = !is_limited || high < band.high * small * small;
        if !(is_beyond && is_within) {
            state = BoundState::Partial;
        }
    }
    state
}

#[cfg(test)]
mod tests;
