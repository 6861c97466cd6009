//! All views and sets of the frame, as the engine's requests; and what the draws bind.

use super::{
    clock::{CpuClock, CpuStage},
    draw::counts_draws,
    extract::{ExtractedSet, GpuCuller},
    history::{FrameView, ViewHistory},
    material::MaterialAliases,
    meshlets::GpuMeshlets,
    pipeline::set_layout,
    slots::{
        DRAW_HAS_SCALE, DRAW_HAS_TAG, DrawSlots, MeshData, MeshUniforms, SLOT_BYTES, SLOT_STRIDE,
        SlotInfo,
    },
    uniforms::{SurvivorUniforms, UniformRequest},
    views::{SetView, Views},
};
use crate::cull::{
    Channels, CullError, CullFrame, CullRequest, CullView, Culler, DrawPart, DrawShape, SetId,
    guarded,
};
use bevy::{
    ecs::system::{StaticSystemParam, SystemParam},
    mesh::BaseMeshPipelineKey,
    pbr::{
        MeshInputUniform, MeshPipeline, MeshUniform, RenderMaterialInstances, RenderMeshInstances,
    },
    platform::collections::HashMap,
    prelude::*,
    render::{
        batching::{GetBatchData, gpu_preprocessing::BatchedInstanceBuffers},
        mesh::{RenderMesh, RenderMeshBufferInfo, allocator::MeshAllocator},
        render_asset::RenderAssets,
        render_resource::{
            BindGroup, BindGroupEntry, BindGroupLayout, BindingResource, Buffer, BufferBinding,
            IndexFormat, PipelineCache,
        },
        renderer::{RenderAdapterInfo, RenderDevice, RenderQueue},
        sync_world::{MainEntity, MainEntityHashMap, MainEntityHashSet},
        view::RetainedViewEntity,
    },
};
use core::num::NonZero;

/// What the draw functions look up.
#[derive(Resource, Default)]
pub(super) struct SetDraws {
    /// The frame as the engine sees it.
    pub frame: CullFrame,
    /// Name and kind of each view of the frame.
    pub views: Vec<FrameView>,
    /// Those of earlier frames.
    pub history: ViewHistory,
    /// Index of the entity's request.
    requests: MainEntityHashMap<usize>,
    /// What each request draws.
    drawn: Vec<Drawn>,
    /// The same of the last frame.
    drawn_before: Vec<Drawn>,
    /// [`Culler::sets_version`] of the last frame.
    sets_version: u64,
    /// It is that of this one.
    sets_stay: bool,
    /// Meshes of the requests of this frame and earlier ones, each once; none is kept when Bevy changes one.
    meshes: Vec<MeshBuffers>,
    mesh_places: HashMap<AssetId<Mesh>, usize>,
    /// Indirect draws take their number from a buffer.
    pub counted: bool,
    /// Entities that are drawn by Bevy's own vertex stages.
    by_uniforms: MainEntityHashSet,
    /// The bind group of each batch of the frame.
    batches: Vec<Option<BindGroup>>,
    /// What they were made for.
    bound: Vec<Option<Bound>>,
    /// Entities of which an error was logged.
    told: MainEntityHashSet,
}

/// Key and version of a batch, and the generation of the slots: a bind group serves while they stay.
type Bound = ((usize, usize), [u64; 2], u64);

/// What a request draws.
struct Drawn {
    entity: MainEntity,
    set: SetId,
    /// Offset of its first slot; those of its other regions follow.
    first_slot: u32,
    /// Its slots.
    slots: u32,
    /// Its mesh, and the index of that.
    mesh_id: AssetId<Mesh>,
    mesh: usize,
}

/// A mesh as draws bind it.
pub(super) struct MeshBuffers {
    shape: DrawShape,
    /// Bevy's, with the meshes that share it.
    pub vertices: Buffer,
    /// `None` for a mesh without indices.
    pub indices: Option<(Buffer, IndexFormat)>,
    /// Bevy draws it with joints or morph targets, which a set does not bind.
    is_deformed: bool,
}

/// Whether Bevy's pipelines for a mesh bind joints or morph targets: that goes by the mesh, not by the entity's
/// components.
fn is_deformed(mesh: &RenderMesh) -> bool {
    let layout = &mesh.layout.0;
    let is_skinned = layout.contains(Mesh::ATTRIBUTE_JOINT_INDEX)
        && layout.contains(Mesh::ATTRIBUTE_JOINT_WEIGHT);
    is_skinned || mesh.key_bits.contains(BaseMeshPipelineKey::MORPH_TARGETS)
}

