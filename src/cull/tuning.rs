//! Which compaction [`Compaction::Auto`] takes.

use crate::cull::{Compaction, CullingTier};
use wgpu::Features;

/// The compaction for each count of tests (instances times views) of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Up to so many tests, this compaction; in increasing order, the last one up to [`u64::MAX`].
    steps: Vec<(u64, Compaction)>,
}

/// Up to so many tests [`Compaction::LookBack`] serves: between the four million where it was seen
/// to win by far and the sixteen where it loses (docs/performance.md).
const ONE_PASS: u64 = 8_000_000;

impl Tuning {
    /// The rule without a measurement. With subgroups, everything in one pass
    /// ([`Compaction::LookBack`]) up to some millions of tests. Beyond, blocks first
    /// ([`Compaction::Classify`]), where instances that are near in the set are near in space
    /// ([`sorted`]); where they are not, [`Compaction::Auto`] sees it in the counters and takes
    /// [`Compaction::VoteScanCompact`]. Without subgroups that one serves few tests, too.
    ///
    /// [`sorted`]: crate::instance::InstanceSet::sorted
    #[must_use]
    pub fn rule(tier: CullingTier) -> Self {
        let few = match tier {
            CullingTier::Subgroup => (ONE_PASS, Compaction::LookBack),
            _ => (700_000, Compaction::VoteScanCompact),
        };
        Self::new([few, (u64::MAX, Compaction::Classify)])
    }

    /// From `(most tests, compaction)` steps in any order; the largest step also serves every
    /// greater count.
    /// [`Compaction::Auto`] among them is left out, and without steps [`Compaction::VoteScanCompact`] serves every count.
    /// As the largest step, [`Compaction::LookBack`] serves eight million tests at most, then
    /// [`Compaction::Classify`] does.
    #[must_use]
    pub fn new(steps: impl IntoIterator<Item = (u64, Compaction)>) -> Self {
        let mut steps: Vec<_> = steps
            .into_iter()
            .filter(|(_, compaction)| *compaction != Compaction::Auto)
            .collect();
        steps.sort_unstable_by_key(|(most, _)| *most);
        // Neighbours with the same compaction are one step.
        steps.dedup_by(|next, step| {
            let same = next.1 == step.1;
            if same {
                step.0 = next.0;
            }
            same
        });
        match steps.last_mut() {
            Some((most, Compaction::LookBack)) => {
                *most = (*most).min(ONE_PASS);
                steps.push((u64::MAX, Compaction::Classify));
            }
            Some(last) => last.0 = u64::MAX,
            None => steps.push((u64::MAX, Compaction::VoteScanCompact)),
        }
        Self { steps }
    }

    /// The compaction for a frame of so many tests.
    #[must_use]
    pub fn pick(&self, tests: u64) -> Compaction {
        let step = self.steps.iter().find(|(most, _)| tests <= *most);
        step.map_or(Compaction::VoteScanCompact, |(_, compaction)| *compaction)
    }

    /// The steps: up to so many tests, this compaction.
    #[must_use]
    pub fn steps(&self) -> &[(u64, Compaction)] {
        &self.steps
    }

    /// Whether [`Compaction::Auto`] may take it.
    pub(crate) fn has(&self, compaction: Compaction) -> bool {
        let has = |one| self.steps.iter().any(|(_, other)| *other == one);
        // Beside one pass: for sets that are many and small, and for blocks that are not worth a
        // look.
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

    /// Without what cannot run on `tier` (a measurement may come from another one).
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
        for (index, (most, compaction)) in self.steps.iter().enumerate() {
            let then = if index == 0 { "" } else { ", then " };
            match *most {
                u64::MAX => write!(f, "{then}{compaction}")?,
                most => write!(f, "{then}{compaction} up to {most} tests per frame")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
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
    fn neighbours_of_one_kind_merge_and_auto_is_no_answer() {
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
        assert_eq!(tuning.steps(), [(ONE_PASS, LookBack), (u64::MAX, Classify)]);
        // As it comes back from a file.
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
            // Blocks may be left alone.
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
