//! The bytes of a table that changed: only they are uploaded.

use core::ops::Range;
use wgpu::{Buffer, Queue};

/// Number of bytes that are compared at once.
const PIECE: usize = 256;
/// Changes with fewer bytes than this between them are one write: each write of wgpu makes a
/// staging buffer, which costs as much as to copy some kilobytes.
const GAP: usize = 4096;
/// Largest number of writes. With more changes, the gaps between them are written, too.
const MAX_WRITES: usize = 16;

/// Ranges of bytes that the GPU does not hold yet, in increasing order.
#[derive(Default)]
pub(crate) struct ChangedBytes {
    ranges: Vec<Range<usize>>,
}

impl ChangedBytes {
    /// What changed from `old` to `new`.
    #[cfg(any(test, feature = "bevy"))]
    pub fn between(old: &[u8], new: &[u8]) -> Self {
        let mut changed = Self::default();
        changed.find(old, new);
        changed
    }

    /// Adds what changed from `old` to `new`.
    pub fn find(&mut self, old: &[u8], new: &[u8]) {
        let both = old.len().min(new.len());
        let pieces = old[..both].chunks(PIECE).zip(new[..both].chunks(PIECE));
        for (first, (old, new)) in (0..).step_by(PIECE).zip(pieces) {
            if old != new {
                self.add(first..first + new.len());
            }
        }
        self.add(both..new.len());
    }

    /// Adds a range. If it does not lie behind the others, what lies between them is added, too.
    pub fn add(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        match self.ranges.last_mut() {
            Some(last) if range.start < last.end + GAP => {
                *last = last.start.min(range.start)..last.end.max(range.end);
            }
            _ => self.ranges.push(range),
        }
    }

    /// Whether the GPU holds everything.
    #[cfg(any(test, feature = "bevy"))]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The GPU holds everything.
    #[cfg(feature = "bevy")]
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Writes what changed of `bytes` to a buffer. Returns the number of bytes written.
    pub fn write(&mut self, queue: &Queue, buffer: &Buffer, bytes: &[u8]) -> u64 {
        self.write_at(queue, buffer, 0, bytes)
    }

    /// The same, of a table that begins at an offset of the buffer.
    pub fn write_at(&mut self, queue: &Queue, buffer: &Buffer, at: u64, bytes: &[u8]) -> u64 {
        let mut written = 0;
        let mut writes = self.take_writes(bytes.len());
        for range in &writes {
            queue.write_buffer(buffer, at + range.start as u64, &bytes[range.clone()]);
            written += range.len() as u64;
        }
        // For the next changes.
        writes.clear();
        self.ranges = writes;
        written
    }

    /// The ranges up to `end`, in few writes.
    pub fn take_writes(&mut self, end: usize) -> Vec<Range<usize>> {
        let mut writes = core::mem::take(&mut self.ranges);
        writes.retain_mut(|range| {
            range.end = range.end.min(end);
            range.start < range.end
        });
        let mut gap = GAP;
        while writes.len() > MAX_WRITES {
            gap *= 2;
            writes.dedup_by(|next, range| {
                let is_near = next.start < range.end + gap;
                if is_near {
                    range.end = next.end;
                }
                is_near
            });
        }
        writes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_change_in_a_large_table_is_one_small_write() {
        let old = vec![0; 1 << 20];
        let mut new = old.clone();
        new[500_000] = 1;
        let mut changed = ChangedBytes::between(&old, &new);
        let writes = changed.take_writes(new.len());
        assert_eq!(writes.len(), 1);
        assert_eq!(writes[0], 499_968..500_224);
        assert!(ChangedBytes::between(&old, &old).is_empty());
        assert!(ChangedBytes::between(&old, &old[..1000]).is_empty());
    }

    proptest! {
        #[test]
        fn writes_make_the_old_table_the_new_one(
            len in 0usize..200_000,
            grown in 0usize..2000,
            places in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
        ) {
            let old = vec![0; len];
            let mut new = vec![0; len + grown];
            for place in places {
                if !new.is_empty() {
                    let place = place.index(new.len());
                    new[place] = 1;
                }
            }
            let mut held = old.clone();
            held.resize(new.len(), 9);
            let writes = ChangedBytes::between(&old, &new).take_writes(new.len());
            prop_assert!(writes.len() <= MAX_WRITES);
            for range in writes {
                held[range.clone()].copy_from_slice(&new[range]);
            }
            prop_assert_eq!(held, new);
        }
    }
}
