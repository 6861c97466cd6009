//! What an expansion is made of: kernels, the division of its arena, how many entries it may need.

use crate::cull::{
    CullingTier,
    layout::expand::{EXPAND_BUCKETS, EXPAND_TILE, ExpandParams},
    policy::PERSISTENT_WORKGROUPS,
    shaders::{self, Composed},
};
use wgpu::Features;

/// One expansion.
pub(super) struct Strategy {
    /// What pass 1 writes is the same in every run.
    pub is_ordered: bool,
    /// Pass 2 may be a dispatch for each bucket.
    pub has_buckets: bool,
    /// What the device must have beyond the tier.
    pub features: Features,
    /// Number of entries of a source with this many items in a list that [`Arena::max_entries`]
    /// does not limit; otherwise 0.
    pub list_entries: fn(u32) -> u32,
    /// Whether every source has as many threads as the largest one.
    pub is_fixed: bool,
    /// How the arena is divided.
    pub arena: Arena,
    /// Pass 1, in order.
    pub passes: &'static [ExpandPass],
    /// Pass 1 for few sources, if that has fewer dispatches; else empty.
    pub few: &'static [ExpandPass],
    /// Pass 2.
    pub items: ExpandPass,
}

impl Strategy {
    /// Whether it counts in a 64-bit atomic at binding 5 of pass 1.
    pub fn is_packed(&self) -> bool {
        (self.features).contains(Features::SHADER_INT64_ATOMIC_ALL_OPS)
    }
}

/// Number of words of each part of the arena, given the number of sources.
pub(super) struct Arena {
    pub prefixes: fn(u32) -> u64,
    pub partials: fn(u32) -> u64,
    /// A sum for each workgroup of pass 1.
    pub has_sums: bool,
    /// Words of an entry.
    pub entry: u64,
    /// Largest number of entries that can be needed, if that is small enough to make room for all.
    pub max_entries: Option<fn(u32) -> u32>,
}

/// One kernel.
pub(super) struct ExpandPass {
    /// Label, and name in errors.
    pub name: &'static str,
    /// The composed WGSL.
    pub kernel: &'static Composed,
    /// Entry point.
    pub entry: &'static str,
    /// Workgroups.
    pub groups: Groups,
}

impl ExpandPass {
    /// The whole WGSL.
    pub fn source(&self, sources: &WgslSources<'_>) -> String {
        let text = self.kernel.on(sources.tier);
        let source = text
            .replace(shaders::EXPAND_COUNTS, sources.counting)
            .replace(shaders::EXPAND_BODY, sources.body);
        // A body may count items that its solution does not count.
        if self.groups == Groups::Items && !text.contains(shaders::EXPAND_COUNTS) {
            return format!("{source}\n{}", sources.counting);
        }
        source
    }
}

/// Workgroups of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Groups {
    /// A single one.
    One,
    /// One for each tile of sources, as far as they fill a large GPU; they stride over the tiles.
    Tiles,
    /// One for each tile of few sources, and one.
    TilesAndPlan,
    /// One for each tile of the table of tiles and buckets; they stride.
    TableTiles,
    /// One for each 256 sources; they stride.
    #[cfg(feature = "study")]
    Threads,
    /// As the options of the expander say.
    Items,
}

impl Groups {
    /// Number of workgroups for `sources` sources.
    pub fn count(self, sources: u32) -> u32 {
        let wanted = match self {
            Self::One => 1,
            Self::Tiles => tiles(sources),
            Self::TilesAndPlan => tiles(sources).max(1) + 1,
            Self::TableTiles => table_tiles(sources),
            #[cfg(feature = "study")]
            Self::Threads => u64::from(sources.div_ceil(256)),
            Self::Items => u64::from(PERSISTENT_WORKGROUPS),
        };
        wanted.clamp(1, u64::from(PERSISTENT_WORKGROUPS)) as u32
    }
}

/// Number of tiles of `sources` sources.
pub(super) fn tiles(sources: u32) -> u64 {
    u64::from(sources.div_ceil(EXPAND_TILE))
}

/// Words of the table of tiles and buckets. Without sources one workgroup counts all the same.
pub(super) fn table(sources: u32) -> u64 {
    tiles(sources).max(1) * u64::from(EXPAND_BUCKETS)
}

/// Tiles of the scan of the table.
pub(super) fn table_tiles(sources: u32) -> u64 {
    table(sources).div_ceil(u64::from(EXPAND_TILE))
}

