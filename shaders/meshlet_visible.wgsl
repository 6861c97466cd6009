// One meshlet of one survivor against a view; the twin is `reference::meshlet`.

@group(0) @binding(4) var<storage, read> scales: array<f32>;
@group(0) @binding(5) var<storage, read> survivors: array<u32>;
@group(0) @binding(7) var<storage, read> meshlets: array<GpuMeshlet>;

// An instance in its set's space.
struct Survivor {
    position: vec3<f32>,
    scale: f32,
    rotation: vec4<f32>,
}

fn load_survivor(chunk_flags: u32, id: u32) -> Survivor {
    let instance = load_instance(id);
    var scale = instance_scale(instance);
    if ((chunk_flags & CHUNK_HAS_SCALE) != 0u) {
        scale *= scales[id];
    }
    return Survivor(instance.position, scale, unpack_quat(instance.rotation));
}

// The meshlet's sphere in the set's space.
fn place_sphere(survivor: Survivor, sphere: vec4<f32>) -> vec4<f32> {
    let centre = rotate(survivor.rotation, sphere.xyz * survivor.scale) + survivor.position;
    return vec4<f32>(centre, sphere.w * survivor.scale);
}

// Whether the eye sees the back of every triangle whose normal is in the cone and that lies in the sphere.
fn faces_away(eye: vec4<f32>, axis: vec3<f32>, cutoff: f32, sphere: vec4<f32>) -> bool {
    let to_eye = eye.xyz - eye.w * sphere.xyz;
    return (cutoff < 1.0) & (-dot(axis, to_eye) > cutoff * length(to_eye) + abs(eye.w) * sphere.w);
}
