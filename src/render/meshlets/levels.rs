//! Levels of detail that a mesh holds itself: runs of its indices.

use crate::meshlet::{MeshletLevel, MeshletMesh};
use bevy::{
    platform::collections::HashMap,
    prelude::*,
    render::{RenderApp, extract_resource::ExtractResource},
};
use core::ops::Range;
use std::sync::Arc;

/// Both worlds: the meshes that were made of meshlets with levels. Their indices are of all
/// levels, one after the other.
#[derive(Resource, ExtractResource, Clone, Default)]
#[extract_app(RenderApp)]
pub(in crate::render) struct MeshLevels(HashMap<AssetId<Mesh>, Arc<[MeshLevel]>>);

/// A level of a mesh.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::render) struct MeshLevel {
    /// Its indices, counted from the mesh's first.
    pub indices: Range<u32>,
    /// How far its surface lies from the full mesh's at most, in the mesh's units; 0 for the full
    /// mesh.
    pub error: f32,
}

impl MeshLevels {
    /// The levels of a mesh, the full mesh first; none if all of its indices are one mesh.
    pub fn get(&self, mesh: AssetId<Mesh>) -> &[MeshLevel] {
        self.0.get(&mesh).map_or(&[], |levels| &**levels)
    }

    /// Notes the levels of a mesh that was made of `meshlets`, and forgets meshes that are gone.
    pub(super) fn insert(
        &mut self,
        mesh: AssetId<Mesh>,
        meshlets: &MeshletMesh,
        meshes: &Assets<Mesh>,
    ) {
        self.0.retain(|mesh, _| meshes.contains(*mesh));
        let level = |(at, level): (usize, &MeshletLevel)| MeshLevel {
            indices: meshlets.level_range(at).unwrap_or_default(),
            error: level.error,
        };
        let levels = meshlets.levels().iter().enumerate().map(level);
        self.0.insert(mesh, levels.collect());
    }
}
