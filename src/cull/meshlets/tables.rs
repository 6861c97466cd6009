//! The meshlets of all meshes in one table on the GPU.

use super::layout::GpuMeshlet;
use crate::{
    cull::{CullError, Gpu, Version, gpu::buffer::Table},
    meshlet::Meshlet,
};
use core::ops::Range;
use std::collections::BTreeMap;
use wgpu::{Buffer, BufferUsages, Device};

/// Name of a mesh of meshlets. The caller chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MeshletMeshId(pub u64);

/// The meshlets of all meshes, one mesh after the other.
pub(super) struct Tables {
    meshes: BTreeMap<MeshletMeshId, Vec<GpuMeshlet>>,
    ranges: BTreeMap<MeshletMeshId, Range<u32>>,
    table: Table,
    /// Number of meshlets that one binding holds.
    limit: u64,
    changed: bool,
    /// Bumped when the buffer is replaced.
    pub version: Version,
}

impl Tables {
    pub fn new(device: &Device, binding_bytes: u64) -> Self {
        Self {
            meshes: BTreeMap::new(),
            ranges: BTreeMap::new(),
            table: Table::new(device, "gpu_culling meshlets", BufferUsages::STORAGE),
            limit: binding_bytes / size_of::<GpuMeshlet>() as u64,
            changed: false,
            version: Version::new(),
        }
    }

    /// Adds or replaces a mesh.
    pub fn insert(&mut self, id: MeshletMeshId, meshlets: &[Meshlet]) -> Result<(), CullError> {
        let others = self.meshes.iter().filter(|(other, _)| **other != id);
        let held: u64 = others.map(|(_, meshlets)| meshlets.len() as u64).sum();
        if held + meshlets.len() as u64 > self.limit {
            return Err(CullError::TooManyMeshlets {
                meshlets: meshlets.len(),
                held,
                limit: self.limit,
            });
        }
        self.meshes
            .insert(id, meshlets.iter().map(GpuMeshlet::from).collect());
        self.changed = true;
        Ok(())
    }

    pub fn remove(&mut self, id: MeshletMeshId) {
        self.changed |= self.meshes.remove(&id).is_some();
    }

    /// Uploads the table if meshes were added or removed. Returns the number of bytes uploaded.
    ///
    /// # Errors
    /// [`CullError::Gpu`]. The table is then empty until meshes are added or removed again.
    pub fn upload(&mut self, gpu: Gpu<'_>) -> Result<u64, CullError> {
        if !core::mem::take(&mut self.changed) {
            return Ok(0);
        }
        let mut all = Vec::new();
        self.ranges.clear();
        for (id, meshlets) in &self.meshes {
            let first = all.len() as u32;
            all.extend_from_slice(meshlets);
            self.ranges.insert(*id, first..all.len() as u32);
        }
        let written = self
            .table
            .write(gpu, &all)
            .inspect_err(|_| self.ranges.clear())?;
        if written.replaced {
            self.version.bump();
        }
        Ok(written.bytes)
    }

    /// The range of a mesh's meshlets in the table.
    pub fn range(&self, id: MeshletMeshId) -> Option<Range<u32>> {
        self.ranges.get(&id).cloned()
    }

    /// The meshlets of the table, in order.
    pub fn all(&self) -> Vec<GpuMeshlet> {
        self.meshes.values().flatten().copied().collect()
    }

    pub fn buffer(&self) -> &Buffer {
        &self.table.gpu.buffer
    }
}
