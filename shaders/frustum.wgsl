// Sphere against the planes of a view; the twin is `reference::vote::sphere_in_view`.
// `&` and not `&&`: eight instances a thread run the same instructions. NaN compares false: invisible.

fn plane_keeps(plane: vec4<f32>, sphere: vec4<f32>) -> bool {
    return dot(plane.xyz, sphere.xyz) + plane.w + sphere.w > 0.0;
}

fn sphere_in_view(row: Row, sphere: vec4<f32>) -> bool {
    return plane_keeps(row.left, sphere) & plane_keeps(row.right, sphere)
        & plane_keeps(row.top, sphere) & plane_keeps(row.bottom, sphere)
        & plane_keeps(row.near, sphere) & plane_keeps(row.far, sphere);
}

// Within a light's range: measured in world space, where the light's sphere is round.
fn sphere_in_reach(row: Row, chunk: Chunk, sphere: vec4<f32>) -> bool {
    let p = vec4<f32>(sphere.xyz, 1.0);
    let world = vec3<f32>(dot(chunk.world_x, p), dot(chunk.world_y, p), dot(chunk.world_z, p));
    let away = world - row.reach.xyz;
    let reach = row.reach.w + sphere.w * chunk.world_scale;
    return dot(away, away) <= reach * reach;
}

// The view widened by a radius: `centre_in_view` is then `sphere_in_view` in two thirds of the operations, up to rounding.
fn widened(row: Row, radius: f32) -> Row {
    var wide = row;
    wide.left.w += radius;
    wide.right.w += radius;
    wide.top.w += radius;
    wide.bottom.w += radius;
    wide.near.w += radius;
    wide.far.w += radius;
    return wide;
}

fn along(plane: vec4<f32>, p: vec3<f32>) -> f32 {
    return fma(plane.x, p.x, fma(plane.y, p.y, fma(plane.z, p.z, plane.w)));
}

fn on_side(plane: vec4<f32>, p: vec3<f32>) -> bool {
    return along(plane, p) > 0.0;
}

fn centre_in_view(wide: Row, p: vec3<f32>) -> bool {
    return on_side(wide.left, p) & on_side(wide.right, p) & on_side(wide.top, p)
        & on_side(wide.bottom, p) & on_side(wide.near, p) & on_side(wide.far, p);
}

// The same within the reach of a light, if the view is one's.
fn keeps_centre(chunk: Chunk, row: Row, wide: Row, centre: vec3<f32>) -> bool {
    var keeps = centre_in_view(wide, centre);
    if (row.reach.w >= 0.0) {
        keeps = keeps & sphere_in_reach(row, chunk, vec4<f32>(centre, chunk.sphere.w));
    }
    return keeps;
}
