// 64 bytes: a matrix of four columns, Giordano's first encoding (2019). A matrix may hold a scale,
// so all of it is read.

struct Matrix {
    x: vec4<f32>,
    y: vec4<f32>,
    z: vec4<f32>,
    w: vec4<f32>,
}

@group(0) @binding(3) var<storage, read> instances: array<Matrix>;

struct Instance {
    x: vec3<f32>,
    y: vec3<f32>,
    z: vec3<f32>,
    position: vec3<f32>,
}

fn load_instance(at: u32) -> Instance {
    let matrix = instances[at];
    return Instance(matrix.x.xyz, matrix.y.xyz, matrix.z.xyz, matrix.w.xyz);
}

// Whether `instance_scale` is always 1.
const INSTANCE_IS_RIGID: bool = false;

fn instance_scale(instance: Instance) -> f32 {
    return sqrt(max(max(dot(instance.x, instance.x), dot(instance.y, instance.y)), dot(instance.z, instance.z)));
}

// The matrix's columns hold the scale that `v` has already been multiplied by.
fn instance_turn(instance: Instance, v: vec3<f32>) -> vec3<f32> {
    return (instance.x * v.x + instance.y * v.y + instance.z * v.z) / instance_scale(instance);
}
