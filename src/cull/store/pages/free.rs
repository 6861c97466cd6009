//! Free granules of a page.

use core::ops::Range;

/// Free granules of a page: sorted, disjoint, never adjacent.
pub(super) struct FreeGranules(Vec<Range<u32>>);

impl FreeGranules {
    pub fn new(granules: u32) -> Self {
        Self(core::iter::once(0..granules).collect())
    }

    pub fn has(&self, granules: u32) -> bool {
        self.first_fit(granules).is_some()
    }

    fn first_fit(&self, granules: u32) -> Option<usize> {
        let fits = |free: &Range<u32>| free.end - free.start >= granules;
        self.0.iter().position(fits)
    }

    /// Takes the first range that is long enough.
    pub fn take(&mut self, granules: u32) -> Option<u32> {
        let at = self.first_fit(granules)?;
        let first = self.0[at].start;
        self.0[at].start += granules;
        if self.0[at].is_empty() {
            self.0.remove(at);
        }
        Some(first)
    }

    pub fn give(&mut self, range: Range<u32>) {
        let at = self.0.partition_point(|free| free.start < range.start);
        self.0.insert(at, range);
        if at + 1 < self.0.len() && self.0[at].end == self.0[at + 1].start {
            self.0[at].end = self.0[at + 1].end;
            self.0.remove(at + 1);
        }
        if at > 0 && self.0[at - 1].end == self.0[at].start {
            self.0[at - 1].end = self.0[at].end;
            self.0.remove(at);
        }
    }

    pub fn is_whole(&self, granules: u32) -> bool {
        self.0.len() == 1 && self.0[0] == (0..granules)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_granules_merge_with_both_neighbors() {
        let mut free = FreeGranules::new(10);
        let (a, b, c) = (free.take(3), free.take(4), free.take(3));
        assert_eq!((a, b, c), (Some(0), Some(3), Some(7)));
        assert_eq!(free.take(1), None);
        free.give(0..3);
        free.give(7..10);
        assert_eq!(free.0, [0..3, 7..10]);
        free.give(3..7);
        assert!(free.is_whole(10));
    }

    #[test]
    fn the_first_gap_that_fits_is_taken() {
        let mut free = FreeGranules(vec![0..2, 4..9]);
        assert_eq!(free.take(3), Some(4));
        assert_eq!(free.0, [0..2, 7..9]);
    }
}
