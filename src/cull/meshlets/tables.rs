//! The meshlets of all meshes in one table on the GPU.

use super::layout::GpuMeshlet;
use crate::{
    cull::{CullError, batch::Table},
    meshlet::Meshlet,
};
use core::ops::Range;
use std::collections::BTreeMap;
use wgpu::{Buffer, BufferUsages, Device, Queue};

/// Names a mesh of meshlets; the caller chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MeshletMeshId(pub u64);

/// All meshes' meshlets, one mesh after the other.
pub(super) struct Tables {
    meshes: BTreeMap<MeshletMeshId, Vec<GpuMeshlet>>,
    ranges: BTreeMap<MeshletMeshId, Range<u32>>,
    table: Table,
    /// Meshlets that one binding holds.
    limit: u64,
    changed: bool,
    /// Changes when the buffer is replaced.
    pub generation: u64,
}

impl Tables {
    pub fn new(device: &Device, binding_bytes: u64) -> Self {
        Self {
            meshes: BTreeMap::new(),
            ranges: BTreeMap::new(),
            table: Table::new(device, "gpu_culling meshlets", BufferUsages::STORAGE),
            limit: binding_bytes / size_of::<GpuMeshlet>() as u64,
            changed: false,
            generation: 0,
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

    /// Uploads the table if meshes came or went. Returns the bytes uploaded. On an error no mesh is in the table until
    /// meshes come or go again.
    pub fn upload(&mut self, device: &Device, queue: &Queue) -> Result<u64, CullError> {
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
        let (bytes, replaced) = self
            .table
            .write(device, queue, &all)
            .inspect_err(|_| self.ranges.clear())?;
        self.generation += u64::from(replaced);
        Ok(bytes)
    }

    /// Where a mesh's meshlets are in the table.
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
