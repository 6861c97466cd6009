//! What the GPU has of each set, and which sets were refused.

use crate::{
    cull::{CullError, RetryTimer, SetId, WrittenRegion},
    instance::InstanceSet,
};
use bevy::{
    asset::RenderAssetUsages, platform::collections::HashMap, prelude::*,
    render::sync_world::MainEntity,
};
use core::ops::Range;

/// A set that was refused. It is tried again when it has changed, or when the timer is due.
#[derive(Clone, Copy)]
pub(super) struct RefusedSet {
    pub lineage: u64,
    pub revision: u64,
    /// It counts extractions.
    pub retry: RetryTimer,
}

/// What the GPU has of a set.
pub(in crate::render) struct SetOnGpu {
    pub id: SetId,
    /// Lineage and revision of what the GPU has; 0 if it has nothing.
    pub(super) lineage: u64,
    pub(super) revision: u64,
    /// Number of instances that have arrived, from the first on.
    pub arrived: usize,
    /// Number of instances of the set.
    pub(super) len: usize,
    /// The number of the extraction that made room for it.
    pub(super) started_in: u64,
    /// Instances that moved in the previous frame, of a set that keeps the previous frame's.
    pub(super) moved: Vec<Range<usize>>,
}

impl SetOnGpu {
    pub(super) fn new(id: SetId) -> Self {
        Self {
            id,
            lineage: 0,
            revision: 0,
            arrived: 0,
            len: 0,
            started_in: 0,
            moved: Vec::new(),
        }
    }

    /// The GPU has nothing of the set any more.
    pub(super) fn forget(&mut self) {
        *self = Self::new(self.id);
    }

    /// Whether all of it has arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.arrived == self.len
    }
}

/// What is known of an asset.
pub(in crate::render) struct KnownSet {
    /// What is drawn.
    pub current: SetOnGpu,
    /// What takes its place when all of it has arrived.
    pub(super) next: Option<SetOnGpu>,
    /// The number of the extraction that made the [lists](crate::render::extract::SetLists) in
    /// which entities use the set.
    pub used_in: u64,
    /// Number of entities that use the set, if some do.
    pub users: u32,
    /// An entity that uses the set, for the log.
    pub user: Option<MainEntity>,
    /// The number of the extraction since which what is drawn is not the asset, if it waits for its
    /// turn to be replaced.
    pub(super) outdated_since: Option<u64>,
    /// The last refusal, if the set is refused.
    pub(super) refused: Option<RefusedSet>,
}

impl KnownSet {
    pub fn new(id: SetId) -> Self {
        Self {
            current: SetOnGpu::new(id),
            next: None,
            used_in: 0,
            users: 0,
            user: None,
            outdated_since: None,
            refused: None,
        }
    }

    /// What is on its way to the GPU, or else what is drawn.
    pub(super) fn newest(&mut self) -> &mut SetOnGpu {
        self.next.as_mut().unwrap_or(&mut self.current)
    }

    /// Whether what is drawn is the asset, and not what was there before it.
    pub fn is_current(&self) -> bool {
        self.next.is_none()
    }

    /// Whether the GPU has all of the asset, and there is nothing to do for it.
    pub fn is_settled(&self, set: &InstanceSet) -> bool {
        let current = &self.current;
        // What only the GPU is to keep is dropped on the CPU next.
        let is_dropped = set.asset_usage != RenderAssetUsages::RENDER_WORLD
            || set.is_released()
            || set.is_empty();
        self.next.is_none()
            && self.outdated_since.is_none()
            && self.refused.is_none()
            && (current.lineage, current.revision) == (set.lineage(), set.revision())
            && current.is_complete()
            && current.moved.is_empty()
            && !set.keeps_previous()
            && set.written().is_none()
            && is_dropped
    }

    /// Every set of the engine that it has.
    pub fn ids(&self) -> impl Iterator<Item = SetId> + '_ {
        let next = self.next.iter().map(|next| next.id);
        core::iter::once(self.current.id).chain(next)
    }

    /// Whether the set was refused as it is, and is not to be tried again yet.
    pub(super) fn is_refused(&self, set: &InstanceSet, frame: u64) -> bool {
        self.refused.is_some_and(|refused| {
            (refused.lineage, refused.revision) == (set.lineage(), set.revision())
                && refused.retry.waits(frame)
        })
    }
}

/// What became of a request for room for a set that the GPU writes.
pub(in crate::render) enum Reserved {
    /// The set has new buffers.
    Moved(Vec<WrittenRegion>),
    /// The set has the same buffers as in the previous frame.
    Kept,
    /// The set has no buffers.
    Refused,
}

/// What the GPU has of each asset.
pub(in crate::render) type KnownSets = HashMap<AssetId<InstanceSet>, KnownSet>;

/// Why a set is not drawn.
#[derive(Debug, thiserror::Error)]
pub(in crate::render) enum UploadProblem {
    /// The engine refused it.
    #[error("{0}")]
    Refused(#[from] CullError),
    /// Only the GPU had its data.
    #[error(
        "its {0} instances were dropped on the CPU after an upload that is no longer on the GPU: keep MAIN_WORLD in its \
         asset_usage, or put a new set in its place"
    )]
    Dropped(usize),
}
