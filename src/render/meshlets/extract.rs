//! From the main world: the entities that have meshlets, and the bounds of new meshlets.

use super::{
    component::{MeshletMesh3d, MeshletMeshes},
    culler::{ExtractedMeshlets, GpuMeshlets, KnownMeshlets, MeshletRoom},
};
use crate::{
    cull::meshlets::MeshletMeshId,
    meshlet::MeshletMesh,
    render::{
        components::CullingRadius, culler::GpuCuller, names::AssetNames,
        settings::GpuCullingSettings,
    },
};
use bevy::{
    prelude::*,
    render::{Extract, renderer::RenderDevice, sync_world::MainEntity},
};

/// What extraction reads of an entity.
type MeshletEntity = (Entity, &'static MeshletMesh3d);

/// Notes the entities with meshlets, and uploads the bounds of meshes that are new.
#[expect(
    clippy::too_many_arguments,
    reason = "a system's parameters are its data"
)]
pub(in crate::render) fn extract_meshlets(
    mut gpu: ResMut<GpuMeshlets>,
    sets: Res<GpuCuller>,
    settings: Res<GpuCullingSettings>,
    entities: Extract<Query<MeshletEntity, Without<CullingRadius>>>,
    assets: Extract<Res<Assets<MeshletMesh>>>,
    made: Extract<Res<MeshletMeshes>>,
    device: Res<RenderDevice>,
    room: Res<MeshletRoom>,
    server: Option<Res<AssetServer>>,
) {
    let gpu = &mut *gpu;
    gpu.entities.clear();
    if entities.is_empty() && gpu.known.is_empty() {
        return;
    }
    gpu.follow(&sets, &settings, &device, room.0);
    let Some(culler) = &mut gpu.culler else {
        return;
    };
    for (entity, meshlets) in &entities {
        let asset = meshlets.id();
        let (Some(meshlets), Some(made)) = (assets.get(asset), made.get(asset)) else {
            continue;
        };
        let known = gpu.known.entry(asset).or_insert_with(|| {
            gpu.last_id += 1;
            KnownMeshlets {
                id: MeshletMeshId(gpu.last_id),
                version: 0,
                refused: false,
            }
        });
        if known.version != made.version {
            known.version = made.version;
            let levels = 0..meshlets.levels().len();
            let levels: Vec<_> = levels.map(|level| meshlets.level_meshlets(level)).collect();
            let result = culler.insert_mesh(known.id, &levels);
            known.refused = result.is_err();
            if let Err(error) = result {
                let name = AssetNames(server.as_deref()).of(asset);
                error!("MeshletMesh3d on {entity}: {name} is drawn whole: {error}");
            }
        }
        if !known.refused {
            let extracted = ExtractedMeshlets {
                id: known.id,
                mesh: made.mesh.id(),
            };
            gpu.entities.insert(MainEntity::from(entity), extracted);
        }
    }
    gpu.known.retain(|asset, known| {
        let lives = assets.contains(*asset);
        if !lives {
            culler.remove_mesh(known.id);
        }
        lives
    });
}
