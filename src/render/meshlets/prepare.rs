//! Which requests of the frame are drawn by meshlets, and what their draws bind.

use super::extract::{BoundTo, ExtractedMeshlets, GpuMeshlets};
use crate::{
    cull::{
        Gpu,
        meshlets::{MeshletRequest, SeenFaces},
    },
    render::{
        bindings::{set_bind_group, set_layout},
        culler::GpuCuller,
        draw_slots::DrawSlots,
        materials::DrawnFaces,
        set_draws::SetDraws,
        views::ViewKind,
    },
};
use bevy::{
    core_pipeline::prepass::{DeferredPrepass, DepthPrepass, MotionVectorPrepass, NormalPrepass},
    ecs::system::SystemParam,
    log::warn_once,
    material::{MaterialProperties, RenderPhaseType},
    pbr::{
        DeferredVertexShader, MaterialVertexShader, MeshPipeline, PreparedMaterial,
        PrepassVertexShader, RenderMaterialInstances, RenderMeshInstances,
    },
    platform::collections::HashSet,
    prelude::*,
    render::{
        erased_render_asset::ErasedRenderAssets,
        render_resource::PipelineCache,
        renderer::{RenderDevice, RenderQueue},
        sync_world::MainEntity,
        view::{ExtractedView, RetainedViewEntity},
    },
};
use std::sync::Arc;

/// Views with a prepass.
type PrepassViews = Or<(
    With<DepthPrepass>,
    With<NormalPrepass>,
    With<MotionVectorPrepass>,
    With<DeferredPrepass>,
)>;

/// What Bevy knows of the entities' meshes and materials.
#[derive(SystemParam)]
pub(in crate::render) struct Looks<'w, 's> {
    meshes: Res<'w, RenderMeshInstances>,
    instances: Res<'w, RenderMaterialInstances>,
    materials: Res<'w, ErasedRenderAssets<PreparedMaterial>>,
    prepasses: Query<'w, 's, &'static ExtractedView, PrepassViews>,
}

impl Looks<'_, '_> {
    /// The material of an entity, if its meshlets can be told apart and its mesh is that of the meshlets.
    fn material(
        &self,
        entity: MainEntity,
        meshlets: &ExtractedMeshlets,
    ) -> Option<&Arc<MaterialProperties>> {
        if self.meshes.mesh_asset_id(entity)? != meshlets.mesh {
            return None;
        }
        let id = self.instances.instances.get(&entity)?.asset_id;
        let properties = &self.materials.get(id)?.properties;
        can_be_parted(properties).then_some(properties)
    }
}

/// Whether the parts of a mesh with this material look like the whole: not when the order of triangles matters, nor
/// when vertices may move out of the meshlets' bounds.
fn can_be_parted(properties: &MaterialProperties) -> bool {
    let ordered = matches!(
        properties.render_phase_type,
        RenderPhaseType::Transmissive | RenderPhaseType::Transparent
    );
    let own_vertices = properties.get_shader(MaterialVertexShader).is_some()
        || properties.get_shader(PrepassVertexShader).is_some()
        || properties.get_shader(DeferredVertexShader).is_some();
    !ordered && !own_vertices
}

/// Plans the meshlet stages of the frame, after the sets' own, and makes the bind groups of their draws.
#[expect(
    clippy::too_many_arguments,
    reason = "a system's parameters are its data"
)]
pub(in crate::render) fn prepare_meshlets(
    mut meshlets: ResMut<GpuMeshlets>,
    gpu: Res<GpuCuller>,
    draws: Res<SetDraws>,
    slots: Res<DrawSlots>,
    mut faces: ResMut<DrawnFaces>,
    looks: Looks,
    (cache, mesh_pipeline): (Res<PipelineCache>, Res<MeshPipeline>),
    (device, queue): (Res<RenderDevice>, Res<RenderQueue>),
) {
    faces.sweep();
    let meshlets = &mut *meshlets;
    let (Some(parts), Some(culler)) = (&mut meshlets.culler, &gpu.culler) else {
        return;
    };
    let prepasses: HashSet<RetainedViewEntity> = looks
        .prepasses
        .iter()
        .map(|view| view.retained_view_entity)
        .collect();
    let mut requests = Vec::new();
    for (index, request) in draws.frame.requests.iter().enumerate() {
        let Some(entity) = draws.entity(index) else {
            continue;
        };
        if draws.is_expanded(entity) {
            continue;
        }
        let keeps_all = gpu.unculled.contains(&entity);
        let Some(own) = meshlets.entities.get(&entity).filter(|_| !keeps_all) else {
            continue;
        };
        let Some(properties) = looks.material(entity, own) else {
            continue;
        };
        let drawn = faces.get(properties);
        let in_view = |view: &u32| {
            let Some((key, kind, _)) = draws.views.get(*view as usize) else {
                return SeenFaces::Both;
            };
            let prepass = drawn.prepass.unwrap_or_default();
            match kind {
                ViewKind::Camera if !prepasses.contains(key) => drawn.main.unwrap_or_default(),
                ViewKind::Camera if drawn.main == Some(prepass) => prepass,
                ViewKind::Camera => SeenFaces::Both,
                _ => prepass,
            }
        };
        requests.push(MeshletRequest {
            request: index,
            mesh: own.id,
            faces: request.views.iter().map(in_view).collect(),
        });
    }
    let queue: &wgpu::Queue = &queue;
    parts.prepare(
        Gpu::new(device.wgpu_device(), queue),
        culler,
        &draws.frame,
        &requests,
    );

    let Some(slot_buffer) = slots.buffer.as_ref().filter(|_| parts.has_gpu_work()) else {
        meshlets.bind_groups.clear();
        return;
    };
    let layout = cache.get_bind_group_layout(&set_layout(&mesh_pipeline.mesh_layouts.model_only));
    let mut live = Vec::new();
    for batch in 0..culler.plan().batches.len() {
        let (Some((pairs, pairs_version)), Some(version), Some(mut buffers)) = (
            parts.pairs(batch),
            culler.batch_version(batch),
            culler.batch_buffers(batch),
        ) else {
            continue;
        };
        let key = version.key;
        live.push(key);
        let bound: BoundTo = (pairs_version, version, slot_buffer.id());
        let known = meshlets.bind_groups.get(&key);
        if known.is_some_and(|(made_for, _)| *made_for == bound) {
            continue;
        }
        buffers[0] = pairs;
        match set_bind_group(&device, &layout, slot_buffer, &buffers) {
            Ok(bind_group) => {
                meshlets.bind_groups.insert(key, (bound, bind_group));
            }
            Err(error) => {
                warn_once!("meshes of meshlets are drawn whole: {error}");
                meshlets.bind_groups.remove(&key);
            }
        }
    }
    meshlets.bind_groups.retain(|key, _| live.contains(key));
}