impl SetDraws {
    /// The request of an entity that is drawn, with its mesh.
    pub fn find(&self, entity: MainEntity) -> Option<(usize, &MeshBuffers)> {
        let request = *self.requests.get(&entity)?;
        Some((request, self.meshes.get(self.drawn.get(request)?.mesh)?))
    }

    /// The index of each entity's request, where they are not those of the last frame.
    fn number_requests(&mut self) {
        let entity = |drawn: &Drawn| drawn.entity;
        let before = self.drawn_before.iter().map(entity);
        let now = self.drawn.iter().map(entity);
        if now.len() == self.requests.len() && now.clone().eq(before) {
            return;
        }
        self.requests.clear();
        self.requests.extend(now.zip(0..));
    }

    /// Index of the mesh of the next request.
    fn place_of(&mut self, meshes: &Meshes, id: AssetId<Mesh>) -> Option<usize> {
        if let Some(before) = self.drawn_before.get(self.drawn.len())
            && before.mesh_id == id
        {
            return Some(before.mesh);
        }
        if let Some(place) = self.mesh_places.get(&id) {
            return Some(*place);
        }
        self.meshes.push(meshes.buffers(id)?);
        self.mesh_places.insert(id, self.meshes.len() - 1);
        Some(self.meshes.len() - 1)
    }

    /// The draws of a request in a view: part, its bind group and the offset of its slot.
    pub fn parts<'a>(
        &'a self,
        culler: &'a Culler,
        request: usize,
        view: RetainedViewEntity,
    ) -> impl Iterator<Item = (&'a DrawPart, &'a BindGroup, u32)> {
        let views = &self.frame.requests[request].views;
        let seeing = |index: &u32| self.views[*index as usize].0 == view;
        let parts = views
            .iter()
            .position(seeing)
            .map_or(&[][..], |place| culler.draw_parts(request, place));
        let first_slot = self.drawn[request].first_slot;
        parts.iter().filter_map(move |part| {
            let bind_group = self.batches.get(part.batch)?.as_ref()?;
            let slot = first_slot + part.region as u32 * SLOT_STRIDE as u32;
            Some((part, bind_group, slot))
        })
    }

    /// Says once that a set with a skinned or morphed mesh is not drawn.
    fn refuse_deformed(&mut self, entity: MainEntity, mesh: AssetId<Mesh>) {
        if self.told.insert(entity) {
            error!(
                "GpuInstances on {} are not drawn: the mesh {mesh} has joints or morph targets, which a set does not \
                 pose. Remove its attributes JOINT_INDEX and JOINT_WEIGHT or its morph targets, or bake the pose into its \
                 vertices",
                entity.id()
            );
        }
    }

    /// Whether Bevy's own vertex stages draw the entity, from a `MeshUniform` for each survivor.
    pub fn is_by_uniforms(&self, entity: MainEntity) -> bool {
        self.by_uniforms.contains(&entity)
    }

    /// The entity of a request.
    pub fn entity(&self, request: usize) -> Option<MainEntity> {
        self.drawn.get(request).map(|drawn| drawn.entity)
    }
}

/// Bevy's meshes, as far as an indirect draw needs them.
#[derive(SystemParam)]
pub(super) struct Meshes<'w> {
    instances: Res<'w, RenderMeshInstances>,
    meshes: Res<'w, RenderAssets<RenderMesh>>,
    allocator: Res<'w, MeshAllocator>,
}

impl Meshes<'_> {
    /// Where a mesh lies now.
    fn buffers(&self, id: AssetId<Mesh>) -> Option<MeshBuffers> {
        let mesh = self.meshes.get(id)?;
        let slice = self.allocator.mesh_vertex_slice(&id)?;
        let (buffer, vertices) = (slice.buffer.clone(), slice.range);
        Some(match mesh.buffer_info {
            RenderMeshBufferInfo::Indexed { index_format, .. } => {
                let slice = self.allocator.mesh_index_slice(&id)?;
                let (index_buffer, indices) = (slice.buffer.clone(), slice.range);
                MeshBuffers {
                    shape: DrawShape::Indexed {
                        index_count: indices.end - indices.start,
                        first_index: indices.start,
                        base_vertex: vertices.start.cast_signed(),
                    },
                    vertices: buffer,
                    indices: Some((index_buffer, index_format)),
                    is_deformed: is_deformed(mesh),
                }
            }
            RenderMeshBufferInfo::NonIndexed => MeshBuffers {
                shape: DrawShape::NonIndexed {
                    vertex_count: vertices.end - vertices.start,
                    first_vertex: vertices.start,
                },
                vertices: buffer,
                indices: None,
                is_deformed: is_deformed(mesh),
            },
        })
    }
}

