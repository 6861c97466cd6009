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
