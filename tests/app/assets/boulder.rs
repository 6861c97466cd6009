//! A boulder of 5,120 triangles with levels of detail: a sphere with planes cut off, weathered.

use super::shape::{noise, random, sphere};
use bevy::{
    asset::RenderAssetUsages,
    math::Vec3,
    mesh::{Indices, Mesh, PrimitiveTopology},
};
use bevy_gpu_culling::meshlet::{LodSettings, MeshletMesh, MeshletSettings};

/// Cuts of an icosahedron's triangles: 20 * 4^4 triangles.
const CUTS: u32 = 4;
const PLANES: u32 = 16;

/// The file.
pub fn file() -> Vec<u8> {
    let (points, triangles) = sphere(CUTS);
    let points: Vec<Vec3> = points.into_iter().map(surface).collect();
    // A vertex's normal is the mean of the triangles around it, weighted by area.
    let mut normals = vec![Vec3::ZERO; points.len()];
    for corners in &triangles {
        let [a, b, c] = corners.map(|at| points[at]);
        let normal = (b - a).cross(c - a);
        for corner in corners {
            normals[*corner] += normal;
        }
    }
    let normals: Vec<_> = normals.into_iter().map(Vec3::normalize).collect();
    let indices = triangles.as_flattened().iter().map(|at| *at as u32);
    let mesh = Mesh::new(
        PrimitiveTopology::TriangleList,
        RenderAssetUsages::default(),
    )
    .with_inserted_attribute(Mesh::ATTRIBUTE_POSITION, points)
    .with_inserted_attribute(Mesh::ATTRIBUTE_NORMAL, normals)
    .with_inserted_indices(Indices::U32(indices.collect()));
    let settings = MeshletSettings {
        lods: Some(LodSettings::default()),
        ..MeshletSettings::default()
    };
    let meshlets = MeshletMesh::from_mesh(&mesh, &settings).unwrap();
    meshlets.to_bytes().unwrap()
}

/// The point of the boulder's surface in a direction from its center.
fn surface(direction: Vec3) -> Vec3 {
    let mut radius = 1.0f32;
    for plane in 0..PLANES {
        let number = |use_of_it| random(plane * 4 + use_of_it + 1000) * 2.0 - 1.0;
        let normal = Vec3::new(number(0), number(1), number(2)).normalize();
        let distance = 0.78 + 0.12 * number(3);
        let cosine = normal.dot(direction);
        if cosine > 0.0 {
            radius = radius.min(distance / cosine);
        }
    }
    let rough = [(2.0, 0.05), (5.0, 0.025), (11.0, 0.012)];
    for (octave, (frequency, height)) in (0..).zip(rough) {
        radius += height * noise(direction * frequency, octave);
    }
    direction * radius * Vec3::new(1.15, 0.8, 0.95)
}
