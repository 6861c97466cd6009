//! The policy: every threshold of the engine that was found by measuring. Nothing here changes
//! which instances survive; each changes the speed. `docs/internals/results.md` has the
//! measurements, which were made on one adapter ([`Tuning`](crate::cull::Tuning) replaces the
//! choice of compactions on another).
//!
//! Kernels get theirs as `override`s of the same name ([`OVERRIDES`]). Three thresholds stay in
//! WGSL as constants, because they are sizes of workgroup arrays: `MAX_STAGED`
//! (`shaders/cull/compact_tier.wesl`), `ROW_SHARE` (`shaders/cull/vote.wesl`) and `MAX_SHARE`
//! (`shaders/expand/plan_buckets.wesl`).

// ---- plan: how batches are divided

/// Largest number of counts (blocks times rows) of a batch that `compact` adds up itself; more are
/// scanned by a separate pass. Every workgroup of `compact` reads all of them: 8 KiB.
pub(crate) const FEW_COUNTS: u32 = 2048;

/// From `MANY_BLOCKS * FEW_COUNTS` counts on, each subgroup votes on its own blocks. Below that,
/// tail latency dominates.
pub(crate) const MANY_BLOCKS: u32 = 16;

/// Largest number of visibility words of a near-first batch whose words are sorted one by one. A
/// batch with up to twice as many is sorted by units of two words, and so on; above
/// [`FINE_WORDS`], by blocks. Instances of one unit are drawn one after the other, so small units
/// draw less that is hidden later; many units cost time.
pub(crate) const SINGLE_WORDS: u32 = 1 << 16;

/// Largest number of visibility words of a near-first batch that is sorted by less than blocks:
/// 8 million tests.
pub(crate) const FINE_WORDS: u32 = 1 << 18;

/// Largest number of rows that have their own planes. If there are more, they share views: a camera
/// that moves uploads views instead of rows, for one more dispatch.
pub(crate) const OWN_PLANES: usize = 1024;

// ---- choose: which compaction `Auto` takes

/// Largest number of tests (instances times views) for which `look-back` is taken: between 4
/// million, for which it wins by far, and 16 million, for which it loses.
pub(crate) const MAX_ONE_PASS_TESTS: u64 = 8_000_000;

/// The same for views with levels of detail: `look-back` tests each row of a strip alone, and most
/// blocks lie on the border of some level.
pub(crate) const MAX_ONE_PASS_TESTS_WITH_LEVELS: u64 = 300_000;

/// Largest number of tests of views with levels of detail for which blocks are not classified, on
/// a device that otherwise takes `look-back`: between 1 million and 4 million.
pub(crate) const MAX_UNCLASSIFIED_TESTS_WITH_LEVELS: u64 = 2_000_000;

/// Largest number of tests for which a device without subgroups does not classify blocks.
pub(crate) const MAX_UNCLASSIFIED_TESTS: u64 = 700_000;

/// Share of visible tests, in percent, from which blocks are always classified: most are inside,
/// and their instances are not read.
pub(crate) const NEARLY_ALL_VISIBLE_PERCENT: u64 = 95;

/// Share of crossed blocks, in percent, from which it does not pay to classify blocks: the
/// instances are in no spatial order.
pub(crate) const NEARLY_ALL_CROSSED_PERCENT: u64 = 80;

/// Number of frames without classification after which blocks are classified once, to see whether
/// they are still crossed.
pub(crate) const RECLASSIFY_AFTER: u64 = 240;

/// Change of the visible share, in percent of the tests, after which blocks are classified once.
pub(crate) const MAX_VISIBLE_CHANGE_PERCENT: u64 = 10;

/// Largest number of strips for which `look-back` is taken: twice the largest number for which it
/// was seen to pay. A strip costs something however small its set is.
pub(crate) const MAX_STRIPS: u64 = 4096;

// ---- run: what is kept, and how often counters are read back

/// Counters are read back every this many frames unless something asks for each frame's. To read
/// them costs as much as to record a stage.
pub(crate) const COUNT_EVERY: u64 = 4;

/// Number of frames after which an unused batch is dropped.
pub(crate) const KEEP_FRAMES: u64 = 120;

/// Number of frames after which a batch that did not fit on the device is tried again: something
/// else may be gone by then.
pub const RETRY_AFTER: u64 = 120;

// ---- passes: how many workgroups they have

/// Number of workgroups that stride over a list of crossed blocks or of occupied counts. It is
/// large because each step waits for memory several times in a row.
pub(crate) const LIST_WORKGROUPS: u32 = 4096;

/// Smallest number of workgroups over a list per batch when several batches run concurrently.
pub(crate) const MIN_LIST_WORKGROUPS: u32 = 1024;

/// Number of workgroups that fill a large GPU: the passes of an expansion, which stride.
pub(crate) const PERSISTENT_WORKGROUPS: u32 = 2048;

/// Largest number of tiles for which an expansion runs its passes for few sources: each workgroup
/// reads the counts of all tiles.
pub(crate) const FEW_TILES: u32 = 256;

// ---- kernels: what WGSL decides

/// Number of looks at a strip of `look-back` that has published nothing, after which the waiting
/// workgroup counts the strip itself. Fewer looks count more strips twice; more looks wait longer
/// for a workgroup that does not run.
pub(crate) const SPINS: u32 = 64;

/// Largest average number of survivors per word for which a thread of `look-back` writes the ids of
/// a whole word. Above it, 32 threads share a word, which costs a step per word however empty.
pub(crate) const FEW_IN_WORD: u32 = 2;

/// Largest number of survivors of a block whose ids each lane of `compact` stores as it finds them.
/// Above it, they are gathered in workgroup memory first, so that stores are contiguous.
pub(crate) const FEW_SURVIVORS: u32 = 64;

/// Largest number of crossed blocks for which workgroups share blocks: 14 us instead of 28 for ten
/// blocks, as fast at a thousand (`docs/internals/tried.md`). Above it, each subgroup has a block.
pub(crate) const FEW_CROSSED: u32 = 512;

/// Number of rows that are voted on together in a crossed block: up to 16, because two bits per row
/// must fit into a word. Each group of rows reads the block's instances again.
pub(crate) const ROW_GROUP: u32 = 16;

/// Mean reach of a block's words, in steps of `WORD_STEPS` per radius, from which their bounds are
/// not worth reading: neighbors are far from each other.
pub(crate) const LOOSE_REACH: u32 = 100;

/// Number of entries of an expansion's source from which on the whole workgroup writes them. Below
/// it, one thread does, and the others wait for it.
pub(crate) const LONG_SOURCE: u32 = 64;

/// Number of threads of an expansion by buckets beyond which each thread takes more items instead:
/// they fill the GPU.
pub(crate) const ENOUGH_THREADS: u32 = 1 << 20;

macro_rules! overrides {
    ($($name:ident),* $(,)?) => {
        /// The values of the kernels' `override`s, by name. Every pipeline of a kernel needs those
        /// that the kernel declares, as its constants.
        pub const OVERRIDES: &[(&str, u32)] = &[$((stringify!($name), $name)),*];
    };
}

overrides!(
    SPINS,
    FEW_IN_WORD,
    FEW_SURVIVORS,
    FEW_CROSSED,
    ROW_GROUP,
    LOOSE_REACH,
    LONG_SOURCE,
    ENOUGH_THREADS,
);
