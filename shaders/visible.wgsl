// What every kernel that tests instances reads, and the test itself.

@group(0) @binding(0) var<uniform> batch: Batch;
@group(0) @binding(1) var<storage, read> chunks: array<Chunk>;
@group(0) @binding(2) var<storage, read> rows: array<Row>;
// Binding 3 is `instances`, declared with its encoding (instance_packed.wgsl).
@group(0) @binding(4) var<storage, read> scales: array<f32>;

// A radius by which no view keeps a sphere, not even one whose planes keep everything: the lowest number.
const NOTHING: f32 = -3.40282347e38;

// Bounding sphere, in the set's space, of instance `i` of the chunk (clamped to its last one).
fn load_sphere(chunk: Chunk, i: u32) -> vec4<f32> {
    let at = chunk.first_instance + min(i, chunk.instance_count - 1u);
    let instance = load_instance(at);
    var scale = instance_scale(instance);
    if ((chunk.flags & CHUNK_HAS_SCALE) != 0u) {
        scale *= scales[at];
    }
    var centre = instance.position;
    if ((chunk.flags & CHUNK_OFF_CENTRE) != 0u) {
        centre += instance_turn(instance, chunk.sphere.xyz * scale);
    }
    // A scale that is not a number, infinite or negative is that of nothing (a NaN in the centre fails the planes).
    let radius = chunk.sphere.w * scale;
    // The scale, not the radius: a point has a radius of 0 at every scale.
    return vec4<f32>(centre, select(NOTHING, radius, (scale >= 0.0) & (radius < 3e38)));
}

fn is_visible(chunk: Chunk, row: Row, sphere: vec4<f32>, i: u32) -> bool {
    var visible = (i < chunk.instance_count) & sphere_in_view(row, sphere);
    if (row.reach.w >= 0.0) {
        visible = visible & sphere_in_reach(row, chunk, sphere);
    }
    return visible;
}
