//! The frame: all views and sets as the engine's requests, and the bind groups of their draws.

mod requests;

use super::{
    batch_sets::BatchSets,
    bindings::{DrawVersion, counts_draws, set_bind_group, set_layout},
    cpu_times::{CpuClock, CpuStage},
    culler::GpuCuller,
    draw_slots::DrawSlots,
    expanded::{ExpandedRequest, ExpandedUniforms},
    gpu::RenderGpu,
    names::entity_names,
    occlusion::{DrawnLists, HidingView},
    set_draws::SetDraws,
    views::{index_of_view, view_at},
};
use crate::cull::{Culler, CullingTier};
use bevy::{
    ecs::system::SystemParam,
    log::{error, warn_once},
    pbr::MeshPipeline,
    prelude::*,
    render::{
        render_resource::{BindGroupLayout, PipelineCache},
        renderer::{RenderAdapterInfo, RenderDevice},
    },
};
use requests::{FrameSets, Scene, add_requests};

/// What bind groups are made with.
#[derive(SystemParam)]
pub(super) struct Layouts<'w> {
    mesh_pipeline: Res<'w, MeshPipeline>,
    cache: Res<'w, PipelineCache>,
}

impl Layouts<'_> {
    /// Group 2 of Bevy's own mesh pipelines.
    fn mesh(&self) -> BindGroupLayout {
        let layout = &self.mesh_pipeline.mesh_layouts.model_only;
        self.cache.get_bind_group_layout(layout)
    }

    /// Group 2 of a set's pipelines.
    fn set(&self) -> BindGroupLayout {
        let layout = set_layout(&self.mesh_pipeline.mesh_layouts.model_only);
        self.cache.get_bind_group_layout(&layout)
    }
}

/// Makes the frame's requests, has the engine plan them and upload their tables, and makes the bind
/// groups of their draws.
#[expect(
    clippy::too_many_arguments,
    reason = "a system's parameters are its data"
)]
pub(super) fn prepare_culling(
    mut culling: ResMut<GpuCuller>,
    mut draws: ResMut<SetDraws>,
    mut slots: ResMut<DrawSlots>,
    mut expanded: ResMut<ExpandedUniforms>,
    mut lists: ResMut<DrawnLists>,
    mut batch_sets: ResMut<BatchSets>,
    mut scene: Scene,
    layouts: Layouts,
    gpu: RenderGpu,
    adapter: Res<RenderAdapterInfo>,
    clock: Res<CpuClock>,
    mut hiding: Local<Vec<HidingView>>,
) {
    let _timer = clock.start(CpuStage::Prepare);
    let draws = &mut *draws;
    let is_there = |place: usize| matches!(culling.extraction.lists.sets.get(place), Some(Some(_)));
    let drawn = draws.drawn.iter();
    let drawn = drawn.filter(|drawn| !drawn.is_gone && is_there(drawn.place));
    let have_moved = scene.meshes.have_changed() && !draws.meshes.keep(&scene.meshes, drawn);
    if have_moved || draws.meshes.batch_sets.are_many() {
        draws.forget_meshes();
    }
    let GpuCuller {
        culler: Some(culler),
        extraction,
        ..
    } = &mut *culling
    else {
        return;
    };
    let sets = &extraction.lists;
    draws.start_frame();
    slots.start_frame(sets.listed_in);
    slots.upload_metadata(&scene.meshes.compressed, &gpu.device, &gpu.queue);
    slots.upload_poses(
        &scene.poses,
        *scene.animation_clock,
        &gpu.device,
        &gpu.queue,
    );
    expanded.start_frame();
    lists.clear();
    if draws.expanded != scene.aliases.expanded {
        draws.expanded.clone_from(&scene.aliases.expanded);
    }
    if sets.len() == 0 {
        draws.clear();
        batch_sets.clear();
        expanded.rest(slots.frame);
        culler.prepare(gpu.wgpu(), &draws.frame);
        return;
    }
    scene.hiding.views.collect(&mut hiding);
    let hides = !hiding.is_empty();
    warn_of_unable(culler, &hiding);
    let sets = FrameSets {
        lists: sets,
        extracted_in: extraction.frame,
    };
    draws.counted = counts_draws(gpu.device.features(), adapter.backend);
    add_requests(draws, &mut slots, culler, &sets, scene, hides);
    add_occlusion(draws, &hiding);

    culler.prepare_hiding(gpu.wgpu(), &draws.frame, &draws.occlusion);
    for (hiding, view) in hiding.iter().zip(&draws.occlusion) {
        if culler.hides(view.view) {
            lists.add(hiding.key, view.view, hiding.way);
        }
    }
    let number = culler.frame_number();
    draws.history.push(number, &draws.views, &draws.joined);

    batch_sets.prepare(draws, culler, &mut slots, gpu.wgpu());
    slots.upload(&gpu.device, &gpu.queue);
    bind_batches(draws, culler, &slots, &gpu.device, || layouts.set());
    add_expanded(draws, culler, &mut expanded);
    expanded.prepare(culler, &slots, &gpu, || layouts.mesh());
    // Their textures may be dropped.
    hiding.clear();
}

