//! Twin of `shaders/cull/vote.wgsl`, `shaders/shared/visibility.wgsl` and
//! `shaders/shared/instance.wgsl`.

use crate::{
    cull::layout::{
        BAND_EYE, BAND_NONE, BLOCK, BLOCK_WORDS, Batch, CHUNK_HAS_SCALE, CHUNK_OFF_CENTER, Chunk,
        ChunkView, DistanceBand, ViewPlanes,
    },
    instance::PackedInstance,
};
use glam::{Vec3, Vec4};

/// The radius of a hidden sphere: no view keeps it, not even a view whose planes keep every other
/// sphere.
const HIDDEN_RADIUS: f32 = f32::MIN;

/// Bounding sphere, in the set's space, of instance `i` of the chunk.
#[must_use]
pub fn load_sphere(chunk: &Chunk, instances: &[PackedInstance], scales: &[f32], i: u32) -> Vec4 {
    let at = (chunk.first_instance + i) as usize;
    let scale = if chunk.flags & CHUNK_HAS_SCALE != 0 {
        scales[at]
    } else {
        1.0
    };
    let mut center = instances[at].position();
    if chunk.flags & CHUNK_OFF_CENTER != 0 {
        center += rotate(
            instances[at].rotation().into(),
            chunk.sphere.truncate() * scale,
        );
    }
    let radius = chunk.sphere.w * scale;
    // Check the scale, not the radius: a point has a radius of 0 at every scale.
    center.extend(if scale >= 0.0 && radius < 3e38 {
        radius
    } else {
        HIDDEN_RADIUS
    })
}

pub(super) fn rotate(q: Vec4, v: Vec3) -> Vec3 {
    let t = 2.0 * q.truncate().cross(v);
    v + q.w * t + q.truncate().cross(t)
}

fn plane_distance(plane: Vec4, sphere: Vec4) -> f32 {
    plane.truncate().dot(sphere.truncate()) + plane.w + sphere.w
}

/// Distance of the sphere inside the nearest border of the view; at most 0 means rejected (a sphere
/// on the lower border of a band is kept). Planes and bands give it in the set's units, a light's
/// range in the world's. NaN if the sphere contains NaN.
#[must_use]
pub fn least_distance(chunk: &Chunk, row: &ViewPlanes, sphere: Vec4) -> f32 {
    let mut least = f32::INFINITY;
    for plane in row.planes() {
        let distance = plane_distance(plane, sphere);
        if distance.is_nan() {
            return f32::NAN;
        }
        least = least.min(distance);
    }
    if row.reach.w >= 0.0 {
        least = least.min(
            row.reach.w + sphere.w * chunk.world_scale - distance_to_light(chunk, row, sphere),
        );
    }
    if row.band.kind != BAND_NONE {
        let apart = squared_distance(&row.band, sphere).sqrt();
        least = least.min(apart - row.band.low.sqrt() * sphere.w);
        if row.band.high >= 0.0 {
            least = least.min(row.band.high.sqrt() * sphere.w - apart);
        }
    }
    least
}

/// Square of the distance that a band compares.
fn squared_distance(band: &DistanceBand, sphere: Vec4) -> f32 {
    if band.kind == BAND_EYE {
        sphere.truncate().distance_squared(band.eye)
    } else {
        1.0
    }
}

/// Whether a sphere is at a distance of the band.
fn sphere_in_band(band: &DistanceBand, sphere: Vec4) -> bool {
    let apart = squared_distance(band, sphere);
    let size = sphere.w * sphere.w;
    apart >= band.low * size && (apart < band.high * size || band.high < 0.0)
}

fn world_center(chunk: &Chunk, sphere: Vec4) -> Vec3 {
    let p = sphere.truncate().extend(1.0);
    Vec3::new(
        chunk.world_x.dot(p),
        chunk.world_y.dot(p),
        chunk.world_z.dot(p),
    )
}

fn distance_to_light(chunk: &Chunk, row: &ViewPlanes, sphere: Vec4) -> f32 {
    world_center(chunk, sphere).distance(row.reach.truncate())
}

/// Whether the row keeps the sphere.
#[must_use]
pub fn is_visible(chunk: &Chunk, row: &ViewPlanes, sphere: Vec4) -> bool {
    let in_view = row
        .planes()
        .into_iter()
        .all(|plane| plane_distance(plane, sphere) > 0.0);
    in_view
        && (row.reach.w < 0.0 || sphere_in_reach(chunk, row, sphere))
        && (row.band.kind == BAND_NONE || sphere_in_band(&row.band, sphere))
}

fn sphere_in_reach(chunk: &Chunk, row: &ViewPlanes, sphere: Vec4) -> bool {
    let reach = row.reach.w + sphere.w * chunk.world_scale;
    world_center(chunk, sphere).distance_squared(row.reach.truncate()) <= reach * reach
}

/// Writes the words of every row of every chunk: bit i % 32 of word i / 32 is instance i of the
/// block.
pub fn vote(
    batch: &Batch,
    chunks: &[Chunk],
    chunk_views: &[ChunkView],
    instances: &[PackedInstance],
    scales: &[f32],
    words: &mut [u32],
) {
    words[..(batch.count_len * BLOCK_WORDS) as usize].fill(0);
    for chunk in &chunks[..batch.chunk_count as usize] {
        for i in 0..chunk.instance_count {
            let sphere = load_sphere(chunk, instances, scales, i);
            for r in 0..chunk.row_count {
                let view = &chunk_views[(chunk.first_row + r) as usize];
                if is_visible(chunk, &view.planes, sphere) {
                    let count = chunk.first_count + r * chunk.block_count + i / BLOCK;
                    words[(count * BLOCK_WORDS + i % BLOCK / 32) as usize] |= 1 << (i % 32);
                }
            }
        }
    }
}
