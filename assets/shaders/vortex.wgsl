// Writes every orb from its index and the time. No orb depends on its last place.
#import bevy_gpu_culling::instance::{PackedInstance, pack}

struct Vortex {
    time: f32,
    // Orbs of the set, and the index of the buffer's first.
    count: u32,
    first: u32,
    capacity: u32,
}

@group(0) @binding(0) var<uniform> vortex: Vortex;
@group(0) @binding(1) var<storage, read_write> orbs: array<PackedInstance>;
@group(0) @binding(2) var<storage, read_write> scales: array<f32>;

// A number between 0 and 1 for each orb and use (PCG: O'Neill 2014; Jarzynski and Olano 2020).
fn random(orb: u32, use_of_it: u32) -> f32 {
    let state = (orb * 8u + use_of_it) * 747796405u + 2891336453u;
    let word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
    return f32(((word >> 22u) ^ word) >> 8u) / 16777216.0;
}

@compute @workgroup_size(64)
fn swirl(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
) {
    let at = id.y * workgroups.x * 64u + id.x;
    let orb = vortex.first + at;
    if at >= vortex.capacity || orb >= vortex.count {
        return;
    }
    // From the tip up: neighbors in the buffer are neighbors in space, so that classification pays.
    let height = f32(orb) / f32(vortex.count);
    let spread = 0.85 + 0.3 * random(orb, 0u);
    let radius = (1.0 + 30.0 * pow(height, 1.6)) * spread;
    let speed = 9.0 / (1.0 + 0.35 * radius);
    let angle = 6.2831853 * random(orb, 1u) + vortex.time * speed;
    let sway = vec2<f32>(sin(vortex.time + 4.0 * height), cos(0.7 * vortex.time + 3.0 * height)) * 3.0 * height;
    let place = vec3<f32>(
        radius * cos(angle) + sway.x,
        40.0 * (height - 0.5) + 2.0 * random(orb, 2u),
        radius * sin(angle) + sway.y);
    // Around the vertical axis, as the vortex turns.
    let turn = vec4<f32>(0.0, sin(-0.5 * angle), 0.0, cos(-0.5 * angle));
    orbs[at] = pack(place, turn);
    scales[at] = 0.5 + random(orb, 3u);
}
