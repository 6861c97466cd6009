// The planes of a view in pairs: three products where six planes take six (`src/cull/pairs.rs`).

// The planes in pairs, widened by a radius.
fn widened_pairs(pairs: Pairs, radius: f32) -> Pairs {
    var wide = pairs;
    wide.slopes += vec4<f32>(0.0, radius, 0.0, radius);
    wide.low -= radius;
    wide.high += radius;
    return wide;
}

// `centre_in_view` of planes that are paired, in two thirds of its operations, up to rounding.
fn centre_in_pairs(wide: Pairs, p: vec3<f32>) -> bool {
    let depth = along(wide.depth, p);
    return (abs(along(wide.x, p)) < fma(wide.slopes.x, depth, wide.slopes.y))
        & (abs(along(wide.y, p)) < fma(wide.slopes.z, depth, wide.slopes.w))
        & (depth > wide.low) & (depth < wide.high);
}
