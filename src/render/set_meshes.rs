//! Bevy's meshes, as draws of sets bind them.

use super::{
    lods::{RequestLods, fit_each_other, indices_per_element},
    mesh_metadata::CompressedMeshes,
    meshlets::MeshLevels,
};
use crate::cull::{CoarserLevel, DrawShape};
use bevy::{
    ecs::system::SystemParam,
    mesh::BaseMeshPipelineKey,
    pbr::RenderMeshInstances,
    prelude::*,
    render::{
        mesh::{RenderMesh, RenderMeshBufferInfo, allocator::MeshAllocator},
        render_asset::RenderAssets,
        render_resource::{Buffer, BufferId, IndexFormat, PrimitiveTopology},
        sync_world::MainEntity,
    },
};
use core::ops::Range;
use std::sync::Arc;

/// A mesh as draws bind it.
pub(super) struct MeshBuffers {
    /// The full mesh.
    pub shape: DrawShape,
    /// Coarser levels in the same buffers.
    pub lods: Option<RequestLods>,
    /// Bevy's vertex buffer, which other meshes share.
    pub vertices: Buffer,
    /// Bevy's index buffer; `None` for a mesh without indices.
    pub indices: Option<(Buffer, IndexFormat)>,
    /// Byte offset of the row that the mesh is decoded with
    /// ([`mesh_metadata`](super::mesh_metadata)).
    pub metadata: u32,
    /// Number of indices per triangle or line of a list; 1 for strips.
    pub indices_per_element: u32,
    /// How its vertices move.
    pub deformation: Deformation,
    /// Whether it is made of triangles.
    pub has_triangles: bool,
    /// What pipelines depend on.
    pub class: MeshClass,
}

/// What the pipelines of a mesh depend on, besides its material.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct MeshClass {
    /// Address of the layout of its vertices, which Bevy keeps once.
    layout: usize,
    key_bits: u64,
}

impl MeshClass {
    fn of(mesh: &RenderMesh) -> Self {
        Self {
            layout: Arc::as_ptr(&mesh.layout.0).addr(),
            key_bits: mesh.key_bits.bits(),
        }
    }
}

/// The buffers that a draw binds for a mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BoundMesh {
    vertices: BufferId,
    indices: Option<(BufferId, IndexFormat)>,
    metadata: u32,
}

impl MeshBuffers {
    /// Whether what was made from these need not be made again.
    pub fn is_same(&self, other: &Self) -> bool {
        let levels = |of: &Self| of.lods.as_ref().map(|lods| lods.coarser.clone());
        (self.shape, self.bound(), self.class) == (other.shape, other.bound(), other.class)
            && self.indices_per_element == other.indices_per_element
            && levels(self) == levels(other)
    }

    /// What a draw binds for the mesh.
    pub fn bound(&self) -> BoundMesh {
        let indices = self.indices.as_ref();
        BoundMesh {
            vertices: self.vertices.id(),
            indices: indices.map(|(buffer, format)| (buffer.id(), *format)),
            metadata: self.metadata,
        }
    }
}

/// Bevy's meshes, as far as an indirect draw needs them.
#[derive(SystemParam)]
pub(super) struct Meshes<'w> {
    pub instances: Res<'w, RenderMeshInstances>,
    meshes: Res<'w, RenderAssets<RenderMesh>>,
    allocator: Res<'w, MeshAllocator>,
    levels: Res<'w, MeshLevels>,
    pub compressed: Res<'w, CompressedMeshes>,
    pub server: Option<Res<'w, AssetServer>>,
}

impl Meshes<'_> {
    /// Whether meshes may have moved in Bevy's buffers, or may have other levels, or other rows of
    /// what they are decoded with: when one is added, changed or removed.
    pub fn have_changed(&self) -> bool {
        self.meshes.is_changed() || self.levels.is_changed() || self.compressed.is_changed()
    }

    /// Number of levels that the entity's mesh holds itself.
    pub fn own_levels(&self, entity: MainEntity) -> u32 {
        let mesh = self.instances.mesh_asset_id(entity);
        mesh.map_or(0, |mesh| self.levels.get(mesh).len()) as u32
    }

    /// Whether the mesh of a level can be drawn in place of the full mesh.
    pub fn fit_each_other(&self, full: AssetId<Mesh>, level: AssetId<Mesh>) -> bool {
        match (self.meshes.get(full), self.meshes.get(level)) {
            (Some(full), Some(level)) => fit_each_other(full, level),
            _ => false,
        }
    }

    /// The buffers of a mesh, which gets this place; `None` if Bevy has not prepared it.
    pub fn buffers(&self, id: AssetId<Mesh>, place: usize) -> Option<MeshBuffers> {
        let mesh = self.meshes.get(id)?;
        let slice = self.allocator.mesh_vertex_slice(&id)?;
        let (buffer, vertices) = (slice.buffer.clone(), slice.range);
        let metadata = self.compressed.offset_of(id);
        Some(match mesh.buffer_info {
            RenderMeshBufferInfo::Indexed { index_format, .. } => {
                let slice = self.allocator.mesh_index_slice(&id)?;
                let (index_buffer, indices) = (slice.buffer.clone(), slice.range);
                let run = |run: Range<u32>| DrawShape::Indexed {
                    index_count: run.end - run.start,
                    first_index: indices.start + run.start,
                    base_vertex: vertices.start.cast_signed(),
                };
                let all = 0..indices.end - indices.start;
                let levels = self.levels.get(id);
                let coarser = levels
                    .iter()
                    .skip(1)
                    .map(|level| CoarserLevel::new(run(level.indices.clone()), level.error));
                MeshBuffers {
                    shape: run(levels.first().map_or(all, |full| full.indices.clone())),
                    lods: RequestLods::in_one_mesh(coarser.collect(), place),
                    vertices: buffer,
                    indices: Some((index_buffer, index_format)),
                    metadata,
                    indices_per_element: indices_per_element(mesh.primitive_topology()),
                    deformation: Deformation::of(mesh),
                    has_triangles: has_triangles(mesh),
                    class: MeshClass::of(mesh),
                }
            }
            RenderMeshBufferInfo::NonIndexed => MeshBuffers {
                shape: DrawShape::NonIndexed {
                    vertex_count: vertices.end - vertices.start,
                    first_vertex: vertices.start,
                },
                lods: None,
                vertices: buffer,
                indices: None,
                metadata,
                indices_per_element: 1,
                deformation: Deformation::of(mesh),
                has_triangles: has_triangles(mesh),
                class: MeshClass::of(mesh),
            },
        })
    }
}

/// Whether a mesh is made of triangles. Lines and points cover pixels outside of their bounds.
fn has_triangles(mesh: &RenderMesh) -> bool {
    let topology = mesh.key_bits.primitive_topology();
    [
        PrimitiveTopology::TriangleList,
        PrimitiveTopology::TriangleStrip,
    ]
    .contains(&topology)
}

/// How the vertices of a mesh move. The mesh decides it, not the entity's components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deformation {
    No,
    /// By joints: a set with an animation has their poses.
    ByJoints,
    /// By morph targets, which a set does not bind.
    ByTargets,
}

impl Deformation {
    fn of(mesh: &RenderMesh) -> Self {
        let layout = &mesh.layout.0;
        if mesh.key_bits.contains(BaseMeshPipelineKey::MORPH_TARGETS) {
            Self::ByTargets
        } else if layout.contains(Mesh::ATTRIBUTE_JOINT_INDEX)
            && layout.contains(Mesh::ATTRIBUTE_JOINT_WEIGHT)
        {
            Self::ByJoints
        } else {
            Self::No
        }
    }
}
