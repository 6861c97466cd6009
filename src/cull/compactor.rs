//! One compaction over buffers of the caller: for benchmarks, and for tests of other instance encodings.

use crate::cull::{
    BatchData, Compaction, CullError, CullingTier,
    batch::{GpuBatch, PageBuffers, most_ids},
    pipelines::{BuildOptions, Pipelines},
    plan::Plan,
    readback::read_batch,
    shaders,
    strategies::Sources,
};
use wgpu::{Buffer, ComputePass, Device, Queue};

/// Runs the passes of one [`Compaction`] without a [`Culler`](crate::cull::Culler): the caller has the instances
/// and the plan, and nothing is read back or grown. Instances may have another encoding than 16 bytes.
pub struct Compactor {
    pipelines: Pipelines,
    batches: Vec<GpuBatch>,
    generation: u64,
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
            compaction: Compaction::default(),
            shader_checks: false,
            encoding: shaders::INSTANCE_PACKED,
        }
    }
}

impl Compactor {
    /// Compiles the passes.
    ///
    /// # Errors
    /// [`CullError::TierUnsupported`], [`CullError::CompactionUnsupported`], [`CullError::Pipeline`].
    pub fn new(device: &Device, options: CompactorOptions<'_>) -> Result<Self, CullError> {
        let (features, limits) = (device.features(), device.limits());
        options.tier.check(features, &limits)?;
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
                checks: options.shader_checks,
                edit: &|_, source| source,
            },
        )?;
        Ok(Self {
            pipelines,
            batches: Vec::new(),
            generation: 0,
        })
    }

    /// Makes room for the plan's batches and binds their pages: batch b reads `pages[plan.batches[b].page]`. No
    /// survivor is lost. Batches whose page is missing are left out.
    pub fn prepare(&mut self, device: &Device, queue: &Queue, plan: &Plan, pages: &[Buffer]) {
        self.generation += 1;
        self.batches
            .resize_with(plan.batches.len(), || GpuBatch::new(device));
        for (batch, plan) in self.batches.iter_mut().zip(&plan.batches) {
            let Some(instances) = pages.get(plan.page) else {
                continue;
            };
            let most = most_ids(plan, self.pipelines.compaction);
            batch.reserve_survivors(device, most.clamp(1, u64::from(u32::MAX)) as u32);
            // No plan of a compactor has scales: something that is never read stands in for them.
            let page = PageBuffers {
                instances,
                scales: instances,
                generation: self.generation,
            };
            batch.prepare(device, queue, &self.pipelines, plan, &page);
        }
    }

    /// Records all passes over the batches that were prepared for `plan`.
    pub fn record(&self, plan: &Plan, pass: &mut ComputePass<'_>) {
        let batches = plan
            .batches
            .iter()
            .zip(self.batches.iter().map(GpuBatch::bind_groups));
        for stage in self.pipelines.compaction.stages() {
            self.pipelines.record(stage, batches.clone(), pass);
        }
    }

    /// Totals and commands of a batch, and its arena.
    #[must_use]
    pub fn outputs(&self, batch: usize) -> Option<(&Buffer, &Buffer)> {
        self.batches
            .get(batch)
            .map(|batch| (batch.args(), batch.survivors()))
    }

    /// Bytes of all buffers, without the pages.
    #[must_use]
    pub fn gpu_bytes(&self) -> u64 {
        self.batches.iter().map(GpuBatch::bytes).sum()
    }

    /// Reads everything that the passes wrote for a batch and waits for it.
    ///
    /// # Errors
    /// [`CullError::Readback`].
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
        read_batch((device, queue), gpu, plan, Some(&self.pipelines))
    }
}
