//! The sets that come into view or leave it. Bevy forgets the material of an entity that no view
//! sees.

use crate::render::components::GpuInstances;
use bevy::{
    prelude::*,
    render::{Extract, sync_world::MainEntity},
};

/// From this many entities on, each is kept once: nobody takes them while the app has stopped
/// rendering.
const MANY: usize = 1 << 16;

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
    let before = reshown.0.len();
    reshown.0.extend(changed.iter().map(MainEntity::from));
    if reshown.0.len() > MANY && reshown.0.len() > before {
        reshown.0.sort_unstable();
        reshown.0.dedup();
    }
}
