//! The bounds of blocks, made on the GPU when instances change.

use crate::cull::{
    CullError, CullingTier, Gpu,
    gpu::{
        binding::{Access, Bind},
        guard::guarded,
        kernel::KernelJob,
        program::Program,
    },
    layout::BoundJob,
    shaders::{Sources, kernels},
};
use core::num::NonZeroU64;
use wgpu::{
    BindGroup, BindingResource, Buffer, BufferBinding, BufferDescriptor, BufferUsages, ComputePass,
    Device,
};

/// What the kernel binds, with its numbers in `shaders/cull/bound.wgsl`.
#[derive(Clone, Copy)]
enum Slot {
    Job = 0,
    Instances = 3,
    Scales = 4,
    Bounds = 5,
}

const BINDS: [(Slot, Access); 4] = [
    (Slot::Job, Access::Uniform),
    (Slot::Instances, Access::Read),
    (Slot::Scales, Access::Read),
    (Slot::Bounds, Access::Write),
];

/// Distance of the jobs' uniforms: the strictest alignment.
const JOB_STRIDE: usize = 256;

/// Makes bounds.
pub(crate) struct BoundsBuilder {
    program: Program<Slot>,
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
        let binds = BINDS.into_iter().map(|(slot, access)| Bind {
            number: slot as u32,
            slot,
            access,
        });
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
        let bind_groups = self.bind(gpu, buffers, jobs)?;
        let mut encoder = gpu.device.create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            self.record(&mut pass, jobs.iter().zip(&bind_groups));
        }
        gpu.queue.submit([encoder.finish()]);
        Ok(())
    }

    /// Records jobs with their bind groups.
    pub fn record<'a>(
        &self,
        pass: &mut ComputePass<'_>,
        jobs: impl Iterator<Item = (&'a BoundJob, &'a BindGroup)>,
    ) {
        pass.set_pipeline(self.program.pipeline());
        for (job, bind_group) in jobs {
            pass.set_bind_group(0, bind_group, &[]);
            let width = job.block_count.min(self.workgroups);
            pass.dispatch_workgroups(width, job.block_count.div_ceil(width.max(1)), 1);
        }
    }

    /// A bind group for each job of one page.
    pub fn bind(
        &self,
        gpu: Gpu<'_>,
        buffers: [&Buffer; 3],
        jobs: &[BoundJob],
    ) -> Result<Vec<BindGroup>, CullError> {
        let mut bytes = vec![0u8; jobs.len() * JOB_STRIDE];
        for (job, slot) in jobs.iter().zip(bytes.chunks_exact_mut(JOB_STRIDE)) {
            slot[..size_of::<BoundJob>()].copy_from_slice(bytemuck::bytes_of(job));
        }
        guarded(gpu.device, "bounds of blocks", || {
            // Not mapped at its creation: wgpu panics if a buffer that it could not make is mapped.
            let uniforms = gpu.device.create_buffer(&BufferDescriptor {
                label: Some("gpu_culling bound jobs"),
                size: bytes.len() as u64,
                usage: BufferUsages::UNIFORM | BufferUsages::COPY_DST,
                mapped_at_creation: false,
            });
            gpu.queue.write_buffer(&uniforms, 0, &bytes);
            let bind = |index| self.bind_job(gpu.device, &uniforms, index, buffers);
            (0..jobs.len()).map(bind).collect()
        })
    }

    fn bind_job(
        &self,
        device: &Device,
        uniforms: &Buffer,
        index: usize,
        buffers: [&Buffer; 3],
    ) -> BindGroup {
        let [instances, scales, bounds] = buffers;
        self.program.bind(device, |slot| match slot {
            Slot::Job => BindingResource::Buffer(BufferBinding {
                buffer: uniforms,
                offset: (index * JOB_STRIDE) as u64,
                size: NonZeroU64::new(size_of::<BoundJob>() as u64),
            }),
            Slot::Instances => instances.as_entire_binding(),
            Slot::Scales => scales.as_entire_binding(),
            Slot::Bounds => bounds.as_entire_binding(),
        })
    }
}
