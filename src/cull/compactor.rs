//! One compaction over buffers of the caller: for benchmarks, and for tests of other instance
//! encodings.

#[cfg(feature = "study")]
use crate::cull::{BatchData, run::inspect::read_batch};
use crate::cull::{
    Compaction, CullError, CullingTier, Gpu, Stage, Version,
    gpu::guard::guarded,
    layout::{Bound, BoundJob},
    pipelines::{BuildOptions, Pipelines},
    plan::Plan,
    run::{
        arena::max_ids, batch::GpuBatch, frame_number::FrameNumber, inputs::BatchInputs,
        tables::FrameTables,
    },
    shaders::{self, Sources},
    store::{PageBuffers, bounds::BoundsBuilder},
};
use wgpu::{Buffer, BufferDescriptor, BufferUsages, ComputePass, Device, Queue};

/// Runs the passes of one [`Compaction`] without a [`Culler`](crate::cull::Culler): the caller has
/// the instances and the plan, and nothing is read back or grown. Instances may have another
/// encoding than 16 bytes.
pub struct Compactor {
    pipelines: Pipelines,
    batches: Vec<GpuBatch>,
    tables: FrameTables,
    /// Where the compaction reads bounds; and the bounds of each page.
    bounds: Option<BoundsBuilder>,
    page_bounds: Vec<Buffer>,
    version: Version,
    /// Number of calls of [`Self::prepare`].
    prepared: u64,
}

/// How a [`Compactor`] is made.
#[derive(Clone, Copy, Debug)]
pub struct CompactorOptions<'a> {
    /// The tier; not `Cpu`.
    pub tier: CullingTier,
    /// The compaction; `Auto` is the default's.
    pub compaction: Compaction,
    /// Keeps the bounds checks of the kernels.
    pub shader_checks: bool,
    /// WGSL that declares `instances` and reads them, as [`shaders::INSTANCE_PACKED`] does.
    pub encoding: &'a str,
}

impl Default for CompactorOptions<'_> {
    fn default() -> Self {
        Self {
            tier: CullingTier::Subgroup,
            compaction: Compaction::VoteScanCompact,
            shader_checks: false,
            encoding: shaders::INSTANCE_PACKED,
        }
    }
}

impl Compactor {
    /// Compiles the passes.
    ///
    /// # Errors
    /// [`CullError::TierUnsupported`], [`CullError::CompactionUnsupported`],
    /// [`CullError::Pipeline`].
    pub fn new(device: &Device, options: CompactorOptions<'_>) -> Result<Self, CullError> {
        let (features, limits) = (device.features(), device.limits());
        options.tier.check(features, &limits)?;
        let min = device.adapter_info().subgroup_min_size;
        options.tier.check_subgroup_size(min)?;
        options.compaction.check(options.tier, features)?;
        if options.tier == CullingTier::Cpu {
            let missing = "compute: a compactor has no CPU form".into();
            return Err(CullError::TierUnsupported {
                tier: options.tier,
                missing,
            });
        }
        let pipelines = Pipelines::build(
            device,
            &BuildOptions {
                sources: Sources {
                    tier: options.tier,
                    encoding: options.encoding,
                },
                compaction: options.compaction,
                strategy: options.compaction.strategy(),
                checks: options.shader_checks,
                edit: &|_, source| source,
            },
        )?;
        let bounds = match pipelines.needs_bounds() {
            true => Some(BoundsBuilder::new(
                device,
                options.encoding,
                options.shader_checks,
            )?),
            false => None,
        };
        Ok(Self {
            pipelines,
            batches: Vec::new(),
            tables: guarded(device, "tables of the culling", || FrameTables::new(device))?,
            bounds,
            page_bounds: Vec::new(),
            version: Version::new(),
            prepared: 0,
        })
    }

    /// Makes room for the plan's batches and binds their pages: batch b reads
    /// `pages[plan.batches[b].page]`. No survivor is lost. Batches whose page is missing are left
    /// out.
    ///
    /// # Errors
    /// [`CullError::Gpu`], when the device has no room. Nothing is then prepared.
    pub fn prepare(
        &mut self,
        device: &Device,
        queue: &Queue,
        plan: &Plan,
        pages: &[Buffer],
    ) -> Result<(), CullError> {
        self.version.bump();
        self.prepared += 1;
        let prepared = self.prepare_batches(Gpu::new(device, queue), plan, pages);
        if prepared.is_err() {
            self.batches.clear();
        }
        prepared
    }

