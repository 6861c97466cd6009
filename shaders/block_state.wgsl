// A block, or a word of it, as a whole against a view: the twin is `reference::classify::bound_state`.

const OUTSIDE: u32 = 0u;
const PARTIAL: u32 = 1u;
const INSIDE: u32 = 2u;

@group(0) @binding(8) var<storage, read> bounds: array<Bound>;

fn bound_state(chunk: Chunk, row: Row, centre: vec3<f32>, radius: f32, max_scale: f32) -> u32 {
    let p = vec4<f32>(centre, 1.0);
    let least = min(
        min(min(dot(row.left, p), dot(row.right, p)), min(dot(row.top, p), dot(row.bottom, p))),
        min(dot(row.near, p), dot(row.far, p)));
    // The instances' spheres lie within the bound, widened by the mesh; the slack is for rounding.
    let aside = length(chunk.sphere.xyz) * max_scale;
    let reach = radius + aside + chunk.sphere.w * max_scale;
    let slack = 1e-5 * (abs(centre.x) + abs(centre.y) + abs(centre.z) + abs(least) + reach);
    if (least + reach + slack <= 0.0) {
        return OUTSIDE;
    }
    if (row.reach.w >= 0.0) {
        // A light's range is measured in the world; nothing is inside as a whole.
        let world = vec3<f32>(dot(chunk.world_x, p), dot(chunk.world_y, p), dot(chunk.world_z, p));
        let range = row.reach.w + (reach + slack) * chunk.world_scale;
        return select(PARTIAL, OUTSIDE, distance(world, row.reach.xyz) * 0.99999 > range);
    }
    return select(PARTIAL, INSIDE, least - radius - aside - slack > 0.0);
}

fn block_len(chunk: Chunk, block: u32) -> u32 {
    return min(chunk.instance_count - block * BLOCK, BLOCK);
}
