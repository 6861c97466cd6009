//! What the main world is told of uploads, and the sets that it may release.

use crate::{
    instance::InstanceSet,
    render::cpu_times::{CpuClock, CpuStage},
};
use bevy::{log::warn_once, prelude::*, tasks::AsyncComputeTaskPool};
use std::sync::{Arc, Mutex};

/// Instances of a new set have arrived on the GPU. Written in each frame that uploads some, until
/// all have arrived.
///
/// A set that is new to the renderer is uploaded in slices of at most [`upload_budget`] bytes per
/// frame, summed over all sets. Sets with the fewest bytes left come first. Until a set is
/// complete, its first [`uploaded`](Self::uploaded) instances are tested, drawn and counted; the
/// entity's `Aabb` surrounds the whole set from the start. A set that takes the place of another
/// one, or that gets its first scale, scale per axis or tag, or more data per instance, streams in
/// the same way if it is larger than the frame's part of the budget; the instances before it are
/// drawn until it is complete.
///
/// A set that [keeps previous places](InstanceSet::keep_previous) arrives in one frame, with one
/// message. So do an empty set (0 of 0), and a set that the GPU writes, when there is room for it.
/// Sets that no entity draws, and sets that are refused, send none.
///
/// [`upload_budget`]: crate::render::GpuCullingSettings::upload_budget
#[derive(Message, Reflect, Clone, Copy, Debug, PartialEq, Eq)]
#[reflect(Clone, Debug, PartialEq)]
pub struct InstanceUploadProgress {
    /// The set.
    pub set: AssetId<InstanceSet>,
    /// Number of instances that have arrived.
    pub uploaded: u32,
    /// Number of instances of the set.
    pub total: u32,
}

impl InstanceUploadProgress {
    /// Whether the whole set has arrived.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.uploaded == self.total
    }
}

/// What has arrived, on its way between the worlds.
#[derive(Resource, Clone, Default)]
pub(in crate::render) struct UploadInbox(Arc<Mutex<Arrived>>);

/// What has arrived in a frame.
#[derive(Default)]
pub(super) struct Arrived {
    pub progress: Vec<InstanceUploadProgress>,
    /// Sets whose data the CPU no longer needs.
    pub complete: Vec<CompleteSet>,
}

/// A set that has arrived completely.
pub(super) struct CompleteSet {
    pub asset: AssetId<InstanceSet>,
    /// Lineage of what was uploaded.
    pub lineage: u64,
    /// Revision of what was uploaded.
    pub revision: u64,
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

/// Passes the progress on, and releases sets that are complete on the GPU and wanted only there.
pub(in crate::render) fn receive_uploads(
    inbox: Res<UploadInbox>,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut progress: MessageWriter<InstanceUploadProgress>,
    clock: Res<CpuClock>,
) {
    let _timer = clock.start(CpuStage::Main);
    let Ok(mut inbox) = inbox.0.lock() else {
        return;
    };
    progress.write_batch(inbox.progress.drain(..));
    if inbox.complete.is_empty() {
        return;
    }
    // Untracked, and past the change detection of `ResMut`: nothing has changed for others.
    let sets = sets.bypass_change_detection();
    for complete in inbox.complete.drain(..) {
        let Some(set) = sets.get_mut_untracked(complete.asset) else {
            continue;
        };
        let is_same = set.lineage() == complete.lineage && set.revision() == complete.revision;
        if is_same && !set.is_released() {
            let data = set.release();
            // Freeing gigabytes takes a while.
            AsyncComputeTaskPool::get()
                .spawn(async move { drop(data) })
                .detach();
        }
    }
}
