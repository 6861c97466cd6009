//! What the main world is told of uploads, and sets that it may release.

use crate::{
    instance::InstanceSet,
    render::cpu_times::{CpuClock, CpuStage},
};
use bevy::{log::warn_once, prelude::*, tasks::AsyncComputeTaskPool};
use std::sync::{Arc, Mutex};

/// Instances of a new set have arrived on the GPU: written in each frame that brings some, until all are there.
///
/// A set that is new to the renderer is uploaded in slices of at most
/// [`GpuCullingPlugin::upload_budget`](crate::render::GpuCullingPlugin::upload_budget) bytes a frame, all sets together, those
/// with the least to go first. Until it is complete, its first [`uploaded`](Self::uploaded) instances are tested, drawn
/// and counted; the entity's `Aabb` is that of the whole set from the start.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceUploadProgress {
    /// The set.
    pub set: AssetId<InstanceSet>,
    /// Instances that have arrived.
    pub uploaded: u32,
    /// Instances of the set.
    pub total: u32,
}

impl InstanceUploadProgress {
    /// Whether the whole set has arrived.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.uploaded == self.total
    }
}

/// What the main world is told.
#[derive(Resource, Clone, Default)]
pub(in crate::render) struct UploadInbox(Arc<Mutex<Arrived>>);

#[derive(Default)]
pub(super) struct Arrived {
    pub progress: Vec<InstanceUploadProgress>,
    /// Sets whose data is not needed any more, with lineage and revision of what was uploaded.
    pub complete: Vec<(AssetId<InstanceSet>, u64, u64)>,
}

impl UploadInbox {
    /// Tells the main world what has arrived in a frame.
    pub(super) fn send(&self, arrived: Arrived) {
        if arrived.progress.is_empty() && arrived.complete.is_empty() {
            return;
        }
        match self.0.lock() {
            Ok(mut inbox) => {
                inbox.progress.extend(arrived.progress);
                inbox.complete = arrived.complete;
            }
            Err(_) => warn_once!("upload progress is lost: a thread panicked while it held it"),
        }
    }
}

/// Passes the progress on, and releases sets that are on the GPU and wanted only there.
pub(in crate::render) fn receive_uploads(
    inbox: Res<UploadInbox>,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut progress: MessageWriter<InstanceUploadProgress>,
    clock: Res<CpuClock>,
) {
    let _running = clock.start(CpuStage::Main);
    let Ok(mut inbox) = inbox.0.lock() else {
        return;
    };
    progress.write_batch(inbox.progress.drain(..));
    if inbox.complete.is_empty() {
        return;
    }
    // Untracked, and past the change detection of `ResMut`: for others nothing has changed.
    let sets = sets.bypass_change_detection();
    for (asset, lineage, revision) in inbox.complete.drain(..) {
        let Some(set) = sets.get_mut_untracked(asset) else {
            continue;
        };
        if set.lineage() == lineage && set.revision() == revision && !set.is_released() {
            let data = set.release();
            // Giving back gigabytes takes a while.
            AsyncComputeTaskPool::get()
                .spawn(async move { drop(data) })
                .detach();
        }
    }
}
