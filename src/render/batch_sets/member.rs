//! What decides which batch set an entity is in.

use super::material::{BatchSetMaterial, MaterialPipelines};
use crate::cull::{
    Region,
    layout::{BLOCK, GRANULE},
};
use crate::render::{
    draw_slots::GRANULES_OF_TABLE,
    set_meshes::{BoundMesh, MeshClass},
};
use bevy::{asset::UntypedAssetId, pbr::PreparedMaterial, platform::collections::HashMap};

/// What the entities of a batch set have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::render) struct BatchSetKey {
    pub material: BatchSetMaterial,
    pub mesh: BoundMesh,
    pub class: MeshClass,
    pub casts_shadows: bool,
    pub may_be_hidden: bool,
    /// Whether some levels are drawn before those of other sets.
    pub has_near_levels: bool,
}

/// The batch sets that were met so far, by numbers: these are compared in each frame.
#[derive(Default)]
pub(in crate::render) struct BatchSetNumbers {
    numbers: HashMap<BatchSetKey, u32>,
    materials: MaterialPipelines,
}

impl BatchSetNumbers {
    /// The number of a batch set.
    pub fn of(&mut self, key: BatchSetKey) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(key).or_insert(next)
    }

    /// The materials that one multi-draw may draw with one of this id.
    pub fn material(
        &mut self,
        id: UntypedAssetId,
        prepared: &PreparedMaterial,
    ) -> BatchSetMaterial {
        self.materials.of(id, prepared)
    }

    /// Whether there are too many of them: materials may come and go.
    pub fn are_many(&self) -> bool {
        self.numbers.len() > 1 << 20
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.numbers.clear();
        self.materials.clear();
    }
}

/// An entity that a batch set may draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::render) struct Member {
    /// The number of its batch set.
    pub batch_set: u32,
    /// The granules of its set.
    pub granules: PageGranules,
}

/// Sets of more granules, 16 blocks, have no rows that rest.
const MAX_RESTING_GRANULES: u32 = 16 * BLOCK / GRANULE;

/// Granules of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::render) struct PageGranules {
    pub page: usize,
    pub first: u32,
    pub end: u32,
}

impl PageGranules {
    /// Whether they are so few that rows that rest in all of them cost little.
    pub fn are_few(self) -> bool {
        self.end - self.first <= MAX_RESTING_GRANULES
    }

    /// The granules of a set; `None` if it has several regions, or if they lie behind what a table
    /// of slots describes.
    pub fn of(regions: &[Region]) -> Option<Self> {
        let [region] = regions else {
            return None;
        };
        let first = region.first / GRANULE;
        let end = first + region.capacity.div_ceil(GRANULE);
        (end <= GRANULES_OF_TABLE).then_some(Self {
            page: region.page,
            first,
            end,
        })
    }
}
