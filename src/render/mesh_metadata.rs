//! What vertex stages decode compressed meshes with: Bevy's `MeshMetadata`, which holds the box of
//! the positions and the ranges of the texture coordinates.
//!
//! Bevy's entities look it up in a storage buffer per slab of meshes. A set binds the row of its
//! mesh as a uniform (Bevy's shader def `METADATA_USE_UNIFORM_BUFFERS`): so the vertex stage needs
//! no storage buffer more, and its bind group does not change when Bevy's slabs grow.

use super::gpu::OFFSET_ALIGNMENT;
use crate::cull::{ChangedBytes, growing_size, guarded};
use bevy::{
    log::warn_once,
    mesh::VertexAttributeValues,
    platform::collections::HashMap,
    prelude::*,
    render::{
        RenderApp,
        extract_resource::ExtractResource,
        mesh::MeshMetadata,
        render_resource::{Buffer, BufferDescriptor, BufferUsages},
        renderer::{RenderDevice, RenderQueue},
    },
    shape::{Aabb2d, BoundingVolume},
};

/// Distance of rows in bytes: the alignment of a dynamic offset.
const ROW_STRIDE: u64 = OFFSET_ALIGNMENT;
/// Size of a `MeshMetadata` in bytes.
pub(super) const METADATA_BYTES: u64 = size_of::<MeshMetadata>() as u64;

/// Both worlds: the meshes whose positions or texture coordinates are compressed.
#[derive(Resource, ExtractResource, Clone, Default)]
#[extract_app(RenderApp)]
pub(super) struct CompressedMeshes {
    /// The row of each mesh, from 1 on. Row 0 is of all other meshes.
    rows: HashMap<AssetId<Mesh>, u32>,
    /// The row after 0, and so on.
    metadata: Vec<MeshMetadata>,
    /// Rows whose meshes are gone.
    free: Vec<u32>,
}

impl CompressedMeshes {
    /// Byte offset of a mesh's row.
    pub fn offset_of(&self, mesh: AssetId<Mesh>) -> u32 {
        self.rows.get(&mesh).copied().unwrap_or(0) * ROW_STRIDE as u32
    }

    fn insert(&mut self, id: AssetId<Mesh>, metadata: MeshMetadata) {
        let next = self.metadata.len() as u32 + 1;
        let free = &mut self.free;
        let row = *self
            .rows
            .entry(id)
            .or_insert_with(|| free.pop().unwrap_or(next));
        let index = row as usize - 1;
        self.metadata
            .resize(self.metadata.len().max(index + 1), MeshMetadata::default());
        self.metadata[index] = metadata;
    }

    fn remove(&mut self, id: AssetId<Mesh>) {
        self.free.extend(self.rows.remove(&id));
    }
}

/// Index of a row among `MeshMetadata`s that follow each other without gaps.
pub(super) fn metadata_index(offset: u32) -> u32 {
    offset / METADATA_BYTES as u32
}

/// Notes the compressed meshes among those that were added or changed.
pub(super) fn find_compressed_meshes(
    mut events: MessageReader<AssetEvent<Mesh>>,
    meshes: Res<Assets<Mesh>>,
    mut compressed: ResMut<CompressedMeshes>,
) {
    for event in events.read() {
        match event {
            AssetEvent::Added { id } | AssetEvent::Modified { id } => {
                match meshes.get(*id).and_then(metadata_of) {
                    Some(metadata) => compressed.insert(*id, metadata),
                    None if compressed.rows.contains_key(id) => compressed.remove(*id),
                    None => {}
                }
            }
            AssetEvent::Removed { id } if compressed.rows.contains_key(id) => {
                compressed.remove(*id);
            }
            _ => {}
        }
    }
}

/// The metadata of a mesh that needs it. It is as in Bevy's mesh allocator.
fn metadata_of(mesh: &Mesh) -> Option<MeshMetadata> {
    let positions = mesh.try_attribute(Mesh::ATTRIBUTE_POSITION).ok();
    let has_box = matches!(positions, Some(VertexAttributeValues::Snorm16x4(_)));
    let has_ranges = mesh.final_uv_ranges.iter().any(Option::is_some);
    if !has_box && !has_ranges {
        return None;
    }
    let (center, half_extents) = match mesh.final_aabb.filter(|_| has_box) {
        Some(around) => (around.center().into(), around.half_size().into()),
        None => Default::default(),
    };
    let range = |range: Option<Aabb2d>| match range {
        Some(Aabb2d { min, max }) => Vec4::new(min.x, min.y, max.x - min.x, max.y - min.y),
        None => Vec4::new(0.0, 0.0, 1.0, 1.0),
    };
    Some(MeshMetadata {
        aabb_center: center,
        aabb_half_extents: half_extents,
        uv_channels_min_and_extents: mesh.final_uv_ranges.map(range),
        ..MeshMetadata::default()
    })
}

/// The rows on the GPU.
#[derive(Default)]
pub(super) struct MetadataBuffer {
    /// `None` before the first upload, and if the device refused it.
    pub buffer: Option<Buffer>,
    bytes: Vec<u8>,
}

impl MetadataBuffer {
    /// Uploads the rows that changed. Returns whether the buffer was replaced.
    pub fn upload(
        &mut self,
        meshes: &CompressedMeshes,
        device: &RenderDevice,
        queue: &RenderQueue,
    ) -> bool {
        let mut bytes = vec![0; (meshes.metadata.len() + 1) * ROW_STRIDE as usize];
        let rows = bytes.chunks_mut(ROW_STRIDE as usize).skip(1);
        for (row, metadata) in rows.zip(&meshes.metadata) {
            row[..METADATA_BYTES as usize].copy_from_slice(bytemuck::bytes_of(metadata));
        }
        let mut changed = ChangedBytes::between(&self.bytes, &bytes);
        self.bytes = bytes;
        let bytes = self.bytes.len() as u64;
        let has = self.buffer.as_ref().map(|buffer| buffer.size());
        let grows = has.is_none_or(|size| size < bytes);
        if grows {
            changed.clear();
            changed.add(0..self.bytes.len());
            let label = "gpu_culling mesh metadata";
            let made = guarded(device.wgpu_device(), label, || {
                device.create_buffer(&BufferDescriptor {
                    label: Some(label),
                    size: growing_size(bytes, &device.limits()),
                    // Bevy's own pipelines bind it as storage.
                    usage: BufferUsages::UNIFORM | BufferUsages::STORAGE | BufferUsages::COPY_DST,
                    mapped_at_creation: false,
                })
            });
            self.buffer = made
                .inspect_err(|error| {
                    warn_once!(
                        "no GpuInstances are drawn: {error}. Free GPU memory: it is tried again when compressed meshes come or go"
                    );
                })
                .ok();
        }
        if let Some(buffer) = &self.buffer {
            changed.write(queue, buffer, &self.bytes);
        }
        grows
    }
}
