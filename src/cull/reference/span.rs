//! Twin of `shaders/occlusion/span.wesl`.

use crate::cull::layout::{Projection, ROUNDING};
use glam::{Vec2, Vec4, Vec4Swizzles};

/// What 32-bit arithmetic may lose of a depth, however small that is.
const MIN_DEPTH: f32 = 1e-9;
/// Spheres that come nearer to the eye's plane, relative to their distance, are unbounded.
const FLATTEST: f32 = 0.999;

/// A range that excludes nothing.
const UNKNOWN: Vec2 = Vec2::new(-3e38, 3e38);

/// Where a sphere is in a view. Its picture is in an octagon: between its borders, and between two
/// pairs of diagonals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Its left and upper border, in pixels from the viewport's upper left corner.
    pub low: Vec2,
    /// Its right and lower border.
    pub high: Vec2,
    /// Its least and greatest x + y, also in pixels.
    pub sum: Vec2,
    /// Its least and greatest x - y.
    pub difference: Vec2,
    /// Its greatest depth, which is the nearest.
    pub nearest: f32,
    /// False if the sphere touches the plane of the eye, is behind it, or is not finite. The other
    /// fields then mean nothing.
    pub is_bounded: bool,
}

impl Span {
    /// A span that says nothing.
    pub const UNKNOWN: Self = Self {
        low: Vec2::splat(UNKNOWN.x),
        high: Vec2::splat(UNKNOWN.y),
        sum: UNKNOWN,
        difference: UNKNOWN,
        nearest: 1.0,
        is_bounded: false,
    };
}

/// The least and the greatest t at which a plane of the row touches the sphere.
fn extent(row: Vec4, gram: Vec4, w: Vec4, at: f32, size: f32, slope: f32) -> Vec2 {
    let v = at * w.xyz() - row.xyz();
    let square = size * size;
    let root = size * (v.dot(v) - square * gram.z).max(0.0).sqrt();
    let middle = at - square * gram.y;
    let sum = middle + if middle >= 0.0 { root } else { -root };
    let one = sum / ((1.0 - size * slope) * (1.0 + size * slope));
    let other = (at * at - square * gram.x) / sum;
    Vec2::new(one.min(other), one.max(other))
}

/// The span of a sphere (center, radius).
#[must_use]
pub fn span(projection: &Projection, sphere: Vec4) -> Span {
    let Projection { x, y, z, w, .. } = *projection;
    let center = (sphere.xyz() * projection.unit).extend(1.0);
    let reach = center.xyz().abs().element_sum();
    let exact = sphere.w * projection.unit;
    let radius = exact + projection.margin + ROUNDING * (exact + reach);
    let distance = w.dot(center);
    let inverse = 1.0 / distance;
    let size = radius * inverse;
    let slope = projection.slope;

    let [across, down, depth] = [x, y, z].map(|row| row.dot(center) * inverse);
    let diagonal = |row: Vec4, gram: Vec4, at: f32| {
        let found = extent(row, gram, w, at, size, slope);
        let is_known = projection.has_diagonals != 0 && found.is_finite();
        if is_known { found } else { UNKNOWN }
    };
    let sum = diagonal(x + y, projection.gram_sum, across + down);
    let difference = diagonal(x - y, projection.gram_difference, across - down);
    let x = extent(x, projection.gram_x, w, across, size, slope);
    let y = extent(y, projection.gram_y, w, down, size, slope);
    let summands = z.abs().dot(center.abs()) * inverse;
    let z = extent(z, projection.gram_z, w, depth, size, slope);
    let nearest = z.y + ROUNDING * (z.y.abs() + summands) + MIN_DEPTH;

    let is_before_eye = distance > 0.0 && size * slope < FLATTEST && sphere.w >= 0.0;
    let others = Vec4::new(distance, inverse, size, nearest);
    let is_finite = sphere.is_finite() && x.is_finite() && y.is_finite() && others.is_finite();
    Span {
        low: Vec2::new(x.x, y.x),
        high: Vec2::new(x.y, y.y),
        sum,
        difference,
        nearest: nearest.max(0.0),
        is_bounded: is_before_eye && is_finite,
    }
}
