//! A mesh with joints, a pose, and the mesh in the pose.

use bevy::{
    math::{Affine3A, Mat3A},
    mesh::VertexAttributeValues,
    prelude::*,
};
use bevy_gpu_culling::{prelude::*, render::PoseClip};

/// What two joints make of a pole.
fn joints() -> Vec<Affine3A> {
    let turn = Quat::from_rotation_z(0.7) * Quat::from_rotation_x(-0.4);
    let bent = Affine3A::from_rotation_translation(turn, Vec3::new(-0.1, 0.05, 0.1));
    vec![Affine3A::from_translation(Vec3::Y * 0.1), bent]
}

fn floats(mesh: &Mesh, attribute: bevy::mesh::MeshVertexAttribute) -> Vec<Vec3> {
    let Some(VertexAttributeValues::Float32x3(values)) = mesh.attribute(attribute) else {
        panic!("three floats")
    };
    values.iter().copied().map(Vec3::from).collect()
}

/// The share of the upper joint.
fn share(point: Vec3) -> f32 {
    ((point.y + 0.45) / 0.9).clamp(0.0, 1.0)
}

fn pole() -> Mesh {
    Cylinder::new(0.12, 0.9)
        .mesh()
        .segments(4)
        .resolution(8)
        .build()
}

/// The pole with joints.
pub fn mesh() -> Mesh {
    let pole = pole();
    let points = floats(&pole, Mesh::ATTRIBUTE_POSITION);
    let weight = |point: &Vec3| [1.0 - share(*point), share(*point), 0.0, 0.0];
    let weights: Vec<_> = points.iter().map(weight).collect();
    let joints = VertexAttributeValues::Uint16x4(vec![[0, 1, 0, 0]; points.len()]);
    pole.with_inserted_attribute(Mesh::ATTRIBUTE_JOINT_INDEX, joints)
        .with_inserted_attribute(Mesh::ATTRIBUTE_JOINT_WEIGHT, weights)
}

/// A clip that does not move.
pub fn poses() -> AnimationPoses {
    let clip = PoseClip {
        poses: vec![joints(); 3],
        seconds: 1.0,
        loops: true,
    };
    AnimationPoses::new([clip]).unwrap()
}

/// The pole in the pose.
pub fn posed() -> Mesh {
    let mut pole = pole();
    let points = floats(&pole, Mesh::ATTRIBUTE_POSITION);
    let normals = floats(&pole, Mesh::ATTRIBUTE_NORMAL);
    let [low, high] = joints()[..] else {
        panic!("two joints")
    };
    let matrix = |point: &Vec3| {
        let (a, b) = (1.0 - share(*point), share(*point));
        Mat3A::from_cols(
            low.matrix3.x_axis * a + high.matrix3.x_axis * b,
            low.matrix3.y_axis * a + high.matrix3.y_axis * b,
            low.matrix3.z_axis * a + high.matrix3.z_axis * b,
        )
    };
    let place = |point: &Vec3| {
        let (a, b) = (low.transform_point3(*point), high.transform_point3(*point));
        a.lerp(b, share(*point)).to_array()
    };
    let placed: Vec<_> = points.iter().map(place).collect();
    let turned = points.iter().zip(normals).map(|(point, normal)| {
        let normals = matrix(point).inverse().transpose();
        (normals * normal).normalize().to_array()
    });
    let turned: Vec<_> = turned.collect();
    pole.insert_attribute(Mesh::ATTRIBUTE_POSITION, placed);
    pole.insert_attribute(Mesh::ATTRIBUTE_NORMAL, turned);
    pole
}
