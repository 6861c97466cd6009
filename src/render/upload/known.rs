//! What the GPU has of each set, and what was refused.

use crate::{
    cull::{CullError, SetId, WrittenRegion},
    instance::InstanceSet,
};
use bevy::{platform::collections::HashMap, prelude::*, render::sync_world::MainEntity};
use core::ops::Range;

/// Frames after which a set is tried again that the device had no room for: something else may have gone.
const RETRY_AFTER: u64 = 120;

/// A set that was refused. It is tried again when it has changed, or after [`RETRY_AFTER`] frames.
#[derive(Clone, Copy)]
pub(super) struct RefusedSet {
    pub lineage: u64,
    pub revision: u64,
    /// The extraction in which it was.
    pub frame: u64,
}

/// What the GPU has of an asset.
pub(in crate::render) struct KnownSet {
    pub id: SetId,
    pub(super) lineage: u64,
    pub(super) revision: u64,
    /// Instances that have arrived, from the first on.
    pub arrived: usize,
    pub(super) len: usize,
    /// The last extraction that met an entity with it.
    pub used_in: u64,
    /// What the last frame uploaded: it moved in that frame, and does not any more.
    pub(super) moved: Vec<Range<usize>>,
    /// An entity that uses it, for the log.
    pub user: Option<MainEntity>,
    /// What was refused.
    pub(super) refused: Option<RefusedSet>,
}

impl KnownSet {
    pub fn new(id: SetId) -> Self {
        Self {
            id,
            lineage: 0,
            revision: 0,
            arrived: 0,
            len: 0,
            used_in: 0,
            moved: Vec::new(),
            user: None,
            refused: None,
        }
    }

    /// Nothing of it is on the GPU.
    pub(super) fn forget(&mut self) {
        (self.lineage, self.revision) = (0, 0);
        (self.arrived, self.len) = (0, 0);
        self.moved.clear();
    }

    /// Whether this was refused already.
    pub(super) fn is_refused(&self, set: &InstanceSet, frame: u64) -> bool {
        self.refused.is_some_and(|refused| {
            (refused.lineage, refused.revision) == (set.lineage(), set.revision())
                && frame < refused.frame + RETRY_AFTER
        })
    }
}

/// What became of the room for a set that the GPU writes.
pub(in crate::render) enum Reserved {
    /// It has new buffers.
    Moved(Vec<WrittenRegion>),
    /// The buffers are the same as in the last frame.
    Kept,
    /// It has none.
    Refused,
}

/// What the GPU has, by asset.
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
