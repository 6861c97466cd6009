//! Running a plan: the batches on the GPU, their passes, and the counters that are read back.

pub(super) mod arena;
pub(super) mod batch;
pub(super) mod frame_number;
pub(super) mod history;
pub(super) mod inputs;
#[cfg(feature = "testing")]
pub(super) mod inspect;
pub(super) mod readback;
pub(super) mod rows;
pub(super) mod tables;

use crate::cull::{
    Compaction, CullError, FrameCounts, Refusal, Stage,
    gpu::{Gpu, limits::binding_limit, on_demand::RetryTimer, version::Version},
    pipelines::Pipelines,
    plan::planned::{BatchKey, PlannedBatches},
    policy::{COUNT_EVERY, KEEP_FRAMES},
    refusal::{Missing, Refusals},
    run::history::History,
    store::InstanceStore,
};
use arena::ArenaNeeds;
use batch::GpuBatch;
use frame_number::FrameNumber;
use hashbrown::{HashMap, hash_map::Entry};
use inputs::{BatchInputs, PyramidBuffers, SharedInputs};
use readback::{BatchRows, Readback};
use std::sync::Arc;
use tables::FrameTables;
use wgpu::{CommandEncoder, ComputePass, Device};

/// What the batches of a plan read.
#[derive(Clone, Copy)]
pub(super) struct Inputs<'a> {
    pub store: &'a InstanceStore,
    pub history: &'a History,
    /// The depth that late batches test against.
    pub pyramid: Option<PyramidBuffers<'a>>,
    /// What fills rows that share views.
    pub shared: Option<SharedInputs<'a>>,
}

/// Runs the plan of a frame.
pub(super) struct Runner {
    /// One per compaction that may run; none on the `Cpu` tier.
    pipelines: Vec<Arc<Pipelines>>,
    /// Index of the current frame's pipelines.
    active: usize,
    /// Number of ids that a new arena holds, unless fewer can survive.
    first_capacity: u32,
    /// Largest number of workgroups in one dimension of a dispatch.
    max_width: u32,
    /// Number of ids that one binding holds.
    max_survivors: u64,
    batches: HashMap<BatchKey, GpuBatch>,
    /// Batches that the device refused.
    refused: HashMap<BatchKey, RetryTimer>,
    readback: Readback,
    /// The newest counters, unless somebody has taken them.
    counts: FrameCounts,
    has_counts: bool,
    /// Whether, by the newest counters, an arena may soon be too small.
    may_overflow: bool,
    uploaded: u64,
    refusals: Refusals,
}

impl Runner {
    /// A runner whose new arenas hold `first_capacity` ids, unless fewer can survive.
    pub fn new(device: &Device, pipelines: Vec<Arc<Pipelines>>, first_capacity: u32) -> Self {
        Self {
            pipelines,
            active: 0,
            first_capacity,
            max_width: device.limits().max_compute_workgroups_per_dimension,
            max_survivors: binding_limit(&device.limits()) / 4,
            batches: HashMap::new(),
            refused: HashMap::new(),
            readback: Readback::new(),
            counts: FrameCounts::default(),
            has_counts: false,
            may_overflow: false,
            uploaded: 0,
            refusals: Refusals::default(),
        }
    }

    /// The current frame's pipelines; `None` on the `Cpu` tier.
    pub fn pipelines(&self) -> Option<&Pipelines> {
        self.pipelines
            .get(self.active)
            .map(|pipelines| &**pipelines)
    }

    /// The current frame's compaction. The `Cpu` tier runs the twins of `VoteScanCompact`.
    pub fn compaction(&self) -> Compaction {
        self.pipelines()
            .map_or(Compaction::VoteScanCompact, |pipelines| {
                pipelines.compaction
            })
    }

    /// The batch with this key, if the device has it.
    pub fn batch(&self, key: &BatchKey) -> Option<&GpuBatch> {
        self.batches.get(key)
    }

    // ---- prepare

    /// Selects the pipelines of `compaction`. Returns whether they changed.
    pub fn choose(&mut self, compaction: Compaction) -> bool {
        let mut all = self.pipelines.iter();
        let found = all.position(|pipelines| pipelines.compaction == compaction);
        let active = found.unwrap_or(0);
        core::mem::replace(&mut self.active, active) != active
    }

