//! When all pipelines are compiled.

use bevy::{prelude::*, render::render_resource::PipelineCache};
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

/// Number of frames in a row in which no pipeline was being compiled. Both worlds have it.
#[derive(Resource, Clone, Default)]
pub(super) struct CalmFrames(Arc<AtomicU32>);

impl CalmFrames {
    pub fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// Counts a frame, in the render world.
pub(super) fn count_calm_frames(calm: Res<CalmFrames>, pipelines: Res<PipelineCache>) {
    match pipelines.waiting_pipelines().next() {
        Some(_) => calm.reset(),
        None => _ = calm.0.fetch_add(1, Ordering::Relaxed),
    }
}
