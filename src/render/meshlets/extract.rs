//! From the main world: which entities have meshlets, and the meshlets' bounds on their way to the GPU.

use super::component::{MeshletMesh3d, MeshletMeshes};
use crate::{
    cull::{
        BatchKey, BatchVersion, Culler, DrawPart, Version,
        meshlets::{MeshletCuller, MeshletDraw, MeshletMeshId, MeshletOptions},
    },
    meshlet::MeshletMesh,
    render::{
        components::CullingRadius, culler::GpuCuller, names::AssetNames,
        settings::GpuCullingSettings,
    },
};
use bevy::{
    platform::collections::HashMap,
    prelude::*,
    render::{
        Extract,
        render_resource::{BindGroup, BufferId},
        renderer::RenderDevice,
        sync_world::{MainEntity, MainEntityHashMap},
    },
};

/// Render world: how much room the meshlet stages start with. For tests, which make it too small.
#[doc(hidden)]
#[derive(Resource, Default)]
pub struct MeshletRoom(pub MeshletOptions);

/// The meshlet stages in the render world.
#[derive(Resource, Default)]
pub(in crate::render) struct GpuMeshlets {
    /// `None` on the `Cpu` tier, and while no entity has meshlets.
    pub culler: Option<MeshletCuller>,
    /// The culler that it follows.
    made_for: u64,
    known: HashMap<AssetId<MeshletMesh>, Known>,
    next_id: u64,
    /// Entities that may be drawn by meshlets this frame.
    pub entities: MainEntityHashMap<ExtractedMeshlets>,
    /// By batch: bind group, and what it was made for.
    pub bind_groups: HashMap<BatchKey, (BoundTo, BindGroup)>,
}

impl GpuMeshlets {
    /// The draws of a part and their bind group, when it is drawn by meshlets.
    pub fn draw<'a>(
        &'a self,
        culler: &'a Culler,
        part: &DrawPart,
    ) -> Option<(MeshletDraw<'a>, &'a BindGroup)> {
        let draw = self.culler.as_ref()?.draw(culler, part)?;
        let version = culler.batch_version(part.batch)?;
        let (_, bind_group) = self.bind_groups.get(&version.key)?;
        Some((draw, bind_group))
    }
}

/// Versions of the buffers that a bind group was made for.
pub(in crate::render) type BoundTo = (Version, BatchVersion, BufferId);

/// What the GPU has of an asset.
struct Known {
    id: MeshletMeshId,
    /// Of the mesh that was made.
    version: u64,
    refused: bool,
}

/// One entity's meshlets.
#[derive(Clone, Copy)]
pub(in crate::render) struct ExtractedMeshlets {
    pub id: MeshletMeshId,
    /// The mesh that the entity must have: another one has other triangles.
    pub mesh: AssetId<Mesh>,
}

/// What extraction reads of an entity.
type MeshletEntity = (Entity, &'static MeshletMesh3d);

/// Notes the entities with meshlets, and uploads the bounds of meshes that are new.
pub(in crate::render) fn extract_meshlets(
    mut gpu: ResMut<GpuMeshlets>,
    (sets, settings): (Res<GpuCuller>, Res<GpuCullingSettings>),
    entities: Extract<Query<MeshletEntity, Without<CullingRadius>>>,
    assets: Extract<Res<Assets<MeshletMesh>>>,
    made: Extract<Res<MeshletMeshes>>,
    (device, room): (Res<RenderDevice>, Res<MeshletRoom>),
    server: Option<Res<AssetServer>>,
) {
    let gpu = &mut *gpu;
    gpu.entities.clear();
    if entities.is_empty() && gpu.known.is_empty() {
        return;
    }
    if gpu.made_for != sets.made {
        *gpu = GpuMeshlets {
            made_for: sets.made,
            next_id: gpu.next_id,
            culler: make_culler(&sets, &settings, &device, room.0),
            ..GpuMeshlets::default()
        };
    }
    let Some(culler) = &mut gpu.culler else {
        return;
    };
    for (entity, meshlets) in &entities {
        let asset = meshlets.id();
        let (Some(mesh), Some((mesh_id, version))) = (assets.get(asset), made.get(asset)) else {
            continue;
        };
        let known = gpu.known.entry(asset).or_insert_with(|| {
            gpu.next_id += 1;
            Known {
                id: MeshletMeshId(gpu.next_id),
                version: 0,
                refused: false,
            }
        });
        if known.version != version {
            known.version = version;
            let result = culler.insert_mesh(known.id, mesh.meshlets());
            known.refused = result.is_err();
            if let Err(error) = result {
                let name = AssetNames(server.as_deref()).of(asset);
                error!("MeshletMesh3d on {entity}: {name} is drawn whole: {error}");
            }
        }
        if !known.refused {
            gpu.entities.insert(
                MainEntity::from(entity),
                ExtractedMeshlets {
                    id: known.id,
                    mesh: mesh_id,
                },
            );
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

fn make_culler(
    sets: &GpuCuller,
    settings: &GpuCullingSettings,
    device: &RenderDevice,
    room: MeshletOptions,
) -> Option<MeshletCuller> {
    let options = MeshletOptions {
        shader_checks: settings.shader_checks,
        ..room
    };
    match MeshletCuller::new(device.wgpu_device(), sets.tier()?, options) {
        Ok(Some(culler)) => Some(culler),
        Ok(None) => {
            info!("the tier \"cpu\" draws meshes of meshlets whole");
            None
        }
        Err(error) => {
            error!("meshes of meshlets are drawn whole: {error}");
            None
        }
    }
}
