//! Twin of `shaders/expand/bits.wesl`, `plan_buckets.wesl`, `po2_buckets.wesl` and
//! `one_bucket.wesl`.

use crate::cull::{
    layout::expand::{EXPAND_BUCKETS, EXPAND_CHUNK, EXPAND_MAX_ITEMS, ExpandBucket},
    policy::ENOUGH_THREADS,
};

/// Entries, bucket after bucket, and the start of each bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketEntries<T> {
    /// The entries, as they lie in the arena.
    pub entries: Vec<T>,
    /// First entry of each bucket; the last value is the end of all entries.
    pub firsts: Vec<u32>,
}

/// The sources among 32 neighbors that have an entry in a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Po2Entry {
    /// Index of the word: the sources from `32 * word` on.
    pub word: u32,
    /// One bit per source.
    pub mask: u32,
}

/// Entries of `po2-buckets`: a set bit b of N is an entry in bucket b. A word of 32 sources shares
/// one mask.
#[must_use]
pub fn po2_buckets(counts: &[u32]) -> BucketEntries<Po2Entry> {
    gather(|bucket, entries| {
        for (sources, word) in counts.chunks(32).zip(0..) {
            let bits = sources.iter().zip(0..);
            let mask = bits.fold(0, |mask, (n, i)| mask | ((n >> bucket) & 1) << i);
            if mask != 0 {
                entries.push(Po2Entry { word, mask });
            }
        }
    })
}

/// Entries of `one-bucket`: a source is one entry in bucket floor(log2 N).
#[must_use]
pub fn one_bucket(counts: &[u32]) -> BucketEntries<u32> {
    gather(|bucket, entries| {
        let own = |n: &u32| n.checked_ilog2() == Some(bucket);
        let sources = counts.iter().zip(0..).filter(|(n, _)| own(n));
        entries.extend(sources.map(|(_, source)| source));
    })
}

fn gather<T>(bucket: impl Fn(u32, &mut Vec<T>)) -> BucketEntries<T> {
    let mut entries = Vec::new();
    let mut firsts = vec![0];
    for b in 0..EXPAND_BUCKETS {
        bucket(b, &mut entries);
        firsts.push(entries.len() as u32);
    }
    BucketEntries { entries, firsts }
}

/// Binary logarithm of the number of threads for an entry of `po2-buckets`, if each thread takes
/// 2^share items.
#[must_use]
pub fn lanes_po2_buckets(bucket: u32, share: u32) -> u32 {
    bucket.max(5 + share) - share
}

/// Binary logarithm of the number of threads for an entry of `one-bucket`, if each thread takes
/// 2^share items.
#[must_use]
pub fn lanes_one_bucket(bucket: u32, share: u32) -> u32 {
    bucket.max(share) - share
}

/// The buckets of pass 2 and the number of chunks.
#[must_use]
pub fn plan_buckets(
    firsts: &[u32],
    items: u32,
    entry_capacity: u32,
    lanes_of: impl Fn(u32, u32) -> u32,
) -> ([ExpandBucket; EXPAND_BUCKETS as usize], u32) {
    let runs = items <= EXPAND_MAX_ITEMS;
    let first = |b: u32| firsts[b as usize].min(entry_capacity);
    let entries = |b: u32| if runs { first(b + 1) - first(b) } else { 0 };
    let threads = |share: u32| {
        (0..EXPAND_BUCKETS).fold(0u32, |sum, b| {
            sum.saturating_add(entries(b) << lanes_of(b, share))
        })
    };
    let share = (0..3)
        .find(|share| threads(*share) <= ENOUGH_THREADS)
        .unwrap_or(3);
    let mut buckets = [ExpandBucket::default(); EXPAND_BUCKETS as usize];
    let mut chunk = 0;
    for (bucket, b) in buckets.iter_mut().zip(0..) {
        *bucket = ExpandBucket {
            first_entry: first(b),
            entry_count: entries(b),
            first_chunk: chunk,
            lanes: lanes_of(b, share),
        };
        chunk += (entries(b) << bucket.lanes).div_ceil(EXPAND_CHUNK);
    }
    (buckets, chunk)
}

/// Items of `po2-buckets`: bit b of N stands for 2^b items, which follow the items of the higher
/// bits.
pub fn po2_bucket_items(
    entries: &[Po2Entry],
    buckets: &[ExpandBucket],
    counts: &[u32],
    mut expand: impl FnMut(u32, u32),
) {
    for (bucket, b) in buckets.iter().zip(0u32..) {
        for entry in &entries[bucket.first_entry as usize..][..bucket.entry_count as usize] {
            for bit in (0..32).filter(|bit| entry.mask >> bit & 1 != 0) {
                let source = entry.word * 32 + bit;
                let lower = (2u32 << b).wrapping_sub(1);
                let first = counts[source as usize] & !lower;
                for k in 0..1u32 << b {
                    expand(source, first + k);
                }
            }
        }
    }
}

/// Items of `one-bucket`: the threads of an entry share its items.
pub fn one_bucket_items(
    entries: &[u32],
    buckets: &[ExpandBucket],
    counts: &[u32],
    mut expand: impl FnMut(u32, u32),
) {
    for bucket in buckets {
        for source in &entries[bucket.first_entry as usize..][..bucket.entry_count as usize] {
            for thread in 0..1 << bucket.lanes {
                let items = counts[*source as usize];
                for item in (thread..items).step_by(1 << bucket.lanes) {
                    expand(*source, item);
                }
            }
        }
    }
}
