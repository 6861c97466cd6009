//! What [`Compaction::Auto`] learns from the counters of earlier frames.

use super::tuning::Tuning;
use crate::cull::{
    Compaction, DrawList, FrameCounts,
    policy::{
        MAX_ONE_PASS_TESTS_WITH_LEVELS, MAX_STRIPS, MAX_UNCLASSIFIED_TESTS_WITH_LEVELS,
        MAX_VISIBLE_CHANGE_PERCENT, NEARLY_ALL_CROSSED_PERCENT, NEARLY_ALL_VISIBLE_PERCENT,
        RECLASSIFY_AFTER,
    },
};

/// The choice between [`Compaction::VoteScanCompact`] and [`Compaction::Classify`] if a [`Tuning`]
/// has both, and between [`Compaction::LookBack`] and the first for many small sets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Auto {
    /// Share of the newest counted frame's tests that were visible, in percent.
    visible: Option<u64>,
    /// Whether nearly all blocks were crossed when they were last classified.
    is_crossed: bool,
    /// Set while blocks are not classified because nearly all were crossed.
    unclassified: Option<UnclassifiedRun>,
    /// Whether the last frame was one of [`Compaction::LookBack`]. It shares no buffer with the
    /// others, so it ends only a tenth beyond a border: a count that swings about the border does
    /// not create buffers each time.
    takes_one_pass: bool,
}

/// How much there is to test in a frame.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameSize {
    /// Instances times views.
    pub tests: u64,
    /// Strips of all rows.
    pub strips: u64,
    /// Whether some view has levels of detail.
    pub has_levels: bool,
}

/// Frames in a row whose blocks are not classified, by the one in which that began.
#[derive(Clone, Copy, Debug)]
struct UnclassifiedRun {
    since_frame: u64,
    tests: u64,
    /// Share of the tests that were visible, in percent.
    visible: u64,
}

impl Auto {
    /// Reads the counters of an earlier frame.
    pub fn learn(&mut self, counts: &FrameCounts) {
        // What is drawn early does not say what the frustum keeps.
        let rows = counts.rows.iter().filter(|row| row.list != DrawList::Early);
        let sums = rows.fold((0, 0), |(tested, visible), row| {
            (
                tested + u64::from(row.tested),
                visible + u64::from(row.visible),
            )
        });
        self.visible = (sums.0 > 0).then(|| sums.1 * 100 / sums.0);
        if let Some((blocks, crossed)) = counts.crossed_blocks {
            self.is_crossed = crossed * 100 >= blocks * NEARLY_ALL_CROSSED_PERCENT;
        }
    }

