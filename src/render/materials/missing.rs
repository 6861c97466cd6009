//! A warning for sets that are not drawn, because their entities have no material.

use crate::render::{set_draws::SetDraws, told::Told};
use bevy::{
    log::warn,
    pbr::RenderMaterialInstances,
    prelude::*,
    render::sync_world::{MainEntity, MainEntityHashSet},
};

/// Number of frames between two checks.
const LOOK_EVERY: u32 = 32;

/// Warns of sets that views see and that had no material in two checks.
pub(in crate::render) fn warn_of_missing_materials(
    draws: Res<SetDraws>,
    materials: Res<RenderMaterialInstances>,
    mut frame: Local<u32>,
    mut waiting: Local<MainEntityHashSet>,
    mut told: Local<Told<MainEntity>>,
) {
    *frame = frame.wrapping_add(1);
    if !frame.is_multiple_of(LOOK_EVERY) {
        return;
    }
    let without: MainEntityHashSet = draws
        .entities()
        .filter(|entity| !materials.instances.contains_key(entity))
        .collect();
    for entity in without.intersection(&waiting) {
        if told.is_new(*entity) {
            warn!(
                "GpuInstances on {}: the set is not drawn, because the entity has no material. Add a MeshMaterial3d, and \
                 the MaterialPlugin of its type",
                entity.id()
            );
        }
    }
    *waiting = without;
}
