//! Counters on their way back, without waiting.

use crate::cull::{
    gpu::staging::StagingRing,
    layout::{DrawCommand, Totals, args_offset},
    plan::planned::{BatchKey, PlannedBatches, RowMeaning},
    request::DrawList,
};
use std::sync::Arc;
use wgpu::{Buffer, CommandEncoder, Device};

/// Number of survivors of one row of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowCount {
    /// [`CullRequest::key`](crate::cull::CullRequest::key).
    pub request: u64,
    /// Index of the view in the frame.
    pub view: u32,
    /// Index of the level of detail, the full mesh first.
    pub level: u32,
    /// Number of instances tested; 0 for coarser levels, so that each instance counts once per
    /// view.
    pub tested: u32,
    /// Number of instances that the view keeps.
    pub visible: u32,
    /// What the row lists: what the frustum keeps, or of that, what is drawn early, what is late,
    /// or all that is visible.
    pub list: DrawList,
    /// Number of indices of what each of them draws, or of vertices without indices: the sum over
    /// all shapes of the request.
    pub element_count: u32,
}

/// Counters of one frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Number of the frame, counted by the culler.
    pub frame: u64,
    /// One per chunk, view and level.
    pub rows: Vec<RowCount>,
    /// Number of survivors that did not fit into the arena. The arena grows, so later frames draw
    /// them.
    pub overflow: u64,
    /// Number of blocks of 1,024 instances, and how many of them some view crosses; `None` if the
    /// compaction did not classify them.
    pub crossed_blocks: Option<(u64, u64)>,
    /// Of a view's late lists: number of instances that the frustum keeps, hidden or not.
    pub in_frustum: u64,
    /// Number of these that reach no sample of the viewport. Of what is hidden as a group, none is
    /// looked at.
    pub too_small: u64,
    /// Number of ids that the arena of each batch must hold.
    pub(crate) needed: Vec<(BatchKey, u32)>,
}

impl FrameCounts {
    /// No counters yet of a frame. Lists keep their memory.
    pub(crate) fn start(&mut self, frame: u64) {
        self.rows.clear();
        self.needed.clear();
        *self = Self {
            frame,
            rows: core::mem::take(&mut self.rows),
            needed: core::mem::take(&mut self.needed),
            ..Self::default()
        };
    }

    /// Number of instances tested and kept in view `view`, over all requests.
    #[must_use]
    pub fn view(&self, view: u32) -> (u64, u64) {
        let rows = self.rows.iter().filter(|row| row.view == view);
        rows.fold((0, 0), |(tested, visible), row| {
            (
                tested + u64::from(row.tested),
                visible + u64::from(row.visible),
            )
        })
    }
}

/// What the counters of a batch mean.
#[derive(Clone, Copy)]
pub(crate) struct BatchRows<'a> {
    key: BatchKey,
    rows: &'a Arc<[RowMeaning]>,
    /// Which rows keep nothing; empty if none.
    resting: &'a [bool],
    /// Number of blocks, if the compaction classifies them.
    blocks: Option<u32>,
}

impl<'a> BatchRows<'a> {
    /// What the counters of a batch of a plan mean. `has_blocks` if the compaction classifies them.
    pub fn of(planned: &'a PlannedBatches, index: usize, has_blocks: bool) -> Option<Self> {
        let plan = planned.plan.batches.get(index)?;
        Some(Self {
            key: *planned.keys.get(index)?,
            rows: planned.meanings.get(index)?,
            resting: plan.resting.as_slice(),
            blocks: has_blocks.then_some(plan.batch.block_count),
        })
    }

