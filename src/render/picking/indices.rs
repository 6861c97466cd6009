//! The indices of the sets that rays have entered, or in which regions were looked for.

use crate::instance::{InstanceSet, SpatialIndex};
use bevy::{platform::collections::HashMap, prelude::*};

/// The boxes by which rays and regions find instances, set by set.
#[derive(Resource, Default)]
pub(in crate::render) struct SpatialIndices(HashMap<AssetId<InstanceSet>, SpatialIndex>);

impl SpatialIndices {
    /// The index of a set, up to date.
    pub(super) fn updated(
        &mut self,
        asset: AssetId<InstanceSet>,
        set: &InstanceSet,
    ) -> &SpatialIndex {
        let index = self.0.entry(asset).or_default();
        index.update(set);
        index
    }

    /// Number of sets that have an index.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Drops the indices of sets in which nothing can be found any more: they are gone, or their
/// instances are not on the CPU.
pub(super) fn forget_indices(mut indices: ResMut<SpatialIndices>, sets: Res<Assets<InstanceSet>>) {
    let is_here = |set: &InstanceSet| !set.packed().is_empty();
    let indices = &mut indices.bypass_change_detection().0;
    indices.retain(|asset, _| sets.get(*asset).is_some_and(is_here));
}
