//! Twin of `shaders/cull/vote.wesl`, `shaders/shared/visibility.wesl` and
//! `shaders/shared/instance.wesl`.

use super::thin::{MIN_SHARE, THIN_SHARE, thinned_growth, threshold_of};
use crate::{
    cull::layout::{
        BAND_BY_DISTANCE, BAND_BY_SIZE, BAND_IS_THINNED, BAND_OF_CENTERS, BAND_OF_ORIGINS,
        BAND_THINS_BY_SIZE, BLOCK, BLOCK_WORDS, Batch, CHUNK_HAS_SCALE, CHUNK_NON_UNIFORM_SCALE,
        CHUNK_OFF_CENTER, Chunk, ChunkView, DistanceBand, ViewPlanes,
    },
    instance::PackedInstance,
};
use glam::{Vec3, Vec4};

/// The radius of a hidden sphere: no view keeps it, not even a view whose planes keep every other
/// sphere.
const HIDDEN_RADIUS: f32 = f32::MIN;

/// The place of an instance, in its set's space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed {
    /// Its bounding sphere: center, radius.
    pub sphere: Vec4,
    /// Its origin.
    pub origin: Vec3,
    /// Its index in the chunk.
    pub index: u32,
}

/// Instance `i` of the chunk in the set's space.
#[must_use]
pub fn load_sphere(chunk: &Chunk, instances: &[PackedInstance], scales: &[f32], i: u32) -> Placed {
    let at = (chunk.first_instance + i) as usize;
    let scale = load_scale(chunk.flags, scales, at);
    let origin = instances[at].position();
    let mut center = origin;
    if chunk.flags & CHUNK_OFF_CENTER != 0 {
        center += rotate(
            instances[at].rotation().into(),
            chunk.sphere.truncate() * scale,
        );
    }
    let radius = chunk.sphere.w * scale.max_element();
    // Check the scale, not the radius: a point has a radius of 0 at every scale.
    let is_allowed = scale.cmpge(Vec3::ZERO).all();
    let sphere = center.extend(if is_allowed && radius < 3e38 {
        radius
    } else {
        HIDDEN_RADIUS
    });
    Placed {
        sphere,
        origin,
        index: i,
    }
}

