//! The mesh entities of which Bevy has written the instance again, or removed it.
//!
//! Bevy's instance of an entity decides the entity's draw slots. To look up ten thousand of them in
//! each frame would cost more than to find the few that changed.

use bevy::{
    pbr::{RenderMeshInstanceGpuQueue, RenderMeshInstanceGpuQueues},
    prelude::*,
    render::sync_world::{MainEntity, MainEntityHashSet},
};

/// More entities than this are not noted. To look up all sets that views see costs less.
const MAX_TOUCHED: usize = 4096;

/// The mesh entities whose instance changed since the requests were collected last.
#[derive(Resource, Default)]
pub(super) struct TouchedInstances {
    entities: MainEntityHashSet,
    /// Whether Bevy builds mesh uniforms on the GPU. Only then it says what it writes.
    is_told: bool,
    /// Whether there were too many.
    are_many: bool,
}

impl TouchedInstances {
    /// The entities; `None` if they are not known.
    pub fn entities(&self) -> Option<&MainEntityHashSet> {
        (self.is_told && !self.are_many).then_some(&self.entities)
    }

    /// Notes entities, unless there are too many.
    fn note(&mut self, entities: impl Iterator<Item = MainEntity>) {
        for entity in entities {
            if self.are_many || self.entities.len() >= MAX_TOUCHED {
                self.are_many = true;
                return;
            }
            self.entities.insert(entity);
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.entities.clear();
        self.are_many = false;
    }
}

/// Notes what Bevy is about to write and to remove.
pub(super) fn note_touched(
    queues: Option<ResMut<RenderMeshInstanceGpuQueues>>,
    mut touched: ResMut<TouchedInstances>,
) {
    let touched = &mut *touched;
    touched.is_told = queues.is_some();
    let Some(mut queues) = queues else {
        return;
    };
    for queue in queues.bypass_change_detection().iter_mut() {
        match queue {
            RenderMeshInstanceGpuQueue::None => {}
            RenderMeshInstanceGpuQueue::CpuCulling { changed, removed } => {
                let changed = changed.iter().map(|(entity, _)| *entity);
                touched.note(changed.chain(removed.iter().copied()));
            }
            RenderMeshInstanceGpuQueue::GpuCulling {
                changed_cpu_culling,
                changed_gpu_culling,
                removed,
            } => {
                let changed = changed_cpu_culling.iter().chain(&*changed_gpu_culling);
                let changed = changed.map(|(entity, ..)| *entity);
                touched.note(changed.chain(removed.iter().copied()));
            }
        }
    }
}