    /// Prepares every batch of the plan, whose rows it adds to the frame's tables. Batches that the
    /// device refuses are not drawn.
    pub fn prepare(
        &mut self,
        gpu: Gpu<'_>,
        planned: &PlannedBatches,
        tables: &mut FrameTables,
        from: Inputs<'_>,
        frame: FrameNumber,
    ) {
        let keys = &planned.keys;
        if self.refused.len() > keys.len() {
            self.refused.retain(|key, _| keys.contains(key));
        }
        for index in 0..keys.len() {
            self.try_batch(gpu, planned, tables, from, frame, index);
        }
        if self.batches.len() > keys.len() {
            self.batches
                .retain(|_, batch| batch.last_used + KEEP_FRAMES >= frame.now);
        }
    }

    /// Prepares a batch. If the device refuses it, its sets are not drawn until it is tried again.
    fn try_batch(
        &mut self,
        gpu: Gpu<'_>,
        planned: &PlannedBatches,
        tables: &mut FrameTables,
        from: Inputs<'_>,
        frame: FrameNumber,
        index: usize,
    ) {
        let key = planned.keys[index];
        let before = self.refused.get(&key).copied();
        if before.is_some_and(|retry| retry.waits(frame.now)) {
            return;
        }
        match self.prepare_batch(gpu, planned, tables, from, frame, index) {
            Ok(()) => {
                self.refused.remove(&key);
            }
            Err(error) => {
                if before.is_none() {
                    let rows = planned
                        .meanings
                        .get(index)
                        .into_iter()
                        .flat_map(|rows| &**rows);
                    let mut requests: Vec<_> = rows.map(|row| row.request).collect();
                    requests.dedup();
                    self.refusals.push(error, Missing::Requests(requests));
                }
                self.batches.remove(&key);
                self.refused.insert(key, RetryTimer::start(frame.now));
            }
        }
    }

    fn prepare_batch(
        &mut self,
        gpu: Gpu<'_>,
        planned: &PlannedBatches,
        tables: &mut FrameTables,
        from: Inputs<'_>,
        frame: FrameNumber,
        index: usize,
    ) -> Result<(), CullError> {
        let plan = &planned.plan.batches[index];
        let Some(page) = from.store.page(plan.page) else {
            return Ok(());
        };
        let batch = match self.batches.entry(planned.keys[index]) {
            Entry::Occupied(batch) => batch.into_mut(),
            Entry::Vacant(place) => place.insert(GpuBatch::new(gpu.device)?),
        };
        batch.last_used = frame.now;
        let pipelines = self.pipelines.get(self.active);
        let compaction = pipelines.map(|pipelines| pipelines.compaction);
        let (first, limit) = (self.first_capacity, self.max_survivors);
        let needs = ArenaNeeds::of(plan, compaction, first, limit);
        let fit = batch.resize_arena(|arena| arena.fit(gpu.device, needs, frame.now));
        match batch.survivor_capacity() {
            0 => fit?,
            _ => self.refusals.note_error(fit, Missing::Room),
        }
        if let (Some(pipelines), Some(buffers)) = (pipelines, from.store.page_buffers(plan.page)) {
            let inputs = BatchInputs {
                page: buffers,
                pages_version: from.store.pages_version(),
                history: from.history.buffer(plan.page),
                history_version: from.history.version(),
                pyramid: from.pyramid,
                projections: &planned.plan.projections,
                shared: from.shared,
            };
            self.uploaded += batch.prepare(gpu, pipelines, plan, frame, tables, &inputs)?;
            return Ok(());
        }
        let (totals, bytes) = batch.cull_on_cpu(gpu, plan, page)?;
        self.uploaded += bytes;
        if !self.has_counts || self.counts.frame != frame.now {
            self.counts.start(frame.now);
            self.has_counts = true;
        }
        if let Some(rows) = BatchRows::of(planned, index, false) {
            rows.collect(&totals, |row| batch.cpu_args[row], &mut self.counts);
        }
        Ok(())
    }

    // ---- record

    /// Whether the current frame's passes read the bounds of blocks.
    pub fn reads_bounds(&self) -> bool {
        self.pipelines().is_some_and(Pipelines::needs_bounds)
    }

