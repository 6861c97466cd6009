//! The far-first sort: a stage after the compaction, for the rows whose request asks for it
//! ([`Order::FarFirst`](crate::cull::Order::FarFirst)). The other rows pay nothing: without a
//! far-first row, nothing is compiled, allocated or recorded.

mod batch;
mod kernels;

use crate::cull::{
    CullError, CullingTier, Refusal,
    gpu::{
        Gpu,
        on_demand::{OnDemand, RetryTimer},
    },
    layout::FarFirstJob,
    plan::{
        planned::{BatchKey, PlannedBatches},
        planner::Planner,
    },
    policy::KEEP_FRAMES,
    refusal::{Missing, Refusals},
    run::Runner,
    store::InstanceStore,
};
use batch::{Inputs, SortBatch};
use hashbrown::{HashMap, hash_map::Entry};
use kernels::{Kernels, PASSES};
use wgpu::ComputePass;

/// The sort of the current frame.
pub(super) struct FarFirst {
    tier: CullingTier,
    /// Keeps the bounds checks of the kernels.
    checks: bool,
    /// Empty until a row is far first.
    kernels: OnDemand<Kernels>,
    batches: HashMap<BatchKey, SortBatch>,
    /// The batches of the current frame that have far-first rows.
    keys: Vec<BatchKey>,
    /// Batches whose buffers the device refused.
    refused: HashMap<BatchKey, RetryTimer>,
    refusals: Refusals,
    uploaded: u64,
}

impl FarFirst {
    pub fn new(tier: CullingTier, checks: bool) -> Self {
        Self {
            tier,
            checks,
            kernels: OnDemand::default(),
            batches: HashMap::new(),
            keys: Vec::new(),
            refused: HashMap::new(),
            refusals: Refusals::default(),
            uploaded: 0,
        }
    }

    /// Compiles kernels that `edit` changes: a test breaks them.
    ///
    /// # Errors
    /// [`CullError::Pipeline`].
    #[cfg(feature = "testing")]
    pub fn edit_kernels(
        &mut self,
        device: &wgpu::Device,
        edit: &dyn Fn(&str, String) -> String,
    ) -> Result<(), CullError> {
        if Kernels::are_edited(self.tier, edit) {
            self.kernels
                .set(Kernels::build(device, self.tier, true, edit)?);
        }
        Ok(())
    }

    /// Prepares the sort of all batches with far-first rows. The runner has prepared them. Rows
    /// whose buffers the device refuses keep the order of the set.
    pub fn prepare(
        &mut self,
        gpu: Gpu<'_>,
        now: u64,
        planner: &Planner,
        runner: &Runner,
        store: &InstanceStore,
    ) {
        self.keys.clear();
        if self.tier != CullingTier::Cpu && planner.has_far_first() {
            let planned = planner.planned();
            for index in 0..planned.keys.len() {
                self.try_batch(gpu, now, planned, runner, store, index);
            }
        }
        if self.batches.len() > self.keys.len() {
            self.batches
                .retain(|_, batch| batch.last_used + KEEP_FRAMES >= now);
        }
    }

    fn try_batch(
        &mut self,
        gpu: Gpu<'_>,
        now: u64,
        planned: &PlannedBatches,
        runner: &Runner,
        store: &InstanceStore,
        index: usize,
    ) {
        let key = planned.keys[index];
        let plan = &planned.plan.batches[index];
        let jobs = FarFirstJob::of_batch(&plan.chunks, &plan.chunk_views);
        let before = self.refused.get(&key).copied();
        if jobs.is_empty() || before.is_some_and(|retry| retry.waits(now)) {
            return;
        }
        match self.prepare_batch(gpu, now, runner, store, key, &jobs) {
            Ok(()) => {
                self.refused.remove(&key);
            }
            Err(error) => {
                self.batches.remove(&key);
                self.refused.insert(key, RetryTimer::start(now));
                if before.is_none() {
                    self.refusals.push(error, Missing::Order);
                }
            }
        }
    }

    fn prepare_batch(
        &mut self,
        gpu: Gpu<'_>,
        now: u64,
        runner: &Runner,
        store: &InstanceStore,
        key: BatchKey,
        jobs: &[FarFirstJob],
    ) -> Result<(), CullError> {
        let (tier, checks) = (self.tier, self.checks);
        let build = || Kernels::build(gpu.device, tier, checks, &|_, source| source);
        let kernels = &*self.kernels.get_or_make(now, build)?;
        let (Some(batch), Some(page)) = (runner.batch(&key), store.page_buffers(key.page)) else {
            return Ok(());
        };
        let sort = match self.batches.entry(key) {
            Entry::Occupied(sort) => sort.into_mut(),
            Entry::Vacant(place) => place.insert(SortBatch::new(gpu.device)?),
        };
        sort.last_used = now;
        let inputs = Inputs {
            args: batch.args(),
            survivors: batch.survivors(),
            survivor_capacity: batch.survivor_capacity(),
            page,
            versions: (batch.version, store.pages_version()),
        };
        self.uploaded += sort.prepare(gpu, kernels, jobs, &inputs)?;
        self.keys.push(key);
        Ok(())
    }

    /// Whether the frame has far-first rows.
    pub fn has_work(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Records the sort: pass after pass, so that batches, which share no buffer, run concurrently.
    /// Returns the number of dispatches.
    pub fn record(&self, compute: &mut ComputePass<'_>) -> u32 {
        let Some(kernels) = self.kernels.get() else {
            return 0;
        };
        let mut dispatches = 0;
        for (index, pass) in PASSES.iter().enumerate() {
            compute.set_pipeline(kernels.pipeline(pass));
            for batch in self.keys.iter().filter_map(|key| self.batches.get(key)) {
                let (x, y) = batch.workgroups(pass.kernel);
                if let Some(group) = batch.bind_groups().get(index).filter(|_| x * y > 0) {
                    compute.set_bind_group(0, group, &[]);
                    compute.dispatch_workgroups(x, y, 1);
                    dispatches += 1;
                }
            }
        }
        dispatches
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
        self.batches.values().flat_map(SortBatch::sizes)
    }
}
