//! What the draws of the frame's sets look up.

use super::{
    draw_slots::SLOT_STRIDE,
    history::{FrameView, ViewHistory},
};
use crate::cull::{BatchVersion, CullFrame, Culler, DrawPart, DrawShape, SetId, Version};
use bevy::{
    ecs::system::SystemParam,
    mesh::BaseMeshPipelineKey,
    pbr::RenderMeshInstances,
    platform::collections::HashMap,
    prelude::*,
    render::{
        mesh::{RenderMesh, RenderMeshBufferInfo, allocator::MeshAllocator},
        render_asset::RenderAssets,
        render_resource::{BindGroup, Buffer, IndexFormat},
        sync_world::{MainEntity, MainEntityHashMap, MainEntityHashSet},
        view::RetainedViewEntity,
    },
};

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
    pub requests: MainEntityHashMap<usize>,
    /// What each request draws.
    pub drawn: Vec<Drawn>,
    /// The same of the last frame.
    pub drawn_before: Vec<Drawn>,
    /// Version of the resident sets in the previous frame.
    pub sets_version: Option<Version>,
    /// It is that of this one.
    pub sets_stay: bool,
    /// Meshes of the requests of this frame and earlier ones, each once; none is kept when Bevy changes one.
    pub meshes: Vec<MeshBuffers>,
    pub mesh_places: HashMap<AssetId<Mesh>, usize>,
    /// Indirect draws take their number from a buffer.
    pub counted: bool,
    /// Entities that are drawn by Bevy's own vertex stages.
    pub expanded: MainEntityHashSet,
    /// The bind group of each batch of the frame.
    pub batches: Vec<Option<BindGroup>>,
    /// What they were made for.
    pub bound: Vec<Option<Bound>>,
    /// Entities of which an error was logged.
    told: MainEntityHashSet,
}

/// Key and version of a batch, and the generation of the slots: a bind group serves while they stay.
pub(super) type Bound = (BatchVersion, u64);

/// What a request draws.
pub(super) struct Drawn {
    pub entity: MainEntity,
    pub set: SetId,
    /// Offset of its first slot; those of its other regions follow.
    pub first_slot: u32,
    /// Its slots.
    pub slots: u32,
    /// Its mesh, and the index of that.
    pub mesh_id: AssetId<Mesh>,
    pub mesh: usize,
}

/// A mesh as draws bind it.
pub(super) struct MeshBuffers {
    pub shape: DrawShape,
    /// Bevy's, with the meshes that share it.
    pub vertices: Buffer,
    /// `None` for a mesh without indices.
    pub indices: Option<(Buffer, IndexFormat)>,
    /// Bevy draws it with joints or morph targets, which a set does not bind.
    pub is_deformed: bool,
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
    pub fn number_requests(&mut self) {
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
    pub fn place_of(&mut self, meshes: &Meshes, id: AssetId<Mesh>) -> Option<usize> {
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
    pub fn refuse_deformed(&mut self, entity: MainEntity, mesh: AssetId<Mesh>) {
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
    pub fn is_expanded(&self, entity: MainEntity) -> bool {
        self.expanded.contains(&entity)
    }

    /// The entities of the requests, in order.
    pub fn entities(&self) -> impl Iterator<Item = MainEntity> {
        self.drawn.iter().map(|drawn| drawn.entity)
    }

    /// The entity of a request.
    pub fn entity(&self, request: usize) -> Option<MainEntity> {
        self.drawn.get(request).map(|drawn| drawn.entity)
    }
}

/// Bevy's meshes, as far as an indirect draw needs them.
#[derive(SystemParam)]
pub(super) struct Meshes<'w> {
    pub instances: Res<'w, RenderMeshInstances>,
    pub meshes: Res<'w, RenderAssets<RenderMesh>>,
    pub allocator: Res<'w, MeshAllocator>,
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

/// Whether indirect draws take their number from a buffer.
///
/// On DX12 they would lose the first instance, by which every draw but the first finds its survivors (wgpu issue 7974:
/// `*_count` draws use the command signature without it). Bevy leaves the form out there for the same reason.
pub(super) fn counts_draws(features: wgpu::Features, backend: wgpu::Backend) -> bool {
    features.contains(wgpu::Features::MULTI_DRAW_INDIRECT_COUNT) && backend != wgpu::Backend::Dx12
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_take_their_number_from_a_buffer_where_they_keep_their_first_instance() {
        use wgpu::{Backend, Features};
        assert!(counts_draws(Features::all(), Backend::Vulkan));
        assert!(!counts_draws(Features::all(), Backend::Dx12));
        assert!(!counts_draws(Features::empty(), Backend::Vulkan));
    }
}
