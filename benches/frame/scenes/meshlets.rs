//! Detailed spheres in a cube around the camera, which sets draw by meshlets.

use crate::case::{Case, Peer};
use crate::cli::Lods;
use bevy::prelude::*;
use bevy_gpu_culling::{
    meshlet::MeshletError,
    prelude::{LodSettings, MeshletMesh, MeshletSettings},
};

use super::cube::RADIUS;

/// Cuts of each edge of the icosahedron: 20 * 22^2 triangles.
const CUTS: u32 = 21;

/// A sphere of 9,680 triangles.
pub fn sphere() -> Mesh {
    let sphere = Sphere::new(RADIUS).mesh();
    match sphere.ico(CUTS) {
        Ok(mesh) => mesh,
        // Only a sphere with more vertices than a `u32` counts is refused.
        Err(_) => sphere.uv(88, 55),
    }
}

/// The sphere in meshlets, with levels of detail if the case has them; `None` for entities.
pub fn meshlets(case: &Case) -> Result<Option<MeshletMesh>, MeshletError> {
    if case.peer == Peer::Bevy {
        return Ok(None);
    }
    let settings = MeshletSettings {
        lods: (case.lods == Some(Lods::On)).then(LodSettings::default),
        ..default()
    };
    MeshletMesh::from_mesh(&sphere(), &settings).map(Some)
}
