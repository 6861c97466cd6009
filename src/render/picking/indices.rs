//! The indices of the sets that rays have entered.

use crate::instance::{InstanceSet, RayIndex};
use bevy::{platform::collections::HashMap, prelude::*};

/// The boxes by which rays find instances, set by set.
#[derive(Resource, Default)]
pub(in crate::render) struct RayIndices(HashMap<AssetId<InstanceSet>, RayIndex>);

impl RayIndices {
    /// The index of a set, up to date.
    pub(super) fn updated(&mut self, asset: AssetId<InstanceSet>, set: &InstanceSet) -> &RayIndex {
        let index = self.0.entry(asset).or_default();
        index.update(set);
        index
    }

    /// Number of sets that have an index.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Drops the indices of sets that rays cannot meet any more: those that are gone, and those whose
/// instances are not on the CPU.
pub(super) fn forget_indices(mut indices: ResMut<RayIndices>, sets: Res<Assets<InstanceSet>>) {
    let is_here = |set: &InstanceSet| !set.packed().is_empty();
    let indices = &mut indices.bypass_change_detection().0;
    indices.retain(|asset, _| sets.get(*asset).is_some_and(is_here));
}
