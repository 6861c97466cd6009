//! The batch set of an entity.

use super::Requests;
use crate::render::{batch_sets::member::BatchSetKey, lods::RequestLods, set_draws::BevyInstance};
use bevy::{
    pbr::{RenderMeshInstanceFlags, RenderMeshQueueData},
    render::sync_world::MainEntity,
};

impl Requests<'_, '_, '_> {
    /// What requests depend on of Bevy's instance of an entity.
    pub(super) fn instance_of(
        &self,
        entity: MainEntity,
        instance: &RenderMeshQueueData<'_>,
    ) -> BevyInstance {
        let flags = instance.flags();
        BevyInstance {
            casts_shadows: flags.contains(RenderMeshInstanceFlags::SHADOW_CASTER),
            is_lightmapped: instance.lightmap_slab_index().is_some(),
            fades: self
                .ranges
                .is_some_and(|ranges| ranges.entity_has_crossfading_visibility_ranges(entity)),
        }
    }

    /// What decides whose draws are joined with an entity's; `None` if nobody's are: its levels
    /// are in other buffers, its meshes have no indices, it has a lightmap or a `VisibilityRange`,
    /// or Bevy has not prepared its material.
    pub(super) fn batch_set_key(
        &mut self,
        entity: MainEntity,
        instance: BevyInstance,
        mesh: usize,
        lods: Option<&RequestLods>,
        has_near_levels: bool,
        may_be_hidden: bool,
    ) -> Option<BatchSetKey> {
        let own = &self.draws.meshes[mesh];
        own.indices.as_ref()?;
        if self.made_for.colors_occlusion || self.draws.expanded.contains(&entity) {
            return None;
        }
        let bound = own.bound();
        let mut levels = lods.iter().flat_map(|lods| &*lods.meshes);
        if !levels.all(|level| self.draws.meshes[*level].bound() == bound) {
            return None;
        }
        if instance.fades || instance.is_lightmapped {
            return None;
        }
        let class = own.class;
        let id = self.hiding.materials.instances.get(&entity)?.asset_id;
        let prepared = self.hiding.prepared.get(id)?;
        Some(BatchSetKey {
            material: self.draws.meshes.batch_sets.material(id, prepared),
            mesh: bound,
            class,
            casts_shadows: instance.casts_shadows,
            may_be_hidden,
            has_near_levels,
        })
    }
}
