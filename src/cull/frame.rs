//! One frame, in order: what a [`Culler`] does with views and requests.

use crate::{
    cull::{
        BatchData, Compaction, CullError, CullView, CullingTier, DrawPart, FrameCounts, Stage,
        Tuning,
        batch::{GpuBatch, PageBuffers, most_ids},
        bounds::BoundsBuilder,
        layout::{BLOCK, BoundJob, DrawArgs, Row, args_offset},
        pages::{Channels, Pages, Region, Room, SetId, binding_limit, page_limit},
        pipelines::{BuildOptions, Pipelines},
        plan::{BoundingSphere, DrawShape, Plan, PlanLimits, PlanRequest},
        previous::Previous,
        readback::{BatchRows, Readback, read_batch, read_buffer},
        strategies::Sources,
        written::WrittenRoom,
    },
    instance::PackedInstance,
};
use glam::Affine3A;
use std::collections::HashMap;
use wgpu::{Buffer, BufferDescriptor, BufferUsages, CommandEncoder, ComputePass, Device, Queue};

/// How a [`Culler`] is made.
#[derive(Clone, Debug)]
pub struct CullerOptions {
    /// The tier; `None` takes the best that the adapter supports.
    pub tier: Option<CullingTier>,
    /// Keeps the bounds checks of the kernels (for tests; off by default).
    pub shader_checks: bool,
    /// Survivor ids (4 bytes each) that a batch has room for from the start, if so many can survive at all. An
    /// arena that proves too small grows a few frames later. The default is 16,777,216.
    pub survivor_capacity: u32,
    /// How survivors become lists; the default is [`Compaction::Auto`].
    pub compaction: Compaction,
    /// What [`Compaction::Auto`] goes by; `None` is the rule for the tier.
    pub tuning: Option<Tuning>,
}

impl Default for CullerOptions {
    fn default() -> Self {
        Self {
            tier: None,
            shader_checks: false,
            survivor_capacity: 1 << 24,
            compaction: Compaction::default(),
            tuning: None,
        }
    }
}

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

/// What [`Culler::reserve_set`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residency {
    /// The set's instances are where they were.
    Kept,
    /// The set has new room: upload all of it.
    Moved,
}

/// Where a draw's command comes from.
pub enum DrawSource<'a> {
    /// The GPU wrote it: draw indirect from `buffer` at `offset`.
    Indirect {
        /// The argument buffer.
        buffer: &'a Buffer,
        /// Byte offset of the command.
        offset: u64,
    },
    /// The CPU knows it.
    Direct(DrawArgs),
}

#[derive(Default)]
pub(super) struct Set {
    pub len: u32,
    pub channels: Channels,
    pub regions: Vec<Region>,
    pub room: Room,
    /// Instances that the GPU may write; `None` where the CPU uploads them.
    pub written: Option<WrittenRoom>,
}

/// Key of a batch from frame to frame: page, and ordinal among the page's batches.
type BatchKey = (usize, usize);

/// Batches that were not used for so many frames are dropped.
const KEEP_FRAMES: u64 = 120;

/// The engine: instance pages, pipelines of one tier, and the batches of the current frame.
pub struct Culler {
    tier: CullingTier,
    options: CullerOptions,
    page_limit: u32,
    plan_limits: PlanLimits,
    most_survivors: u64,
    /// Those of the compaction, or of each that `Auto` may take; none on the `Cpu` tier.
    pipelines: Vec<Pipelines>,
    /// The ones of the current frame.
    active: usize,
    tuning: Tuning,
    pub(super) pages: Pages,
    pub(super) sets: HashMap<SetId, Set>,
    pub(super) previous: Previous,
    /// Bound where a page has no scales.
    pub(super) no_channel: Buffer,
    plan: Plan,
    /// Keys of the plan's batches.
    keys: Vec<BatchKey>,
    rows: Vec<BatchRows>,
    batches: HashMap<BatchKey, GpuBatch>,
    readback: Readback,
    /// None on the `Cpu` tier.
    pub(super) bounds: Option<BoundsBuilder>,
    /// Instances whose blocks' bounds are out of date.
    stale: Vec<(SetId, core::ops::Range<usize>)>,
    /// Counters of the `Cpu` tier, known at once.
    cpu_counts: Option<FrameCounts>,
    frame: u64,
    uploaded: u64,
}

