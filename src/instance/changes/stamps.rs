//! Which granules of a channel were written when.

use std::ops::Range;

/// Number of instances that share one stamp: 4 KiB of packed instances, which is about the smallest
/// upload worth its overhead.
pub(in crate::instance) const GRANULE: usize = 256;

/// For each granule of one channel, the revision that last wrote into it. Granules past the end
/// were never written.
#[derive(Clone, Debug, Default)]
pub(in crate::instance) struct Stamps {
    newest: u64,
    pub(super) granules: Vec<u64>,
}

impl Stamps {
    pub(in crate::instance) fn mark(&mut self, range: Range<usize>, revision: u64) {
        if range.is_empty() {
            return;
        }
        let granules = range.start / GRANULE..range.end.div_ceil(GRANULE);
        if self.granules.len() < granules.end {
            self.granules.resize(granules.end, 0);
        }
        self.granules[granules].fill(revision);
        self.newest = revision;
    }

    pub(super) fn since(&self, revision: u64, len: usize) -> Vec<Range<usize>> {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        if self.newest <= revision {
            return ranges;
        }
        // A set that got shorter leaves stamps beyond its end.
        let live = self.granules.iter().take(len.div_ceil(GRANULE));
        for (granule, _) in live.enumerate().filter(|(_, stamp)| **stamp > revision) {
            let range = granule * GRANULE..((granule + 1) * GRANULE).min(len);
            match ranges.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => ranges.push(range),
            }
        }
        ranges
    }
}
