//! The expansions: each source spawns N items, a thread for each (article 5), each solution with the same inputs and
//! outputs.
//!
//! Pass 1 reads N of every source and leaves whatever its solution needs to find an item's source again; pass 2 finds
//! it for every item and calls the caller's WGSL. An expansion is a list of passes (a `Strategy`) in a file of its
//! own, and one line in the table below; [`Expander`] runs it.

mod expander;
mod options;
mod passes;
mod report;
mod shared;

pub use expander::Expander;
pub use options::{ExpandCode, ExpandDispatch, ExpandInput, ExpanderOptions, Sources};
pub use report::ExpandReport;

use crate::cull::{CullError, CullingTier};
use passes::{Strategy, WgslSources};
use wgpu::Features;

/// Declares the strategies: variant, module, name, what the documentation says.
macro_rules! expansions {
    ($($(#[$attribute:meta])? $variant:ident = $module:ident, $name:literal, $text:literal;)+) => {
        $(mod $module;)+

        /// How items find the source that spawned them.
        ///
        /// All give every item of every source to pass 2 exactly once; they differ in speed, in memory, and in
        /// whether what pass 1 writes is the same in every run.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "bevy", derive(bevy::reflect::Reflect))]
        #[non_exhaustive]
        pub enum Expansion {
            $(#[doc = $text] $(#[$attribute])? $variant,)+
        }

        impl Expansion {
            /// All expansions, in the order of the article.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The name on command lines and in tables.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            const fn strategy(self) -> &'static Strategy {
                match self {
                    $(Self::$variant => &$module::STRATEGY,)+
                }
            }
        }
    };
}

expansions! {
    FixedMax = fixed_max, "fixed-max", "As many threads for each source as the greatest has items; those beyond a source's N leave at once. No memory, many threads.";
    ItemList = item_list, "item-list", "Solution 1: an entry (source, item) for each item, 8 bytes. In source order.";
    WorkgroupItems = workgroup_items, "workgroup-items", "Solution 1 with workgroups: an entry, 8 bytes, for each workgroup of 128 items. In source order.";
    PrefixSearch = prefix_search, "prefix-search", "Solution 2: a prefix sum of N, and a binary search a thread. In source order.";
    WorkgroupSearch = workgroup_search, "workgroup-search", "Solution 2 with the search shared: a workgroup takes 1,024 items, searches once, and its threads look among the prefixes in between. In source order.";
    PackedAtomic = packed_atomic, "packed-atomic", "Solution 2.5: count and sum in one 64-bit atomic, so that a single pass makes the prefixes, in the order of arrival. Needs `SHADER_INT64_ATOMIC_ALL_OPS`, else [`Self::PrefixSearch`] takes its place.";
    Po2Buckets = po2_buckets, "po2-buckets", "Solution 3: an entry in bucket b for each set bit b of N, no search. The entries of 32 neighbouring sources share 8 bytes, and the buckets lie side by side.";
    #[default] OneBucket = one_bucket, "one-bucket", "Solution 3's later form: one entry, 4 bytes, for each source, in bucket floor(log2 N).";
}

impl Expansion {
    /// Whether what pass 1 writes is the same in every run, in source order (within each bucket, where there are
    /// buckets). Items run side by side all the same.
    #[must_use]
    pub const fn is_ordered(self) -> bool {
        self.strategy().ordered
    }

    /// Whether pass 2 has a dispatch for each bucket that can be merged into one.
    #[must_use]
    pub const fn has_buckets(self) -> bool {
        self.strategy().buckets
    }

    /// Whether it can run on a device with `features`, else an error that names what is missing.
    ///
    /// # Errors
    /// [`CullError::ExpansionUnsupported`].
    pub fn check(self, features: Features) -> Result<(), CullError> {
        let missing = self.strategy().features - features;
        if missing.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = missing.iter_names().map(|(name, _)| name).collect();
        Err(CullError::ExpansionUnsupported {
            expansion: self,
            missing: names.join(" and "),
        })
    }

    /// This expansion, or what takes its place on a device with `features`, with the reason to log.
    #[must_use]
    pub fn supported(self, features: Features) -> (Self, Option<String>) {
        match self.check(features) {
            Ok(()) => (self, None),
            Err(error) => (Self::PrefixSearch, Some(error.to_string())),
        }
    }

    /// Features that some expansion uses where the adapter has them.
    #[must_use]
    pub fn wanted_features() -> Features {
        let all = Self::ALL.iter();
        all.fold(Features::empty(), |sum, expansion| {
            sum | expansion.strategy().features
        })
    }

    /// Label and whole WGSL of each pass on `tier`, pass 2 last, with counts from a buffer and a body that does
    /// nothing.
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

    #[test]
    fn what_needs_64_bits_names_the_features_and_gives_way() {
        let (expansion, reason) = Expansion::PackedAtomic.supported(Features::SHADER_INT64);
        assert_eq!(expansion, Expansion::PrefixSearch);
        let reason = reason.unwrap_or_default();
        assert!(
            reason.contains("packed-atomic") && reason.contains("SHADER_INT64_ATOMIC_ALL_OPS"),
            "{reason}"
        );
        let all = Expansion::wanted_features();
        assert_eq!(
            Expansion::PackedAtomic.supported(all),
            (Expansion::PackedAtomic, None)
        );
        for expansion in Expansion::ALL {
            let has = expansion.check(Features::empty()).is_ok();
            assert_eq!(has, *expansion != Expansion::PackedAtomic);
        }
    }

    #[test]
    fn only_what_counts_by_atomics_is_unordered() {
        let unordered: Vec<_> = Expansion::ALL
            .iter()
            .filter(|expansion| !expansion.is_ordered())
            .collect();
        assert_eq!(unordered, [&Expansion::PackedAtomic]);
    }
}
