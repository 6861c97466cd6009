//! Stamps that remember recent edits exactly, not by granules.

use std::collections::VecDeque;
use std::ops::Range;

use super::stamps::{GRANULE, Stamps};

/// Number of recent edits that are remembered in any set. A longer set remembers one per
/// [`LEN_PER_EDIT`] instances.
const MIN_EDITS: usize = 256;
const LEN_PER_EDIT: usize = 4;

/// The revision that last wrote into each granule, and the ranges of recent edits.
#[derive(Clone, Debug, Default)]
pub(in crate::instance) struct Exact {
    stamps: Stamps,
    /// Revisions and what they wrote, oldest first.
    recent: VecDeque<(u64, Range<usize>)>,
    /// The newest revision whose range was forgotten.
    forgotten: u64,
}

impl Exact {
    /// Notes that `revision` wrote a range of a set of `len` instances.
    pub(super) fn mark(&mut self, range: Range<usize>, revision: u64, len: usize) {
        if range.is_empty() {
            return;
        }
        self.stamps.mark(range.clone(), revision);
        self.recent.push_back((revision, range));
        if self.recent.len() > MIN_EDITS.max(len / LEN_PER_EDIT)
            && let Some((oldest, _)) = self.recent.pop_front()
        {
            self.forgotten = oldest;
        }
    }

    /// What was written after a revision, in a set of `len` instances.
    pub(super) fn since(&self, revision: u64, len: usize) -> Vec<Range<usize>> {
        if revision < self.forgotten {
            return self.stamps.since(revision, len);
        }
        let written = self.since_in_order(revision);
        let mut written: Vec<_> = written
            .map(|range| range.start..range.end.min(len))
            .filter(|range| !range.is_empty())
            .collect();
        written.sort_unstable_by_key(|range| range.start);
        written.dedup_by(|next, last| {
            let joins = next.start <= last.end;
            if joins {
                last.end = last.end.max(next.end);
            }
            joins
        });
        written
    }

    /// Whether an index may have been written after a revision.
    pub(super) fn may_contain(&self, at: usize, revision: u64) -> bool {
        if revision < self.forgotten {
            let stamp = self.stamps.granules.get(at / GRANULE);
            return stamp.is_some_and(|stamp| *stamp > revision);
        }
        let mut written = self.since_in_order(revision);
        written.any(|range| range.contains(&at))
    }

    /// The remembered edits after a revision, newest first.
    fn since_in_order(&self, revision: u64) -> impl Iterator<Item = &Range<usize>> {
        let newest_first = self.recent.iter().rev();
        let after = newest_first.take_while(move |(of, _)| *of > revision);
        after.map(|(_, range)| range)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    #![allow(
        clippy::single_range_in_vec_init,
        reason = "lists of ranges that happen to have one"
    )]

    use super::*;
    use crate::instance::test_sets::{at, line};
    use crate::instance::{InstanceSet, SetChanges};

    type Pairs = Vec<(usize, usize)>;

    fn pairs(ranges: Vec<Range<usize>>) -> Pairs {
        let pair = |range: Range<usize>| (range.start, range.end);
        ranges.into_iter().map(pair).collect()
    }

    #[test]
    fn recent_edits_are_exact_and_older_ones_are_rounded() {
        let mut exact = Exact::default();
        exact.mark(700..701, 2, 1000);
        exact.mark(5..7, 3, 1000);
        exact.mark(7..9, 3, 1000);
        exact.mark(6..8, 4, 1000);
        exact.mark(3..3, 5, 1000);
        assert_eq!(exact.since(1, 1000), [5..9, 700..701]);
        assert_eq!(exact.since(3, 1000), [6..8]);
        assert_eq!(exact.since(1, 700), [5..9]);
        assert!(exact.since(4, 1000).is_empty());
        assert!(exact.may_contain(700, 1) && !exact.may_contain(700, 2));
        assert!(!exact.may_contain(699, 1));

        for revision in 5..5 + MIN_EDITS as u64 {
            exact.mark(300..301, revision, 1000);
        }
        assert_eq!(exact.since(4, 1000), [300..301]);
        assert_eq!(exact.since(1, 1000), [0..3 * GRANULE]);
        assert!(exact.may_contain(699, 1) && !exact.may_contain(900, 1));
        assert!(exact.recent.len() <= MIN_EDITS);
    }

    /// A reader that draws motion: of 1,000 instances that move in each frame, only the ones that
    /// are new at their index, or were put there, have none.
    #[test]
    fn edits_do_not_stop_the_motion_of_neighbors() {
        type Edit = fn(&mut InstanceSet);
        let edits: [(&str, Edit, Pairs, Pairs); 7] = [
            ("set", |set| set.set(100, at(0.0)).unwrap(), vec![], vec![]),
            (
                "teleport",
                |set| set.teleport(100, at(0.0)).unwrap(),
                vec![],
                vec![(100, 101)],
            ),
            (
                "swap_remove",
                |set| assert_eq!(set.swap_remove(100), Ok(Some(999))),
                vec![(100, 101)],
                vec![],
            ),
            (
                "push below the longest length",
                |set| {
                    set.pop();
                    set.push(at(0.0)).unwrap();
                },
                vec![(999, 1000)],
                vec![],
            ),
            (
                "hide and show",
                |set| {
                    set.hide(7).unwrap();
                    set.show(7).unwrap();
                },
                vec![],
                vec![(7, 8)],
            ),
            (
                "splice",
                |set| drop(set.splice(20..22, [at(0.0); 2]).unwrap()),
                vec![(20, 22)],
                vec![],
            ),
            (
                "teleport with the first scale",
                |set| {
                    set.set(0, at(0.0).with_scale(2.0)).unwrap();
                    set.teleport(3, at(0.0)).unwrap();
                },
                vec![],
                vec![(3, 4)],
            ),
        ];
        for (name, edit, renumbered, teleported) in edits {
            let mut set = line(1000).keep_previous(true);
            let mut seen = set.revision();
            for frame in 0..3 {
                let moved = (0..1000).map(|i| at(i as f32 + frame as f32));
                set.set_range(0, moved).unwrap();
                if frame == 1 {
                    edit(&mut set);
                }
                match set.changes_since(seen) {
                    SetChanges::Ranges(changed) if frame == 1 => {
                        assert_eq!(pairs(changed.renumbered), renumbered, "{name}");
                        assert_eq!(pairs(changed.teleported), teleported, "{name}");
                    }
                    SetChanges::Ranges(changed) => {
                        assert!(changed.renumbered.is_empty() && changed.teleported.is_empty());
                    }
                    SetChanges::Everything => assert!(name.contains("scale") && frame == 1),
                    SetChanges::Nothing => panic!("{name}: all moved"),
                }
                set.splice(set.len() as u32.., vec![at(0.0); 1000 - set.len()])
                    .unwrap();
                seen = set.revision();
            }
        }
    }
}
