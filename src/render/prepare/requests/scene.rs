//! What requests are made from.

use crate::cull::SetId;
use crate::render::{
    animation::{AnimationClock, PoseTable},
    extract::SetLists,
    extracted_set::ExtractedSet,
    materials::{DrawnFaces, MaterialAliases},
    occlusion::HidingViews,
    set_meshes::Meshes,
    touched::TouchedInstances,
    views::Views,
};
use bevy::{
    ecs::system::{StaticSystemParam, SystemParam},
    pbr::{MeshInputUniform, MeshPipeline, MeshUniform, PreparedMaterial, RenderMaterialInstances},
    prelude::*,
    render::{
        batching::{GetBatchData, gpu_preprocessing::BatchedInstanceBuffers},
        erased_render_asset::ErasedRenderAssets,
        sync_world::MainEntity,
        view::RenderVisibilityRanges,
    },
};

/// What the requests of the frame are made from.
#[derive(SystemParam)]
pub(in crate::render) struct Scene<'w, 's> {
    pub(in crate::render::prepare) aliases: Res<'w, MaterialAliases>,
    pub(super) views: Views<'w, 's>,
    pub(in crate::render::prepare) hiding: Hiding<'w, 's>,
    pub(in crate::render::prepare) meshes: Meshes<'w>,
    pub(super) uniform_inputs:
        Option<Res<'w, BatchedInstanceBuffers<MeshUniform, MeshInputUniform>>>,
    pub(super) uniform_data: StaticSystemParam<'w, 's, <MeshPipeline as GetBatchData>::Param>,
    pub(super) ranges: Option<Res<'w, RenderVisibilityRanges>>,
    pub(super) touched: ResMut<'w, TouchedInstances>,
    pub(in crate::render::prepare) poses: Res<'w, PoseTable>,
    pub(in crate::render::prepare) animation_clock: Res<'w, AnimationClock>,
}

/// What decides which sets are hidden, and in which views.
#[derive(SystemParam)]
pub(in crate::render::prepare) struct Hiding<'w, 's> {
    pub views: HidingViews<'w, 's>,
    pub(super) faces: Res<'w, DrawnFaces>,
    pub(super) materials: Res<'w, RenderMaterialInstances>,
    pub(super) prepared: Res<'w, ErasedRenderAssets<PreparedMaterial>>,
}

impl Hiding<'_, '_> {
    /// Whether the instances of an entity may be hidden, as far as its material says.
    pub(super) fn may_hide(&self, entity: MainEntity) -> bool {
        let material = self.materials.instances.get(&entity);
        let material = material.and_then(|material| self.prepared.get(material.asset_id));
        material.is_some_and(|material| self.faces.test_depth(&material.properties))
    }
}

/// The sets of the frame.
pub(in crate::render::prepare) struct FrameSets<'a> {
    pub lists: &'a SetLists,
    /// The number of the extraction.
    pub extracted_in: u64,
}

impl<'a> FrameSets<'a> {
    /// The set at a place; `None` if it went.
    pub fn at(&self, place: usize) -> Option<&'a ExtractedSet> {
        self.lists.sets.get(place)?.as_ref()
    }

    /// The places of these sets.
    pub fn places_of(&self, sets: &[SetId]) -> Vec<usize> {
        if sets.is_empty() {
            return Vec::new();
        }
        let all = self.lists.sets.iter().enumerate();
        let is_one = |set: &ExtractedSet| sets.contains(&set.set);
        let found = all.filter(|(_, set)| set.as_ref().is_some_and(is_one));
        found.map(|(place, _)| place).collect()
    }

    /// Whether several entities use a set.
    pub fn are_shared(&self, set: SetId) -> bool {
        self.lists.shared.contains(&set)
    }
}