    /// The compaction for frame `frame` of this size.
    pub fn pick(&mut self, tuning: &Tuning, size: FrameSize, frame: u64) -> Compaction {
        let FrameSize { tests, strips, .. } = size;
        let tenth = |value: u64| if self.takes_one_pass { value / 10 } else { 0 };
        let mut step = tuning.pick(tests);
        if tuning.pick(tests - tenth(tests)) == Compaction::LookBack {
            step = Compaction::LookBack;
        }
        let max_strips = MAX_STRIPS + tenth(MAX_STRIPS);
        let max_tests = match size.has_levels {
            true => MAX_ONE_PASS_TESTS_WITH_LEVELS + tenth(MAX_ONE_PASS_TESTS_WITH_LEVELS),
            false => u64::MAX,
        };
        self.takes_one_pass =
            step == Compaction::LookBack && strips <= max_strips && tests <= max_tests;
        let has = |one: Compaction| tuning.has(one);
        if !has(Compaction::VoteScanCompact) {
            return step;
        }
        if step == Compaction::LookBack && !self.takes_one_pass {
            let classifies = size.has_levels && tests > MAX_UNCLASSIFIED_TESTS_WITH_LEVELS;
            step = if classifies && has(Compaction::Classify) {
                Compaction::Classify
            } else {
                Compaction::VoteScanCompact
            };
        }
        let visible = self.visible.unwrap_or(0);
        let nearly_all = visible >= NEARLY_ALL_VISIBLE_PERCENT && has(Compaction::Classify);
        if nearly_all && [Compaction::VoteScanCompact, Compaction::Classify].contains(&step) {
            self.unclassified = None;
            return Compaction::Classify;
        }
        if step != Compaction::Classify {
            return step;
        }
        if let Some(then) = self.unclassified {
            let is_same = then.tests.abs_diff(tests) * 10 <= then.tests
                && then.visible.abs_diff(visible) <= MAX_VISIBLE_CHANGE_PERCENT;
            if is_same && frame - then.since_frame < RECLASSIFY_AFTER {
                return Compaction::VoteScanCompact;
            }
            // Classify until the counters arrive.
            (self.unclassified, self.is_crossed) = (None, false);
        } else if self.is_crossed {
            self.unclassified = Some(UnclassifiedRun {
                since_frame: frame,
                tests,
                visible,
            });
            return Compaction::VoteScanCompact;
        }
        Compaction::Classify
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cull::{CullingTier, DrawList, RowCount};
    use Compaction::{Classify, LookBack, VoteScanCompact};

    fn counts(tested: u32, visible: u32, crossed_blocks: Option<(u64, u64)>) -> FrameCounts {
        FrameCounts {
            rows: vec![RowCount {
                request: 0,
                view: 0,
                level: 0,
                tested,
                visible,
                element_count: 3,
                list: DrawList::Kept,
            }],
            crossed_blocks,
            ..FrameCounts::default()
        }
    }

    fn tuning() -> Tuning {
        Tuning::new([(1000, VoteScanCompact), (u64::MAX, Classify)])
    }

    fn size(tests: u64, strips: u64) -> FrameSize {
        FrameSize {
            tests,
            strips,
            has_levels: false,
        }
    }

    #[test]
    fn without_counters_the_tuning_says_all() {
        let mut auto = Auto::default();
        assert_eq!(auto.pick(&tuning(), size(1000, 1), 1), VoteScanCompact);
        assert_eq!(auto.pick(&tuning(), size(1001, 1), 2), Classify);
    }

    #[test]
    fn few_instances_are_classified_when_all_are_visible() {
        let mut auto = Auto::default();
        auto.learn(&counts(100, 96, None));
        assert_eq!(auto.pick(&tuning(), size(100, 1), 1), Classify);
        auto.learn(&counts(100, 50, Some((1, 1))));
        assert_eq!(auto.pick(&tuning(), size(100, 1), 2), VoteScanCompact);
    }

    #[test]
    fn crossed_blocks_are_left_alone_until_something_changes_or_time_has_passed() {
        let mut auto = Auto::default();
        auto.learn(&counts(10_000, 2500, Some((10, 9))));
        assert_eq!(auto.pick(&tuning(), size(10_000, 1), 1), VoteScanCompact);
        auto.learn(&counts(10_000, 2600, None));
        assert_eq!(auto.pick(&tuning(), size(10_000, 1), 2), VoteScanCompact);
        // The view turned.
        auto.learn(&counts(10_000, 5000, None));
        assert_eq!(auto.pick(&tuning(), size(10_000, 1), 3), Classify);
        assert_eq!(auto.pick(&tuning(), size(10_000, 1), 4), Classify);
        auto.learn(&counts(10_000, 5000, Some((10, 10))));
        assert_eq!(auto.pick(&tuning(), size(10_000, 1), 5), VoteScanCompact);
        // Instances were added.
        assert_eq!(auto.pick(&tuning(), size(12_000, 1), 6), Classify);
        auto.learn(&counts(12_000, 5000, Some((10, 10))));
        assert_eq!(auto.pick(&tuning(), size(12_000, 1), 7), VoteScanCompact);
        assert_eq!(
            auto.pick(&tuning(), size(12_000, 1), 7 + RECLASSIFY_AFTER - 1),
            VoteScanCompact
        );
        assert_eq!(
            auto.pick(&tuning(), size(12_000, 1), 7 + RECLASSIFY_AFTER),
            Classify
        );
    }

    #[test]
    fn what_was_crossed_is_forgotten_when_all_is_visible() {
        let mut auto = Auto::default();
        auto.learn(&counts(10_000, 2500, Some((10, 10))));
        assert_eq!(auto.pick(&tuning(), size(10_000, 1), 1), VoteScanCompact);
        auto.learn(&counts(100, 100, None));
        assert_eq!(auto.pick(&tuning(), size(100, 1), 2), Classify);
        auto.learn(&counts(10_000, 2500, Some((10, 3))));
        assert_eq!(auto.pick(&tuning(), size(10_000, 1), 3), Classify);
    }

    #[test]
    fn sorted_instances_stay_classified() {
        let mut auto = Auto::default();
        for frame in 0..1000 {
            assert_eq!(auto.pick(&tuning(), size(10_000, 1), frame), Classify);
            auto.learn(&counts(10_000, 2500, Some((10, 3))));
        }
    }

    #[test]
    fn one_pass_serves_few_tests_but_not_many_small_sets() {
        let rule = Tuning::rule(CullingTier::Subgroup);
        let mut auto = Auto::default();
        assert_eq!(auto.pick(&rule, size(1_000_000, 1000), 1), LookBack);
        assert_eq!(
            auto.pick(&rule, size(1_000_000, 10_000), 2),
            VoteScanCompact
        );
        assert_eq!(auto.pick(&rule, size(100_000_000, 10_000), 3), Classify);
        auto.learn(&counts(100, 100, None));
        assert_eq!(auto.pick(&rule, size(1_000_000, 1000), 4), LookBack);
        assert_eq!(auto.pick(&rule, size(1_000_000, 10_000), 5), Classify);
    }

    #[test]
    fn a_tenth_about_a_border_changes_nothing() {
        let rule = Tuning::rule(CullingTier::Subgroup);
        let mut auto = Auto::default();
        let mut picks = |frames: [(u64, u64); 6]| {
            frames.map(|(tests, strips)| auto.pick(&rule, size(tests, strips), 1) == LookBack)
        };
        let tests = [8, 9, 8, 10, 9, 7].map(|millions| (millions * 980_000, 1));
        assert_eq!(picks(tests), [true, true, true, false, false, true]);
        let strips = [4000, 4500, 4100, 5000, 4500, 4000].map(|strips| (1_000_000, strips));
        assert_eq!(picks(strips), [true, true, true, false, false, true]);
    }

    #[test]
    fn levels_of_detail_are_one_pass_in_small_frames_only() {
        let rule = Tuning::rule(CullingTier::Subgroup);
        let mut auto = Auto::default();
        let mut picks = |tests| {
            let size = FrameSize {
                tests,
                strips: 700,
                has_levels: true,
            };
            auto.pick(&rule, size, 1)
        };
        assert_eq!(picks(100_000), LookBack);
        // It ends a tenth beyond the border.
        assert_eq!(picks(320_000), LookBack);
        assert_eq!(picks(1_000_000), VoteScanCompact);
        assert_eq!(picks(320_000), VoteScanCompact);
        assert_eq!(picks(4_000_000), Classify);
        assert_eq!(picks(100_000_000), Classify);
    }

    #[test]
    fn the_rule_leaves_crossed_blocks_alone() {
        let rule = Tuning::rule(CullingTier::Subgroup);
        let mut auto = Auto::default();
        auto.learn(&counts(100_000_000, 25_000_000, Some((10, 10))));
        assert_eq!(auto.pick(&rule, size(100_000_000, 1), 1), VoteScanCompact);
    }

    #[test]
    fn a_tuning_without_one_of_them_is_followed() {
        let mut auto = Auto::default();
        auto.learn(&counts(100, 100, None));
        let tuning = Tuning::new([(u64::MAX, VoteScanCompact)]);
        assert_eq!(auto.pick(&tuning, size(100, 1), 1), VoteScanCompact);
    }
}
