//! Meshes with joints, and what poses make of them.

use bevy::{
    math::{Affine3A, Mat3A, Vec3A},
    mesh::{MeshVertexAttribute, VertexAttributeValues},
    prelude::*,
};
use bevy_gpu_culling::{prelude::*, render::PoseClip};

/// What two joints make of a pole that is bent so far, in radians.
fn joints(bend: f32) -> Vec<Affine3A> {
    let turn = Quat::from_rotation_z(bend) * Quat::from_rotation_x(-0.4);
    let bent = Affine3A::from_rotation_translation(turn, Vec3::new(-0.1, 0.05, 0.1));
    vec![Affine3A::from_translation(Vec3::Y * 0.1), bent]
}

fn floats(mesh: &Mesh, attribute: MeshVertexAttribute) -> Vec<Vec3> {
    let Some(VertexAttributeValues::Float32x3(values)) = mesh.attribute(attribute) else {
        panic!("three floats")
    };
    values.iter().copied().map(Vec3::from).collect()
}

/// A pole with two joints, one at each end.
pub fn mesh() -> Mesh {
    let pole = Cylinder::new(0.12, 0.9).mesh().segments(4);
    let pole = pole.resolution(8).build();
    let points = floats(&pole, Mesh::ATTRIBUTE_POSITION);
    let weight = |point: &Vec3| {
        let upper = ((point.y + 0.45) / 0.9).clamp(0.0, 1.0);
        [1.0 - upper, upper, 0.0, 0.0]
    };
    let weights: Vec<_> = points.iter().map(weight).collect();
    let joints = VertexAttributeValues::Uint16x4(vec![[0, 1, 0, 0]; points.len()]);
    pole.with_inserted_attribute(Mesh::ATTRIBUTE_JOINT_INDEX, joints)
        .with_inserted_attribute(Mesh::ATTRIBUTE_JOINT_WEIGHT, weights)
}

/// A clip of the pole that does not move.
pub fn poses() -> AnimationPoses {
    let clip = PoseClip {
        poses: vec![joints(0.7); 3],
        seconds: 1.0,
        loops: true,
    };
    AnimationPoses::new([clip]).unwrap()
}

/// A clip of the pole that moves. It takes eight ticks of the animations' clock: at any moment,
/// instances that play it by themselves, each at another tick, are in one of eight poses.
pub fn moving() -> AnimationPoses {
    let clip = PoseClip {
        poses: [0.7, -0.2, 0.3, 0.7].map(joints).to_vec(),
        seconds: 8.0 / 1024.0,
        loops: true,
    };
    AnimationPoses::new([clip]).unwrap()
}

/// The matrix of each vertex of a mesh: the sum of the joints' by their weights.
fn matrices<'a>(mesh: &'a Mesh, pose: &'a [Affine3A]) -> impl Iterator<Item = Affine3A> + 'a {
    let values = |attribute| mesh.attribute(attribute).unwrap();
    let VertexAttributeValues::Uint16x4(joints) = values(Mesh::ATTRIBUTE_JOINT_INDEX) else {
        panic!("joints")
    };
    let VertexAttributeValues::Float32x4(weights) = values(Mesh::ATTRIBUTE_JOINT_WEIGHT) else {
        panic!("weights")
    };
    joints.iter().zip(weights).map(|(joints, weights)| {
        let zero = Affine3A {
            matrix3: Mat3A::ZERO,
            translation: Vec3A::ZERO,
        };
        let parts = joints.iter().zip(weights);
        parts.fold(zero, |sum, (joint, weight)| {
            let joint = pose[usize::from(*joint)];
            Affine3A {
                matrix3: sum.matrix3 + joint.matrix3 * *weight,
                translation: sum.translation + joint.translation * *weight,
            }
        })
    })
}

/// The places of a mesh's vertices in a pose.
pub fn places(mesh: &Mesh, pose: &[Affine3A]) -> Vec<Vec3> {
    let points = floats(mesh, Mesh::ATTRIBUTE_POSITION);
    let moved = points.iter().zip(matrices(mesh, pose));
    let moved = moved.map(|(point, matrix)| matrix.transform_point3(*point));
    moved.collect()
}

/// The mesh in a pose, without joints.
pub fn in_pose(mesh: &Mesh, pose: &[Affine3A]) -> Mesh {
    let normals = floats(mesh, Mesh::ATTRIBUTE_NORMAL);
    let turned = normals.iter().zip(matrices(mesh, pose));
    let turned = turned.map(|(normal, matrix)| {
        let normals = matrix.matrix3.inverse().transpose();
        (normals * *normal).normalize()
    });
    let turned: Vec<Vec3> = turned.collect();
    let mut made = mesh
        .clone()
        .with_inserted_attribute(Mesh::ATTRIBUTE_POSITION, places(mesh, pose))
        .with_inserted_attribute(Mesh::ATTRIBUTE_NORMAL, turned);
    made.remove_attribute(Mesh::ATTRIBUTE_JOINT_INDEX);
    made.remove_attribute(Mesh::ATTRIBUTE_JOINT_WEIGHT);
    made
}
