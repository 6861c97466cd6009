//! The bounds of blocks, made on the GPU when instances change.

use crate::cull::{
    CullError, CullingTier, Gpu,
    gpu::{
        binding::{Access, Bind, UNIFORM_STRIDE, strided, uniform_at},
        guard::guarded,
        kernel::KernelJob,
        limits::dispatch_2d,
        program::Program,
    },
    layout::{BLOCK, BoundJob},
    shaders::{Sources, kernels},
    store::region::Region,
};
use crate::instance::ScaleKind;
use core::ops::Range;
use wgpu::{BindGroup, Buffer, BufferDescriptor, BufferUsages, ComputePass, Device};

/// What the kernel binds, with its numbers in `shaders/cull/bound.wesl`.
#[derive(Clone, Copy)]
enum Resource {
    Job = 0,
    Instances = 3,
    Scales = 4,
    Bounds = 5,
}

const BINDS: [(Resource, Access); 4] = [
    (Resource::Job, Access::DynamicUniform),
    (Resource::Instances, Access::Read),
    (Resource::Scales, Access::Read),
    (Resource::Bounds, Access::Write),
];

/// Jobs of one region with at most this many blocks between them become one: to read this many
/// blocks costs less than a dispatch.
const GAP: u32 = 16;

/// The job for the blocks of the `changed` instances of a region, which holds `used` instances.
pub(super) fn job_of(
    region: &Region,
    changed: Range<u32>,
    used: u32,
    scale: ScaleKind,
) -> BoundJob {
    let first_block = changed.start / BLOCK;
    BoundJob {
        first_instance: region.first + first_block * BLOCK,
        first_bound: region.first_bound + first_block,
        block_count: changed.end.div_ceil(BLOCK) - first_block,
        end: region.first + used,
        scale_floats: scale.floats() as u32,
        ..BoundJob::default()
    }
}

/// Jobs of one page, in fewer dispatches: what overlaps or lies close together becomes one job.
pub(super) fn merged(mut jobs: Vec<BoundJob>) -> Vec<BoundJob> {
    jobs.sort_unstable_by_key(|job| job.first_bound);
    jobs.dedup_by(|next, job| {
        let end = job.first_bound + job.block_count;
        // Regions end at different places.
        let is_same = (next.end, next.scale_floats) == (job.end, job.scale_floats);
        let joins = is_same && next.first_bound <= end + GAP;
        if joins {
            let last = end.max(next.first_bound + next.block_count);
            job.block_count = last - job.first_bound;
        }
        joins
    });
    jobs
}

/// Makes bounds.
pub(crate) struct BoundsBuilder {
    program: Program<Resource>,
    workgroups: u32,
}

impl BoundsBuilder {
    pub fn new(device: &Device, encoding: &str, checks: bool) -> Result<Self, CullError> {
        let sources = Sources {
            tier: CullingTier::Workgroup,
            encoding,
        };
        let job = KernelJob {
            tier: sources.tier,
            label: "bound",
            source: kernels::BOUND.source(&sources),
            entry: "bound",
            checks,
        };
        let binds = BINDS.into_iter();
        let binds = binds.map(|(resource, access)| Bind::at(resource as u32, resource, access));
        Ok(Self {
            program: Program::build(device, &job, binds)?,
            workgroups: device.limits().max_compute_workgroups_per_dimension,
        })
    }

    /// Submits the jobs of one page.
    ///
    /// # Errors
    /// [`CullError::Gpu`]; the old bounds stay.
    pub fn run(
        &self,
        gpu: Gpu<'_>,
        buffers: [&Buffer; 3],
        jobs: &[BoundJob],
    ) -> Result<(), CullError> {
        if jobs.is_empty() {
            return Ok(());
        }
        let bind_group = self.bind(gpu, buffers, jobs)?;
        let mut encoder = gpu.device.create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            self.record(&mut pass, &bind_group, jobs);
        }
        gpu.queue.submit([encoder.finish()]);
        Ok(())
    }

    /// Records the jobs of a bind group.
    pub fn record(&self, pass: &mut ComputePass<'_>, bind_group: &BindGroup, jobs: &[BoundJob]) {
        pass.set_pipeline(self.program.pipeline());
        for (job, offset) in jobs.iter().zip((0..).step_by(UNIFORM_STRIDE as usize)) {
            pass.set_bind_group(0, bind_group, &[offset]);
            let (x, y) = dispatch_2d(job.block_count, self.workgroups);
            pass.dispatch_workgroups(x, y, 1);
        }
    }

    /// A bind group for the jobs of one page.
    ///
    /// # Errors
    /// [`CullError::Gpu`].
    pub fn bind(
        &self,
        gpu: Gpu<'_>,
        [instances, scales, bounds]: [&Buffer; 3],
        jobs: &[BoundJob],
    ) -> Result<BindGroup, CullError> {
        let bytes = strided(jobs.iter().copied());
        guarded(gpu.device, "bounds of blocks", || {
            // Not mapped at its creation: wgpu panics if a buffer that it could not make is mapped.
            let uniforms = gpu.device.create_buffer(&BufferDescriptor {
                label: Some("gpu_culling bound jobs"),
                size: bytes.len() as u64,
                usage: BufferUsages::UNIFORM | BufferUsages::COPY_DST,
                mapped_at_creation: false,
            });
            gpu.queue.write_buffer(&uniforms, 0, &bytes);
            self.program.bind(gpu.device, |resource| match resource {
                Resource::Job => uniform_at::<BoundJob>(&uniforms, 0),
                Resource::Instances => instances.as_entire_binding(),
                Resource::Scales => scales.as_entire_binding(),
                Resource::Bounds => bounds.as_entire_binding(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn job(first_bound: u32, block_count: u32, end: u32) -> BoundJob {
        BoundJob {
            first_bound,
            block_count,
            end,
            ..BoundJob::default()
        }
    }

    #[test]
    fn a_thousand_edits_that_lie_close_together_are_one_job() {
        // One per block of a set of a million, its scale, too.
        let edits = (0..1000u32).map(|edit| job(edit * 7919 % 977, 1, 1_000_000));
        let all = merged(edits.clone().chain(edits).collect());
        assert_eq!(all, [job(0, 977, 1_000_000)]);
        // Far apart, each is a job, and another set's are apart, too.
        let far = vec![job(100, 2, 9), job(0, 1, 9), job(0, 1, 9), job(102, 1, 7)];
        assert_eq!(merged(far), [job(0, 1, 9), job(100, 2, 9), job(102, 1, 7)]);
    }

    proptest! {
        #[test]
        fn merged_jobs_have_every_block_once(
            jobs in prop::collection::vec((0u32..2000, 1u32..40), 0..60),
        ) {
            let jobs = jobs.into_iter().map(|(first, count)| job(first, count, 1));
            let jobs: Vec<_> = jobs.collect();
            let merged = merged(jobs.clone());
            let last = |job: &BoundJob| job.first_bound + job.block_count;
            for pair in merged.windows(2) {
                prop_assert!(last(&pair[0]) + GAP < pair[1].first_bound);
            }
            for one in &jobs {
                let begins = |job: &BoundJob| job.first_bound <= one.first_bound;
                let has_it = |job: &BoundJob| begins(job) && last(one) <= last(job);
                prop_assert_eq!(merged.iter().filter(|job| has_it(job)).count(), 1);
            }
        }
    }
}
