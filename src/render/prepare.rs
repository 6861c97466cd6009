//! All views and sets of the frame, as the engine's requests; and what the draws bind.

use super::{
    bindings::{set_bind_group, set_layout},
    cpu_times::{CpuClock, CpuStage},
    culler::{ExtractedSet, GpuCuller},
    draw_slots::{
        DRAW_HAS_SCALE, DRAW_HAS_TAG, DrawSlots, MeshData, MeshUniforms, SLOT_STRIDE, SlotInfo,
    },
    expanded::{ExpandedRequest, ExpandedUniforms},
    materials::MaterialAliases,
    meshlets::GpuMeshlets,
    set_draws::{Drawn, Meshes, SetDraws, counts_draws},
    views::{SetView, Views},
};
use crate::cull::{Channels, CullRequest, CullView, Culler, Gpu};
use bevy::{
    ecs::system::StaticSystemParam,
    log::warn,
    pbr::{MeshInputUniform, MeshPipeline, MeshUniform},
    prelude::*,
    render::{
        batching::{GetBatchData, gpu_preprocessing::BatchedInstanceBuffers},
        render_resource::{BindGroupLayout, PipelineCache},
        renderer::{RenderAdapterInfo, RenderDevice, RenderQueue},
    },
};

#[expect(
    clippy::too_many_arguments,
    reason = "a system's parameters are its data"
)]
/// Plans the frame, uploads its tables and makes the bind groups of its draws.
pub(super) fn prepare_culling(
    mut gpu: ResMut<GpuCuller>,
    mut draws: ResMut<SetDraws>,
    (mut slots, mut uniforms_out): (ResMut<DrawSlots>, ResMut<ExpandedUniforms>),
    aliases: Res<MaterialAliases>,
    (views, meshlets): (Views, Res<GpuMeshlets>),
    meshes: Meshes,
    inputs: Option<Res<BatchedInstanceBuffers<MeshUniform, MeshInputUniform>>>,
    batch_data: StaticSystemParam<<MeshPipeline as GetBatchData>::Param>,
    mesh_pipeline: Res<MeshPipeline>,
    cache: Res<PipelineCache>,
    (device, queue, adapter): (Res<RenderDevice>, Res<RenderQueue>, Res<RenderAdapterInfo>),
    clock: Res<CpuClock>,
) {
    let _running = clock.start(CpuStage::Prepare);
    // Slabs move when a mesh comes, changes or goes, and at no other time.
    if meshes.meshes.is_changed() {
        draws.meshes.clear();
        draws.mesh_places.clear();
        // Nor are the places of the last frame any.
        draws.drawn.clear();
    }
    let GpuCuller {
        culler: Some(culler),
        sets,
        ..
    } = &mut *gpu
    else {
        return;
    };
    let draws = &mut *draws;
    core::mem::swap(&mut draws.drawn, &mut draws.drawn_before);
    draws.drawn.clear();
    draws.frame.views.clear();
    draws.views.clear();
    if draws.expanded != aliases.expanded {
        draws.expanded.clone_from(&aliases.expanded);
    }
    slots.clear();
    uniforms_out.clear();
    if sets.is_empty() {
        draws.frame.requests.clear();
        draws.requests.clear();
        draws.batches.clear();
        draws.bound.clear();
        culler.prepare(Gpu::new(device.wgpu_device(), &queue), &draws.frame);
        return;
    }

    let views = views.collect(!meshlets.entities.is_empty());
    draws.frame.views.extend(views.iter().map(|view| view.cull));
    draws.views.extend(
        views
            .iter()
            .map(|view| (view.key, view.kind, view.name.clone())),
    );
    // The same views once more for sets without frustum culling, keeping everything.
    if sets.iter().any(|set| set.keep_all) {
        let kept = views.iter().map(|_| CullView::EVERYTHING);
        draws.frame.views.extend(kept);
        draws.views.extend_from_within(..);
    }
    let version = culler.store().sets_version();
    draws.sets_stay = draws.sets_version.replace(version) == Some(version);
    let uniforms = MeshUniforms {
        inputs: inputs.as_deref(),
        instances: &meshes.instances,
        cpu: &batch_data.into_inner(),
    };
    // Requests of the last frame, for the room that their lists have.
    let mut spare = core::mem::take(&mut draws.frame.requests);
    draws.frame.requests.reserve(sets.len());
    for set in sets.iter() {
        let seeing = spare.pop().map_or_else(Vec::new, |request| request.views);
        add_request(
            draws,
            &mut slots,
            culler,
            (set, seeing),
            &views,
            &meshes,
            &uniforms,
        );
    }
    draws.number_requests();
    draws.counted = counts_draws(device.features(), adapter.backend);
    culler.prepare(Gpu::new(device.wgpu_device(), &queue), &draws.frame);
    draws.history.push(culler.frame_number(), &draws.views);
    slots.upload(&device, &queue);
    let layout =
        || cache.get_bind_group_layout(&set_layout(&mesh_pipeline.mesh_layouts.model_only));
    bind_batches(draws, culler, &slots, &device, layout);
    add_uniforms(draws, culler, &mut uniforms_out);
    let layout = || cache.get_bind_group_layout(&mesh_pipeline.mesh_layouts.model_only);
    uniforms_out.prepare(culler, &slots, (&device, &queue), layout);
}

