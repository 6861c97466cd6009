//! What is logged of entities that are not drawn as they ask for.

use crate::render::{names::AssetNames, told::Told};
use bevy::{log::warn, prelude::*, render::sync_world::MainEntity};
use core::ops::Range;

/// What was logged of entities that are not drawn as they ask for.
#[derive(Default)]
pub(in crate::render) struct DrawWarnings {
    /// Entities with a deformed mesh.
    deformed: Told<MainEntity>,
    /// Levels with an unfit mesh.
    levels: Told<(MainEntity, AssetId<Mesh>)>,
    /// Unfit index ranges of an entity's mesh.
    ranges: Told<(MainEntity, Range<u32>)>,
    /// Entities with a component that is ignored.
    ignored: Told<(MainEntity, &'static str)>,
}

impl DrawWarnings {
    /// Logs once that a set with a skinned or morphed mesh is not drawn.
    pub fn refuse_deformed(
        &mut self,
        entity: MainEntity,
        mesh: AssetId<Mesh>,
        names: &AssetNames<'_>,
    ) {
        if self.deformed.is_new(entity) {
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
        if self.ignored.is_new((entity, component)) {
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
        if self.levels.is_new((entity, mesh)) {
            error!(
                "InstanceLods on {}: the level with {} is not drawn, because its vertex attributes or its \
                 topology differ from the entity's Mesh3d. Give both meshes the same",
                entity.id(),
                names.of(mesh)
            );
        }
    }

    /// Logs once that a level is ignored, because its index range does not fit the mesh.
    pub(super) fn refuse_range(
        &mut self,
        entity: MainEntity,
        mesh: AssetId<Mesh>,
        level: &str,
        range: &Range<u32>,
        problem: &str,
        names: &AssetNames<'_>,
    ) {
        if self.ranges.is_new((entity, range.clone())) {
            error!(
                "InstanceLods on {}: {level} is ignored: its indices are {range:?} of {}, and {problem}",
                entity.id(),
                names.of(mesh)
            );
        }
    }
}