#[expect(
    clippy::too_many_arguments,
    reason = "a system's parameters are its data"
)]
/// Plans the frame, uploads its tables and makes the bind groups of its draws.
pub(super) fn prepare_culling(
    mut gpu: ResMut<GpuCuller>,
    mut draws: ResMut<SetDraws>,
    (mut slots, mut uniforms_out): (ResMut<DrawSlots>, ResMut<SurvivorUniforms>),
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
    if draws.by_uniforms != aliases.by_uniforms {
        draws.by_uniforms.clone_from(&aliases.by_uniforms);
    }
    slots.clear();
    uniforms_out.clear();
    if sets.is_empty() {
        draws.frame.requests.clear();
        draws.requests.clear();
        draws.batches.clear();
        draws.bound.clear();
        culler.prepare(device.wgpu_device(), &queue, &draws.frame);
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
    let version = culler.sets_version();
    draws.sets_stay = core::mem::replace(&mut draws.sets_version, version) == version;
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
    culler.prepare(device.wgpu_device(), &queue, &draws.frame);
    draws.history.push(culler.frame(), &draws.views);
    slots.upload(&device, &queue);
    let layout =
        || cache.get_bind_group_layout(&set_layout(&mesh_pipeline.mesh_layouts.model_only));
    bind_batches(draws, culler, &slots, &device, layout);
    add_uniforms(draws, culler, &mut uniforms_out);
    let layout = || cache.get_bind_group_layout(&mesh_pipeline.mesh_layouts.model_only);
    uniforms_out.prepare(culler, &slots, (&device, &queue), layout);
}

/// Frames between two looks at the materials of sets.
const LOOK_EVERY: u32 = 32;

/// Warns of sets that views see and that have had no material for some frames.
pub(super) fn warn_of_missing_materials(
    draws: Res<SetDraws>,
    materials: Res<RenderMaterialInstances>,
    mut frame: Local<u32>,
    mut waiting: Local<MainEntityHashSet>,
    mut told: Local<MainEntityHashSet>,
) {
    *frame = frame.wrapping_add(1);
    if !frame.is_multiple_of(LOOK_EVERY) {
        return;
    }
    let entities = draws.drawn.iter().map(|drawn| drawn.entity);
    let without: MainEntityHashSet = entities
        .filter(|entity| !materials.instances.contains_key(entity))
        .collect();
    for entity in without.intersection(&waiting) {
        if told.insert(*entity) {
            warn!(
                "GpuInstances on {}: the set is not drawn, because the entity has no material. Add a MeshMaterial3d, and \
                 the MaterialPlugin of its type",
                entity.id()
            );
        }
    }
    *waiting = without;
}

/// The requests that are drawn by uniforms.
fn add_uniforms(draws: &SetDraws, culler: &Culler, uniforms: &mut SurvivorUniforms) {
    if draws.by_uniforms.is_empty() {
        return;
    }
    for (index, (request, drawn)) in draws.frame.requests.iter().zip(&draws.drawn).enumerate() {
        if !draws.by_uniforms.contains(&drawn.entity) {
            continue;
        }
        let views: Vec<_> = request
            .views
            .iter()
            .map(|view| draws.views[*view as usize].0)
            .collect();
        let mut left = culler.set_len(request.set).unwrap_or(0);
        let (mut instances, mut slots) = (Vec::new(), Vec::new());
        let offsets = (drawn.first_slot..).step_by(SLOT_STRIDE as usize);
        for (region, offset) in culler.set_regions(request.set).iter().zip(offsets) {
            instances.push(left.min(region.capacity));
            slots.push(offset);
            left -= left.min(region.capacity);
        }
        let request = UniformRequest {
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
    let (channels, regions) = culler.resident(set.set).unwrap_or_default();
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
        let wanted = version.map(|(key, version)| (key, version, slots.generation));
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

/// What a set's draws bind: slots, and the buffers of [`Culler::batch_buffers`].
pub(super) fn set_bind_group(
    device: &RenderDevice,
    layout: &BindGroupLayout,
    slot_buffer: &Buffer,
    buffers: &[&wgpu::Buffer],
) -> Result<BindGroup, CullError> {
    let slot = |bytes| {
        BindingResource::Buffer(BufferBinding {
            buffer: slot_buffer,
            offset: 0,
            size: NonZero::new(bytes),
        })
    };
    let mut entries = vec![
        BindGroupEntry {
            binding: 0,
            resource: slot(176),
        },
        BindGroupEntry {
            binding: 20,
            resource: slot(SLOT_BYTES),
        },
    ];
    entries.extend((21..).zip(buffers).map(|(binding, buffer)| BindGroupEntry {
        binding,
        resource: buffer.as_entire_binding(),
    }));
    guarded(device.wgpu_device(), "gpu_culling set", || {
        device.create_bind_group("gpu_culling set", layout, &entries)
    })
}