impl Culler {
    /// A culler on `device`. A tier whose pipelines do not build gives way to the next; the reason is the second value.
    ///
    /// # Errors
    /// [`CullError::TierUnsupported`] when `options.tier` asks for what the device lacks,
    /// [`CullError::CompactionUnsupported`] when `options.compaction` does,
    /// [`CullError::BindingTooSmall`] when it cannot bind a block of instances.
    pub fn new(
        device: &Device,
        options: CullerOptions,
    ) -> Result<(Self, Option<String>), CullError> {
        let (features, limits) = (device.features(), device.limits());
        let (mut tier, mut reason) = match options.tier {
            Some(tier) => {
                tier.check(features, &limits)?;
                (tier, None)
            }
            None => CullingTier::supported(features, &limits),
        };
        let mut pipelines = Vec::new();
        let mut tuning;
        loop {
            options.compaction.check(tier, features)?;
            tuning = options
                .tuning
                .clone()
                .unwrap_or_else(|| Tuning::rule(tier))
                .supported(tier, features);
            if tier == CullingTier::Cpu {
                break;
            }
            match build(device, tier, &options, &tuning, &|_, source| source) {
                Ok(built) => {
                    pipelines = built;
                    break;
                }
                Err(error) => {
                    reason = Some(error.to_string());
                    tier = if tier == CullingTier::Subgroup {
                        CullingTier::Workgroup
                    } else {
                        CullingTier::Cpu
                    };
                }
            }
        }
        let page_limit = page_limit(&limits)?;
        let bounds = match tier {
            CullingTier::Cpu => None,
            _ => Some(BoundsBuilder::new(
                device,
                crate::cull::shaders::INSTANCE_PACKED,
                options.shader_checks,
            )?),
        };
        let culler = Self {
            tier,
            page_limit,
            plan_limits: PlanLimits::new(
                binding_limit(&limits),
                limits.max_compute_workgroups_per_dimension,
            ),
            most_survivors: binding_limit(&limits) / 4,
            pipelines,
            active: 0,
            tuning,
            pages: Pages::new(page_limit, tier == CullingTier::Cpu),
            sets: HashMap::new(),
            previous: Previous::default(),
            no_channel: device.create_buffer(&BufferDescriptor {
                label: Some("gpu_culling no channel"),
                size: 256,
                usage: BufferUsages::STORAGE,
                mapped_at_creation: false,
            }),
            plan: Plan::default(),
            keys: Vec::new(),
            rows: Vec::new(),
            batches: HashMap::new(),
            readback: Readback::new(),
            bounds,
            stale: Vec::new(),
            cpu_counts: None,
            frame: 0,
            uploaded: 0,
            options,
        };
        Ok((culler, reason))
    }

    /// A culler whose kernels `edit` changes, given a pass's name and WGSL: a test breaks them on purpose.
    ///
    /// # Errors
    /// As [`Self::new`], and [`CullError::Pipeline`] when a kernel does not build.
    #[doc(hidden)]
    pub fn with_sources(
        device: &Device,
        options: CullerOptions,
        edit: impl Fn(&str, String) -> String,
    ) -> Result<Self, CullError> {
        let (mut culler, _) = Self::new(device, options)?;
        let options = CullerOptions {
            shader_checks: true,
            ..culler.options.clone()
        };
        culler.pipelines = build(device, culler.tier, &options, &culler.tuning, &edit)?;
        Ok(culler)
    }

    /// The tier in use.
    #[must_use]
    pub fn tier(&self) -> CullingTier {
        self.tier
    }

    /// The compaction in use: that of the options, or what [`Compaction::Auto`] took for the frame that was
    /// prepared last. On the `Cpu` tier the default, whose twins run there.
    #[must_use]
    pub fn compaction(&self) -> Compaction {
        self.pipelines
            .get(self.active)
            .map_or(Compaction::VoteScanCompact, |pipelines| {
                pipelines.compaction
            })
    }

    /// Instances that one page holds.
    #[must_use]
    pub fn page_limit(&self) -> u32 {
        self.page_limit
    }

    /// Pages of at most `instances` from now on, rounded up to a block (a test makes many small ones).
    #[doc(hidden)]
    pub fn limit_pages(&mut self, instances: u32, counts_per_batch: u32) {
        self.page_limit = instances.next_multiple_of(BLOCK).min(self.page_limit);
        self.plan_limits.counts = counts_per_batch.min(self.plan_limits.counts);
        self.pages = Pages::new(self.page_limit, self.tier == CullingTier::Cpu);
        self.sets.clear();
    }

