//! What is logged of entities that are not drawn as they ask for.

use super::SetDraws;
use crate::render::names::AssetNames;
use bevy::{log::warn, prelude::*, render::sync_world::MainEntity};

impl SetDraws {
    /// Logs once that a set with a skinned or morphed mesh is not drawn.
    pub fn refuse_deformed(
        &mut self,
        entity: MainEntity,
        mesh: AssetId<Mesh>,
        names: &AssetNames<'_>,
    ) {
        if self.told.is_new(entity) {
            error!(
                "GpuInstances on {} are not drawn: {} has joints and no InstanceAnimation that poses them, \
                 or it has morph targets. Add an InstanceAnimation, or to an InstanceScene BakeAnimation; or remove the \
                 attributes JOINT_INDEX and JOINT_WEIGHT, or the morph targets",
                entity.id(),
                names.of(mesh)
            );
        }
    }

    /// Logs once that a component is ignored. `drawn` says how the set is drawn.
    pub fn ignore(&mut self, entity: MainEntity, component: &'static str, drawn: &str) {
        if self.told_ignored.is_new((entity, component)) {
            warn!(
                "{component} on {} is ignored, because the set is drawn {drawn}. Remove either",
                entity.id()
            );
        }
    }

    /// Logs once that a level's mesh does not fit the entity's.
    pub(super) fn refuse_level(
        &mut self,
        entity: MainEntity,
        mesh: AssetId<Mesh>,
        names: &AssetNames<'_>,
    ) {
        if self.told_levels.is_new((entity, mesh)) {
            error!(
                "InstanceLods on {}: the level with {} is not drawn, because its vertex attributes or its \
                 topology differ from the entity's Mesh3d. Give both meshes the same",
                entity.id(),
                names.of(mesh)
            );
        }
    }
}