    /// Records one stage of all batches. Returns the number of dispatches.
    pub fn record_stage(
        &self,
        planned: &PlannedBatches,
        stage: Stage,
        pass: &mut ComputePass<'_>,
    ) -> u32 {
        let Some(pipelines) = self.pipelines() else {
            return 0;
        };
        let batches = planned.plan.batches.iter().zip(&planned.keys);
        let batches =
            batches.filter_map(|(plan, key)| Some((plan, self.batches.get(key)?.bind_groups())));
        pipelines.record(stage, batches, pass)
    }

    /// Fills the rows that share views, before the first stage that reads them. Returns the
    /// number of dispatches.
    pub fn fill_rows(&self, planned: &PlannedBatches, pass: &mut ComputePass<'_>) -> u32 {
        let batches = planned.keys.iter().filter_map(|key| self.batches.get(key));
        batches
            .map(|batch| batch.fill_rows(pass, self.max_width))
            .sum()
    }

    /// Whether the counters of this frame should be read back. They are read in the first
    /// [`COUNT_EVERY`] frames of a plan or a compaction. After that, they are read in every frame
    /// if an arena that cannot hold everything is at least a quarter full, otherwise in every
    /// [`COUNT_EVERY`]th frame.
    pub fn wants_counts(&self, frame: FrameNumber) -> bool {
        frame.now < frame.changed_in + COUNT_EVERY
            || self.may_overflow
            || frame.now.is_multiple_of(COUNT_EVERY)
    }

    /// Records the copy of the counters.
    pub fn record_readback(
        &mut self,
        device: &Device,
        encoder: &mut CommandEncoder,
        planned: &PlannedBatches,
        frame: FrameNumber,
    ) {
        let has_blocks = self.compaction() == Compaction::Classify;
        let batches = planned.keys.iter().enumerate().filter_map(|(index, key)| {
            let rows = BatchRows::of(planned, index, has_blocks)?;
            Some((self.batches.get(key)?.args(), rows))
        });
        self.readback.record(device, encoder, frame.now, batches);
    }

    /// Maps the counters whose copies were submitted.
    pub fn after_submit(&mut self) {
        self.readback.after_submit();
    }

    // ---- results

    /// Reads the counters of earlier frames, and grows the arenas that were too small. Returns the
    /// newest counters if any arrived.
    pub fn learn(&mut self, device: &Device, now: u64) -> Option<&FrameCounts> {
        if !self.readback.collect(&mut self.counts) {
            return None;
        }
        self.has_counts = true;
        self.may_overflow = false;
        for (key, needed) in &self.counts.needed {
            let Some(batch) = self.batches.get_mut(key) else {
                continue;
            };
            let limit = self.max_survivors;
            let learned = batch.resize_arena(|arena| arena.learn(device, *needed, limit, now));
            self.refusals.note_error(learned, Missing::Room);
            self.may_overflow |= batch.may_overflow(*needed);
        }
        Some(&self.counts)
    }

    /// Swaps `counts` for the newest counters since the last call. Returns whether there are any.
    pub fn swap_counts(&mut self, counts: &mut FrameCounts) -> bool {
        if self.has_counts {
            core::mem::swap(&mut self.counts, counts);
        }
        core::mem::take(&mut self.has_counts)
    }

    /// Number of bytes of tables uploaded since the last call.
    pub fn take_uploaded(&mut self) -> u64 {
        core::mem::take(&mut self.uploaded)
    }

    /// What the device refused since the last call.
    pub fn take_refusals(&mut self) -> Vec<Refusal> {
        self.refusals.take()
    }

    /// Label and size in bytes of each buffer.
    pub fn sizes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let batches = self.batches.values().flat_map(|batch| batch.sizes());
        let counters = ("gpu_culling counters", self.readback.bytes());
        batches.chain([counters])
    }

    /// Number of ids that all arenas hold.
    pub fn survivor_capacity(&self) -> u64 {
        let held = self.batches.values().map(|batch| batch.survivors().size());
        held.sum::<u64>() / 4
    }
}

/// The buffers that a draw of a batch binds. Equal versions mean equal buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchVersion {
    /// The batch.
    pub key: BatchKey,
    /// Changes when the batch's survivors or commands are replaced.
    pub batch: Version,
    /// Changes when a page's buffers are replaced.
    pub pages: Version,
}
