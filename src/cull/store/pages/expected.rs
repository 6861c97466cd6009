//! Large sets that will get room soon: a new page is made large enough for those that fit together
//! with its first set.

use crate::cull::{
    layout::BLOCK,
    store::region::{Channels, Room, SetId},
};

/// Sets without room, in the order in which they will get it.
#[derive(Default)]
pub(super) struct Expected(Vec<Newcomer>);

struct Newcomer {
    id: SetId,
    channels: Channels,
    /// Number of blocks that remain after whole pages are filled.
    blocks: u32,
}

impl Expected {
    /// Sets with their lengths, in pages of at most `limit` blocks.
    pub fn new(sets: impl IntoIterator<Item = (SetId, u32, Channels)>, limit: u32) -> Self {
        let newcomer = |(id, len, channels): (SetId, u32, Channels)| {
            let factor = Room::of(channels).factor();
            let max = (limit / factor).max(1);
            Newcomer {
                id,
                channels,
                blocks: len.div_ceil(BLOCK) % max * factor,
            }
        };
        Self(sets.into_iter().map(newcomer).collect())
    }

    /// Removes a set that has room now.
    pub fn remove(&mut self, id: SetId) {
        self.0.retain(|newcomer| newcomer.id != id);
    }

    /// Number of blocks for a page of at most `limit` blocks whose first set takes `blocks`: adds
    /// the blocks of every later set with the same channels that still fits.
    pub fn page_blocks(&self, blocks: u32, channels: Channels, limit: u32) -> u32 {
        let alike = self.0.iter().filter(|other| other.channels == channels);
        alike.fold(blocks, |all, other| match all + other.blocks {
            more if more <= limit => more,
            _ => all,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance::ScaleKind;

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

    #[test]
    fn a_page_has_room_for_those_that_follow_and_fit() {
        let sets = [
            (SetId(1), 300 * BLOCK - 7, PLAIN),
            (SetId(2), 500 * BLOCK, SCALED),
            // This set does not fit any more; the next one does.
            (SetId(3), 900 * BLOCK, PLAIN),
            (SetId(4), 700 * BLOCK, PLAIN),
        ];
        let mut expected = Expected::new(sets, LIMIT);
        expected.remove(SetId(1));
        assert_eq!(expected.page_blocks(300, PLAIN, LIMIT), 1000);
        assert_eq!(expected.page_blocks(300, SCALED, LIMIT), 800);
        expected.remove(SetId(4));
        assert_eq!(expected.page_blocks(300, PLAIN, LIMIT), 300);
        assert_eq!(Expected::default().page_blocks(3, PLAIN, LIMIT), 3);
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
        let expected = Expected::new(sets, LIMIT);
        assert_eq!(expected.page_blocks(300, PLAIN, LIMIT), 303);
        assert_eq!(expected.page_blocks(300, previous, LIMIT), 304);
    }
}
