// Which pixels a sphere may cover, and whether all of them are nearer than the sphere.
//
//     pixels     |  .  |  .  |  .  |  .  |  .  |      . samples, one per pixel
//     sphere           (---------------)              covers the samples of pixels 1, 2 and 3
//     sphere               (-)                        covers no sample
//
// The pixels are looked up at the finest level of the pyramid at which they lie in at most four
// columns and four rows: pixels 1 to 3 in texels 1 to 3 of level 0, pixels 1 to 6 in texels 0 to 3
// of level 1, with pixels 0 to 7. Texels beyond the span's diagonals are left out: of a sphere
// three pixels wide, the corners of four by four pixels.
//
// The twin is `src/cull/reference/footprint.rs`.

import package::occlusion::span::{Span, span};
import package::shared::layout::{
    COVERS_NO_SAMPLE, DepthPyramid, FOOTPRINT_BITS, HIDDEN, PyramidLevel, Projection, VISIBLE,
};

@group(0) @binding(18) var<storage, read> pyramid: array<f32>;
@group(0) @binding(19) var<uniform> pyramid_shape: DepthPyramid;

// The pixels that a span reaches, as texels of a level.
struct Footprint {
    first: vec2<u32>,
    last: vec2<u32>,
    level: u32,
    // False if it reaches no sample of the viewport. The other fields are then 0.
    covers: bool,
}

// The footprint in a viewport of `width` x `height` pixels. The span is bounded.
fn footprint(projection: Projection, width: u32, height: u32, bounds: Span) -> Footprint {
    // Pixel i is covered if a sample, which is least to greatest after i, is between low and high.
    let least = projection.samples.xz;
    let greatest = projection.samples.yw;
    let border = vec2<f32>(f32(width), f32(height)) - 1.0;
    let low = ceil(max(bounds.low - greatest, vec2<f32>(0.0)));
    let high = floor(min(bounds.high - least, border));
    // Compared as floats: a span may lie far outside of what an integer holds.
    if (!all(low <= high)) {
        return Footprint(vec2<u32>(0u), vec2<u32>(0u), 0u, false);
    }
    let first = vec2<u32>(low);
    let last = vec2<u32>(high);
    let length = max(last.x - first.x, last.y - first.y);
    // 2^bits > length. At that level two texels have all pixels, at the next finer one three do,
    // and at the one after that at most five: four if the borders lie well.
    let bits = 32u - countLeadingZeros(length);
    var level = max(bits, FOOTPRINT_BITS - 1u) - (FOOTPRINT_BITS - 1u);
    let finer = max(bits, FOOTPRINT_BITS) - FOOTPRINT_BITS;
    let most = vec2<u32>((1u << FOOTPRINT_BITS) - 1u);
    if (all((last >> vec2<u32>(finer)) - (first >> vec2<u32>(finer)) <= most)) {
        level = finer;
    }
    return Footprint(first >> vec2<u32>(level), last >> vec2<u32>(level), level, true);
}

// Whether a texel of a level has samples between the diagonals of a span.
fn is_between_diagonals(
    projection: Projection,
    bounds: Span,
    texel: vec2<u32>,
    level: u32,
) -> bool {
    let first = vec2<f32>(texel << vec2<u32>(level));
    let last = first + f32((1u << level) - 1u);
    let samples = projection.diagonal_samples;
    let sum = vec2<f32>(first.x + first.y, last.x + last.y) + samples.xy;
    let difference = vec2<f32>(first.x - last.y, last.x - first.y) + samples.zw;
    let is_outside = (sum.y < bounds.sum.x) | (sum.x > bounds.sum.y)
        | (difference.y < bounds.difference.x) | (difference.x > bounds.difference.y);
    return !is_outside;
}

// Whether a span is farther than all texels of its footprint that it may reach.
fn is_behind(projection: Projection, bounds: Span, level: PyramidLevel, place: Footprint) -> bool {
    for (var y = place.first.y; y <= place.last.y; y += 1u) {
        let row = level.first + y * level.width;
        for (var x = place.first.x; x <= place.last.x; x += 1u) {
            let is_nearer = !(bounds.nearest < pyramid[row + x]);
            if (is_nearer && is_between_diagonals(projection, bounds, vec2<u32>(x, y), place.level)) {
                return false;
            }
        }
    }
    return true;
}

// VISIBLE, COVERS_NO_SAMPLE or HIDDEN. In doubt, a sphere is visible.
fn occlusion_of_span(projection: Projection, bounds: Span) -> u32 {
    if (!bounds.is_bounded | (pyramid_shape.level_count == 0u)) {
        return VISIBLE;
    }
    let place = footprint(projection, pyramid_shape.width, pyramid_shape.height, bounds);
    if (!place.covers) {
        return COVERS_NO_SAMPLE;
    }
    if (place.level >= pyramid_shape.level_count) {
        return VISIBLE;
    }
    let level = pyramid_shape.levels[place.level];
    return select(VISIBLE, HIDDEN, is_behind(projection, bounds, level, place));
}

fn occlusion_of(projection: Projection, sphere: vec4<f32>) -> u32 {
    return occlusion_of_span(projection, span(projection, sphere));
}

// Whether no triangle in the sphere draws anything.
fn is_hidden(projection: Projection, sphere: vec4<f32>) -> bool {
    return occlusion_of(projection, sphere) != VISIBLE;
}