/// Warns once if the engine cannot do what `InstanceOcclusion` asks for.
fn warn_of_unable(culler: &Culler, hiding: &[HidingView]) {
    if culler.can_hide() || !hiding.iter().any(|view| view.is_own) {
        return;
    }
    match culler.tier() {
        CullingTier::Cpu => warn_once!(
            "InstanceOcclusion hides no instances on the tier \"cpu\": use another tier, or remove the component"
        ),
        _ => warn_once!(
            "InstanceOcclusion hides no instances with the compaction \"{}\": use \"auto\", \"classify\" or \
             \"vote-scan-compact\", or remove the component",
            culler.compaction()
        ),
    }
}

/// Adds the views that hide, in the order of `hiding`. One that the frame does not have, or that
/// sees no set that may be hidden, hides no request.
fn add_occlusion(draws: &mut SetDraws, hiding: &[HidingView]) {
    draws.occlusion.truncate(hiding.len());
    if hiding.is_empty() {
        return;
    }
    let places = &mut draws.hiding_places;
    places.clear();
    places.resize(draws.views.len(), None);
    for (place, hiding) in hiding.iter().enumerate() {
        let view = index_of_view(&draws.views, &hiding.key);
        if let Some(view) = view {
            places[view as usize] = Some(place);
        }
        let view = view.unwrap_or(u32::MAX);
        match draws.occlusion.get_mut(place) {
            Some(known) => {
                let mut requests = core::mem::take(&mut known.requests);
                requests.clear();
                *known = hiding.to_occlusion_view(view, requests);
            }
            None => (draws.occlusion).push(hiding.to_occlusion_view(view, Vec::new())),
        }
    }
    // All entities of a request may be hidden, or none.
    let first = draws.drawn.iter().filter(|drawn| drawn.of.shape == 0);
    for drawn in first.filter(|drawn| drawn.may_be_hidden) {
        let request = drawn.of.request;
        for view in &draws.frame.requests[request].views {
            if let Some(place) = places.get(*view as usize).copied().flatten() {
                draws.occlusion[place].requests.push(request as u32);
            }
        }
    }
}

/// Adds the requests that are drawn from a `MeshUniform` per survivor.
fn add_expanded(draws: &SetDraws, culler: &Culler, expanded: &mut ExpandedUniforms) {
    if draws.expanded.is_empty() {
        return;
    }
    for drawn in &draws.drawn {
        if !draws.expanded.contains(&drawn.entity) {
            continue;
        }
        let index = drawn.of.request;
        let request = &draws.frame.requests[index];
        let views = request.views.iter();
        let views: Vec<_> = views
            .filter_map(|view| Some(view_at(&draws.views, *view)?.key))
            .collect();
        let mut left = culler.store().set_len(request.set).unwrap_or(0);
        let (mut instances, mut slots) = (Vec::new(), Vec::new());
        for (region, slot) in
            (culler.store().set_regions(request.set).iter()).zip(drawn.first_slot..)
        {
            instances.push(left.min(region.capacity));
            slots.push(slot);
            left -= left.min(region.capacity);
        }
        let request = ExpandedRequest {
            index,
            key: request.key,
            shape: request.shape,
            metadata: draws.meshes.get(drawn.mesh).map_or(0, |mesh| mesh.metadata),
            views: &views,
            slots: &slots,
            instances: &instances,
        };
        expanded.add(culler, &request);
    }
}

/// Makes the bind group of each batch, unless the one that it has still serves.
fn bind_batches(
    draws: &mut SetDraws,
    culler: &Culler,
    slots: &DrawSlots,
    device: &RenderDevice,
    layout: impl Fn() -> BindGroupLayout,
) {
    let Some(bound) = slots.buffers() else {
        draws.bindings.clear();
        return;
    };
    let count = culler.batch_count();
    draws.bindings.resize_with(count, Default::default);
    let mut refused = Vec::new();
    for (batch, binding) in draws.bindings.iter_mut().enumerate() {
        let version = culler.batch_version(batch).map(|batch| DrawVersion {
            batch,
            slots: slots.generation,
        });
        if version.is_some() && binding.made_for == version {
            continue;
        }
        let buffers = culler.batch_buffers(batch).filter(|_| version.is_some());
        let result = buffers.map(|buffers| set_bind_group(device, &layout(), bound, &buffers));
        // After a refusal, this waits until the batch has other buffers.
        binding.made_for = version.filter(|_| result.is_some());
        binding.bind_group = result.transpose().unwrap_or_else(|error| {
            refused.push((batch, error));
            None
        });
    }
    for (batch, error) in refused {
        let entities = draws.entities_of(&culler.batch_requests(batch).collect());
        let names = entity_names(&entities);
        error!(
            "GpuInstances on {names} are not drawn: {error}. Free GPU memory: it is tried again when their buffers \
             change, for example when a set grows"
        );
    }
}
