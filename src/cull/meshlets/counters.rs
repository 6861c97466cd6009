//! The counters of the meshlet stages, and what their buffers learn from them.

use super::{
    culler::MeshletCuller,
    layout::{MeshletResult, MeshletTotals},
    readback::{Meanings, MeshletCounts, Results},
};
use crate::cull::DrawList;
use std::collections::HashSet;

/// A copy of the results of a frame, and what they mean.
fn copied(frame: u64, bytes: &[u8], meanings: &mut Meanings) -> Results {
    (frame, bytes.to_vec(), core::mem::take(meanings))
}

impl MeshletCuller {
    /// Grows the buffers that were too small a few frames ago.
    pub(super) fn learn(&mut self) {
        if let Some(results) = self.readback.collect(copied) {
            self.counts = Some(self.take_results(results));
        }
        let views: Vec<_> = self.late.keys().copied().collect();
        for view in views {
            let late = self.late.get_mut(&view);
            let Some(results) = late.and_then(|late| late.readback.collect(copied)) else {
                continue;
            };
            let counts = self.take_results(results);
            if let Some(late) = self.late.get_mut(&view) {
                late.counts = Some(counts);
            }
        }
    }

    /// Grows the buffers that were too small for the results of a frame, and returns its counters.
    fn take_results(&mut self, (frame, bytes, batches): Results) -> MeshletCounts {
        let mut counts = MeshletCounts {
            frame,
            rows: Vec::new(),
        };
        let mut left = &bytes[..];
        for (key, meanings) in batches {
            let (head, rest) = left.split_at(size_of::<MeshletTotals>());
            let (rows, rest) = rest.split_at(meanings.len() * size_of::<MeshletResult>());
            let totals: MeshletTotals = bytemuck::pod_read_unaligned(head);
            let results: Vec<MeshletResult> = bytemuck::pod_collect_to_vec(rows);
            let found = meanings.iter().zip(&results);
            counts
                .rows
                .extend(found.map(|(meaning, result)| meaning.count(result)));
            if let Some(batch) = self.batches.get_mut(&key)
                && !self.options.keeps_capacity
            {
                let grown = |room: u32, needed: u32, limit: u32| {
                    let more = u64::from(needed) + u64::from(needed) / 4;
                    if needed > room {
                        more.min(u64::from(limit)) as u32
                    } else {
                        room
                    }
                };
                batch.capacities.cells = grown(
                    batch.capacities.cells,
                    totals.needed_cells,
                    self.limits.cells,
                );
                batch.capacities.survivors = grown(
                    batch.capacities.survivors,
                    totals.needed_survivors,
                    self.limits.survivors,
                );
            }
            left = rest;
        }
        counts
    }

    /// The newest counters since the last call, with the newest of each view's late lists. They are
    /// a few frames old, and nothing waits for them.
    pub fn take_counts(&mut self) -> Option<MeshletCounts> {
        self.learn();
        let mut counts = self.counts.take()?;
        let early = counts.rows.iter().filter(|row| row.list == DrawList::Early);
        let hiding: HashSet<u32> = early.map(|row| row.view).collect();
        let late = self.late.values().filter_map(|late| late.counts.as_ref());
        let late = late.flat_map(|counts| &counts.rows);
        // Counters of a view that no longer hides are stale.
        let late = late.filter(|row| hiding.contains(&row.view));
        counts.rows.extend(late);
        Some(counts)
    }
}
