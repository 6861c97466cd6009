//! The sets that come into view or leave it. Bevy forgets the material of an entity that no view
//! sees.

use crate::render::components::GpuInstances;
use bevy::{
    prelude::*,
    render::{Extract, sync_world::MainEntity},
};

/// The entities with sets that were shown or hidden since they were taken last.
#[derive(Resource, Default)]
pub(in crate::render) struct ReshownSets(Vec<MainEntity>);

impl ReshownSets {
    /// Takes the entities.
    pub fn take(&mut self) -> Vec<MainEntity> {
        core::mem::take(&mut self.0)
    }
}

/// A set that is shown or hidden.
type Reshown = (With<GpuInstances>, Changed<ViewVisibility>);

/// Notes which entities are shown or hidden.
pub(in crate::render) fn extract_reshown(
    changed: Extract<Query<Entity, Reshown>>,
    mut reshown: ResMut<ReshownSets>,
) {
    reshown.0.extend(changed.iter().map(MainEntity::from));
}
