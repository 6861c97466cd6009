//! What the sets of a random app are made of, and what its GPU writes.

use crate::{
    red,
    scene::{How, Stage, posed},
};
use bevy::{
    prelude::*,
    render::{Extract, renderer::RenderQueue},
};
use bevy_gpu_culling::{prelude::*, render::InstanceBuffers};

/// Number of meshes, and of paints, that sets have at random.
const RANDOM: u8 = 3;

/// Index of the mesh with joints, which random sets do not have.
pub const POSED: usize = RANDOM as usize;

/// Index of the mesh of coarser levels.
pub const COARSE: usize = POSED + 1;

/// Indices of a mesh and of a paint.
#[derive(Clone, Copy)]
pub struct Look {
    pub mesh: usize,
    pub paint: usize,
}

impl Look {
    pub fn new(mesh: u8, paint: u8) -> Self {
        let [mesh, paint] = [mesh, paint].map(|number| usize::from(number % RANDOM));
        Self { mesh, paint }
    }
}

/// What both stages have before anything happens.
pub struct Props {
    meshes: Vec<Handle<Mesh>>,
    meshlets: Vec<Handle<MeshletMesh>>,
    /// `None` in the app of the entities, which has no plugin.
    pub poses: Option<Handle<AnimationPoses>>,
    paints: Vec<MeshMaterial3d<StandardMaterial>>,
}

impl Props {
    pub fn new(stage: &mut Stage) -> Self {
        let has_plugin = stage.how != How::Entities;
        let meshes = [
            Mesh::from(Cuboid::new(0.5, 0.3, 0.4)),
            Mesh::from(Sphere::new(0.25)),
            Mesh::from(Cone::new(0.25, 0.6)),
            posed::mesh(),
            Mesh::from(Cuboid::from_length(0.3)),
        ];
        let paint = |color, alpha_mode| StandardMaterial {
            base_color: color,
            alpha_mode,
            ..red()
        };
        let paints = [
            paint(Color::srgb(0.9, 0.3, 0.2), AlphaMode::Opaque),
            paint(Color::srgb(0.3, 0.7, 0.3), AlphaMode::Opaque),
            paint(Color::srgba(0.3, 0.4, 0.9, 0.8), AlphaMode::Mask(0.5)),
        ];
        let settings = MeshletSettings {
            lods: Some(LodSettings::default()),
            ..default()
        };
        let cut = meshes.iter().take(POSED).filter(|_| has_plugin);
        let cut = cut.map(|mesh| stage.add(MeshletMesh::from_mesh(mesh, &settings).unwrap()));
        Self {
            meshlets: cut.collect(),
            poses: has_plugin.then(|| stage.add(posed::moving())),
            meshes: meshes.into_iter().map(|mesh| stage.mesh(mesh)).collect(),
            paints: paints
                .into_iter()
                .map(|paint| stage.standard(paint))
                .collect(),
        }
    }

    pub fn mesh(&self, mesh: usize) -> Mesh3d {
        Mesh3d(self.meshes[mesh].clone())
    }

    pub fn meshlets(&self, mesh: usize) -> MeshletMesh3d {
        MeshletMesh3d(self.meshlets[mesh].clone())
    }

    pub fn paint(&self, paint: usize) -> MeshMaterial3d<StandardMaterial> {
        self.paints[paint].clone()
    }
}

/// What the GPU writes in each frame, into which sets.
#[derive(Resource, Clone, Default)]
pub struct Written(pub Vec<(AssetId<InstanceSet>, InstanceSet)>);

pub fn extract_written(mut written: ResMut<Written>, from: Extract<Res<Written>>) {
    written.clone_from(&from);
}

pub fn write(written: Res<Written>, buffers: Res<InstanceBuffers>, queue: Res<RenderQueue>) {
    for (id, set) in &written.0 {
        if let Some(buffer) = buffers.get(*id) {
            let instances = &buffer.regions()[0].instances;
            queue.write_buffer(instances, 0, bytemuck::cast_slice(set.packed()));
        }
    }
}
