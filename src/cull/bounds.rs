//! The bounds of blocks, made on the GPU when instances change.

use crate::cull::{
    CullError, CullingTier, Stage,
    compaction::{Bind, Dispatch, Pass, Resource},
    gpu::guard::guarded,
    layout::BoundJob,
    pipelines::{BuildOptions, BuiltPass, build_pass},
    shaders::{Sources, kernels},
};
use core::num::NonZeroU64;
use wgpu::{
    BindGroup, BindGroupDescriptor, BindGroupEntry, BindingResource, Buffer, BufferBinding,
    BufferDescriptor, BufferUsages, ComputePass, Device, Queue,
};

/// Not a pass of a frame: it runs between frames, on the blocks that have changed.
static BOUND: Pass = Pass {
    stage: Stage::Classify,
    name: "bound",
    source: |sources| kernels::BOUND.source(sources),
    entry: "bound",
    binds: &[&[
        Bind::uniform(Resource::Batch),
        Bind::read(Resource::Instances),
        Bind::read(Resource::Scales),
        Bind::write(Resource::Bounds),
    ]],
    dispatch: Dispatch::One,
};

/// Distance of the jobs' uniforms: the strictest alignment.
const JOB_STRIDE: usize = 256;

/// Makes bounds.
pub(crate) struct BoundsBuilder {
    built: BuiltPass,
    workgroups: u32,
}

impl BoundsBuilder {
    pub fn new(device: &Device, encoding: &str, checks: bool) -> Result<Self, CullError> {
        let options = BuildOptions {
            sources: Sources {
                tier: CullingTier::Workgroup,
                encoding,
            },
            compaction: crate::cull::Compaction::Classify,
            checks,
            edit: &|_, source| source,
        };
        Ok(Self {
            built: build_pass(device, &BOUND, &options, false)?,
            workgroups: device.limits().max_compute_workgroups_per_dimension,
        })
    }

    /// Submits the jobs of one page.
    ///
    /// # Errors
    /// [`CullError::Gpu`]; the old bounds stay.
    pub fn run(
        &self,
        (device, queue): (&Device, &Queue),
        buffers: [&Buffer; 3],
        jobs: &[BoundJob],
    ) -> Result<(), CullError> {
        if jobs.is_empty() {
            return Ok(());
        }
        let bind_groups = self.bind((device, queue), buffers, jobs)?;
        let mut encoder = device.create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            self.record(&mut pass, jobs.iter().zip(&bind_groups));
        }
        queue.submit([encoder.finish()]);
        Ok(())
    }

    /// Records jobs with their bind groups.
    pub fn record<'a>(
        &self,
        pass: &mut ComputePass<'_>,
        jobs: impl Iterator<Item = (&'a BoundJob, &'a BindGroup)>,
    ) {
        pass.set_pipeline(&self.built.pipeline);
        for (job, bind_group) in jobs {
            pass.set_bind_group(0, bind_group, &[]);
            let width = job.block_count.min(self.workgroups);
            pass.dispatch_workgroups(width, job.block_count.div_ceil(width.max(1)), 1);
        }
    }

    /// A bind group for each job of one page.
    pub fn bind(
        &self,
        (device, queue): (&Device, &Queue),
        buffers: [&Buffer; 3],
        jobs: &[BoundJob],
    ) -> Result<Vec<BindGroup>, CullError> {
        let mut bytes = vec![0u8; jobs.len() * JOB_STRIDE];
        for (job, slot) in jobs.iter().zip(bytes.chunks_exact_mut(JOB_STRIDE)) {
            slot[..size_of::<BoundJob>()].copy_from_slice(bytemuck::bytes_of(job));
        }
        guarded(device, "bounds of blocks", || {
            // Not mapped at its creation: wgpu panics if a buffer that it could not make is mapped.
            let uniforms = device.create_buffer(&BufferDescriptor {
                label: Some("gpu_culling bound jobs"),
                size: bytes.len() as u64,
                usage: BufferUsages::UNIFORM | BufferUsages::COPY_DST,
                mapped_at_creation: false,
            });
            queue.write_buffer(&uniforms, 0, &bytes);
            let bind = |index| self.bind_job(device, &uniforms, index, buffers);
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
        let uniform = BindingResource::Buffer(BufferBinding {
            buffer: uniforms,
            offset: (index * JOB_STRIDE) as u64,
            size: NonZeroU64::new(size_of::<BoundJob>() as u64),
        });
        let mut entries = vec![BindGroupEntry {
            binding: 0,
            resource: uniform,
        }];
        let numbered = (3..).zip(buffers);
        entries.extend(numbered.map(|(binding, buffer)| BindGroupEntry {
            binding,
            resource: buffer.as_entire_binding(),
        }));
        device.create_bind_group(&BindGroupDescriptor {
            label: Some("bound"),
            layout: &self.built.layout,
            entries: &entries,
        })
    }
}
