//! What requests are made from.

use crate::cull::SetId;
use crate::render::{
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
    platform::collections::HashSet,
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
    pub all: &'a [ExtractedSet],
    /// Sets that several entities use.
    pub shared: &'a HashSet<SetId>,
    /// Whether some entity has `NoFrustumCulling`.
    pub keeps_all: bool,
    /// Names the list of sets ([`GpuCuller::listed_in`](crate::render::culler::GpuCuller)).
    pub listed_in: u64,
    /// The number of the extraction.
    pub extracted_in: u64,
}

impl Scene<'_, '_> {
    /// Whether meshes are as in the previous frame. Of materials, the aliases know which entities
    /// have others.
    pub(super) fn stays(&self) -> bool {
        !self.meshes.have_moved() && !self.meshes.have_other_rows()
    }
}
