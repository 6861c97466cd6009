//! Which orbs the camera sees at which field of view: the inverse of the culling's test.

use crate::{field::LayerSet, look};
use bevy::{camera::primitives::MeshAabb, math::ops, prelude::*};
use bevy_gpu_culling::instance::InstanceError;
use std::thread;

/// Tolerance for rounding: orbs that are this much further out count as seen.
const MARGIN: f32 = 1.001;

/// For each orb, layer after layer, the least tangent of half the vertical field of view at which
/// it is seen; infinite if it never is.
pub fn tangents(layers: &[LayerSet], eye: &Transform, aspect: f32) -> Vec<Vec<f32>> {
    let from_world = eye.to_matrix().inverse();
    layers
        .iter()
        .map(|LayerSet { layer, set }| {
            let mesh = look::mesh(layer.shape);
            // The plugin's sphere: around the mesh's box, rotated with the orb.
            let radius = mesh.get_aabb().map_or(0.0, |aabb| {
                Vec3::from(aabb.center).length() + aabb.half_extents.length()
            });
            let mut tangents = vec![0.0; set.len()];
            let part = tangents.len().div_ceil(cores()).max(1 << 14);
            thread::scope(|scope| {
                for (index, tangents) in tangents.chunks_mut(part).enumerate() {
                    scope.spawn(move || {
                        for (at, tangent) in (index * part..).zip(tangents) {
                            let place = from_world.transform_point3(set.packed()[at].position());
                            let scale = set.scales().map_or(1.0, |scales| scales[at]);
                            *tangent = needed(place, radius * scale, aspect);
                        }
                    });
                }
            });
            tangents
        })
        .collect()
}

/// The least tangent at which a sphere in the camera's space is seen. The camera looks along -z.
fn needed(place: Vec3, radius: f32, aspect: f32) -> f32 {
    let ahead = -place.z;
    if ahead + radius <= 0.0 {
        return f32::INFINITY;
    }
    // A plane that leans by an angle misses the sphere by |sideways| cos - ahead sin - radius.
    let angle = |sideways: f32| {
        let distance = sideways.hypot(ahead);
        let turned = ops::atan2(sideways.abs(), ahead);
        turned - ops::asin((radius / distance.max(radius)).min(1.0))
    };
    let tangent = |angle: f32| match angle {
        angle if angle <= 0.0 => 0.0,
        angle if angle >= 1.57 => f32::INFINITY,
        angle => ops::tan(angle),
    };
    tangent(angle(place.y)).max(tangent(angle(place.x)) / aspect)
}

/// The tangent at which `visible` orbs are seen, or all that are in front of the camera if they are
/// fewer.
pub fn tangent_for(tangents: &[Vec<f32>], visible: u32) -> f32 {
    let mut all: Vec<f32> = tangents.iter().flatten().copied().collect();
    all.retain(|tangent| tangent.is_finite());
    if all.is_empty() {
        return 1.0;
    }
    let at = (visible as usize).min(all.len()) - 1;
    let (_, tangent, _) = all.select_nth_unstable_by(at, f32::total_cmp);
    // A camera's angle is more than 0 and less than 180 degrees.
    tangent.clamp(1e-5, 1e3)
}

/// `keep` orbs: those that are seen at the tangent, then others, evenly chosen. `None` if more are
/// seen.
pub fn keep(
    layers: Vec<LayerSet>,
    tangents: &[Vec<f32>],
    tangent: f32,
    keep: u32,
) -> Option<Result<Vec<LayerSet>, InstanceError>> {
    let is_seen = |needed: f32| needed <= tangent * MARGIN;
    let all: u64 = layers.iter().map(|layer| layer.set.len() as u64).sum();
    let seen = tangents.iter().flatten().filter(|t| is_seen(**t)).count() as u64;
    let others = u64::from(keep).min(all).checked_sub(seen)?;
    let unseen = (all - seen).max(1);
    let mut met = 0u64;
    let kept = layers.into_iter().zip(tangents).map(|(layer, tangents)| {
        let mut takes = Vec::new();
        for (at, needed) in tangents.iter().enumerate() {
            if is_seen(*needed) {
                takes.push(at);
            } else {
                // Evenly spaced, by the remainder that wraps.
                if (met + 1) * others / unseen > met * others / unseen {
                    takes.push(at);
                }
                met += 1;
            }
        }
        layer.take(&takes)
    });
    Some(kept.collect())
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field;

    #[test]
    fn a_sphere_is_seen_from_the_angle_of_its_near_edge_on() {
        let at = |x: f32, y: f32, z: f32| needed(Vec3::new(x, y, z), 1.0, 2.0);
        assert_eq!(at(0.0, 0.0, -5.0), 0.0);
        assert_eq!(at(0.0, 0.0, 5.0), f32::INFINITY);
        // Its center is 45 degrees up, its edge a little lower. Sideways, the camera sees twice as
        // far.
        let up = at(0.0, 10.0, -10.0);
        assert!((0.8..1.0).contains(&up), "{up}");
        assert!((at(10.0, 0.0, -10.0) - up / 2.0).abs() < 1e-5);
        let plane = ops::atan(up);
        let miss = 10.0 * ops::cos(plane) - 10.0 * ops::sin(plane) - 1.0;
        assert!(miss.abs() < 1e-4, "{miss}");
    }

    #[test]
    fn what_is_seen_is_kept_first() -> Result<(), InstanceError> {
        let layers = field::generate(20_000, 4)?;
        let eye = look::start(field::radius(20_000));
        let tangents = tangents(&layers, &eye, 1.6);
        let tangent = tangent_for(&tangents, 500);
        let seen = |tangents: &[Vec<f32>]| {
            let all = tangents.iter().flatten();
            all.filter(|needed| **needed <= tangent).count()
        };
        assert_eq!(seen(&tangents), 500);
        assert!(keep(field::generate(20_000, 4)?, &tangents, tangent, 400).is_none());
        let few = keep(layers, &tangents, tangent, 2000).expect("500 are fewer")?;
        assert_eq!(few.iter().map(|layer| layer.set.len()).sum::<usize>(), 2000);
        assert_eq!(seen(&super::tangents(&few, &eye, 1.6)), 500);
        Ok(())
    }
}
