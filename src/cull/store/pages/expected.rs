//! Sets that will get room soon: a new page is made large enough for those that fit together with
//! its first set.

use super::tenants::Tenants;
use crate::cull::store::region::{Channels, RegionLayout, SetId};

/// Sets without room, in the order in which they will get it.
#[derive(Default)]
pub(super) struct ExpectedSets(Vec<ExpectedSet>);

struct ExpectedSet {
    id: SetId,
    tenants: Tenants,
    /// Number of granules that remain after whole pages are filled.
    granules: u32,
}

impl ExpectedSets {
    /// Sets with their lengths, in pages of at most `limit` instances.
    pub fn new(
        sets: impl IntoIterator<Item = (SetId, u32, Channels, Tenants)>,
        limit: u32,
    ) -> Self {
        let newcomer = |(id, len, channels, tenants): (SetId, u32, Channels, Tenants)| {
            let (factor, granule) = (RegionLayout::of(channels).factor(), tenants.granule());
            let max = (limit / granule / factor).max(1);
            ExpectedSet {
                id,
                tenants,
                granules: len.div_ceil(granule) % max * factor,
            }
        };
        Self(sets.into_iter().map(newcomer).collect())
    }

    /// Removes a set that has room now.
    pub fn remove(&mut self, id: SetId) {
        self.0.retain(|newcomer| newcomer.id != id);
    }

    /// Number of granules for a page of at most `limit` granules whose first set takes `granules`:
    /// adds the granules of every later set with the same tenants that still fits.
    pub fn page_granules(&self, granules: u32, tenants: Tenants, limit: u32) -> u32 {
        let alike = self.0.iter().filter(|other| other.tenants == tenants);
        alike.fold(granules, |all, other| match all + other.granules {
            more if more <= limit => more,
            _ => all,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cull::layout::{BLOCK, GRANULE},
        instance::ScaleKind,
    };

    const PLAIN: Channels = Channels {
        scale: ScaleKind::One,
        data_words: 0,
        previous: false,
    };
    const SCALED: Channels = Channels {
        scale: ScaleKind::Uniform,
        ..PLAIN
    };
    /// Number of blocks in a page.
    const LIMIT: u32 = 1000;

    fn large((id, len, channels): (SetId, u32, Channels)) -> (SetId, u32, Channels, Tenants) {
        (id, len, channels, Tenants::Large(channels))
    }

    #[test]
    fn small_sets_are_expected_in_their_own_granules() {
        let small = Tenants::Small(PLAIN.layout());
        let tagged = Tenants::Small(
            Channels {
                data_words: 4,
                ..PLAIN
            }
            .layout(),
        );
        let set = |id, len| (SetId(id), len, PLAIN, small);
        let expected = ExpectedSets::new([set(1, 1), set(2, GRANULE), set(3, 1000)], LIMIT * BLOCK);
        assert_eq!(expected.page_granules(2, small, 100), 2 + 1 + 1 + 8);
        assert_eq!(expected.page_granules(2, small, 9), 2 + 1 + 1);
        assert_eq!(expected.page_granules(2, tagged, 100), 2);
    }

    #[test]
    fn a_page_has_room_for_those_that_follow_and_fit() {
        let sets = [
            (SetId(1), 300 * BLOCK - 7, PLAIN),
            (SetId(2), 500 * BLOCK, SCALED),
            // This set does not fit any more; the next one does.
            (SetId(3), 900 * BLOCK, PLAIN),
            (SetId(4), 700 * BLOCK, PLAIN),
        ];
        let mut expected = ExpectedSets::new(sets.map(large), LIMIT * BLOCK);
        expected.remove(SetId(1));
        assert_eq!(
            expected.page_granules(300, Tenants::Large(PLAIN), LIMIT),
            1000
        );
        assert_eq!(
            expected.page_granules(300, Tenants::Large(SCALED), LIMIT),
            800
        );
        expected.remove(SetId(4));
        assert_eq!(
            expected.page_granules(300, Tenants::Large(PLAIN), LIMIT),
            300
        );
        assert_eq!(
            ExpectedSets::default().page_granules(3, Tenants::Large(PLAIN), LIMIT),
            3
        );
    }

    #[test]
    fn what_fills_pages_of_its_own_counts_with_its_rest() {
        let previous = Channels {
            previous: true,
            ..PLAIN
        };
        let sets = [
            (SetId(1), 2003 * BLOCK, PLAIN),
            (SetId(2), 502 * BLOCK, previous),
        ];
        let expected = ExpectedSets::new(sets.map(large), LIMIT * BLOCK);
        assert_eq!(
            expected.page_granules(300, Tenants::Large(PLAIN), LIMIT),
            303
        );
        assert_eq!(
            expected.page_granules(300, Tenants::Large(previous), LIMIT),
            304
        );
    }
}
