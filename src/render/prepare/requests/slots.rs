//! The draw slots of an entity's request.

use super::Requests;
use crate::cull::{Channels, Version};
use crate::instance::ScaleKind;
use crate::render::{
    batch_sets::member::PageGranules,
    draw_slots::{
        DRAW_DATA_WORDS, DRAW_HAS_OFFSET, DRAW_HAS_SCALE, DRAW_HAS_WIND, DRAW_IS_THINNED,
        DRAW_NON_UNIFORM_SCALE, DRAW_RANGE_OF_CENTERS, OcclusionColor, SlotInfo,
    },
    entity_uniforms::EntityUniform,
    extracted_set::ExtractedSet,
    lods::{Fading, SlotFade, Thinning},
    set_draws::{Drawn, Moves, slot_levels},
};
use bevy::{
    math::{Affine3, UVec4, Vec4},
    prelude::*,
};

/// The slots of an entity.
pub(super) struct FilledSlots {
    pub first: u32,
    pub count: u32,
    /// The version of the set's regions and channels that they were made from.
    pub placed: Option<Version>,
    /// The set's granules.
    pub granules: Option<PageGranules>,
}

impl Requests<'_, '_, '_> {
    /// Fills the slots of the set's regions: one, or if the set fades or is thinned out, one per
    /// level and one for each of the other
    /// [`ViewFades`](crate::render::views::ViewFades). If occlusion is colored, once per color.
    /// `place` is the set's in the list of sets.
    pub(super) fn fill_slots(
        &mut self,
        place: usize,
        set: &ExtractedSet,
        uniform: &EntityUniform,
        fading: Option<&Fading>,
        thinning: Option<Thinning>,
        moves: Moves,
    ) -> FilledSlots {
        let offset = set.offset.map(Affine3::from);
        let before = self.draws.before(place);
        let before = before.filter(|before| before.set == set.set);
        // Most frames change no set, and then this need not be looked up.
        let is_known = |before: &&Drawn| self.draws.sets_stay() && self.was_looked_at(before);
        let placed = match before.filter(is_known) {
            Some(before) => before.placed,
            None => self.culler.store().placed(set.set),
        };
        let kept = before.filter(|before| {
            before.entity == set.entity
                && before.placed == placed
                && before.fading.as_deref() == fading
                && before.thinning == thinning
                && before.moves == moves
                && before.is_colored == self.made_for.colors_occlusion
                && (self.slots).keep(place, before.slots, set.entity, uniform, offset)
        });
        if let Some(kept) = kept {
            return FilledSlots {
                first: kept.first_slot,
                count: kept.slots,
                placed,
                granules: kept.granules,
            };
        }
        let (channels, regions) = self.culler.store().resident(set.set).unwrap_or_default();
        let Channels {
            scale,
            data_words,
            previous,
        } = channels;
        let of_centers = set.range.is_some_and(|range| range.of_centers);
        let of_scale = match scale {
            ScaleKind::One => 0,
            ScaleKind::Uniform => DRAW_HAS_SCALE,
            ScaleKind::NonUniform => DRAW_HAS_SCALE | DRAW_NON_UNIFORM_SCALE,
        };
        let flags = of_scale
            | data_words << DRAW_DATA_WORDS
            | if of_centers { DRAW_RANGE_OF_CENTERS } else { 0 }
            | thinning.map_or(0, |_| DRAW_IS_THINNED)
            | moves.wind.map_or(0, |_| DRAW_HAS_WIND)
            | if offset.is_some() { DRAW_HAS_OFFSET } else { 0 };
        let colors = match self.made_for.colors_occlusion {
            true => &OcclusionColor::ALL[..],
            false => &[OcclusionColor::None],
        };
        let levels = slot_levels(fading, thinning);
        let others = if levels > 0 { 2 } else { 1 };
        let count = colors.len() * regions.len() * (levels + others);
        let filled = FilledSlots {
            first: self.slots.claim(place, count as u32),
            count: count as u32,
            placed,
            granules: PageGranules::of(regions),
        };
        let mut indices = filled.first..;
        let mut fill = |info| {
            if let Some(index) = indices.next() {
                self.slots.fill(index, set.entity, uniform, info, offset);
            }
        };
        let mut set_first = 0;
        let all = colors.iter().flat_map(|color| {
            let regions = regions.iter().enumerate();
            regions.map(move |(number, region)| (color, number, region))
        });
        for (color, number, region) in all {
            if number == 0 {
                set_first = 0;
            }
            let info = SlotInfo {
                flags: flags | color.flag(),
                region_first: region.first,
                set_first,
                previous_offset: if previous { region.capacity } else { 0 },
                fade: SlotFade {
                    center: thinning.map_or(Vec3::ZERO, |_| set.sphere.center),
                    ..SlotFade::NONE
                },
                thin: thinning.map_or(Vec4::ZERO, |thinning| thinning.other),
                wind: moves.wind.map_or([Vec4::ZERO; 2], |wind| wind.words),
                animation: moves
                    .animation
                    .map_or(UVec4::ZERO, |animation| animation.words(data_words)),
            };
            set_first += region.capacity;
            for level in 0..levels {
                let fade = fading.map_or(info.fade, |fading| fading.of_level(level));
                let thin = thinning.map_or(Vec4::ZERO, |thinning| thinning.camera);
                let info = SlotInfo { fade, thin, ..info };
                fill(info);
            }
            if levels > 0 {
                let fade = fading.map_or(info.fade, Fading::of_ranges);
                let thin = thinning.map_or(Vec4::ZERO, |thinning| thinning.camera);
                fill(SlotInfo { fade, thin, ..info });
            }
            fill(info);
        }
        filled
    }
}
