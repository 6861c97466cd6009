// How the kernels read an instance of 16 bytes. A file with the same declarations reads another encoding;
// the ladder benchmark has two (benches/common/encoding).

@group(0) @binding(3) var<storage, read> instances: array<PackedInstance>;

alias Instance = PackedInstance;

fn load_instance(at: u32) -> Instance {
    return instances[at];
}

// Whether `instance_scale` is always 1.
const INSTANCE_IS_RIGID: bool = true;

// Scale that the instance itself holds, beside the optional channel.
fn instance_scale(instance: Instance) -> f32 {
    return 1.0;
}

// `v` turned as the instance is.
fn instance_turn(instance: Instance, v: vec3<f32>) -> vec3<f32> {
    return rotate(unpack_quat(instance.rotation), v);
}
