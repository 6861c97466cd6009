//! What the last run of `alias_materials` found of an entity. While it holds, the next run leaves
//! the entity alone.

use super::draw_mode::EntityNeeds;
use bevy::{
    asset::UntypedAssetId,
    material::MaterialProperties,
    pbr::{PreparedMaterial, RenderMaterialInstances},
    render::{
        erased_render_asset::ErasedRenderAssets, material_bind_groups::MaterialBindingId,
        sync_world::MainEntity,
    },
};
use std::sync::Arc;

/// The material of an entity.
pub(super) enum SettledMaterial {
    /// Bevy has none, for example because no view sees the entity.
    None,
    /// It is not prepared yet.
    Waits,
    /// The entity has its alias.
    Aliased {
        alias: UntypedAssetId,
        /// The material's own id.
        original: UntypedAssetId,
        /// The material's own properties.
        properties: Arc<MaterialProperties>,
        binding: MaterialBindingId,
        /// What the entity asked for.
        asked: EntityNeeds,
    },
}

/// What a run need not look up of each entity, because it is as in the run before.
#[derive(Clone, Copy)]
pub(super) struct StableInputs {
    /// What the entities ask for.
    pub asked: bool,
    /// The prepared materials.
    pub materials: bool,
}

impl SettledMaterial {
    /// Whether a run would give this entity the alias that it has.
    pub fn holds(
        &self,
        entity: MainEntity,
        stays: StableInputs,
        asked_now: impl FnOnce() -> EntityNeeds,
        instances: &RenderMaterialInstances,
        materials: &ErasedRenderAssets<PreparedMaterial>,
    ) -> bool {
        match (self, instances.instances.get(&entity)) {
            (SettledMaterial::None, None) => true,
            (
                SettledMaterial::Aliased {
                    alias,
                    original,
                    properties,
                    binding,
                    asked,
                },
                Some(now),
            ) => {
                now.asset_id == *alias
                    && (stays.asked || asked_now() == *asked)
                    && (stays.materials
                        || materials.get(*original).is_some_and(|material| {
                            Arc::ptr_eq(&material.properties, properties)
                                && is_same_binding(material.binding, *binding)
                        }))
            }
            _ => false,
        }
    }
}

/// Whether two materials are bound alike.
pub(super) fn is_same_binding(a: MaterialBindingId, b: MaterialBindingId) -> bool {
    a.group == b.group && a.slot == b.slot
}