    // ---- sets

    /// Room for a set of `len` instances. A set that outgrows its room gets half as much again, so that pushing
    /// to it every frame does not move it every frame.
    pub fn reserve_set(
        &mut self,
        device: &Device,
        id: SetId,
        len: u32,
        channels: Channels,
    ) -> Residency {
        let room = Room {
            previous: channels.previous,
            own: false,
        };
        let old = self.sets.get(&id);
        let known = old
            .filter(|old| old.room == room && old.written.is_none())
            .map(Set::capacity);
        let residency = if known.is_some_and(|capacity| capacity >= len) {
            Residency::Kept
        } else {
            let instances = if known.is_some_and(|capacity| capacity > 0) {
                len.saturating_add(len / 2)
            } else {
                len
            };
            let old = if channels.previous {
                // Its data is where the instances were.
                self.sets.remove(&id)
            } else {
                self.remove_set(id);
                None
            };
            let set = Set {
                len,
                channels,
                regions: self.pages.allocate(device, instances, room),
                room,
                written: None,
            };
            if let Some(old) = old {
                self.previous.move_set(&self.pages, old, &set);
            }
            self.sets.insert(id, set);
            Residency::Moved
        };
        if let Some(set) = self.sets.get_mut(&id) {
            set.len = len;
            set.channels = channels;
            self.pages.add_channels(device, &set.regions, channels);
        }
        residency
    }

    /// The set's channels, if it is resident.
    #[must_use]
    pub fn set_channels(&self, id: SetId) -> Option<Channels> {
        self.sets.get(&id).map(|set| set.channels)
    }

    /// Instances of the set, if it is resident.
    #[must_use]
    pub fn set_len(&self, id: SetId) -> Option<u32> {
        self.sets.get(&id).map(|set| set.len)
    }

    /// The set's regions, in order.
    #[must_use]
    pub fn set_regions(&self, id: SetId) -> &[Region] {
        self.sets.get(&id).map_or(&[], |set| &set.regions)
    }

    /// Gives the set's room back.
    pub fn remove_set(&mut self, id: SetId) {
        if let Some(set) = self.sets.remove(&id) {
            self.pages.release(&set.regions, set.room);
        }
    }

