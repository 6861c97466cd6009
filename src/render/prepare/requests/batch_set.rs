//! The batch set of an entity.

use super::Requests;
use crate::render::{batch_sets::member::BatchSetKey, lods::RequestLods};
use bevy::{
    pbr::{RenderMeshInstanceFlags, RenderMeshQueueData},
    render::sync_world::MainEntity,
};

impl Requests<'_, '_, '_> {
    /// What decides whose draws are joined with an entity's; `None` if nobody's are: its levels
    /// are in other buffers, its meshes have no indices, it has a lightmap or a `VisibilityRange`,
    /// or Bevy has not prepared its material.
    pub(super) fn batch_set_key(
        &self,
        entity: MainEntity,
        instance: &RenderMeshQueueData<'_>,
        mesh: usize,
        lods: Option<&RequestLods>,
        may_be_hidden: bool,
    ) -> Option<BatchSetKey> {
        let own = &self.draws.meshes[mesh];
        own.indices.as_ref()?;
        if self.colors_occlusion || self.draws.expanded.contains(&entity) {
            return None;
        }
        let bound = own.bound();
        let mut levels = lods.iter().flat_map(|lods| &*lods.meshes);
        if !levels.all(|level| self.draws.meshes[*level].bound() == bound) {
            return None;
        }
        let fades = self
            .ranges
            .is_some_and(|ranges| ranges.entity_has_crossfading_visibility_ranges(entity));
        if fades || instance.lightmap_slab_index().is_some() {
            return None;
        }
        let material = self.hiding.materials.instances.get(&entity)?.asset_id;
        self.hiding.prepared.get(material)?;
        Some(BatchSetKey {
            material,
            mesh: bound,
            class: own.class,
            casts_shadows: instance
                .flags()
                .contains(RenderMeshInstanceFlags::SHADOW_CASTER),
            may_be_hidden,
        })
    }
}
