//! What the last run of `alias_materials` found. While it holds, the next run has nothing to do.

use super::drawn_by::{Able, Asked};
use bevy::{
    asset::UntypedAssetId,
    material::MaterialProperties,
    pbr::{MaterialBindingId, PreparedMaterial, RenderMaterialInstances},
    render::{erased_render_asset::ErasedRenderAssets, sync_world::MainEntity},
};
use std::sync::Arc;

/// The entities of a run, in its order.
#[derive(Default)]
pub(super) struct Settled {
    pub entities: Vec<SettledEntity>,
    pub able: Able,
}

/// An entity of a run.
pub(super) struct SettledEntity {
    pub entity: MainEntity,
    /// `None` if Bevy has no material of the entity, for example because no view sees it.
    pub material: Option<SettledMaterial>,
}

/// A material whose alias the entity has.
pub(super) struct SettledMaterial {
    pub alias: UntypedAssetId,
    /// The material's own id.
    pub original: UntypedAssetId,
    /// The material's own properties.
    pub properties: Arc<MaterialProperties>,
    pub binding: MaterialBindingId,
    /// What the entity asked for.
    pub asked: Asked,
}

impl Settled {
    /// Whether a run would give these entities the aliases that they have.
    pub fn holds(
        &self,
        entities: &[MainEntity],
        able: Able,
        asked: impl Fn(&MainEntity) -> Asked,
        instances: &RenderMaterialInstances,
        materials: &ErasedRenderAssets<PreparedMaterial>,
    ) -> bool {
        let is_same = |entity: &MainEntity, known: &SettledMaterial, id: UntypedAssetId| {
            id == known.alias
                && asked(entity) == known.asked
                && materials.get(known.original).is_some_and(|material| {
                    Arc::ptr_eq(&material.properties, &known.properties)
                        && is_same_binding(material.binding, known.binding)
                })
        };
        self.able == able
            && self.entities.len() == entities.len()
            && entities.iter().zip(&self.entities).all(|(entity, known)| {
                *entity == known.entity
                    && match (&known.material, instances.instances.get(entity)) {
                        (Some(known), Some(now)) => is_same(entity, known, now.asset_id),
                        (None, None) => true,
                        _ => false,
                    }
            })
    }
}

/// Whether two materials are bound alike.
pub(super) fn is_same_binding(a: MaterialBindingId, b: MaterialBindingId) -> bool {
    a.group == b.group && a.slot == b.slot
}