/// The requests that are drawn by uniforms.
fn add_uniforms(draws: &SetDraws, culler: &Culler, uniforms: &mut ExpandedUniforms) {
    if draws.expanded.is_empty() {
        return;
    }
    for (index, (request, drawn)) in draws.frame.requests.iter().zip(&draws.drawn).enumerate() {
        if !draws.expanded.contains(&drawn.entity) {
            continue;
        }
        let views: Vec<_> = request
            .views
            .iter()
            .map(|view| draws.views[*view as usize].0)
            .collect();
        let mut left = culler.store().set_len(request.set).unwrap_or(0);
        let (mut instances, mut slots) = (Vec::new(), Vec::new());
        let offsets = (drawn.first_slot..).step_by(SLOT_STRIDE as usize);
        for (region, offset) in culler.store().set_regions(request.set).iter().zip(offsets) {
            instances.push(left.min(region.capacity));
            slots.push(offset);
            left -= left.min(region.capacity);
        }
        let request = ExpandedRequest {
            index,
            entity: drawn.entity,
            shape: request.shape,
            views: &views,
            slots: &slots,
            instances: &instances,
        };
        uniforms.add(culler, &request);
    }
}

/// The entity's request, if any view sees it and its mesh is there.
fn add_request(
    draws: &mut SetDraws,
    slots: &mut DrawSlots,
    culler: &Culler,
    (set, mut seeing): (&ExtractedSet, Vec<u32>),
    views: &[SetView],
    meshes: &Meshes,
    uniforms: &MeshUniforms,
) {
    let entity = set.entity;
    let first = if set.keep_all { views.len() as u32 } else { 0 };
    seeing.clear();
    seeing.extend(
        (first..)
            .zip(views)
            .filter(|(_, view)| view.sees(entity))
            .map(|(index, _)| index),
    );
    if seeing.is_empty() {
        return;
    }
    let Some(instance) = meshes.instances.render_mesh_queue_data(entity) else {
        return;
    };
    let mesh_id = instance.mesh_asset_id();
    let mesh = draws.place_of(meshes, mesh_id);
    if mesh.is_some_and(|mesh| draws.meshes[mesh].is_deformed) {
        draws.refuse_deformed(entity, mesh_id);
        return;
    }
    let (Some(mesh), Some(data)) = (mesh, uniforms.get(entity, &instance)) else {
        return;
    };
    let first_slot = slots.len();
    let before = draws.drawn_before.get(draws.drawn.len());
    let is_kept = before.is_some_and(|before| {
        draws.sets_stay
            && (before.entity, before.set) == (entity, set.set)
            && slots.keep(before.slots, entity, &data)
    });
    if !is_kept {
        add_slots(slots, culler, set, &data);
    }
    draws.drawn.push(Drawn {
        entity,
        set: set.set,
        first_slot,
        slots: (slots.len() - first_slot) / SLOT_STRIDE as u32,
        mesh_id,
        mesh,
    });
    draws.frame.requests.push(CullRequest {
        key: entity.to_bits(),
        set: set.set,
        world_from_local: set.world_from_local,
        sphere: set.sphere,
        shape: draws.meshes[mesh].shape,
        views: seeing,
    });
}

/// A slot for each region of the set.
fn add_slots(slots: &mut DrawSlots, culler: &Culler, set: &ExtractedSet, data: &MeshData) {
    let (channels, regions) = culler.store().resident(set.set).unwrap_or_default();
    let Channels {
        scale,
        tag,
        previous,
    } = channels;
    let flags = if scale { DRAW_HAS_SCALE } else { 0 } | if tag { DRAW_HAS_TAG } else { 0 };
    let mut set_first = 0;
    for region in regions {
        let info = SlotInfo {
            flags,
            region_first: region.first,
            set_first,
            previous_offset: if previous { region.capacity } else { 0 },
        };
        set_first += region.capacity;
        slots.push(set.entity, data, info);
    }
}

/// A bind group for each batch, made anew only when one of its buffers was replaced.
fn bind_batches(
    draws: &mut SetDraws,
    culler: &Culler,
    slots: &DrawSlots,
    device: &RenderDevice,
    layout: impl Fn() -> BindGroupLayout,
) {
    let Some(slot_buffer) = &slots.buffer else {
        draws.batches.clear();
        draws.bound.clear();
        return;
    };
    let count = culler.plan().batches.len();
    draws.batches.resize(count, None);
    draws.bound.resize(count, None);
    for (batch, (made, bound)) in draws.batches.iter_mut().zip(&mut draws.bound).enumerate() {
        let version = culler.batch_version(batch);
        let wanted = version.map(|version| (version, slots.generation));
        if wanted.is_some() && *bound == wanted {
            continue;
        }
        let buffers = culler.batch_buffers(batch).filter(|_| wanted.is_some());
        let result =
            buffers.map(|buffers| set_bind_group(device, &layout(), slot_buffer, &buffers));
        // What was refused is not tried again until its buffers are others.
        *bound = wanted.filter(|_| result.is_some());
        *made = result.transpose().unwrap_or_else(|error| {
            warn!("some GpuInstances are not drawn: {error}");
            None
        });
    }
}
