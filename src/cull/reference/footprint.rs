//! Twin of `shaders/occlusion/footprint.wesl`.

use super::span::{Span, span};
use crate::cull::layout::{
    COVERS_NO_SAMPLE, DepthPyramid, FOOTPRINT_BITS, HIDDEN, Projection, PyramidLevel, VISIBLE,
};
use glam::{UVec2, Vec2, Vec4, Vec4Swizzles};

/// The pixels that a span reaches, as texels of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// The first column and row.
    pub first: UVec2,
    /// The last column and row: at most 2^[`FOOTPRINT_BITS`] with the first.
    pub last: UVec2,
    /// The level.
    pub level: u32,
    /// False if it reaches no sample of the viewport. The other fields are then 0.
    pub covers: bool,
}

/// The footprint of a bounded span in a viewport of `width` x `height` pixels.
#[must_use]
pub fn footprint(projection: &Projection, width: u32, height: u32, bounds: &Span) -> Footprint {
    let min = projection.samples.xz();
    let greatest = projection.samples.yw();
    let border = UVec2::new(width, height).as_vec2() - 1.0;
    let low = (bounds.low - greatest).max(Vec2::ZERO).ceil();
    let high = (bounds.high - min).min(border).floor();
    if !low.cmple(high).all() {
        return Footprint::default();
    }
    let (first, last) = (low.as_uvec2(), high.as_uvec2());
    let length = (last - first).max_element();
    let bits = 32 - length.leading_zeros();
    let mut level = bits.max(FOOTPRINT_BITS - 1) - (FOOTPRINT_BITS - 1);
    let finer = bits.max(FOOTPRINT_BITS) - FOOTPRINT_BITS;
    if ((last >> finer) - (first >> finer)).max_element() < 1 << FOOTPRINT_BITS {
        level = finer;
    }
    Footprint {
        first: first >> level,
        last: last >> level,
        level,
        covers: true,
    }
}

/// Whether a texel of a level has samples between the diagonals of a span.
#[must_use]
pub fn is_between_diagonals(
    projection: &Projection,
    bounds: &Span,
    texel: UVec2,
    level: u32,
) -> bool {
    let first = (texel << level).as_vec2();
    let last = first + ((1 << level) - 1) as f32;
    let samples = projection.diagonal_samples;
    let sum = Vec2::new(first.x + first.y, last.x + last.y) + samples.xy();
    let difference = Vec2::new(first.x - last.y, last.x - first.y) + samples.zw();
    let is_outside = sum.y < bounds.sum.x
        || sum.x > bounds.sum.y
        || difference.y < bounds.difference.x
        || difference.x > bounds.difference.y;
    !is_outside
}

/// Whether a span is farther than all texels of its footprint that it may reach.
fn is_behind(
    projection: &Projection,
    bounds: &Span,
    pyramid: &[f32],
    (level, place): (&PyramidLevel, &Footprint),
) -> bool {
    let (first, last) = (place.first, place.last);
    let texels = (first.y..=last.y).flat_map(|y| (first.x..=last.x).map(move |x| UVec2::new(x, y)));
    let mut reached =
        texels.filter(|texel| is_between_diagonals(projection, bounds, *texel, place.level));
    reached.all(|texel| {
        let at = level.first + texel.y * level.width + texel.x;
        bounds.nearest < pyramid[at as usize]
    })
}

/// [`VISIBLE`], [`COVERS_NO_SAMPLE`] or [`HIDDEN`]. In doubt, a sphere is visible.
#[must_use]
pub fn occlusion_of_span(
    pyramid: &[f32],
    pyramid_shape: &DepthPyramid,
    projection: &Projection,
    bounds: &Span,
) -> u32 {
    let shape = pyramid_shape;
    if !bounds.is_bounded || shape.level_count == 0 {
        return VISIBLE;
    }
    let place = footprint(projection, shape.width, shape.height, bounds);
    if !place.covers {
        return COVERS_NO_SAMPLE;
    }
    if place.level >= shape.level_count {
        return VISIBLE;
    }
    let level = &shape.levels[place.level as usize];
    match is_behind(projection, bounds, pyramid, (level, &place)) {
        true => HIDDEN,
        false => VISIBLE,
    }
}

/// What the depth says of a sphere (center, radius): see [`occlusion_of_span`].
#[must_use]
pub fn occlusion_of(
    pyramid: &[f32],
    pyramid_shape: &DepthPyramid,
    projection: &Projection,
    sphere: Vec4,
) -> u32 {
    let bounds = span(projection, sphere);
    occlusion_of_span(pyramid, pyramid_shape, projection, &bounds)
}

/// Whether no triangle in the sphere draws anything.
#[must_use]
pub fn is_hidden(
    pyramid: &[f32],
    pyramid_shape: &DepthPyramid,
    projection: &Projection,
    sphere: Vec4,
) -> bool {
    occlusion_of(pyramid, pyramid_shape, projection, sphere) != VISIBLE
}
