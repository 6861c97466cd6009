//! What an entity draws, and with which draw slots.

use super::moves::Moves;
use crate::cull::{DrawList, SetId, Version};
use crate::render::{
    batch_sets::member::{Member, PageGranules},
    draw_slots::OcclusionColor,
    groups::RequestShape,
    lods::{Fading, RequestLods, Thinning},
    materials::UsedAlias,
    views::ViewFades,
};
use bevy::{prelude::*, render::sync_world::MainEntity};

/// What an entity draws.
#[derive(Clone)]
pub(in crate::render) struct Drawn {
    pub entity: MainEntity,
    /// The place of its set in the list of sets.
    pub place: usize,
    /// Whether it went: it draws nothing any more.
    pub is_gone: bool,
    /// The number of the extraction whose sets it was made from.
    pub made_in: u64,
    /// The number of the last extraction for which it was looked at; 0 if it has changed since
    /// then.
    pub looked_at: u64,
    /// What Bevy says of it.
    pub bevy: BevyInstance,
    /// What its material was.
    pub material: Option<UsedAlias>,
    /// Whether it draws all instances of a set that no other entity uses, with its own request and
    /// without a `MeshUniform` per survivor.
    pub is_own: bool,
    /// The request whose survivors it draws.
    pub of: RequestShape,
    pub set: SetId,
    /// Version of the regions and channels of the set.
    pub placed: Option<Version>,
    /// Index of its first draw slot. The slots of its other regions follow. If it fades or is
    /// thinned out, a region has one slot per level of detail that fades, and one more for each of
    /// the other [`ViewFades`].
    pub first_slot: u32,
    /// Number of its draw slots.
    pub slots: u32,
    /// Whether the slots are there once per [`OcclusionColor`].
    pub is_colored: bool,
    pub mesh_id: AssetId<Mesh>,
    /// Index of the mesh in the meshes of the frame.
    pub mesh: usize,
    /// Its coarser levels of detail.
    pub lods: Option<RequestLods>,
    /// Number of its levels that are drawn first, the full mesh included ([`near_levels`]);
    /// `None` if all are drawn together.
    pub near_levels: Option<usize>,
    /// How its instances fade; `None` if they do not.
    pub fading: Option<Box<Fading>>,
    /// How its instances are thinned out; `None` if they are not.
    pub thinning: Option<Thinning>,
    /// What moves their vertices.
    pub moves: Moves,
    /// Whether views may hide its instances.
    pub may_be_hidden: bool,
    /// The granules of its set, if they are in one region of a page
    /// ([`PageGranules::of`](crate::render::batch_sets::member::PageGranules)).
    pub granules: Option<PageGranules>,
    /// `None` if its draws cannot be joined with others.
    pub member: Option<Member>,
    /// Whether its request has all views, and rests in those that do not see it.
    pub may_rest: bool,
}

impl Drawn {
    /// Index of the draw slot of a region at a level, for the draws of a list.
    pub(super) fn slot(
        &self,
        region: usize,
        level: usize,
        view_fades: ViewFades,
        list: DrawList,
    ) -> u32 {
        let place = match slot_levels(self.fading.as_deref(), self.thinning) {
            0 => region,
            levels => {
                // Levels that do not fade into each other share the slot of the first.
                let level = match view_fades {
                    ViewFades::All => level.min(levels - 1),
                    ViewFades::Ranges => levels,
                    ViewFades::Nothing => levels + 1,
                };
                region * (levels + 2) + level
            }
        };
        let copies = OcclusionColor::ALL.len() as u32;
        let copy = match self.is_colored {
            true => OcclusionColor::of(list) as u32 * (self.slots / copies),
            false => 0,
        };
        self.first_slot + copy + place as u32
    }
}

/// What requests depend on of Bevy's instance of an entity, besides its mesh and its uniform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::render) struct BevyInstance {
    pub casts_shadows: bool,
    pub is_lightmapped: bool,
    /// It has a `VisibilityRange` in which it fades.
    pub fades: bool,
}

/// Number of slots of a region for views in which all fades. There is one more for each of the
/// other [`ViewFades`].
pub(in crate::render) fn slot_levels(fading: Option<&Fading>, thinning: Option<Thinning>) -> usize {
    fading.map_or(usize::from(thinning.is_some()), Fading::levels)
}

/// The sets of a frame that draw several levels of detail near first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::render) struct LeveledSets {
    /// Number of entities that draw them.
    pub sets: u32,
    /// Number of their instances.
    pub instances: u64,
}

/// Number of the levels that are near, if there are several.
pub(in crate::render) fn near_levels(levels: usize) -> Option<usize> {
    (levels > 1).then(|| levels.div_ceil(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_finer_half_is_near() {
        let halves = [1, 2, 3, 4, 5, 6, 8].map(near_levels);
        let expected = [None, Some(1), Some(2), Some(2), Some(3), Some(3), Some(4)];
        assert_eq!(halves, expected);
    }
}
