//! Spheres around a mesh in all poses.

use super::{joint::JointPacking, poses::AnimationPoses};
use crate::{
    cull::{BoundingSphere, layout::greatest_stretch},
    render::compression::plain_values,
};
use bevy::{mesh::VertexAttributeValues, prelude::*};

/// A sphere around a mesh in all poses, between them, and while one blends into another; `None` if
/// the mesh has no joints, or if its vertices are not on the CPU.
///
/// A vertex lies between the places to which its joints move it. So the sphere holds, for each
/// joint, a sphere around the vertices that the joint moves, in each pose. If a joint turns around
/// its pivot between two poses, that sphere has its center there: the pivot moves straight, and no
/// vertex gets farther from it.
pub(in crate::render) fn sphere_in_poses(
    mesh: &Mesh,
    poses: &AnimationPoses,
) -> Option<BoundingSphere> {
    let values = plain_values(mesh, Mesh::ATTRIBUTE_POSITION);
    let Some(VertexAttributeValues::Float32x3(points)) = values.as_deref() else {
        return None;
    };
    let joints = mesh.try_attribute(Mesh::ATTRIBUTE_JOINT_INDEX).ok()?;
    let VertexAttributeValues::Uint16x4(joints) = joints else {
        return None;
    };
    // Of weights that are not floats, each counts.
    let weights = match mesh.try_attribute(Mesh::ATTRIBUTE_JOINT_WEIGHT).ok()? {
        VertexAttributeValues::Float32x4(weights) => Some(weights.as_slice()),
        _ => None,
    };
    let last = poses.joint_count() - 1;
    let mut moved: Vec<Vec<Vec3>> = vec![Vec::new(); last + 1];
    // The sum of small integers is not quite 1.
    let mut excess = if weights.is_some() { 0.0f32 } else { 0.01 };
    for (at, (point, joints)) in points.iter().zip(joints).enumerate() {
        let weights = weights.and_then(|weights| weights.get(at)).copied();
        for (joint, weight) in joints.iter().zip(weights.unwrap_or([1.0; 4])) {
            if weight != 0.0 {
                moved[usize::from(*joint).min(last)].push(Vec3::from_array(*point));
            }
        }
        let sum: f32 = weights.unwrap_or([0.25; 4]).iter().sum();
        excess = excess.max((sum - 1.0).abs());
    }
    let spheres = moved.into_iter().enumerate().map(|(joint, points)| {
        if poses.packing() == JointPacking::Rows {
            return BoundingSphere::around_points(points.into_iter());
        }
        let center = poses.pivot(joint);
        let distances = points.iter().map(|point| point.distance(center));
        let radius = distances.reduce(f32::max)?;
        Some(BoundingSphere { center, radius })
    });
    let spheres: Vec<_> = spheres.collect();
    let mut corners: Option<(Vec3, Vec3)> = None;
    let mut all = Vec::new();
    for pose in 0..poses.pose_count() {
        for (joint, sphere) in (0..).zip(&spheres) {
            let Some(sphere) = sphere else { continue };
            let matrix = poses.matrix(poses.joint(pose, joint), joint);
            let placed = BoundingSphere {
                center: matrix.transform_point3(sphere.center),
                radius: sphere.radius * greatest_stretch(&matrix.matrix3),
            };
            let (low, high) = (placed.center - placed.radius, placed.center + placed.radius);
            corners = Some(corners.map_or((low, high), |(min, max)| (min.min(low), max.max(high))));
            all.push(placed);
        }
    }
    let (low, high) = corners?;
    let center = low.midpoint(high);
    let reach = |sphere: &BoundingSphere| center.distance(sphere.center) + sphere.radius;
    let radius = all.iter().map(reach).fold(0.0, f32::max);
    // Weights whose sum is not 1 stretch the figure from its origin.
    let radius = radius + excess * (radius + center.length());
    let sphere = BoundingSphere {
        center,
        radius: radius * (1.0 + 1e-5),
    };
    (sphere.radius.is_finite() && sphere.center.is_finite()).then_some(sphere)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::render::animation::PoseClip;
    use bevy::{asset::RenderAssetUsages, math::Affine3A, mesh::PrimitiveTopology};
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn no_vertex_leaves_the_sphere_in_any_pose() {
        let mut random = ChaCha8Rng::seed_from_u64(41);
        for case in 0..60 {
            let stretches = case % 3 == 0;
            let mut number = |from: f32, to: f32| random.random_range(from..to);
            let mut point = |far: f32| Vec3::from_array([0; 3].map(|_| number(-far, far)));
            let points: Vec<_> = (0..60).map(|_| point(2.0)).collect();
            let pivots: Vec<_> = (0..5).map(|_| point(2.0)).collect();
            let matrix = |point: &mut dyn FnMut(f32) -> Vec3| {
                let turn = Quat::from_scaled_axis(point(3.0));
                let scale = Vec3::ONE + point(0.5);
                let scale = if stretches {
                    scale
                } else {
                    Vec3::splat(scale.x)
                };
                Affine3A::from_scale_rotation_translation(scale, turn, point(4.0))
            };
            let pose = |point: &mut dyn FnMut(f32) -> Vec3| (0..5).map(|_| matrix(point)).collect();
            let clip = PoseClip {
                poses: (0..4).map(|_| pose(&mut point)).collect(),
                seconds: 1.0,
                loops: true,
            };
            // The last joint is the last that there is.
            let joints: Vec<_> = (0..60u16).map(|at| [at % 5, (at / 5) % 5, 9, 0]).collect();
            let weights: Vec<_> = (0..60)
                .map(|_| {
                    let share = number(0.0, 1.0);
                    let last = if case % 2 == 0 { 0.0 } else { 0.3 * share };
                    [share - last, 1.0 - share, last, 0.0]
                })
                .collect();
            let mut mesh = Mesh::new(PrimitiveTopology::PointList, RenderAssetUsages::default());
            mesh.insert_attribute(Mesh::ATTRIBUTE_POSITION, points.clone());
            let indices = VertexAttributeValues::Uint16x4(joints.clone());
            mesh.insert_attribute(Mesh::ATTRIBUTE_JOINT_INDEX, indices);
            mesh.insert_attribute(Mesh::ATTRIBUTE_JOINT_WEIGHT, weights.clone());
            let poses = AnimationPoses::around(pivots, [clip]).unwrap();
            let packing = poses.packing();
            assert_eq!(packing == JointPacking::Rows, stretches);
            let sphere = sphere_in_poses(&mesh, &poses).unwrap();
            let mut farthest = 0.0f32;
            for (a, b) in [(0, 1), (1, 2), (2, 3), (0, 3)] {
                for share in [0.0, 0.3, 0.5, 1.0] {
                    let matrix = |joint: u32| {
                        let [a, b] = [a, b].map(|pose| poses.joint(pose, joint));
                        poses.matrix(packing.mix(a, b, share), joint)
                    };
                    let matrices = [0, 1, 2, 3, 4].map(matrix);
                    for (at, point) in points.iter().enumerate() {
                        let parts = joints[at].iter().zip(weights[at]).map(|(joint, weight)| {
                            let matrix = matrices[usize::from(*joint).min(4)];
                            matrix.transform_point3(*point) * weight
                        });
                        let place: Vec3 = parts.sum();
                        farthest = farthest.max(place.distance(sphere.center));
                    }
                }
            }
            assert!(farthest <= sphere.radius, "{case}: {farthest} {sphere:?}");
            assert!(
                farthest > sphere.radius * 0.4,
                "{case}: {farthest} {sphere:?}"
            );
        }
    }

    #[test]
    fn a_mesh_without_joints_has_no_such_sphere() {
        let clip = PoseClip {
            poses: vec![vec![Affine3A::IDENTITY]],
            seconds: 0.0,
            loops: false,
        };
        let poses = AnimationPoses::new([clip]).unwrap();
        assert!(sphere_in_poses(&Cuboid::default().into(), &poses).is_none());
    }
}