/// The scale of the instance at `at`; `scales` has one number or three per instance, or nothing.
pub(super) fn load_scale(chunk_flags: u32, scales: &[f32], at: usize) -> Vec3 {
    if chunk_flags & CHUNK_HAS_SCALE == 0 {
        Vec3::ONE
    } else if chunk_flags & CHUNK_NON_UNIFORM_SCALE == 0 {
        Vec3::splat(scales[at])
    } else {
        Vec3::from_slice(&scales[at * 3..])
    }
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
#[cfg(feature = "testing")]
#[must_use]
pub fn min_distance(chunk: &Chunk, row: &ViewPlanes, placed: Placed) -> f32 {
    let sphere = tested_sphere(chunk, &row.band, placed.sphere);
    let mut min = f32::INFINITY;
    for plane in row.planes() {
        let distance = plane_distance(plane, sphere);
        if distance.is_nan() {
            return f32::NAN;
        }
        min = min.min(distance);
    }
    if row.reach.w >= 0.0 {
        min = min.min(
            row.reach.w + sphere.w * chunk.world_scale - distance_to_light(chunk, row, sphere),
        );
    }
    let band = &row.band;
    let sphere = placed.sphere;
    if band.flags & BAND_IS_THINNED != 0 {
        // An instance with threshold 0 is always kept.
        let vanishes = (band.thin / threshold_of(placed.index)).sqrt() * sphere.w;
        min = min.min(vanishes - thin_distance(chunk, band, sphere).sqrt());
    }
    if band.flags & BAND_OF_LEVEL != 0 {
        let apart = level_distance(chunk, band, sphere).sqrt();
        min = min.min(apart - band.low.sqrt() * sphere.w);
        if band.high >= 0.0 {
            min = min.min(band.high.sqrt() * sphere.w - apart);
        }
    }
    if band.flags & BAND_OF_RANGE != 0 {
        let apart = range_distance(chunk, band, placed).sqrt();
        min = min.min(apart - band.start.sqrt());
        min = min.min(band.end.sqrt() - apart);
    }
    min
}

pub(super) const BAND_OF_LEVEL: u32 = BAND_BY_DISTANCE | BAND_BY_SIZE;
pub(super) const BAND_OF_RANGE: u32 = BAND_OF_ORIGINS | BAND_OF_CENTERS;

/// The square that `low` and `high` are compared with.
fn level_distance(chunk: &Chunk, band: &DistanceBand, sphere: Vec4) -> f32 {
    if band.flags & BAND_BY_DISTANCE != 0 {
        in_world(chunk, sphere.truncate()).distance_squared(band.eye)
    } else {
        1.0
    }
}

/// The square that `start` and `end` are compared with.
fn range_distance(chunk: &Chunk, band: &DistanceBand, placed: Placed) -> f32 {
    let from = if band.flags & BAND_OF_CENTERS != 0 {
        placed.sphere.truncate()
    } else {
        placed.origin
    };
    in_world(chunk, from).distance_squared(band.eye)
}

/// The square that the share of instances that are kept falls with.
fn thin_distance(chunk: &Chunk, band: &DistanceBand, sphere: Vec4) -> f32 {
    if band.flags & BAND_THINS_BY_SIZE == 0 {
        in_world(chunk, sphere.truncate()).distance_squared(band.eye)
    } else {
        1.0
    }
}

/// The share of the instances like this one that a row keeps; infinite if it thins none out.
#[must_use]
pub fn kept_share(chunk: &Chunk, band: &DistanceBand, sphere: Vec4) -> f32 {
    if band.flags & BAND_IS_THINNED == 0 {
        return f32::INFINITY;
    }
    let apart = thin_distance(chunk, band, sphere);
    (band.thin * (sphere.w * sphere.w) / apart).max(MIN_SHARE)
}

/// The sphere that planes and lights test: an instance that is kept of many grows about its origin.
fn tested_sphere(chunk: &Chunk, band: &DistanceBand, sphere: Vec4) -> Vec4 {
    let share = kept_share(chunk, band, sphere);
    if share >= THIN_SHARE {
        return sphere;
    }
    let growth = thinned_growth(share);
    let aside = chunk.sphere.truncate().length() / chunk.sphere.w;
    let grown = sphere.w * (growth + (growth - 1.0).max(1.0) * aside);
    sphere.truncate().extend(grown)
}

/// Whether an instance is at a distance of the band.
fn is_in_band(chunk: &Chunk, band: &DistanceBand, placed: Placed) -> bool {
    let mut keeps = true;
    if band.flags & BAND_OF_LEVEL != 0 {
        let apart = level_distance(chunk, band, placed.sphere);
        let size = placed.sphere.w * placed.sphere.w;
        keeps = apart >= band.low * size && (apart < band.high * size || band.high < 0.0);
    }
    if band.flags & BAND_OF_RANGE != 0 {
        let apart = range_distance(chunk, band, placed);
        keeps = keeps && apart >= band.start && apart < band.end;
    }
    keeps
}

/// A point of the set's space in the world.
pub(super) fn in_world(chunk: &Chunk, point: Vec3) -> Vec3 {
    let p = point.extend(1.0);
    Vec3::new(
        chunk.world_x.dot(p),
        chunk.world_y.dot(p),
        chunk.world_z.dot(p),
    )
}

#[cfg(feature = "testing")]
fn distance_to_light(chunk: &Chunk, row: &ViewPlanes, sphere: Vec4) -> f32 {
    in_world(chunk, sphere.truncate()).distance(row.reach.truncate())
}

/// Whether the row keeps the instance.
#[must_use]
pub fn is_visible(chunk: &Chunk, row: &ViewPlanes, placed: Placed) -> bool {
    let sphere = tested_sphere(chunk, &row.band, placed.sphere);
    let share = kept_share(chunk, &row.band, placed.sphere);
    let in_view = row
        .planes()
        .into_iter()
        .all(|plane| plane_distance(plane, sphere) > 0.0);
    in_view
        && threshold_of(placed.index) < share
        && (row.reach.w < 0.0 || sphere_in_reach(chunk, row, sphere))
        && is_in_band(chunk, &row.band, placed)
}

fn sphere_in_reach(chunk: &Chunk, row: &ViewPlanes, sphere: Vec4) -> bool {
    let reach = row.reach.w + sphere.w * chunk.world_scale;
    in_world(chunk, sphere.truncate()).distance_squared(row.reach.truncate()) <= reach * reach
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
            let placed = load_sphere(chunk, instances, scales, i);
            for r in 0..chunk.row_count {
                let view = &chunk_views[(chunk.first_row + r) as usize];
                if is_visible(chunk, &view.planes, placed) {
                    let count = chunk.first_count + r * chunk.block_count + i / BLOCK;
                    words[(count * BLOCK_WORDS + i % BLOCK / 32) as usize] |= 1 << (i % 32);
                }
            }
        }
    }
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    use super::{super::thin::thinned_scale, *};

    /// What is drawn of an instance that is thinned out lies within the sphere that is tested.
    #[test]
    fn what_is_drawn_lies_in_what_is_tested() {
        let mut grown = 0;
        for i in 0..20_000u32 {
            let share = 2f32.powf(i as f32 / 1000.0 - 18.0);
            let aside = Vec3::new(0.3, -0.5, 0.7) * (i % 7) as f32 * 0.4;
            let chunk = Chunk {
                world_x: Vec4::X,
                world_y: Vec4::Y,
                world_z: Vec4::Z,
                sphere: aside.extend(0.6),
                ..Chunk::default()
            };
            // An instance of scale 2, whose origin is the set's, seen by an eye at distance 1.
            let sphere = chunk.sphere * 2.0;
            let band = DistanceBand {
                flags: BAND_IS_THINNED,
                eye: sphere.truncate() + Vec3::Y,
                thin: share / (sphere.w * sphere.w),
                ..DistanceBand::default()
            };
            let share = kept_share(&chunk, &band, sphere);
            let scale = thinned_scale(share, threshold_of(i));
            let drawn = sphere * scale;
            let tested = tested_sphere(&chunk, &band, sphere);
            let away = drawn.truncate().distance(tested.truncate());
            assert!(
                away + drawn.w <= tested.w * 1.000_01,
                "share {share}, scale {scale}: {drawn} in {tested}"
            );
            grown += u32::from(scale > 1.5);
        }
        assert!(grown > 300, "{grown} are larger");
    }
}
