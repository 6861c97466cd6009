//! The mesh entities of which Bevy has written the instance again, or removed it.
//!
//! Bevy's instance of an entity decides the entity's draw slots. To look up ten thousand of them in
//! each frame would cost more than to find the few that changed.

use bevy::{
    pbr::{RenderMeshInstanceGpuQueue, RenderMeshInstanceGpuQueues},
    prelude::*,
    render::sync_world::MainEntityHashSet,
};

/// The mesh entities whose instance changed since the requests were collected last.
#[derive(Resource, Default)]
pub(super) struct TouchedInstances {
    entities: MainEntityHashSet,
    /// Whether `entities` are all: Bevy builds mesh uniforms on the GPU.
    are_all: bool,
}

impl TouchedInstances {
    /// The entities; `None` if they are not known.
    pub fn entities(&self) -> Option<&MainEntityHashSet> {
        self.are_all.then_some(&self.entities)
    }

    /// Starts anew.
    pub fn clear(&mut self) {
        self.entities.clear();
    }
}

/// Notes what Bevy is about to write and to remove.
pub(super) fn note_touched(
    queues: Option<ResMut<RenderMeshInstanceGpuQueues>>,
    mut touched: ResMut<TouchedInstances>,
) {
    touched.are_all = queues.is_some();
    let Some(mut queues) = queues else {
        return;
    };
    let entities = &mut touched.entities;
    for queue in queues.bypass_change_detection().iter_mut() {
        match queue {
            RenderMeshInstanceGpuQueue::None => {}
            RenderMeshInstanceGpuQueue::CpuCulling { changed, removed } => {
                entities.extend(changed.iter().map(|(entity, _)| *entity));
                entities.extend(removed.iter().copied());
            }
            RenderMeshInstanceGpuQueue::GpuCulling {
                changed_cpu_culling,
                changed_gpu_culling,
                removed,
            } => {
                let changed = changed_cpu_culling.iter().chain(&*changed_gpu_culling);
                entities.extend(changed.map(|(entity, ..)| *entity));
                entities.extend(removed.iter().copied());
            }
        }
    }
}
