//! Which compaction [`Compaction::Auto`] takes.

use crate::cull::{
    Compaction, CullingTier,
    policy::{MAX_ONE_PASS_TESTS, MAX_UNCLASSIFIED_TESTS},
};
use wgpu::Features;

/// The compaction for each count of tests (instances times views) of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// The largest number of tests for each compaction, in increasing order. The last one is
    /// [`u64::MAX`].
    steps: Vec<(u64, Compaction)>,
}

impl Tuning {
    /// The rule without a measurement. With subgroups, one pass ([`Compaction::LookBack`]) serves
    /// up to 8 million tests. Beyond that, blocks are classified first ([`Compaction::Classify`])
    /// if instances that are near in the set are near in space ([`sorted`]); otherwise
    /// [`Compaction::Auto`] sees it in the counters and takes [`Compaction::VoteScanCompact`].
    /// Without subgroups, that one also serves few tests.
    ///
    /// [`sorted`]: crate::instance::InstanceSet::sorted
    #[must_use]
    pub fn rule(tier: CullingTier) -> Self {
        let few = match tier {
            CullingTier::Subgroup => (MAX_ONE_PASS_TESTS, Compaction::LookBack),
            _ => (MAX_UNCLASSIFIED_TESTS, Compaction::VoteScanCompact),
        };
        Self::new([few, (u64::MAX, Compaction::Classify)])
    }

    /// From `(most tests, compaction)` steps in any order. The largest step also serves every
    /// greater count. [`Compaction::Auto`] is left out, and without steps
    /// [`Compaction::VoteScanCompact`] serves every count. If [`Compaction::LookBack`] is the
    /// largest step, it serves at most 8 million tests, and [`Compaction::Classify`] serves the
    /// rest.
    #[must_use]
    pub fn new(steps: impl IntoIterator<Item = (u64, Compaction)>) -> Self {
        let mut steps: Vec<_> = steps
            .into_iter()
            .filter(|(_, compaction)| *compaction != Compaction::Auto)
            .collect();
        steps.sort_unstable_by_key(|(max, _)| *max);
        // Neighboring steps with the same compaction are merged.
        steps.dedup_by(|next, step| {
            let same = next.1 == step.1;
            if same {
                step.0 = next.0;
            }
            same
        });
        match steps.last_mut() {
            Some((max, Compaction::LookBack)) => {
                *max = (*max).min(MAX_ONE_PASS_TESTS);
                steps.push((u64::MAX, Compaction::Classify));
            }
            Some(last) => last.0 = u64::MAX,
            None => steps.push((u64::MAX, Compaction::VoteScanCompact)),
        }
        Self { steps }
    }

    /// The compaction for a frame of `tests` tests.
    #[must_use]
    pub fn pick(&self, tests: u64) -> Compaction {
        let step = self.steps.iter().find(|(max, _)| tests <= *max);
        step.map_or(Compaction::VoteScanCompact, |(_, compaction)| *compaction)
    }

    /// The steps: the largest number of tests for each compaction.
    #[must_use]
    pub fn steps(&self) -> &[(u64, Compaction)] {
        &self.steps
    }

    /// Whether [`Compaction::Auto`] may take `compaction`.
    pub(crate) fn has(&self, compaction: Compaction) -> bool {
        let has = |one| self.steps.iter().any(|(_, other)| *other == one);
        // `look-back` needs this one too: for many small sets, and for blocks in no spatial order.
        has(compaction) || compaction == Compaction::VoteScanCompact && has(Compaction::LookBack)
    }

    /// Every compaction that [`Compaction::Auto`] may take, once.
    #[must_use]
    pub fn compactions(&self) -> Vec<Compaction> {
        Compaction::ALL
            .iter()
            .copied()
            .filter(|compaction| self.has(*compaction))
            .collect()
    }

    /// Drops the compactions that cannot run on `tier` (a measurement may come from another tier).
    #[must_use]
    pub(crate) fn supported(self, tier: CullingTier, features: Features) -> Self {
        Self::new(
            self.steps
                .into_iter()
                .filter(|(_, compaction)| compaction.check(tier, features).is_ok()),
        )
    }
}

