//! The views of requests, and in which of them they rest.
//!
//! If there are many sets, and not too many views, a small set has rows in all views, and rests in
//! the views that do not see it. Then it comes into view and leaves it without another plan.

use super::Requests;
use crate::render::extracted_set::ExtractedSet;

impl Requests<'_, '_, '_> {
    /// Lists the views that see the set at a place, or if it `may_rest`, all. Returns in which of
    /// them it rests.
    pub(super) fn list_views(
        &self,
        place: usize,
        set: &ExtractedSet,
        may_rest: bool,
        views: &mut Vec<u32>,
    ) -> u128 {
        views.clear();
        let seeing = self.draws.seen.views_of(place);
        if may_rest {
            views.extend(0..self.views);
            return seeing.fold(self.all_rest(), |resting, view| resting & !(1 << view));
        }
        let first = if set.keep_all { self.views } else { 0 };
        views.extend(seeing.map(|view| first + view));
        0
    }

    /// The bits of all views.
    pub(super) fn all_rest(&self) -> u128 {
        1u128
            .checked_shl(self.views)
            .map_or(u128::MAX, |bit| bit - 1)
    }
}
