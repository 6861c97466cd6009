//! The policy: every threshold of the engine that was found by measuring. Nothing here changes a
//! result; each changes the speed. `docs/internals/results.md` has the measurements, which were
//! made on one adapter ([`Tuning`](crate::cull::Tuning) replaces the choice of compactions on
//! another).

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

// ---- choose: which compaction `Auto` takes

/// Largest number of tests (instances times views) for which `look-back` is taken: between 4
/// million, for which it wins by far, and 16 million, for which it loses.
pub(crate) const ONE_PASS: u64 = 8_000_000;

/// The same for views with levels of detail: `look-back` tests each row of a strip alone, and most
/// blocks lie on the border of some level.
pub(crate) const ONE_PASS_WITH_LEVELS: u64 = 300_000;

/// Largest number of tests of views with levels of detail for which blocks are not classified, on
/// a device that otherwise takes `look-back`: between 1 million and 4 million.
pub(crate) const FEW_TESTS_WITH_LEVELS: u64 = 2_000_000;

/// Largest number of tests for which a device without subgroups does not classify blocks.
pub(crate) const FEW_TESTS: u64 = 700_000;

/// Share of visible tests, in percent, from which blocks are always classified: most are inside,
/// and their instances are not read.
pub(crate) const NEARLY_ALL: u64 = 95;

/// Share of crossed blocks, in percent, from which it does not pay to classify blocks: the
/// instances are in no spatial order.
pub(crate) const NEARLY_ALL_CROSSED: u64 = 80;

/// Number of frames without classification after which blocks are classified once, to see whether
/// they are still crossed.
pub(crate) const LOOK_AGAIN: u64 = 240;

/// Change of the visible share, in percent of the tests, after which blocks are classified once.
pub(crate) const MOVED: u64 = 10;

/// Largest number of strips for which `look-back` is taken: twice the largest number for which it
/// was seen to pay. A strip costs something however small its set is.
pub(crate) const MOST_STRIPS: u64 = 4096;

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
pub(crate) const LEAST_LIST_WORKGROUPS: u32 = 1024;

/// Number of workgroups that fill a large GPU: the passes of an expansion, which stride.
pub(crate) const PERSISTENT_WORKGROUPS: u32 = 2048;

/// Largest number of tiles for which an expansion runs its passes for few sources: each workgroup
/// reads the counts of all tiles.
pub(crate) const FEW_TILES: u32 = 256;
