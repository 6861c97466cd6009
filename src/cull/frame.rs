//! One frame, in order: what a [`Culler`] does with views and requests.

use crate::cull::{
    Compaction, CullError, CullView, Culler, FrameCounts, Stage,
    batch::{GpuBatch, PageBuffers, most_ids},
    pages::SetId,
    pipelines::Pipelines,
    plan::{BoundingSphere, DrawShape},
};
use glam::Affine3A;
use hashbrown::{HashSet, hash_map::Entry};
use wgpu::{CommandEncoder, ComputePass, Device, Queue};

/// One use of a set in a frame: which views cull it, and what its survivors draw.
#[derive(Clone, Debug)]
pub struct CullRequest {
    /// Names the request in [`FrameCounts`].
    pub key: u64,
    /// The set.
    pub set: SetId,
    /// Takes the set to the world.
    pub world_from_local: Affine3A,
    /// Around the mesh, in the mesh's space.
    pub sphere: BoundingSphere,
    /// What is drawn for each survivor.
    pub shape: DrawShape,
    /// Indices of the views that cull it.
    pub views: Vec<u32>,
}

/// The views and requests of one frame.
#[derive(Clone, Debug, Default)]
pub struct CullFrame {
    /// All views.
    pub views: Vec<CullView>,
    /// All requests.
    pub requests: Vec<CullRequest>,
}

/// Frames after which a batch is tried again that the device had no room for: something else may have gone.
pub(super) const RETRY_AFTER: u64 = 120;

/// What the device has refused.
#[derive(Default)]
pub(super) struct Refusals {
    /// Since anybody asked.
    news: Vec<Refusal>,
    /// Texts that are no news any more.
    told: HashSet<String>,
}

impl Refusals {
    pub(super) fn push(&mut self, refusal: Refusal) {
        self.news.push(refusal);
    }

    /// Notes an error that no request is named by, once.
    pub(super) fn note<T>(&mut self, result: Result<T, CullError>) {
        if let Err(error) = result
            && self.told.insert(error.to_string())
        {
            self.news.push(error.into());
        }
    }
}

/// Something that the device refused to make for a frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// What it said.
    pub error: CullError,
    /// [Keys](CullRequest::key) of the requests that are not drawn. They are tried again every 120 frames. Empty if
    /// something else is missing: bounds of blocks, motion vectors, room for more survivors.
    pub requests: Vec<u64>,
}

impl From<CullError> for Refusal {
    fn from(error: CullError) -> Self {
        Self {
            error,
            requests: Vec::new(),
        }
    }
}

/// Counters of every so many frames are read back where nothing asks for those of each.
const COUNT_EVERY: u64 = 4;

/// Batches that were not used for so many frames are dropped.
const KEEP_FRAMES: u64 = 120;

impl Culler {
    /// Plans the frame and uploads what changed of its tables; on the `Cpu` tier also culls it. Requests whose
    /// set is not resident are drawn in no view.
    pub fn prepare(&mut self, device: &Device, queue: &Queue, frame: &CullFrame) {
        self.frame += 1;
        self.keep_before_writes(device, queue);
        self.learn_capacities(device);
        self.plan_frame(frame);
        self.choose_compaction();
        self.update_bounds(device, queue);
        self.pages.belt.end_frame();
        if self.refused.len() > self.keys.len() {
            let keys = &self.keys;
            self.refused.retain(|key, _| keys.contains(key));
        }
        for index in 0..self.plan.batches.len() {
            self.try_batch(device, queue, index);
        }
        if self.batches.len() > self.keys.len() {
            let now = self.frame;
            self.batches
                .retain(|_, batch| batch.last_used + KEEP_FRAMES >= now);
        }
    }

