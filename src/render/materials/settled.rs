//! What the last run has found: while all of it holds, the next has nothing to do.

use bevy::{
    asset::UntypedAssetId,
    material::MaterialProperties,
    pbr::{MaterialBindingId, PreparedMaterial, RenderMaterialInstances},
    render::{erased_render_asset::ErasedRenderAssets, sync_world::MainEntity},
};
use std::sync::Arc;

/// The sets' entities in their order.
#[derive(Default)]
pub(super) struct Settled {
    /// With their materials; `None` where Bevy has none, as for what no view sees.
    pub entities: Vec<(MainEntity, Option<SettledMaterial>)>,
    pub able: Able,
}

/// What the device can do for materials.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct Able {
    /// Sets are drawn at all.
    pub is_on: bool,
    /// A compute pass can write a `MeshUniform` per survivor.
    pub can_write: bool,
    /// Storage buffers that a vertex stage may have.
    pub vertex_buffers: u32,
}

/// A material whose alias the entity has.
pub(super) struct SettledMaterial {
    pub alias: UntypedAssetId,
    pub original: UntypedAssetId,
    /// Of the original.
    pub properties: Arc<MaterialProperties>,
    pub binding: MaterialBindingId,
    /// A `MeshUniform` for each survivor is asked for.
    pub asked: bool,
}

impl Settled {
    /// Whether these entities would get what they have.
    pub fn holds(
        &self,
        entities: &[MainEntity],
        able: Able,
        asked: impl Fn(&MainEntity) -> bool,
        instances: &RenderMaterialInstances,
        materials: &ErasedRenderAssets<PreparedMaterial>,
    ) -> bool {
        let is_same = |entity: &MainEntity, known: &SettledMaterial, id: UntypedAssetId| {
            id == known.alias
                && asked(entity) == known.asked
                && materials.get(known.original).is_some_and(|material| {
                    Arc::ptr_eq(&material.properties, &known.properties)
                        && material.binding.group == known.binding.group
                        && material.binding.slot == known.binding.slot
                })
        };
        self.able == able
            && self.entities.len() == entities.len()
            && entities.iter().zip(&self.entities).all(|(entity, known)| {
                *entity == known.0
                    && match (&known.1, instances.instances.get(entity)) {
                        (Some(known), Some(now)) => is_same(entity, known, now.asset_id),
                        (None, None) => true,
                        _ => false,
                    }
            })
    }
}
