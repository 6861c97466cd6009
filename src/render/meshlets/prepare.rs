//! Which requests of the frame are drawn by meshlets, and what their draws bind.

use super::culler::{ExtractedMeshlets, GpuMeshlets, MeshletBinding, MeshletVersion};
use crate::{
    cull::{
        Culler,
        meshlets::{MeshletRequest, SeenFaces},
    },
    render::{
        bindings::{DrawVersion, set_bind_group, set_layout},
        cpu_times::{CpuClock, CpuStage},
        culler::GpuCuller,
        draw_slots::DrawSlots,
        gpu::RenderGpu,
        materials::{DrawnFaces, PassFaces, is_blended},
        occlusion::{DrawnLists, HidingWay},
        set_draws::SetDraws,
        settings::GpuCullingSettings,
        views::{FrameView, ViewKind, view_at},
    },
};
use bevy::{
    core_pipeline::prepass::{DeferredPrepass, DepthPrepass, MotionVectorPrepass, NormalPrepass},
    ecs::system::SystemParam,
    log::warn_once,
    material::MaterialProperties,
    pbr::{
        DeferredVertexShader, MaterialVertexShader, MeshPipeline, PreparedMaterial,
        PrepassVertexShader, RenderMaterialInstances, RenderMeshInstances,
    },
    prelude::*,
    render::{
        erased_render_asset::ErasedRenderAssets,
        render_resource::{BindGroupLayout, PipelineCache},
        renderer::RenderDevice,
        sync_world::MainEntity,
        view::ExtractedView,
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

/// Bevy's data of the entities' meshes and materials.
#[derive(SystemParam)]
pub(in crate::render) struct Looks<'w, 's> {
    meshes: Res<'w, RenderMeshInstances>,
    instances: Res<'w, RenderMaterialInstances>,
    materials: Res<'w, ErasedRenderAssets<PreparedMaterial>>,
    prepasses: Query<'w, 's, &'static ExtractedView, PrepassViews>,
}

impl Looks<'_, '_> {
    /// The material of an entity, if its meshlets can be drawn apart and it has the meshlets' mesh.
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

/// Whether the parts of a mesh with this material look like the whole. They do not if the order of
/// triangles matters, or if vertices may move out of the meshlets' bounds.
fn can_be_parted(properties: &MaterialProperties) -> bool {
    let own_vertices = properties.get_shader(MaterialVertexShader).is_some()
        || properties.get_shader(PrepassVertexShader).is_some()
        || properties.get_shader(DeferredVertexShader).is_some();
    !is_blended(properties) && !own_vertices
}

/// Plans the meshlet stages of the frame, after the sets' own, and makes the bind groups of their
/// draws.
#[expect(
    clippy::too_many_arguments,
    reason = "a system's parameters are its data"
)]
pub(in crate::render) fn prepare_meshlets(
    mut meshlets: ResMut<GpuMeshlets>,
    culling: Res<GpuCuller>,
    settings: Res<GpuCullingSettings>,
    (draws, lists): (Res<SetDraws>, Res<DrawnLists>),
    slots: Res<DrawSlots>,
    mut faces: ResMut<DrawnFaces>,
    looks: Looks,
    cache: Res<PipelineCache>,
    mesh_pipeline: Res<MeshPipeline>,
    gpu: RenderGpu,
    clock: Res<CpuClock>,
) {
    let _timer = clock.start(CpuStage::Prepare);
    faces.sweep();
    let meshlets = &mut *meshlets;
    let Some(culler) = &culling.culler else {
        return;
    };
    if meshlets.culler.is_none() {
        return;
    }
    find_requests(meshlets, &culling, (&draws, &lists), &faces, &looks);
    if let Some(parts) = &mut meshlets.culler {
        parts.set_expansion(settings.expansion);
        parts.prepare(gpu.wgpu(), culler, &draws.frame, &meshlets.requests);
    }
    let layout = || {
        let layout = set_layout(&mesh_pipeline.mesh_layouts.model_only);
        cache.get_bind_group_layout(&layout)
    };
    bind_batches(meshlets, culler, &slots, &gpu.device, layout);
}

/// Finds the requests of the frame that are drawn by meshlets. Each takes the lists of the one that
/// was in its place.
fn find_requests(
    meshlets: &mut GpuMeshlets,
    culling: &GpuCuller,
    (draws, lists): (&SetDraws, &DrawnLists),
    faces: &DrawnFaces,
    looks: &Looks,
) {
    let GpuMeshlets {
        entities,
        requests,
        prepasses,
        ..
    } = meshlets;
    let with_prepass = looks.prepasses.iter();
    prepasses.clear();
    prepasses.extend(with_prepass.map(|view| view.retained_view_entity));
    let mut count = 0;
    for drawn in &draws.drawn {
        let entity = drawn.entity;
        let request = &draws.frame.requests[drawn.of.request];
        if draws.is_expanded(entity) || culling.extraction.lists.unculled.contains(&entity) {
            continue;
        }
        let Some(extracted) = entities.get(&entity) else {
            continue;
        };
        let Some(properties) = looks.material(entity, extracted) else {
            continue;
        };
        let pass_faces = faces.get(properties);
        let views = request.views.iter();
        let seen = views.map(|view| match view_at(&draws.views, *view) {
            Some(view) => seen_in(view, pass_faces, prepasses.contains(&view.key)),
            None => SeenFaces::Both,
        });
        let views = request.views.iter();
        let draws_visible = views.map(|view| {
            let view = view_at(&draws.views, *view);
            view.is_some_and(|view| lists.view(&view.key, HidingWay::Prepass).is_some())
        });
        if requests.len() == count {
            requests.push(MeshletRequest {
                request: drawn.of.request,
                mesh: extracted.id,
                faces: Vec::new(),
                draws_visible: Vec::new(),
            });
        }
        let asked = &mut requests[count];
        (asked.request, asked.mesh) = (drawn.of.request, extracted.id);
        asked.faces.clear();
        asked.faces.extend(seen);
        asked.draws_visible.clear();
        asked.draws_visible.extend(draws_visible);
        count += 1;
    }
    requests.truncate(count);
}

/// The faces that a view draws. The passes of a camera with a prepass must draw the same faces.
fn seen_in(view: &FrameView, drawn: PassFaces, has_prepass: bool) -> SeenFaces {
    let prepass = drawn.prepass.unwrap_or_default();
    match view.kind {
        ViewKind::Camera if !has_prepass => drawn.main.unwrap_or_default(),
        ViewKind::Camera if drawn.main == Some(prepass) => prepass,
        ViewKind::Camera => SeenFaces::Both,
        _ => prepass,
    }
}

/// Makes the bind groups of the meshlet draws, unless those that there are still serve.
fn bind_batches(
    meshlets: &mut GpuMeshlets,
    culler: &Culler,
    slots: &DrawSlots,
    device: &RenderDevice,
    layout: impl Fn() -> BindGroupLayout,
) {
    let parts = meshlets.culler.as_ref();
    let (Some(parts), Some(at_offsets)) =
        (parts.filter(|parts| parts.has_gpu_work()), slots.buffers())
    else {
        meshlets.bindings.clear();
        return;
    };
    for binding in meshlets.bindings.values_mut() {
        binding.is_used = false;
    }
    for index in 0..culler.batch_count() {
        let (Some((survivors, survivors_version)), Some(batch), Some(mut buffers)) = (
            parts.survivors(index),
            culler.batch_version(index),
            culler.batch_buffers(index),
        ) else {
            continue;
        };
        let version = MeshletVersion {
            draw: DrawVersion {
                batch,
                slots: slots.generation,
            },
            survivors: survivors_version,
        };
        if let Some(known) = meshlets.bindings.get_mut(&batch.key)
            && known.made_for == version
        {
            known.is_used = true;
            continue;
        }
        buffers[0] = survivors;
        match set_bind_group(device, &layout(), at_offsets, &buffers) {
            Ok(bind_group) => {
                let binding = MeshletBinding {
                    made_for: version,
                    bind_group,
                    is_used: true,
                };
                meshlets.bindings.insert(batch.key, binding);
            }
            Err(error) => {
                warn_once!(
                    "meshes of meshlets are drawn whole, which takes longer and looks the same: {error}"
                );
                meshlets.bindings.remove(&batch.key);
            }
        }
    }
    meshlets.bindings.retain(|_, binding| binding.is_used);
}