    /// The pipelines for the frame's count, where there is a choice.
    fn choose_compaction(&mut self) {
        if self.pipelines.len() > 1 {
            let batches = &self.plan.batches;
            let tests = batches.iter().map(|batch| batch.most_survivors).sum();
            let strips = batches
                .iter()
                .map(|batch| u64::from(batch.batch.strip_count))
                .sum();
            let pick = self.auto.pick(&self.tuning, tests, strips, self.frame);
            let position = self
                .pipelines
                .iter()
                .position(|pipelines| pipelines.compaction == pick);
            let active = position.unwrap_or(0);
            if core::mem::replace(&mut self.active, active) != active {
                self.changed_in = self.frame;
            }
        }
        let has_blocks = self.compaction() == Compaction::Classify;
        for (rows, batch) in self.rows.iter_mut().zip(&self.plan.batches) {
            rows.blocks = has_blocks.then_some(batch.batch.block_count);
        }
    }

    /// Prepares a batch. If the device refuses what it needs, its sets are not drawn; it is tried again some frames later.
    fn try_batch(&mut self, device: &Device, queue: &Queue, index: usize) {
        let key = self.keys[index];
        let before = self.refused.get(&key).copied();
        if before.is_some_and(|refused_in| self.frame < refused_in + RETRY_AFTER) {
            return;
        }
        let result = self.prepare_batch(device, queue, index);
        if result.is_ok() && before.is_some() {
            self.refused.remove(&key);
        }
        if let Err(error) = result {
            let rows = self.rows.get(index).map(|batch| batch.rows.clone());
            let mut requests: Vec<_> = rows
                .iter()
                .flat_map(|rows| rows.iter().map(|row| row.0))
                .collect();
            requests.dedup();
            if before.is_none() {
                self.refusals.push(Refusal { error, requests });
            }
            self.batches.remove(&key);
            self.refused.insert(key, self.frame);
        }
    }

    fn prepare_batch(
        &mut self,
        device: &Device,
        queue: &Queue,
        index: usize,
    ) -> Result<(), CullError> {
        let plan = &self.plan.batches[index];
        let Some(page) = self.pages.page(plan.page) else {
            return Ok(());
        };
        let batch = match self.batches.entry(self.keys[index]) {
            Entry::Occupied(batch) => batch.into_mut(),
            Entry::Vacant(place) => place.insert(GpuBatch::new(device)?),
        };
        batch.last_used = self.frame;
        let most = self
            .pipelines
            .get(self.active)
            .map_or(plan.most_survivors, |p| most_ids(plan, p.compaction));
        batch.most = most;
        let enough = most.min(u64::from(self.options.survivor_capacity)).max(1);
        let capacity = enough.min(self.most_survivors) as u32;
        if batch.survivor_capacity < capacity {
            batch.reserve_survivors(device, capacity)?;
        }
        if let Some(pipelines) = self.pipelines.get(self.active) {
            let page = PageBuffers {
                instances: &page.instances,
                scales: page.scales.as_ref().unwrap_or(&self.no_channel),
                bounds: &page.bounds,
                generation: self.pages.generation,
            };
            let numbered = (plan, self.changed_in);
            self.uploaded += batch.prepare((device, queue), pipelines, numbered, &page)?;
        } else {
            // Every survivor finds room: the count is known before the upload.
            batch.reserve_survivors(
                device,
                plan.most_survivors.min(self.most_survivors).max(1) as u32,
            )?;
            let (bytes, totals) = batch.cull_on_cpu(device, queue, plan, page)?;
            self.uploaded += bytes;
            let frame = self.frame;
            let counts = match &mut self.cpu_counts {
                Some(counts) if counts.frame == frame => counts,
                counts => counts.insert(FrameCounts {
                    frame,
                    ..FrameCounts::default()
                }),
            };
            self.rows[index].collect(&totals, &batch.cpu_args, counts);
        }
        Ok(())
    }

