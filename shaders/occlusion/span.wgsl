// Where a sphere is in a view: the pixels from its left to its right and from its upper to its
// lower border, the same along the diagonals, and its nearest depth.
//
//        . - .        Its picture is in an octagon: between the borders, and between two pairs of
//      /       \      diagonals. Along a diagonal x + y or x - y is the same.
//     |         |
//      \       /
//        ` - `
//
// For a row P of the projection, with center c and radius r:
//
//     a = P.(c, 1)    b = w.(c, 1)    n = P.xyz    m = w.xyz
//
// The planes a = t * b that touch the sphere are the t with (a - t b)^2 = r^2 |n - t m|^2. Divided
// by b^2, with at = a / b and size = r / b, this is A t^2 - 2 B t + C = 0 with
//
//     A = 1 - size^2 m.m      B = at - size^2 n.m      C = at^2 - size^2 n.n
//     B^2 - A C = size^2 (v.v - size^2 |n x m|^2)      v = at m - n
//
// Example: an orthographic view with 100 pixels per unit. m = 0, b = 1, |n| = 100; a sphere of
// radius 0.5 at pixel 320 has A = 1, B = 320, root 50: from 270 to 370. In a perspective view with
// near plane 0.1 the row of depth is n = 0, a = 0.1; with b = 10, r = 2 and |m| = 1 the nearest
// depth is (0.01 + 0.2 * 0.01) / (1 - 0.04) = 0.0125 = 0.1 / (10 - 2).
//
// The twin is `src/cull/reference/span.rs`.

import package::shared::layout::Projection;

// What 32-bit arithmetic may lose, relative to its largest operand: 2^-20.
const ROUNDING: f32 = 9.5367431640625e-7;
// What it may lose of a depth, however small that is.
const LEAST_DEPTH: f32 = 1e-9;
// Spheres that come nearer to the eye's plane, relative to their distance, are unbounded: rounding
// would count too much.
const FLATTEST: f32 = 0.999;

// Where a sphere is.
struct Span {
    // Pixels from the viewport's upper left corner.
    low: vec2<f32>,
    high: vec2<f32>,
    // Least and greatest x + y, and x - y.
    sum: vec2<f32>,
    difference: vec2<f32>,
    // The greatest depth, which is the nearest. Rounding makes it nearer, never farther.
    nearest: f32,
    // False if the sphere touches the plane of the eye, is behind it, or is not finite. The other
    // fields then mean nothing.
    is_bounded: bool,
}

// Compared as bits, because a compiler may assume that every number is finite.
fn are_finite(numbers: vec4<f32>) -> bool {
    let exponents = bitcast<vec4<u32>>(numbers) & vec4<u32>(0x7f800000u);
    return all(exponents != vec4<u32>(0x7f800000u));
}

// The least and the greatest t at which a plane of the row touches the sphere.
fn extent(
    row: vec4<f32>,
    gram: vec4<f32>,
    w: vec4<f32>,
    at: f32,
    size: f32,
    slope: f32,
) -> vec2<f32> {
    let v = at * w.xyz - row.xyz;
    let square = size * size;
    let root = size * sqrt(max(dot(v, v) - square * gram.z, 0.0));
    let middle = at - square * gram.y;
    // The sum that does not cancel, and the other root by the product of the roots, C / A.
    let sum = middle + select(-root, root, middle >= 0.0);
    let one = sum / ((1.0 - size * slope) * (1.0 + size * slope));
    let other = (at * at - square * gram.x) / sum;
    return vec2<f32>(min(one, other), max(one, other));
}

// A range, unless it is unknown: then one that excludes nothing.
fn known(range: vec2<f32>, is_known: bool) -> vec2<f32> {
    let is_finite = are_finite(range.xyxy);
    return select(vec2<f32>(-3e38, 3e38), range, is_known & is_finite);
}

fn span(projection: Projection, sphere: vec4<f32>) -> Span {
    let center = vec4<f32>(sphere.xyz * projection.unit, 1.0);
    let reach = abs(center.x) + abs(center.y) + abs(center.z);
    let exact = sphere.w * projection.unit;
    let radius = exact + projection.margin + ROUNDING * (exact + reach);
    let distance = dot(projection.w, center);
    let inverse = 1.0 / distance;
    let size = radius * inverse;
    let slope = projection.slope;

    let across = dot(projection.x, center) * inverse;
    let down = dot(projection.y, center) * inverse;
    let depth = dot(projection.z, center) * inverse;
    let x = extent(projection.x, projection.gram_x, projection.w, across, size, slope);
    let y = extent(projection.y, projection.gram_y, projection.w, down, size, slope);
    let z = extent(projection.z, projection.gram_z, projection.w, depth, size, slope);
    let sum = extent(projection.x + projection.y, projection.gram_sum, projection.w,
        across + down, size, slope);
    let difference = extent(projection.x - projection.y, projection.gram_difference, projection.w,
        across - down, size, slope);
    let has_diagonals = projection.has_diagonals != 0u;
    let summands = dot(abs(projection.z), abs(center)) * inverse;
    let nearest = z.y + ROUNDING * (abs(z.y) + summands) + LEAST_DEPTH;

    let is_before_eye = (distance > 0.0) & (size * slope < FLATTEST) & (sphere.w >= 0.0);
    let is_finite = are_finite(sphere) & are_finite(vec4<f32>(x, y))
        & are_finite(vec4<f32>(distance, inverse, size, nearest));
    return Span(
        vec2<f32>(x.x, y.x),
        vec2<f32>(x.y, y.y),
        known(sum, has_diagonals),
        known(difference, has_diagonals),
        // A depth below 0 may be drawn as 0.
        max(nearest, 0.0),
        is_before_eye & is_finite,
    );
}
