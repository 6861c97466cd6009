//! The meshes that requests draw, each once.

use super::drawn::Drawn;
use crate::render::{
    batch_sets::member::BatchSetNumbers,
    set_meshes::{MeshBuffers, Meshes},
};
use bevy::{platform::collections::HashMap, prelude::*};
use core::ops::Index;

/// Up to this number of meshes are kept, however few of them Bevy still has.
const MANY_MESHES: usize = 256;

/// The meshes of the frame's requests and of earlier ones, each once. All are dropped when Bevy
/// moves one.
#[derive(Default)]
pub(in crate::render) struct FrameMeshes {
    all: Vec<MeshBuffers>,
    /// Index of each mesh in `all`.
    indices: HashMap<AssetId<Mesh>, usize>,
    /// Whether Bevy had not prepared a mesh when it was looked for.
    lacks_some: bool,
    /// The batch sets of the meshes.
    pub batch_sets: BatchSetNumbers,
}

/// A mesh, and its index in the [`FrameMeshes`].
#[derive(Clone, Copy)]
pub(in crate::render) struct FrameMesh {
    pub id: AssetId<Mesh>,
    pub index: usize,
}

impl FrameMeshes {
    pub fn get(&self, index: usize) -> Option<&MeshBuffers> {
        self.all.get(index)
    }

    /// Index of a mesh; `None` if Bevy has not prepared it.
    pub(super) fn find_or_add(&mut self, meshes: &Meshes, id: AssetId<Mesh>) -> Option<usize> {
        if let Some(index) = self.indices.get(&id) {
            return Some(*index);
        }
        let index = self.all.len();
        let Some(buffers) = meshes.buffers(id, index) else {
            self.lacks_some = true;
            return None;
        };
        self.all.push(buffers);
        self.indices.insert(id, index);
        Some(index)
    }

    /// Whether Bevy still has all meshes of what is drawn, where it had them. Meshes that nothing
    /// draws may go.
    pub fn keep<'a>(&mut self, meshes: &Meshes, drawn: impl Iterator<Item = &'a Drawn>) -> bool {
        let are_mostly_gone = self.all.len() > MANY_MESHES.max(2 * self.indices.len());
        if self.lacks_some || are_mostly_gone {
            return false;
        }
        let mut gone = Vec::new();
        for (id, index) in &self.indices {
            match meshes.buffers(*id, *index) {
                Some(now) if now.is_same(&self.all[*index]) => {}
                Some(_) => return false,
                None => gone.push((*id, *index)),
            }
        }
        if gone.is_empty() {
            return true;
        }
        let mut is_drawn = vec![false; self.all.len()];
        for drawn in drawn {
            let levels = drawn.lods.iter().flat_map(|lods| lods.meshes.iter());
            for mesh in levels.chain([&drawn.mesh]) {
                is_drawn[*mesh] = true;
            }
        }
        if gone.iter().any(|(_, index)| is_drawn[*index]) {
            return false;
        }
        for (id, _) in gone {
            self.indices.remove(&id);
        }
        true
    }

    /// Drops all.
    pub fn clear(&mut self) {
        self.all.clear();
        self.indices.clear();
        self.lacks_some = false;
        self.batch_sets.clear();
    }
}

impl Index<usize> for FrameMeshes {
    type Output = MeshBuffers;

    fn index(&self, index: usize) -> &MeshBuffers {
        &self.all[index]
    }
}
