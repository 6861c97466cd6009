//! From the main world: the entities that have meshlets, and the bounds of new meshlets.

use super::{
    component::{MeshletMesh3d, MeshletMeshes},
    culler::{ExtractedMeshlets, GpuMeshlets, KnownMeshlets, MeshletRoom},
};
use crate::{
    cull::meshlets::MeshletMeshId,
    meshlet::{Meshlet, MeshletMesh},
    render::{
        components::CullingRadius,
        cpu_times::{CpuClock, CpuStage},
        culler::GpuCuller,
        lods::ImpostorOf,
        names::AssetNames,
        offset::{InstanceOffset, bits_of, stretch_of},
        settings::GpuCullingSettings,
    },
};
use bevy::{
    math::Affine3A,
    prelude::*,
    render::{Extract, renderer::RenderDevice, sync_world::MainEntity},
};

/// What extraction reads of an entity.
type MeshletEntity = (
    Entity,
    &'static MeshletMesh3d,
    Option<&'static InstanceOffset>,
    Option<&'static ImpostorOf>,
);

/// Notes the entities with meshlets, and uploads the bounds of meshes that are new.
#[expect(
    clippy::too_many_arguments,
    reason = "a system's parameters are its data"
)]
pub(in crate::render) fn extract_meshlets(
    mut gpu: ResMut<GpuMeshlets>,
    culling: Res<GpuCuller>,
    settings: Res<GpuCullingSettings>,
    entities: Extract<Query<MeshletEntity, Without<CullingRadius>>>,
    offsets: Extract<Query<&InstanceOffset>>,
    assets: Extract<Res<Assets<MeshletMesh>>>,
    made: Extract<Res<MeshletMeshes>>,
    device: Res<RenderDevice>,
    room: Res<MeshletRoom>,
    server: Option<Res<AssetServer>>,
    clock: Res<CpuClock>,
) {
    let _timer = clock.start(CpuStage::Extract);
    let gpu = &mut *gpu;
    gpu.entities.clear();
    if entities.is_empty() && gpu.known.is_empty() {
        return;
    }
    gpu.follow(&culling, &settings, &device, room.0);
    let Some(culler) = &mut gpu.culler else {
        return;
    };
    for known in gpu.known.values_mut() {
        known.is_used = false;
    }
    for (entity, meshlets, offset, impostor_of) in &entities {
        let asset = meshlets.id();
        let inherited = || offsets.get(impostor_of?.0).ok();
        let offset = offset.or_else(inherited);
        let offset = offset.and_then(InstanceOffset::checked);
        let key = (asset, offset.as_ref().map(bits_of));
        let (Some(meshlets), Some(made)) = (assets.get(asset), made.get(asset)) else {
            continue;
        };
        let known = gpu.known.entry(key).or_insert_with(|| {
            gpu.last_id += 1;
            KnownMeshlets {
                id: MeshletMeshId(gpu.last_id),
                version: 0,
                is_refused: false,
                is_used: true,
            }
        });
        known.is_used = true;
        if known.version != made.version {
            known.version = made.version;
            let was_refused = known.is_refused;
            let levels = 0..meshlets.levels().len();
            let levels: Vec<_> = levels.map(|level| meshlets.level_meshlets(level)).collect();
            let result = match &offset {
                None => culler.insert_mesh(known.id, &levels),
                Some(offset) => {
                    let levels: Vec<_> = levels.iter().map(|level| placed(level, offset)).collect();
                    let levels: Vec<_> = levels.iter().map(Vec::as_slice).collect();
                    culler.insert_mesh(known.id, &levels)
                }
            };
            known.is_refused = result.is_err();
            if let Err(error) = result
                && !was_refused
            {
                let name = AssetNames(server.as_deref()).of(asset);
                error!("MeshletMesh3d on {entity}: {name} is drawn whole: {error}");
            }
        }
        if !known.is_refused {
            let extracted = ExtractedMeshlets {
                id: known.id,
                mesh: made.mesh.id(),
            };
            gpu.entities.insert(MainEntity::from(entity), extracted);
        }
    }
    let mut has_room = false;
    gpu.known.retain(|(asset, offset), known| {
        // An offset may change in every frame.
        let lives = assets.contains(*asset) && (offset.is_none() || known.is_used);
        if !lives {
            culler.remove_mesh(known.id);
            has_room = true;
        }
        lives
    });
    if has_room {
        // What did not fit may fit now.
        let refused = gpu.known.values_mut().filter(|known| known.is_refused);
        refused.for_each(|known| known.version = 0);
    }
}

/// The meshlets of a level behind an offset.
fn placed(level: &[Meshlet], offset: &Affine3A) -> Vec<Meshlet> {
    let stretch = stretch_of(Some(offset));
    level
        .iter()
        .map(|meshlet| meshlet.placed(offset, stretch))
        .collect()
}
