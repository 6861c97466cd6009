//! The counters of the meshlet stages, and what their buffers learn from them.

use super::{
    culler::MeshletCuller,
    layout::{MeshletResult, MeshletTotals},
    readback::{Meanings, MeshletCounts},
};
use crate::cull::{BatchKey, DrawList, gpu::staging::StagingRing};

impl MeshletCuller {
    /// Takes the counters that have arrived, and grows the buffers that were too small then.
    pub(super) fn learn(&mut self) {
        let Self {
            options,
            limits,
            batches,
            readback,
            counts,
            has_counts,
            late,
            ..
        } = self;
        let mut grow = |key: &BatchKey, totals: &MeshletTotals| {
            if let Some(batch) = batches.get_mut(key)
                && !options.keeps_capacity
            {
                let room = &mut batch.capacities;
                room.cells = grown(room.cells, totals.needed_cells, limits.cells);
                room.survivors = grown(room.survivors, totals.needed_survivors, limits.survivors);
            }
        };
        *has_counts |= collect(readback, counts, &mut grow);
        for late in late.values_mut() {
            collect(&mut late.readback, &mut late.counts, &mut grow);
        }
    }

    /// The newest counters since the last call, with the newest of each view's late lists. They are
    /// a few frames old, and nothing waits for them.
    pub fn take_counts(&mut self) -> Option<MeshletCounts> {
        let mut counts = MeshletCounts::default();
        self.swap_counts(&mut counts).then_some(counts)
    }

    /// Same as [`Self::take_counts`], but swaps them with older ones, whose memory the next ones
    /// use. Returns whether there are any.
    pub fn swap_counts(&mut self, counts: &mut MeshletCounts) -> bool {
        self.learn();
        if !core::mem::take(&mut self.has_counts) {
            return false;
        }
        core::mem::swap(&mut self.counts, counts);
        for late in self.late.values() {
            // All rows are of one view. Counters of a view that no longer hides are stale.
            let view = late.counts.rows.first().map(|row| row.view);
            let mut early = counts.rows.iter().filter(|row| row.list == DrawList::Early);
            if early.any(|row| Some(row.view) == view) {
                counts.rows.extend_from_slice(&late.counts.rows);
            }
        }
        true
    }
}

/// Replaces `counts` by the newest counters since the last call, and gives `grow` what each batch
/// needed. Returns whether there are any.
fn collect(
    readback: &mut StagingRing<Meanings>,
    counts: &mut MeshletCounts,
    mut grow: impl FnMut(&BatchKey, &MeshletTotals),
) -> bool {
    let read = readback.collect(|frame, bytes, batches| {
        counts.frame = frame;
        counts.rows.clear();
        let mut left = bytes;
        for (key, meanings) in &*batches {
            let (head, rest) = left.split_at(size_of::<MeshletTotals>());
            let (rows, rest) = rest.split_at(meanings.len() * size_of::<MeshletResult>());
            let results = rows.chunks_exact(size_of::<MeshletResult>());
            let found = meanings.iter().zip(results);
            counts.rows.extend(
                found.map(|(meaning, result)| meaning.count(&bytemuck::pod_read_unaligned(result))),
            );
            grow(key, &bytemuck::pod_read_unaligned(head));
            left = rest;
        }
    });
    read.is_some()
}

/// The room that a batch gets that needs this much.
fn grown(room: u32, needed: u32, limit: u32) -> u32 {
    if needed <= room {
        return room;
    }
    let more = u64::from(needed) + u64::from(needed) / 4;
    more.min(u64::from(limit)) as u32
}
