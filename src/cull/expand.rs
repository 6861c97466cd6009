//! The expansions: each source spawns N items, and each item gets one thread. All expansions have
//! the same inputs and outputs. They follow the solutions of the article on work expansion that
//! `docs/internals/sources.md` cites.
//!
//! Pass 1 reads the N of every source, and writes what its solution needs to find the source of an
//! item again. Pass 2 finds the source of every item, and calls the caller's WGSL. An expansion is
//! a list of passes (a `Strategy`) in one file, and one line in the table below; [`Expander`] runs
//! it. The buckets are for products. The others are the article's way to them; the cargo feature
//! `study` adds them.

mod expander;
mod one_bucket;
mod options;
mod passes;
mod po2_buckets;
mod report;
mod shared;
#[cfg(feature = "study")]
mod study;
mod support;

pub use expander::Expander;
pub use options::{ExpandCode, ExpandDispatch, ExpandInput, ExpanderOptions, SourceCount};
pub use report::ExpandReport;

use crate::cull::CullingTier;
use passes::{Strategy, WgslSources};
use wgpu::Features;

/// Declares the expansions: the feature that one needs, variant, module, name, documentation.
macro_rules! expansions {
    ($(
        $([$condition:meta])? $(#[$attribute:meta])?
        $variant:ident = $($module:ident)::+, $name:literal, $text:literal;
    )+) => {
        /// How items find the source that spawned them.
        ///
        /// All give every item of every source to pass 2 exactly once. They differ in speed, in
        /// memory, and in whether pass 1 writes the same in every run.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "bevy", derive(bevy::reflect::Reflect))]
        #[non_exhaustive]
        pub enum Expansion {
            $($(#[cfg($condition)])? #[doc = $text] $(#[$attribute])? $variant,)+
        }

        impl Expansion {
            /// All expansions, in the order of the article.
            pub const ALL: &[Self] = &[$($(#[cfg($condition)])? Self::$variant,)+];

            /// The name on command lines and in tables.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $($(#[cfg($condition)])? Self::$variant => $name,)+
                }
            }

            const fn strategy(self) -> &'static Strategy {
                match self {
                    $($(#[cfg($condition)])? Self::$variant => &$($module)::+::STRATEGY,)+
                }
            }
        }
    };
}

expansions! {
    [feature = "study"] FixedMax = study::fixed_max, "fixed-max", "Every source gets as many threads as the largest source has items; threads beyond a source's N leave at once. No memory, many threads.";
    [feature = "study"] ItemList = study::item_list, "item-list", "Solution 1: one entry (source, item) per item, 8 bytes. In source order.";
    [feature = "study"] WorkgroupItems = study::workgroup_items, "workgroup-items", "Solution 1 with workgroups: one entry, 8 bytes, per workgroup of 128 items. In source order.";
    [feature = "study"] PrefixSearch = study::prefix_search, "prefix-search", "Solution 2: a prefix sum of N, and one binary search per thread. In source order.";
    [feature = "study"] WorkgroupSearch = study::workgroup_search, "workgroup-search", "Solution 2 with the search shared: a workgroup takes 1,024 items, searches once, and its threads look among the prefixes in between. In source order.";
    [feature = "study"] PackedAtomic = study::packed_atomic, "packed-atomic", "Solution 2.5: count and sum in one 64-bit atomic, so that a single pass makes the prefixes, in the order of arrival. Needs `SHADER_INT64_ATOMIC_ALL_OPS`; otherwise [`Self::OneBucket`] takes its place.";
    Po2Buckets = po2_buckets, "po2-buckets", "Solution 3: one entry in bucket b per set bit b of N, no search. The entries of 32 neighboring sources share 8 bytes, and the buckets are contiguous.";
    #[default] OneBucket = one_bucket, "one-bucket", "Solution 3's later form: one entry, 4 bytes, per source, in bucket floor(log2 N).";
}

impl Expansion {
    /// Whether pass 1 writes the same in every run, in source order (with buckets: within each
    /// bucket). Items run concurrently in either case.
    #[must_use]
    pub const fn is_ordered(self) -> bool {
        self.strategy().is_ordered
    }

    /// Number of entries of a source with `items` items in a list that grows; 0 if there is none.
    pub(crate) fn list_entries(self, items: u32) -> u32 {
        (self.strategy().list_entries)(items)
    }

    /// Whether every source has as many threads as the largest one, and more than
    /// [`EXPAND_MAX_ITEMS`](crate::cull::layout::expand::EXPAND_MAX_ITEMS) are refused.
    pub(crate) const fn is_fixed(self) -> bool {
        self.strategy().is_fixed
    }

    /// Whether pass 2 has a dispatch for each bucket that can be merged into one.
    #[must_use]
    pub const fn has_buckets(self) -> bool {
        self.strategy().has_buckets
    }

    /// Features that some expansion uses if the adapter has them.
    #[must_use]
    pub fn wanted_features() -> Features {
        let all = Self::ALL.iter();
        all.fold(Features::empty(), |sum, expansion| {
            sum | expansion.strategy().features
        })
    }

    /// Label and whole WGSL of each pass on `tier`, pass 2 last, with counts from a buffer and a
    /// body that does nothing.
    #[must_use]
    pub fn sources(self, tier: CullingTier) -> Vec<(&'static str, String)> {
        let sources = WgslSources {
            tier,
            counting: crate::cull::shaders::EXPAND_COUNTS,
            body: crate::cull::shaders::EXPAND_BODY,
        };
        let strategy = self.strategy();
        let first = strategy.passes.iter().chain(strategy.few);
        let passes = first.chain([&strategy.items]);
        passes
            .map(|pass| (pass.name, pass.source(&sources)))
            .collect()
    }
}

impl core::fmt::Display for Expansion {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(self.name())
    }
}

impl core::str::FromStr for Expansion {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().find(|expansion| expansion.name() == name);
        found.copied().ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|expansion| expansion.name()).collect();
            format!("unknown expansion \"{name}\": use {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_back_and_an_unknown_one_lists_them() {
        for expansion in Expansion::ALL {
            assert_eq!(expansion.to_string().parse(), Ok(*expansion));
        }
        let error = "tree".parse::<Expansion>();
        assert!(error.is_err_and(|text| text.contains("tree") && text.contains("po2-buckets")));
    }

    #[cfg(feature = "study")]
    #[test]
    fn only_what_counts_by_atomics_is_unordered() {
        let unordered: Vec<_> = Expansion::ALL
            .iter()
            .filter(|expansion| !expansion.is_ordered())
            .collect();
        assert_eq!(unordered, [&Expansion::PackedAtomic]);
    }
}
