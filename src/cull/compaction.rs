//! The compactions, each with the same inputs and the same outputs.
//!
//! A compaction is a [`Strategy`], a list of passes in a file, and one line in the table below. The
//! three in `product` are the ones that [`Compaction::Auto`] chooses from. The six in `study` are
//! the rungs of the ladder (docs/internals/ladder.md) that lead to them; the cargo feature `study`
//! adds them.

mod passes;
mod product;
#[cfg(feature = "testing")]
mod runs;
#[cfg(feature = "study")]
mod study;
mod support;

pub(crate) use passes::{Arena, Dispatch, DispatchLimits, Pass, Resource, Strategy};
#[cfg(feature = "testing")]
pub use runs::PassRun;
#[cfg(feature = "study")]
pub(crate) use study::doubling;

use crate::cull::{CullingTier, Stage, shaders::Sources};

/// Declares the compactions: their order on the ladder; then, in the order of the documentation,
/// the feature that one needs, variant, strategy, name, documentation.
macro_rules! compactions {
    (
        ladder: $($([$of_rung:meta])? $rung:ident),+;
        $($([$condition:meta])? $variant:ident = $room:ident::$module:ident, $name:literal, $text:literal;)+
    ) => {
        /// How visible instances become a list of ids.
        ///
        /// [`Self::Auto`] chooses among the three for products. The cargo feature `study` adds the
        /// rungs of a ladder that leads there, to measure them.
        ///
        /// All have the same inputs and outputs and keep the same instances. They differ in speed,
        /// in memory, and in whether the ids are in instance order. The unordered ones, all of them
        /// for study, learn the place of a survivor only while they write, so their arena has one
        /// region per row with room for all its instances: up to `4 bytes x instances x views`. The
        /// others need 4 bytes per survivor. The tier [`Cpu`](CullingTier::Cpu) runs the twins of
        /// `VoteScanCompact` whichever is chosen.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "bevy", derive(bevy::reflect::Reflect))]
        #[non_exhaustive]
        pub enum Compaction {
            $($(#[cfg($condition)])? #[doc = $text] $variant,)+
            /// The fastest of the ordered ones for the size of the frame: by a rule, or by a
            /// measurement on this adapter ([`Tuning`](crate::cull::Tuning)).
            #[default]
            Auto,
        }

        impl Compaction {
            /// All compactions, in the order of the ladder. [`Self::Auto`] is a choice among them.
            pub const ALL: &[Self] = &[$($(#[cfg($of_rung)])? Self::$rung,)+];

            /// The name on command lines and in tables.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $($(#[cfg($condition)])? Self::$variant => $name,)+
                    Self::Auto => "auto",
                }
            }

            /// The strategy; for [`Self::Auto`] the one of [`Self::VoteScanCompact`].
            pub(crate) const fn strategy(self) -> &'static Strategy {
                match self {
                    $($(#[cfg($condition)])? Self::$variant => &$room::$module::STRATEGY,)+
                    Self::Auto => &product::vote_scan_compact::STRATEGY,
                }
            }
        }
    };
}

compactions! {
    ladder: [feature = "study"] NaiveAtomic,
        [feature = "study"] SubgroupAtomic,
        [feature = "study"] WorkgroupAtomic,
        [feature = "study"] HillisSteele,
        [feature = "study"] WorkgroupScan,
        [feature = "study"] BallotScan,
        VoteScanCompact, Classify, LookBack;
    Classify = product::classify, "classify",
        "Ordered: `VoteScanCompact` on blocks that a view's border crosses. Blocks outside cost nothing. Blocks inside are not read, and neither are words of 32 instances that no border crosses. Needs another 160 bytes per 1,024 instances.";
    LookBack = product::look_back, "look-back",
        "Ordered: all of `Classify` in one pass, in which each workgroup finds its place by decoupled look-back. Fastest up to some millions of tests, and without words or counts in memory. All of its time is in the stage [`Compact`](Stage::Compact). Needs subgroups, and another 160 bytes per 1,024 instances.";
    VoteScanCompact = product::vote_scan_compact, "vote-scan-compact",
        "Ordered: visibility bits and the blocks' counts; prefixes of the counts, if they are many, in a separate pass. Its arena holds the survivors and nothing else.";
    [feature = "study"] NaiveAtomic = study::naive_atomic, "naive-atomic",
        "Unordered: one global atomicAdd per survivor.";
    [feature = "study"] SubgroupAtomic = study::subgroup_atomic, "subgroup-atomic",
        "Unordered: ballot and bit count, one global atomicAdd per subgroup. Needs subgroups.";
    [feature = "study"] WorkgroupAtomic = study::workgroup_atomic, "workgroup-atomic",
        "Unordered: three levels, one global atomicAdd per workgroup.";
    [feature = "study"] HillisSteele = study::hillis_steele, "hillis-steele",
        "Ordered: one u32 per vote, a scan of log2(n) passes over global memory, compact. Needs another 8 bytes per instance and view.";
    [feature = "study"] WorkgroupScan = study::workgroup_scan, "workgroup-scan",
        "Unordered: a scan in workgroup memory, merged with compact; one global atomicAdd per block. Needs another 4 bytes per instance and view.";
    [feature = "study"] BallotScan = study::ballot_scan, "ballot-scan",
        "Unordered: ballots as votes, a scan by subgroup operations, one global atomicAdd per block. Needs subgroups.";
}

/// The strategy of the late lists, in place of a vote: what a view has not hidden.
pub(crate) const fn occlude() -> &'static Strategy {
    &product::occlude::STRATEGY
}

impl Compaction {
    /// Whether the ids of each row are in a defined order, the same in every run.
    #[must_use]
    pub const fn is_ordered(self) -> bool {
        self.strategy().is_ordered
    }

    /// Whether it sorts the blocks of each row near first
    /// ([`Order::NearFirst`](crate::cull::Order::NearFirst)).
    #[must_use]
    pub fn sorts_blocks(self) -> bool {
        let mut passes = self.strategy().passes.iter();
        passes.any(|pass| pass.dispatch == Dispatch::OrderTiles)
    }

    /// The stages that it has, in the order of the frame, if no view hides instances.
    pub fn stages(self) -> impl Iterator<Item = Stage> {
        self.stages_if(false)
    }

    /// The stages that it has in a frame; `hides` if some view hides instances.
    pub(crate) fn stages_if(self, hides: bool) -> impl Iterator<Item = Stage> {
        let passes = self.strategy().passes;
        let has = |stage: Stage| passes.iter().any(|pass| pass.stage == stage);
        let all = Stage::ALL.into_iter();
        all.filter(move |stage| has(*stage) && (hides || *stage != Stage::Recall))
    }

    /// Label and whole WGSL of each pass on `tier`, in order (for the tier `Cpu` the WGSL of
    /// `Workgroup`).
    #[must_use]
    pub fn sources(self, tier: CullingTier) -> Vec<(&'static str, String)> {
        let sources = Sources::new(tier);
        let passes = self.strategy().passes.iter();
        passes
            .filter(|pass| pass.runs_with(tier == CullingTier::Subgroup))
            .map(|pass| (pass.name, (pass.source)(&sources)))
            .collect()
    }

    /// Least bytes that one view of `instances` moves: instances of `instance_bytes` each, what the
    /// strategy writes and reads in between, and the ids of the survivors.
    #[must_use]
    pub fn traffic(self, instances: u64, instance_bytes: u64, survivors: u64) -> u64 {
        instances * instance_bytes + (self.strategy().traffic)(instances) + survivors * 4
    }
}

impl core::fmt::Display for Compaction {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(self.name())
    }
}

impl core::str::FromStr for Compaction {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.iter().copied().chain([Self::Auto]);
        all.find(|compaction| compaction.name() == name)
            .ok_or_else(|| {
                let names: Vec<_> = Self::ALL
                    .iter()
                    .map(|compaction| compaction.name())
                    .collect();
                format!(
                    "unknown compaction \"{name}\": use {} or auto",
                    names.join(", ")
                )
            })
    }
}

#[cfg(all(test, feature = "study"))]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_back_and_an_unknown_one_lists_them() {
        for compaction in Compaction::ALL.iter().copied().chain([Compaction::Auto]) {
            assert_eq!(compaction.to_string().parse(), Ok(compaction));
        }
        let error = "merge".parse::<Compaction>();
        assert!(error.is_err_and(|text| text.contains("merge") && text.contains("hillis-steele")));
    }

    #[test]
    fn the_default_is_ordered_and_so_is_auto() {
        assert_eq!(Compaction::default(), Compaction::Auto);
        let ordered: Vec<_> = Compaction::ALL
            .iter()
            .filter(|compaction| compaction.is_ordered())
            .collect();
        assert_eq!(
            ordered,
            [
                &Compaction::HillisSteele,
                &Compaction::VoteScanCompact,
                &Compaction::Classify,
                &Compaction::LookBack
            ]
        );
        assert!(Compaction::Auto.is_ordered());
    }

    #[test]
    fn bindings_of_a_pass_have_different_numbers() {
        for compaction in Compaction::ALL {
            for pass in compaction.strategy().passes {
                let mut numbers: Vec<_> = pass.binds().map(|bind| bind.number).collect();
                numbers.sort_unstable();
                numbers.dedup();
                assert_eq!(
                    numbers.len(),
                    pass.binds().count(),
                    "{compaction}, {}",
                    pass.name
                );
            }
        }
    }

    #[test]
    fn every_strategy_ends_with_the_commands() {
        for compaction in Compaction::ALL {
            let last = compaction.strategy().passes.last();
            assert!(
                last.is_some_and(|pass| pass.binds().any(|bind| bind.resource == Resource::Args)),
                "{compaction}"
            );
            let stages: Vec<_> = compaction
                .strategy()
                .passes
                .iter()
                .map(|pass| pass.stage as usize)
                .collect();
            assert!(
                stages.is_sorted(),
                "{compaction}: passes in the order of the stages"
            );
        }
    }
}