    /// Grows the arenas that overflowed some frames ago.
    fn learn_capacities(&mut self, device: &Device) {
        if let Some(counts) = self.readback.collect() {
            self.may_overflow = false;
            for (key, survivors) in &counts.batches {
                let Some(batch) = self.batches.get_mut(key) else {
                    continue;
                };
                if *survivors > batch.survivor_capacity && !batch.is_at_limit {
                    let room = u64::from(*survivors) + u64::from(*survivors) / 4;
                    let grown =
                        batch.reserve_survivors(device, room.min(self.most_survivors) as u32);
                    // The list stays as long as it is: it is not asked for again.
                    batch.is_at_limit = grown.is_err();
                    self.refusals.note(grown);
                }
                let capacity = batch.survivor_capacity;
                self.may_overflow |= *survivors > capacity / 4 && u64::from(capacity) < batch.most;
            }
            self.auto.learn(&counts);
            self.cpu_counts = Some(counts);
        }
    }

    /// Records all stages and the copy of the counters; nothing on the `Cpu` tier.
    pub fn record(&mut self, device: &Device, queue: &Queue, encoder: &mut CommandEncoder) {
        if self.has_written_sets() {
            self.record_written((device, queue), encoder);
        }
        if self.has_gpu_work() {
            for stage in self.compaction().stages() {
                let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                    label: Some(stage.name()),
                    timestamp_writes: None,
                });
                self.record_stage(stage, &mut pass);
            }
            self.record_readback(device, encoder);
        }
    }

    /// Whether the passes of the frame read the bounds of blocks.
    pub(super) fn reads_bounds(&self) -> bool {
        let pipelines = self.pipelines.get(self.active);
        pipelines.is_some_and(Pipelines::needs_bounds) && !self.plan.batches.is_empty()
    }

    /// Whether the frame has anything for the GPU to cull.
    #[must_use]
    pub fn has_gpu_work(&self) -> bool {
        !self.pipelines.is_empty() && !self.plan.batches.is_empty()
    }

    /// Records one stage of all batches. The stages must follow each other in the order of [`Stage::ALL`]; those
    /// that the compaction does not have ([`Compaction::stages`](crate::cull::Compaction::stages)) record nothing. Returns the
    /// number of dispatches.
    pub fn record_stage(&self, stage: Stage, pass: &mut ComputePass<'_>) -> u32 {
        let Some(pipelines) = self.pipelines.get(self.active) else {
            return 0;
        };
        let batches = self.plan.batches.iter().zip(&self.keys);
        let batches =
            batches.filter_map(|(plan, key)| Some((plan, self.batches.get(key)?.bind_groups())));
        pipelines.record(stage, batches, pass)
    }

    /// Whether the counters of this frame should be read back: the first frames of a plan or a compaction, every frame while an
    /// arena that cannot hold everything is a quarter full, else every fourth. To read them costs as much as to record a stage.
    #[must_use]
    pub fn wants_counts(&self) -> bool {
        self.frame < self.changed_in + COUNT_EVERY
            || self.may_overflow
            || self.frame.is_multiple_of(COUNT_EVERY)
    }

    /// Records the copy of the counters.
    pub fn record_readback(&mut self, device: &Device, encoder: &mut CommandEncoder) {
        let batches = self.keys.iter().zip(&self.rows);
        let batches =
            batches.filter_map(|(key, rows)| Some((self.batches.get(key)?.args(), rows.clone())));
        self.readback.record(device, encoder, self.frame, batches);
    }

    /// To be called when the recorded commands have been submitted.
    pub fn after_submit(&mut self) {
        self.readback.after_submit();
    }

    /// What the device has refused since the last call.
    pub fn take_refusals(&mut self) -> Vec<Refusal> {
        core::mem::take(&mut self.refusals.news)
    }

    /// Counters that have arrived since the last call: a few frames old, never waited for. Device polling is the
    /// caller's.
    pub fn take_counts(&mut self, device: &Device) -> Option<FrameCounts> {
        self.learn_capacities(device);
        self.cpu_counts.take()
    }
}
