//! Twin of the bounds in `shaders/shared/visibility.wesl`: what a view keeps of a block or a word.

use super::{WORD_STEPS, word_center};
use crate::cull::{
    layout::{
        BAND_BY_DISTANCE, BAND_IS_THINNED, BAND_THINS_BY_SIZE, Bound, Chunk, DistanceBand,
        ViewPlanes,
    },
    reference::{
        thin::{THIN_GROWTH, THIN_SHARE},
        vote::{BAND_OF_LEVEL, BAND_OF_RANGE, in_world},
    },
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
    bound.min_scale..bound.max_scale
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
    let min = row
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
    let slack = 1e-5 * (center.abs().element_sum() + min.abs() + reach);
    if min + reach + slack <= 0.0 {
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
    let state = if row.reach.w < 0.0 && !thins && min - radius - aside - slack > 0.0 {
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
