//! The meshlets of all meshes in one table on the GPU.

use crate::cull::layout::meshlets::GpuMeshlet;
use crate::{
    cull::{
        CullError, Gpu, Version,
        gpu::{buffer::Table, on_demand::RetryTimer},
    },
    meshlet::Meshlet,
};
use core::ops::Range;
use std::collections::BTreeMap;
use wgpu::{Buffer, BufferUsages, Device};

/// Name of a mesh of meshlets. The caller chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MeshletMeshId(pub u64);

/// A mesh in the table.
struct TableMesh {
    /// The meshlets of all levels, level after level.
    meshlets: Vec<GpuMeshlet>,
    /// The end of each level in `meshlets`, the full mesh first.
    level_ends: Vec<u32>,
}

/// The meshlets of all meshes, one mesh after the other.
pub(super) struct Tables {
    meshes: BTreeMap<MeshletMeshId, TableMesh>,
    /// Index of each mesh's first meshlet in the table on the GPU.
    firsts: BTreeMap<MeshletMeshId, u32>,
    table: Table,
    /// Number of meshlets that one binding holds.
    limit: u64,
    has_changed: bool,
    /// Runs if the device refused the table.
    retry: RetryTimer,
    /// Bumped when the buffer is replaced.
    pub version: Version,
}

impl Tables {
    pub fn new(device: &Device, binding_bytes: u64) -> Self {
        Self {
            meshes: BTreeMap::new(),
            firsts: BTreeMap::new(),
            table: Table::new(device, "gpu_culling meshlets", BufferUsages::STORAGE),
            limit: binding_bytes / size_of::<GpuMeshlet>() as u64,
            has_changed: false,
            retry: RetryTimer::default(),
            version: Version::new(),
        }
    }

    /// Adds or replaces a mesh with the meshlets of these levels.
    pub fn insert(&mut self, id: MeshletMeshId, levels: &[&[Meshlet]]) -> Result<(), CullError> {
        let others = self.meshes.iter().filter(|(other, _)| **other != id);
        let held: u64 = others.map(|(_, mesh)| mesh.meshlets.len() as u64).sum();
        let count: usize = levels.iter().map(|meshlets| meshlets.len()).sum();
        if held + count as u64 > self.limit {
            return Err(CullError::TooManyMeshlets {
                meshlets: count,
                held,
                limit: self.limit,
            });
        }
        let mut mesh = TableMesh {
            meshlets: Vec::with_capacity(count),
            level_ends: Vec::with_capacity(levels.len()),
        };
        for level in levels {
            mesh.meshlets.extend(level.iter().map(GpuMeshlet::from));
            mesh.level_ends.push(mesh.meshlets.len() as u32);
        }
        self.meshes.insert(id, mesh);
        self.has_changed = true;
        Ok(())
    }

    pub fn remove(&mut self, id: MeshletMeshId) {
        self.has_changed |= self.meshes.remove(&id).is_some();
    }

    /// Uploads the table if meshes were added or removed. Returns the number of bytes uploaded.
    ///
    /// # Errors
    /// [`CullError::Gpu`], once. The table is then empty, and the device is asked again later.
    pub fn upload(&mut self, gpu: Gpu<'_>, now: u64) -> Result<u64, CullError> {
        if self.retry.waits(now) || !core::mem::take(&mut self.has_changed) {
            return Ok(0);
        }
        let was_told = self.retry.stop();
        let mut all = Vec::new();
        self.firsts.clear();
        for (id, mesh) in &self.meshes {
            self.firsts.insert(*id, all.len() as u32);
            all.extend_from_slice(&mesh.meshlets);
        }
        let written = match self.table.write(gpu, &all) {
            Ok(written) => written,
            Err(error) => {
                self.firsts.clear();
                (self.has_changed, self.retry) = (true, RetryTimer::start(now));
                return if was_told { Ok(0) } else { Err(error) };
            }
        };
        if written.replaced {
            self.version.bump();
        }
        Ok(written.bytes)
    }

    /// Whether the GPU has a mesh.
    pub fn has(&self, id: MeshletMeshId) -> bool {
        self.firsts.contains_key(&id)
    }

    /// The range of a level's meshlets in the table, the full mesh being level 0.
    pub fn range(&self, id: MeshletMeshId, level: usize) -> Option<Range<u32>> {
        let (first, ends) = (self.firsts.get(&id)?, &self.meshes.get(&id)?.level_ends);
        let begin = match level {
            0 => 0,
            _ => *ends.get(level - 1)?,
        };
        Some(first + begin..first + ends.get(level)?)
    }

    /// The meshlets of the table, in order.
    #[cfg(feature = "testing")]
    pub fn all(&self) -> Vec<GpuMeshlet> {
        let meshes = self.meshes.values();
        meshes.flat_map(|mesh| &mesh.meshlets).copied().collect()
    }

    pub fn buffer(&self) -> &Buffer {
        &self.table.gpu.buffer
    }
}