    /// Adds the batch's counters to `counts`. `draw_of` gives the command of a row.
    pub fn collect(
        &self,
        totals: &Totals,
        draw_of: impl Fn(usize) -> DrawCommand,
        counts: &mut FrameCounts,
    ) {
        counts.overflow += u64::from(totals.overflow);
        counts.in_frustum += u64::from(totals.in_frustum);
        counts.too_small += u64::from(totals.too_small);
        counts.needed.push((self.key, totals.needed));
        if let Some(classified) = self.blocks {
            let (blocks, crossed) = counts.crossed_blocks.get_or_insert_default();
            *blocks += u64::from(classified);
            *crossed += u64::from(totals.crossed);
        }
        let row_count = |index: usize| {
            let (row, draw) = (&self.rows[index], draw_of(index));
            RowCount {
                request: row.request,
                view: row.view,
                level: row.level,
                tested: row.tested,
                visible: draw.instance_count,
                list: row.list,
                element_count: draw.element_count.saturating_add(row.more_elements),
            }
        };
        if self.resting.is_empty() {
            counts.rows.extend((0..self.rows.len()).map(row_count));
            return;
        }
        // Most rows rest: their commands are not read.
        let rows = self.resting.iter().enumerate();
        let awake = rows.filter(|(_, rests)| !**rests);
        counts.rows.extend(awake.map(|(index, _)| row_count(index)));
    }
}

/// [`BatchRows`], kept until the counters arrive.
struct KeptRows {
    key: BatchKey,
    rows: Arc<[RowMeaning]>,
    resting: Vec<bool>,
    blocks: Option<u32>,
}

impl KeptRows {
    fn of(now: BatchRows<'_>) -> Self {
        Self {
            key: now.key,
            rows: now.rows.clone(),
            resting: now.resting.to_vec(),
            blocks: now.blocks,
        }
    }

    /// Keeps others instead, in the same memory.
    fn replace(&mut self, now: BatchRows<'_>) {
        (self.key, self.blocks) = (now.key, now.blocks);
        self.rows.clone_from(now.rows);
        self.resting.clear();
        self.resting.extend_from_slice(now.resting);
    }

    fn rows(&self) -> BatchRows<'_> {
        BatchRows {
            key: self.key,
            rows: &self.rows,
            resting: &self.resting,
            blocks: self.blocks,
        }
    }
}

/// Counters on their way back.
pub(crate) struct Readback {
    ring: StagingRing<Vec<KeptRows>>,
}

impl Readback {
    pub fn new() -> Self {
        Self {
            ring: StagingRing::new("gpu_culling counters"),
        }
    }

    /// Size of the staging buffers, in bytes.
    pub fn bytes(&self) -> u64 {
        self.ring.bytes()
    }

    /// Copies the counters of `batches` (their argument buffers) unless every staging buffer is
    /// busy.
    pub fn record<'a>(
        &mut self,
        device: &Device,
        encoder: &mut CommandEncoder,
        frame: u64,
        batches: impl Iterator<Item = (&'a Buffer, BatchRows<'a>)> + Clone,
    ) {
        let copies = batches.clone();
        let copies = copies.map(|(args, rows)| (args, args_offset(rows.rows.len() as u32)));
        self.ring.record(device, encoder, frame, copies, |kept| {
            let mut count = 0;
            for (_, rows) in batches {
                match kept.get_mut(count) {
                    Some(kept) => kept.replace(rows),
                    None => kept.push(KeptRows::of(rows)),
                }
                count += 1;
            }
            kept.truncate(count);
        });
    }

    /// Maps the buffers whose copies were submitted.
    pub fn after_submit(&mut self) {
        self.ring.after_submit();
    }

    /// Replaces `counts` by the newest counters since the last call. Returns whether there are any.
    pub fn collect(&mut self, counts: &mut FrameCounts) -> bool {
        let read = self.ring.collect(|frame, bytes, batches| {
            counts.start(frame);
            let mut left = bytes;
            for batch in &*batches {
                let (head, rest) = left.split_at(size_of::<Totals>());
                let (draws, rest) = rest.split_at(batch.rows.len() * size_of::<DrawCommand>());
                let totals: Totals = bytemuck::pod_read_unaligned(head);
                let draw_of = |row: usize| {
                    let first = row * size_of::<DrawCommand>();
                    bytemuck::pod_read_unaligned(&draws[first..first + size_of::<DrawCommand>()])
                };
                batch.rows().collect(&totals, draw_of, counts);
                left = rest;
            }
        });
        read.is_some()
    }
}