/// What the WGSL depends on.
pub(super) struct WgslSources<'a> {
    pub tier: CullingTier,
    /// `items_of`.
    pub counting: &'a str,
    /// `expand_item` and `expand_done`.
    pub body: &'a str,
}

/// Places of the parts of an arena, and its words.
pub(super) fn divide(
    strategy: &Strategy,
    sources: u32,
    entry_capacity: u32,
) -> (ExpandParams, u64) {
    let workgroups = Groups::Tiles.count(sources);
    let arena = &strategy.arena;
    let mut end = 0;
    let mut take = |words: u64| {
        let at = end;
        end += words;
        // A place beyond what a binding holds is refused by the caller.
        at.min(u64::from(u32::MAX)) as u32
    };
    let params = ExpandParams {
        source_capacity: sources,
        source_word: 0,
        entry_capacity,
        workgroups,
        prefix_at: take((arena.prefixes)(sources)),
        partials_at: take((arena.partials)(sources).max(1)),
        sums_at: take(u64::from(if arena.has_sums { workgroups } else { 0 })),
        entries_at: take(arena.entry * u64::from(entry_capacity)),
    };
    (params, end)
}

/// The most entries that an arena of `bytes` holds beside its other parts.
pub(super) fn max_entries(strategy: &Strategy, sources: u32, bytes: u64) -> u32 {
    let (_, others) = divide(strategy, sources, 0);
    let words = (bytes / 4).saturating_sub(others);
    let entries = words.checked_div(strategy.arena.entry).unwrap_or(0);
    entries.min(u64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::super::Expansion;
    use super::*;
    use crate::cull::policy::FEW_TILES;

    #[cfg(feature = "study")]
    fn words(expansion: Expansion, sources: u32) -> u64 {
        let strategy = expansion.strategy();
        let entries = strategy.arena.max_entries.map_or(0, |max| max(sources));
        divide(strategy, sources, entries).1
    }

    #[cfg(feature = "study")]
    #[test]
    fn the_buckets_never_need_more_than_twice_the_memory_of_the_prefixes() {
        for power in 6..31 {
            for sources in [1u32 << power, (1 << power) + 1, (1 << power) + 777] {
                let prefixes = words(Expansion::PrefixSearch, sources);
                for expansion in [Expansion::Po2Buckets, Expansion::OneBucket] {
                    // With the state, which all have.
                    let state = size_of::<crate::cull::layout::expand::ExpandState>() as u64 / 4;
                    let buckets = words(expansion, sources);
                    assert!(
                        buckets + state <= 2 * (prefixes + state),
                        "{expansion}, {sources} sources: {buckets} words against {prefixes}"
                    );
                }
            }
        }
    }

    #[test]
    fn every_workgroup_that_counts_has_its_line_of_the_table() {
        for sources in [0, 1, 1024, 1025, FEW_TILES * EXPAND_TILE] {
            let bucketed = Expansion::ALL.iter().filter(|one| one.has_buckets());
            for expansion in bucketed {
                let (params, _) = divide(expansion.strategy(), sources, 0);
                let table = Groups::Tiles.count(sources) * EXPAND_BUCKETS;
                assert!(
                    params.prefix_at + table <= params.partials_at,
                    "{expansion}, {sources} sources: {table} words, {params:?}"
                );
            }
        }
    }

    #[cfg(feature = "study")]
    #[test]
    fn the_most_entries_fit_and_one_more_does_not() {
        for expansion in [Expansion::ItemList, Expansion::WorkgroupItems] {
            let strategy = expansion.strategy();
            for (sources, bytes) in [
                (0, 64),
                (1, 1 << 20),
                (100_000, 1 << 20),
                (7, (1 << 31) - 4),
            ] {
                let max = max_entries(strategy, sources, bytes);
                let fits = |entries| divide(strategy, sources, entries).1 * 4 <= bytes;
                assert!(fits(max) && !fits(max + 1), "{expansion}, {sources}: {max}");
            }
            assert_eq!(max_entries(strategy, u32::MAX, 1 << 20), 0);
        }
        assert_eq!(max_entries(Expansion::FixedMax.strategy(), 1, 1 << 20), 0);
    }

    #[test]
    fn no_pass_is_without_workgroups() {
        for sources in [0, 1, 1024, 1025, u32::MAX] {
            for groups in [
                Groups::One,
                Groups::Tiles,
                Groups::TilesAndPlan,
                Groups::TableTiles,
                #[cfg(feature = "study")]
                Groups::Threads,
            ] {
                assert!((1..=PERSISTENT_WORKGROUPS).contains(&groups.count(sources)));
            }
        }
    }
}
