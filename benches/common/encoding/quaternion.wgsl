// 32 bytes: a position and a whole quaternion, Giordano's second encoding (2019).

struct Placed {
    position: vec4<f32>,
    rotation: vec4<f32>,
}

@group(0) @binding(3) var<storage, read> instances: array<Placed>;

struct Instance {
    position: vec3<f32>,
    rotation: vec4<f32>,
}

fn load_instance(at: u32) -> Instance {
    let placed = instances[at];
    return Instance(placed.position.xyz, placed.rotation);
}

// Whether `instance_scale` is always 1.
const INSTANCE_IS_RIGID: bool = true;

fn instance_scale(instance: Instance) -> f32 {
    return 1.0;
}

fn instance_turn(instance: Instance, v: vec3<f32>) -> vec3<f32> {
    return rotate(instance.rotation, v);
}