    /// Names of all resident sets.
    pub fn set_ids(&self) -> impl Iterator<Item = SetId> + '_ {
        self.sets.keys().copied()
    }

    /// Writes instances from `first` on.
    ///
    /// # Errors
    /// [`CullError::UnknownSet`], [`CullError::UploadOutOfRange`].
    pub fn upload(
        &mut self,
        queue: &Queue,
        id: SetId,
        first: usize,
        data: &[PackedInstance],
    ) -> Result<(), CullError> {
        let set = checked(&self.sets, id, first, data.len())?;
        self.pages.write_instances(queue, &set.regions, first, data);
        self.stale.push((id, first..first + data.len()));
        self.uploaded += size_of_val(data) as u64;
        Ok(())
    }

    /// Writes uniform scales from `first` on.
    ///
    /// # Errors
    /// As [`Self::upload`].
    pub fn upload_scales(
        &mut self,
        queue: &Queue,
        id: SetId,
        first: usize,
        data: &[f32],
    ) -> Result<(), CullError> {
        let set = checked(&self.sets, id, first, data.len())?;
        self.pages.write_scales(queue, &set.regions, first, data);
        self.stale.push((id, first..first + data.len()));
        self.uploaded += size_of_val(data) as u64;
        Ok(())
    }

    /// Writes tags from `first` on.
    ///
    /// # Errors
    /// As [`Self::upload`].
    pub fn upload_tags(
        &mut self,
        queue: &Queue,
        id: SetId,
        first: usize,
        data: &[u32],
    ) -> Result<(), CullError> {
        let set = checked(&self.sets, id, first, data.len())?;
        self.pages.write_tags(queue, &set.regions, first, data);
        self.uploaded += size_of_val(data) as u64;
        Ok(())
    }

    /// Bytes uploaded since the last call: instances, channels and tables.
    pub fn take_uploaded(&mut self) -> u64 {
        core::mem::take(&mut self.uploaded)
    }

    /// Bytes that pages and batches hold on the GPU.
    #[must_use]
    pub fn gpu_bytes(&self) -> u64 {
        self.pages.bytes()
            + self.previous.bytes()
            + self.batches.values().map(GpuBatch::bytes).sum::<u64>()
    }

    // ---- the frame

    /// Plans the frame and uploads what changed of its tables; on the `Cpu` tier also culls it. Requests whose
    /// set is not resident are drawn in no view.
    pub fn prepare(&mut self, device: &Device, queue: &Queue, frame: &CullFrame) {
        self.frame += 1;
        self.keep_before_writes(device, queue);
        self.learn_capacities(device);
        self.plan_frame(frame);
        self.choose_compaction();
        self.update_bounds(device, queue);
        for index in 0..self.plan.batches.len() {
            self.prepare_batch(device, queue, index);
        }
        let now = self.frame;
        self.batches
            .retain(|_, batch| batch.last_used + KEEP_FRAMES >= now);
    }

    /// Makes the bounds of the blocks whose instances have changed since the last frame.
    fn update_bounds(&mut self, device: &Device, queue: &Queue) {
        let stale = core::mem::take(&mut self.stale);
        let Some(builder) = &self.bounds else { return };
        let mut jobs: HashMap<usize, Vec<BoundJob>> = HashMap::new();
        for (id, range) in stale {
            let Some(set) = self.sets.get(&id) else {
                continue;
            };
            let mut before = 0;
            for region in &set.regions {
                let used = (set.len - before).min(region.capacity);
                let from = (range.start as u32).max(before);
                let to = (range.end as u32).min(before + used);
                if from < to {
                    let first_block = (region.first + from - before) / BLOCK;
                    jobs.entry(region.page).or_default().push(BoundJob {
                        first_block,
                        block_count: (region.first + to - before).div_ceil(BLOCK) - first_block,
                        end: region.first + used,
                        has_scale: u32::from(set.channels.scale),
                    });
                }
                before += used;
            }
        }
        for (page, jobs) in jobs {
            if let Some(page) = self.pages.page(page) {
                let scales = page.scales.as_ref().unwrap_or(&self.no_channel);
                let buffers = [&page.instances, scales, &page.bounds];
                builder.run((device, queue), buffers, &jobs);
            }
        }
    }

    fn plan_frame(&mut self, frame: &CullFrame) {
        let empty = Set::default();
        let rows: Vec<Vec<Row>> = frame
            .requests
            .iter()
            .map(|request| {
                let views = request
                    .views
                    .iter()
                    .filter_map(|view| frame.views.get(*view as usize));
                views
                    .map(|view| view.to_row(&request.world_from_local))
                    .collect()
            })
            .collect();
        let requests: Vec<_> = frame
            .requests
            .iter()
            .zip(&rows)
            .map(|(request, rows)| {
                let set = self.sets.get(&request.set).unwrap_or(&empty);
                PlanRequest {
                    regions: &set.regions,
                    len: set.len,
                    has_scale: set.channels.scale,
                    world_from_local: request.world_from_local,
                    sphere: request.sphere,
                    shape: request.shape,
                    rows,
                }
            })
            .collect();
        self.plan = Plan::build(&requests, self.plan_limits);
        let mut ordinals = HashMap::new();
        self.keys.clear();
        for batch in &self.plan.batches {
            let ordinal = ordinals.entry(batch.page).or_insert(0);
            self.keys.push((batch.page, *ordinal));
            *ordinal += 1;
        }
        self.rows = batch_rows(frame, &self.plan, &self.keys);
    }

    /// The pipelines for the frame's count, where there is a choice.
    fn choose_compaction(&mut self) {
        if self.pipelines.len() > 1 {
            let tests = self
                .plan
                .batches
                .iter()
                .map(|batch| batch.most_survivors)
                .sum();
            let pick = self.tuning.pick(tests);
            let position = self
                .pipelines
                .iter()
                .position(|pipelines| pipelines.compaction == pick);
            self.active = position.unwrap_or(0);
        }
    }

    fn prepare_batch(&mut self, device: &Device, queue: &Queue, index: usize) {
        let plan = &self.plan.batches[index];
        let Some(page) = self.pages.page(plan.page) else {
            return;
        };
        let batch = self
            .batches
            .entry(self.keys[index])
            .or_insert_with(|| GpuBatch::new(device));
        batch.last_used = self.frame;
        let most = self
            .pipelines
            .get(self.active)
            .map_or(plan.most_survivors, |p| most_ids(plan, p.compaction));
        let enough = most.min(u64::from(self.options.survivor_capacity)).max(1);
        let capacity = enough.min(self.most_survivors) as u32;
        if batch.survivor_capacity < capacity {
            batch.reserve_survivors(device, capacity);
        }
        if let Some(pipelines) = self.pipelines.get(self.active) {
            let page = PageBuffers {
                instances: &page.instances,
                scales: page.scales.as_ref().unwrap_or(&self.no_channel),
                bounds: &page.bounds,
                generation: self.pages.generation,
            };
            self.uploaded += batch.prepare(device, queue, pipelines, plan, &page);
        } else {
            // Every survivor finds room: the count is known before the upload.
            batch.reserve_survivors(
                device,
                plan.most_survivors.min(self.most_survivors).max(1) as u32,
            );
            let (bytes, totals) = batch.cull_on_cpu(device, queue, plan, page);
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
    }

    /// Grows the arenas that overflowed some frames ago.
    fn learn_capacities(&mut self, device: &Device) {
        if let Some(counts) = self.readback.collect() {
            for (key, survivors) in &counts.batches {
                if let Some(batch) = self.batches.get_mut(key)
                    && *survivors > batch.survivor_capacity
                {
                    let room = u64::from(*survivors) + u64::from(*survivors) / 4;
                    batch.reserve_survivors(device, room.min(self.most_survivors) as u32);
                }
            }
            self.cpu_counts = Some(counts);
        }
    }

    /// Records all stages and the copy of the counters; nothing on the `Cpu` tier.
    pub fn record(&mut self, device: &Device, encoder: &mut CommandEncoder) {
        self.record_written(device, encoder);
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
    /// that the compaction does not have ([`Compaction::stages`]) record nothing.
    pub fn record_stage(&self, stage: Stage, pass: &mut ComputePass<'_>) {
        let Some(pipelines) = self.pipelines.get(self.active) else {
            return;
        };
        let batches = self.plan.batches.iter().zip(&self.keys);
        let batches =
            batches.filter_map(|(plan, key)| Some((plan, self.batches.get(key)?.bind_groups())));
        pipelines.record(stage, batches, pass);
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

    /// Counters that have arrived since the last call: a few frames old, never waited for. Device polling is the
    /// caller's.
    pub fn take_counts(&mut self, device: &Device) -> Option<FrameCounts> {
        self.learn_capacities(device);
        self.cpu_counts.take()
    }

    // ---- draws

    /// The draws of request `request` and its `view`-th view (both as indices into the frame).
    #[must_use]
    pub fn draw_parts(&self, request: usize, view: usize) -> &[DrawPart] {
        self.plan
            .parts
            .get(request)
            .and_then(|views| views.get(view))
            .map_or(&[], Vec::as_slice)
    }

    /// The command of a draw.
    #[must_use]
    pub fn draw_source(&self, part: &DrawPart) -> Option<DrawSource<'_>> {
        let batch = self.batches.get(self.keys.get(part.batch)?)?;
        Some(if self.tier == CullingTier::Cpu {
            DrawSource::Direct(*batch.cpu_args.get(part.row as usize)?)
        } else {
            DrawSource::Indirect {
                buffer: batch.args(),
                offset: args_offset(part.row),
            }
        })
    }

    /// Key of the batch, and a number that changes when the buffers of [`Self::batch_buffers`] do.
    #[must_use]
    pub fn batch_version(&self, batch: usize) -> Option<(BatchKey, [u64; 2])> {
        let key = *self.keys.get(batch)?;
        Some((
            key,
            [self.batches.get(&key)?.generation, self.pages.generation],
        ))
    }

    /// What the vertex stage of a batch's draws reads: survivors, instances, scales, tags (the last two are of
    /// no meaning where no set of the page has the channel).
    #[must_use]
    pub fn batch_buffers(&self, batch: usize) -> Option<[&Buffer; 4]> {
        let key = self.keys.get(batch)?;
        let page = self.pages.page(key.0)?;
        let survivors = self.batches.get(key)?.survivors();
        Some([
            survivors,
            &page.instances,
            page.scales.as_ref().unwrap_or(&self.no_channel),
            page.tags.as_ref().unwrap_or(&self.no_channel),
        ])
    }

    // ---- verification

    /// The tables of the current frame.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Reads everything that the stages wrote for a batch and waits for it: for tests and verification, not
    /// for frames. On the `Cpu` tier words and prefixes are empty.
    ///
    /// # Errors
    /// [`CullError::Readback`].
    pub fn read_batch(
        &self,
        device: &Device,
        queue: &Queue,
        batch: usize,
    ) -> Result<BatchData, CullError> {
        let missing = || CullError::Readback(format!("batch {batch} is not in the frame"));
        let plan = self.plan.batches.get(batch).ok_or_else(missing)?;
        let gpu = self.batches.get(&self.keys[batch]).ok_or_else(missing)?;
        read_batch((device, queue), gpu, plan, self.pipelines.get(self.active))
    }

    /// The survivors of request `request` in its `view`-th view, as indices into the set, in order; waits.
    ///
    /// # Errors
    /// [`CullError::Readback`].
    pub fn read_survivors(
        &self,
        (device, queue): (&Device, &Queue),
        frame: &CullFrame,
        request: usize,
        view: usize,
    ) -> Result<Vec<u32>, CullError> {
        let set = frame.requests.get(request).map(|request| request.set);
        let regions = set.map_or(&[][..], |set| self.set_regions(set));
        let mut ids = Vec::new();
        for part in self.draw_parts(request, view) {
            let gpu = self
                .keys
                .get(part.batch)
                .and_then(|key| self.batches.get(key));
            let gpu = gpu.ok_or_else(|| CullError::Readback("the batch is gone".into()))?;
            let draws: Vec<DrawArgs> =
                read_buffer(device, queue, gpu.args(), args_offset(part.row), 1)?;
            let indexed = self.plan.batches[part.batch].row_draws[part.row as usize].indexed != 0;
            let (first, len) = (draws[0].first_instance(indexed), draws[0].instance_count());
            let page_ids: Vec<u32> = read_buffer(
                device,
                queue,
                gpu.survivors(),
                u64::from(first) * 4,
                len as usize,
            )?;
            let before: u32 = regions[..part.region]
                .iter()
                .map(|region| region.capacity)
                .sum();
            let first = regions[part.region].first;
            ids.extend(page_ids.into_iter().map(|id| id - first + before));
        }
        Ok(ids)
    }
}

impl Set {
    pub fn capacity(&self) -> u32 {
        self.regions.iter().map(|region| region.capacity).sum()
    }
}

pub(super) fn checked(
    sets: &HashMap<SetId, Set>,
    id: SetId,
    first: usize,
    len: usize,
) -> Result<&Set, CullError> {
    let set = sets.get(&id).ok_or(CullError::UnknownSet(id.0))?;
    let end = first.saturating_add(len);
    if end > set.len as usize {
        return Err(CullError::UploadOutOfRange {
            first,
            end,
            len: set.len as usize,
        });
    }
    Ok(set)
}

/// Pipelines of the compaction, or of each that `Auto` may take.
fn build(
    device: &Device,
    tier: CullingTier,
    options: &CullerOptions,
    tuning: &Tuning,
    edit: &dyn Fn(&str, String) -> String,
) -> Result<Vec<Pipelines>, CullError> {
    let fixed = [options.compaction];
    let compactions = if options.compaction == Compaction::Auto {
        tuning.compactions()
    } else {
        fixed.to_vec()
    };
    let build = |compaction| {
        let checks = options.shader_checks;
        Pipelines::build(
            device,
            &BuildOptions {
                sources: Sources::new(tier),
                compaction,
                checks,
                edit,
            },
        )
    };
    compactions.into_iter().map(build).collect()
}

/// Which request and view each row of each batch belongs to.
fn batch_rows(frame: &CullFrame, plan: &Plan, keys: &[BatchKey]) -> Vec<BatchRows> {
    let mut batches: Vec<_> = plan
        .batches
        .iter()
        .zip(keys)
        .map(|(batch, key)| BatchRows {
            key: *key,
            rows: vec![(0, 0, 0); batch.rows.len()],
        })
        .collect();
    for (request, parts) in frame.requests.iter().zip(&plan.parts) {
        for (view, parts) in request.views.iter().zip(parts) {
            for part in parts {
                batches[part.batch].rows[part.row as usize] = (request.key, *view, 0);
            }
        }
    }
    for (batch, plan) in batches.iter_mut().zip(&plan.batches) {
        for chunk in &plan.chunks {
            let rows = chunk.first_row as usize..(chunk.first_row + chunk.row_count) as usize;
            batch.rows[rows]
                .iter_mut()
                .for_each(|row| row.2 = chunk.instance_count);
        }
    }
    batches
}
