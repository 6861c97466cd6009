//! Twin of `shaders/cull/far_first.wesl`.

use crate::{
    cull::{
        layout::{
            CHUNK_NON_UNIFORM_SCALE, CHUNK_OFF_CENTER, DrawCommand, FarFirstJob, exact_dot, head,
        },
        reference::vote::load_scale,
    },
    instance::PackedInstance,
};
use glam::{IVec4, Vec3};

const MIN: f32 = 1.0 / (1u64 << 40) as f32;
const MAX: f32 = (1u128 << 100) as f32;
const MAX_SCALE: f32 = (1 << 30) as f32;

/// The sum of the coordinates along the axis.
#[must_use]
fn depth_of(center: Vec3, axis: Vec3) -> f32 {
    let at = center.to_array().map(|x| {
        let bounded = x.clamp(-MAX, MAX);
        if bounded.abs() >= MIN { bounded } else { 0.0 }
    });
    exact_dot(Vec3::from(at), axis)
}

/// Sum of the squares of a rotation's components, in units of a quarter of a code.
const SQUARES: i32 = 16 * 2 * 511 * 511;

/// The center of a mesh, rotated as an instance is, to about 10 bits.
#[must_use]
fn turn(rotation: u32, center: Vec3) -> Vec3 {
    let code = |shift: u32| ((rotation >> shift & 1023).cast_signed() - 511) * 4;
    let [a, b, c] = [0, 10, 20].map(code);
    let largest = (SQUARES - (a * a + b * b + c * c)).max(0).isqrt();
    let q = match rotation >> 30 {
        0 => IVec4::new(largest, a, b, c),
        1 => IVec4::new(a, largest, b, c),
        2 => IVec4::new(a, b, largest, c),
        _ => IVec4::new(a, b, c, largest),
    };
    let part = |value: i32| ((value + 2048) >> 12) as f32;
    let column = |x: i32, y: i32, z: i32| Vec3::new(part(x), part(y), part(z));
    let x = column(
        SQUARES - 2 * (q.y * q.y + q.z * q.z),
        2 * (q.x * q.y + q.w * q.z),
        2 * (q.x * q.z - q.w * q.y),
    );
    let y = column(
        2 * (q.x * q.y - q.w * q.z),
        SQUARES - 2 * (q.x * q.x + q.z * q.z),
        2 * (q.y * q.z + q.w * q.x),
    );
    let z = column(
        2 * (q.x * q.z + q.w * q.y),
        2 * (q.y * q.z - q.w * q.x),
        SQUARES - 2 * (q.x * q.x + q.y * q.y),
    );
    (x * center.x + y * center.y) + z * center.z
}

/// The key of an instance: smaller ones are farther from the viewer. `scales` is empty if the page
/// has no scales.
#[must_use]
pub fn depth_key(job: &FarFirstJob, instances: &[PackedInstance], scales: &[f32], id: u32) -> u32 {
    let instance = &instances[id as usize];
    let mut center = instance.position();
    if job.flags & CHUNK_OFF_CENTER != 0 {
        let max = Vec3::splat(MAX_SCALE);
        let scale = head(load_scale(job.flags, scales, id as usize).clamp(-max, max));
        let rotation = instance.rotation.to_bits();
        center += if job.flags & CHUNK_NON_UNIFORM_SCALE == 0 {
            head(turn(rotation, job.center)) * scale
        } else {
            head(turn(rotation, head(job.center * scale)))
        };
    }
    let depth = depth_of(center, job.axis);
    let bits = if depth == 0.0 { 0 } else { depth.to_bits() };
    bits ^ if bits >> 31 == 1 { u32::MAX } else { 1 << 31 }
}

/// Sorts the survivors of each job's row by [`depth_key`]. Survivors with equal keys keep their
/// order. A row's command says which survivors it has.
pub fn far_first(
    jobs: &[FarFirstJob],
    draws: &[DrawCommand],
    survivors: &mut [u32],
    instances: &[PackedInstance],
    scales: &[f32],
) {
    for job in jobs {
        let command = &draws[job.row as usize];
        let first = command.first_survivor(job.is_indexed != 0) as usize;
        let row = &mut survivors[first..first + command.instance_count as usize];
        row.sort_by_cached_key(|id| depth_key(job, instances, scales, *id));
    }
}