    fn prepare_batches(
        &mut self,
        gpu: Gpu<'_>,
        plan: &Plan,
        pages: &[Buffer],
    ) -> Result<(), CullError> {
        self.make_bounds(gpu, plan, pages)?;
        self.batches.truncate(plan.batches.len());
        while self.batches.len() < plan.batches.len() {
            self.batches.push(GpuBatch::new(gpu.device)?);
        }
        self.tables.start(gpu.device, core::iter::once(plan))?;
        for (batch, plan) in self.batches.iter_mut().zip(&plan.batches) {
            let Some(instances) = pages.get(plan.page) else {
                continue;
            };
            let max = max_ids(plan, self.pipelines.compaction);
            let capacity = max.clamp(1, u64::from(u32::MAX)) as u32;
            batch.resize_arena(|arena| arena.reserve(gpu.device, capacity))?;
            // No plan of a compactor has scales: something that is never read stands in for them.
            let page = PageBuffers {
                instances,
                scales: instances,
                bounds: self.page_bounds.get(plan.page).unwrap_or(instances),
            };
            let inputs = BatchInputs {
                page,
                pages_version: self.version,
                history: None,
                history_version: self.version,
                pyramid: None,
                projections: &[],
                shared: None,
            };
            let frame = FrameNumber {
                mended_in: self.prepared,
                ..FrameNumber::default()
            };
            batch.prepare(gpu, &self.pipelines, plan, frame, &mut self.tables, &inputs)?;
        }
        self.tables.upload(gpu);
        Ok(())
    }

    /// Makes the bounds of all blocks of the plan, if the compaction reads them.
    fn make_bounds(
        &mut self,
        gpu: Gpu<'_>,
        plan: &Plan,
        pages: &[Buffer],
    ) -> Result<(), CullError> {
        let Some(builder) = &self.bounds else {
            return Ok(());
        };
        self.page_bounds.clear();
        for (index, instances) in pages.iter().enumerate() {
            let chunks = plan
                .batches
                .iter()
                .filter(|batch| batch.page == index)
                .flat_map(|batch| &batch.chunks);
            let jobs: Vec<_> = chunks
                .map(|chunk| BoundJob {
                    first_instance: chunk.first_instance,
                    first_bound: chunk.first_bound,
                    block_count: chunk.block_count,
                    end: chunk.first_instance + chunk.instance_count,
                    ..BoundJob::default()
                })
                .collect();
            let blocks = jobs
                .iter()
                .map(|job| job.first_bound + job.block_count)
                .max();
            let bounds = guarded(gpu.device, "gpu_culling bounds", || {
                gpu.device.create_buffer(&BufferDescriptor {
                    label: Some("gpu_culling bounds"),
                    size: u64::from(blocks.unwrap_or(1)) * size_of::<Bound>() as u64,
                    usage: BufferUsages::STORAGE,
                    mapped_at_creation: false,
                })
            })?;
            builder.run(gpu, [instances, instances, &bounds], &jobs)?;
            self.page_bounds.push(bounds);
        }
        Ok(())
    }

    /// Records all passes over the batches that were prepared for `plan`.
    pub fn record(&self, plan: &Plan, pass: &mut ComputePass<'_>) {
        for stage in self.pipelines.compaction.stages() {
            self.record_stage(plan, stage, pass);
        }
    }

    /// Records the passes of one stage; the stages must follow each other in the order of
    /// [`Compaction::stages`].
    pub fn record_stage(&self, plan: &Plan, stage: Stage, pass: &mut ComputePass<'_>) {
        let groups = self.batches.iter().map(GpuBatch::bind_groups);
        let batches = plan.batches.iter().zip(groups);
        self.pipelines.record(stage, batches, pass);
    }

    /// Totals and commands of a batch, and its arena.
    #[cfg(feature = "study")]
    #[must_use]
    pub fn outputs(&self, batch: usize) -> Option<(&Buffer, &Buffer)> {
        self.batches
            .get(batch)
            .map(|batch| (batch.args(), batch.survivors()))
    }

    /// Bytes of all buffers, without the pages.
    #[cfg(feature = "study")]
    #[must_use]
    pub fn gpu_bytes(&self) -> u64 {
        let sizes = self.batches.iter().flat_map(GpuBatch::sizes);
        let sizes = sizes.chain([self.tables.size()]);
        sizes.map(|(_, size)| size).sum()
    }

    /// Reads everything that the passes wrote for a batch and waits for it.
    ///
    /// # Errors
    /// [`CullError::Readback`].
    #[cfg(feature = "study")]
    pub fn read_batch(
        &self,
        device: &Device,
        queue: &Queue,
        plan: &Plan,
        batch: usize,
    ) -> Result<BatchData, CullError> {
        let missing = || CullError::Readback(format!("batch {batch} was not prepared"));
        let gpu = self.batches.get(batch).ok_or_else(missing)?;
        let plan = plan.batches.get(batch).ok_or_else(missing)?;
        read_batch(Gpu::new(device, queue), gpu, plan, Some(&self.pipelines))
    }
}