impl core::fmt::Display for Tuning {
    /// `look-back up to 8000000 tests per frame, then classify`.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (index, (max, compaction)) in self.steps.iter().enumerate() {
            let then = if index == 0 { "" } else { ", then " };
            match *max {
                u64::MAX => write!(f, "{then}{compaction}")?,
                max => write!(f, "{then}{compaction} up to {max} tests per frame")?,
            }
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "study"))]
mod tests {
    use super::*;
    use Compaction::{Auto, BallotScan, HillisSteele, VoteScanCompact};

    #[test]
    fn the_step_of_a_count_is_the_first_that_reaches_it() {
        let tuning = Tuning::new([
            (1000, HillisSteele),
            (100, VoteScanCompact),
            (50_000, BallotScan),
        ]);
        let picks = [0, 100, 101, 1000, 1001, u64::MAX].map(|tests| tuning.pick(tests));
        let expected = [
            VoteScanCompact,
            VoteScanCompact,
            HillisSteele,
            HillisSteele,
            BallotScan,
            BallotScan,
        ];
        assert_eq!(picks, expected);
    }

    #[test]
    fn neighbors_of_one_kind_merge_and_auto_is_no_answer() {
        let tuning = Tuning::new([
            (1, Auto),
            (10, HillisSteele),
            (20, HillisSteele),
            (30, VoteScanCompact),
        ]);
        assert_eq!(
            tuning.steps(),
            [(20, HillisSteele), (u64::MAX, VoteScanCompact)]
        );
        assert_eq!(tuning.compactions(), [HillisSteele, VoteScanCompact]);
        assert_eq!(Tuning::new([]).steps(), [(u64::MAX, VoteScanCompact)]);
    }

    #[test]
    fn one_pass_serves_no_more_than_it_was_measured_for() {
        use Compaction::{Classify, LookBack};
        let tuning = Tuning::new([(100, LookBack), (4_000_000, LookBack)]);
        assert_eq!(
            tuning.steps(),
            [(4_000_000, LookBack), (u64::MAX, Classify)]
        );
        let tuning = Tuning::new([(u64::MAX, LookBack)]);
        assert_eq!(
            tuning.steps(),
            [(MAX_ONE_PASS_TESTS, LookBack), (u64::MAX, Classify)]
        );
        // Steps as they are read from a file.
        assert_eq!(Tuning::new(tuning.steps().to_vec()), tuning);
        assert_eq!(tuning.compactions(), [VoteScanCompact, Classify, LookBack]);
    }

    #[test]
    fn the_rule_classifies_many_instances() {
        for (tier, few) in [
            (CullingTier::Subgroup, Compaction::LookBack),
            (CullingTier::Workgroup, VoteScanCompact),
        ] {
            let rule = Tuning::rule(tier);
            assert_eq!(rule.pick(100_000), few);
            assert_eq!(rule.pick(16_000_000), Compaction::Classify);
            // Blocks may be left unclassified.
            assert!(rule.compactions().contains(&VoteScanCompact));
            let kept = rule.clone().supported(tier, Features::SUBGROUP);
            assert_eq!(kept, rule);
        }
    }

    #[test]
    fn its_text_names_each_step() {
        let rule = Tuning::rule(CullingTier::Subgroup).to_string();
        assert_eq!(
            rule,
            "look-back up to 8000000 tests per frame, then classify"
        );
        let one = Tuning::new([(10, HillisSteele)]).to_string();
        assert_eq!(one, "hillis-steele");
    }

    #[test]
    fn what_the_tier_lacks_is_left_out() {
        let tuning = Tuning::new([(10, BallotScan), (20, HillisSteele)]);
        let left = tuning.supported(CullingTier::Workgroup, Features::empty());
        assert_eq!(left.steps(), [(u64::MAX, HillisSteele)]);
    }
}
