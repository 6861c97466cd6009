//! What a ray hit.

use crate::instance::{InstanceId, InstanceSet, SetVersion};
use bevy::prelude::*;

/// An instance that a ray hits.
#[derive(Clone, Debug, PartialEq, Reflect)]
#[reflect(Clone, Debug, PartialEq)]
pub struct InstanceHit {
    /// Index of the instance in its set, as it was when the ray was cast. To edit the set later,
    /// ask for [`index_in`](Self::index_in): another pointer, or any other system, may have edited
    /// it meanwhile.
    pub instance: u32,
    /// The instance's id, in a set [with ids](InstanceSet::with_ids).
    pub id: Option<InstanceId>,
    /// The set as it was when the ray was cast.
    pub version: SetVersion,
    /// The instance's tag; 0 without tags.
    pub tag: u32,
    /// The point at which the ray hits it, in world space.
    pub point: Vec3,
    /// The normal there, in world space, as Bevy's `RayMeshHit` has it: its length may differ from
    /// 1 in scaled sets, and uneven scales bend it.
    pub normal: Vec3,
    /// Distance from the ray's origin, in world units.
    pub distance: f32,
    /// Which triangle of the mesh was hit. `None` if only the instance's sphere is known: see
    /// [`InstanceRayCast`](crate::render::InstanceRayCast).
    pub triangle_index: Option<usize>,
    /// Texture coordinates, if the mesh has them.
    pub uv: Option<Vec2>,
}

impl InstanceHit {
    /// The index of the instance now, in the set that was hit. `None` if it was removed, or if the
    /// set was replaced by another one.
    ///
    /// In a set [with ids](InstanceSet::with_ids), an instance is found wherever edits put it. In
    /// other sets it is found as long as it keeps its index, and `None` also means that another
    /// instance may be there by now.
    #[must_use]
    pub fn index_in(&self, set: &InstanceSet) -> Option<u32> {
        match self.id {
            Some(id) => set.index_of(id),
            None => set.index_since(self.instance, self.version),
        }
    }
}
