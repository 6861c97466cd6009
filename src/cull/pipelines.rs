//! The compiled passes of a compaction: layouts, pipelines, bind groups, dispatches.

use crate::cull::{
    Compaction, CullError, CullingTier, Gpu, Stage,
    compaction::{Dispatch, DispatchLimits, Pass, Resource, Strategy, doublings},
    gpu::{guard::guarded, kernel::KernelJob, program::Program},
    layout::BLOCK,
    plan::BatchPlan,
    shaders::Sources,
};
use core::num::NonZeroU64;
use wgpu::{
    BindGroup, BindingResource, Buffer, BufferBinding, BufferDescriptor, BufferUsages, ComputePass,
    Device,
};

/// One pass of a strategy, compiled.
struct BuiltPass {
    pass: &'static Pass,
    program: Program<Resource>,
    /// A [`Dispatch::Doubling`] ran before: which of `Front` and `Back` is which depends on its
    /// steps.
    after_doubling: bool,
}

/// The passes of one compaction on one tier.
pub(crate) struct Pipelines {
    /// Of the late lists, the one whose buffers they share.
    pub compaction: Compaction,
    passes: Vec<BuiltPass>,
    /// The reach of each step of a doubling, [`STEP_STRIDE`] bytes apart; for the passes that bind
    /// it.
    steps: Buffer,
    /// What dispatches depend on.
    limits: DispatchLimits,
}

/// Distance of uniforms that are bound one at a time: WebGPU's greatest required alignment.
const STEP_STRIDE: u64 = 256;
/// Steps until a reach of 32 bits covers everything.
const STEPS: usize = 32;

/// How to build [`Pipelines`].
pub(crate) struct BuildOptions<'a> {
    pub sources: Sources<'a>,
    pub compaction: Compaction,
    pub strategy: &'static Strategy,
    /// Keeps the bounds checks that a release leaves out.
    pub checks: bool,
    /// Changes the WGSL of a pass, given its name (a test breaks it).
    pub edit: &'a dyn Fn(&str, String) -> String,
}

impl Pipelines {
    /// Compiles the passes.
    pub fn build(device: &Device, options: &BuildOptions<'_>) -> Result<Self, CullError> {
        let info = device.adapter_info();
        let limits = DispatchLimits {
            workgroups: device.limits().max_compute_workgroups_per_dimension,
            subgroups_of_32: options.sources.tier == CullingTier::Subgroup
                && (info.subgroup_min_size, info.subgroup_max_size) == (32, 32),
            batches: 1,
        };
        let mut passes = Vec::new();
        let mut after_doubling = false;
        let all = options.strategy.passes.iter();
        for pass in all.filter(|pass| pass.runs_with(limits.subgroups_of_32)) {
            passes.push(build_pass(device, pass, options, after_doubling)?);
            after_doubling |= pass.dispatch == Dispatch::Doubling;
        }
        Ok(Self {
            compaction: options.compaction,
            passes,
            steps: guarded(device, "gpu_culling steps", || step_buffer(device))?,
            limits,
        })
    }

    /// Label and bytes of the buffer that the passes share.
    pub fn size(&self) -> (&'static str, u64) {
        ("gpu_culling steps", self.steps.size())
    }

    /// Whether the passes read the bounds of blocks.
    pub fn needs_bounds(&self) -> bool {
        let mut binds = self.passes.iter().flat_map(|built| built.pass.binds());
        binds.any(|bind| bind.slot == Resource::Bounds)
    }

    /// The buffers of [`Resource::SCRATCH`] that the passes bind.
    pub fn scratch(&self) -> impl Iterator<Item = Resource> {
        let binds = |slot: &Resource| {
            self.passes
                .iter()
                .any(|built| built.pass.binds().any(|bind| bind.slot == *slot))
        };
        Resource::SCRATCH.into_iter().filter(binds)
    }

    /// Bind groups of every pass, over what `buffer` gives for a slot: one, or two that swap
    /// `Front` and `Back`, or one for each step.
    pub fn bind<'a>(
        &'a self,
        gpu: Gpu<'_>,
        buffer: impl Fn(Resource) -> &'a Buffer,
    ) -> Vec<Vec<BindGroup>> {
        if self.passes.iter().any(|built| built.after_doubling) {
            gpu.queue.write_buffer(&self.steps, 0, &step_bytes());
        }
        let front_votes = buffer(Resource::Front).size() / 4;
        self.passes
            .iter()
            .map(|built| {
                let groups = match built.pass.dispatch {
                    Dispatch::Doubling => doublings(front_votes).min(STEPS),
                    _ if built.after_doubling => 2,
                    _ => 1,
                };
                (0..groups)
                    .map(|step| self.bind_step(gpu.device, built, step, &buffer))
                    .collect()
            })
            .collect()
    }

    fn bind_step<'a>(
        &'a self,
        device: &Device,
        built: &BuiltPass,
        step: usize,
        buffer: &impl Fn(Resource) -> &'a Buffer,
    ) -> BindGroup {
        let whole = |slot| buffer(slot).as_entire_binding();
        built.program.bind(device, |slot| match slot {
            Resource::Step => BindingResource::Buffer(BufferBinding {
                buffer: &self.steps,
                offset: step as u64 * STEP_STRIDE,
                size: NonZeroU64::new(16),
            }),
            Resource::Front if step % 2 == 1 => whole(Resource::Back),
            Resource::Back if step % 2 == 1 => whole(Resource::Front),
            slot => whole(slot),
        })
    }

    /// Records the passes of `stage` for all batches: pass after pass, so that batches, which share
    /// no buffer, run concurrently. Returns the number of dispatches.
    pub fn record<'a>(
        &self,
        stage: Stage,
        batches: impl Iterator<Item = (&'a BatchPlan, &'a [Vec<BindGroup>])> + Clone,
        compute: &mut ComputePass<'_>,
    ) -> u32 {
        let mut dispatches = 0;
        let limits = DispatchLimits {
            // Their number, without going through them.
            batches: batches.size_hint().1.unwrap_or(1) as u32,
            ..self.limits
        };
        for (index, built) in self
            .passes
            .iter()
            .enumerate()
            .filter(|(_, built)| built.pass.stage == stage)
        {
            let mut is_set = false;
            for (plan, bind_groups) in batches.clone() {
                let Some(groups) = bind_groups.get(index) else {
                    continue;
                };
                let steps = doublings(u64::from(plan.batch.count_len) * u64::from(BLOCK));
                let groups = match built.pass.dispatch {
                    Dispatch::Doubling => &groups[..steps.min(groups.len())],
                    _ if built.after_doubling => &groups[steps % 2..=steps % 2],
                    _ => &groups[..],
                };
                let (x, y) = built.pass.dispatch.workgroups(plan, limits);
                if x * y == 0 {
                    continue;
                }
                if !core::mem::replace(&mut is_set, true) {
                    compute.set_pipeline(built.program.pipeline());
                }
                for group in groups {
                    compute.set_bind_group(0, group, &[]);
                    compute.dispatch_workgroups(x, y, 1);
                    dispatches += 1;
                }
            }
        }
        dispatches
    }
}

/// Not mapped at its creation: wgpu panics if a buffer that it could not make is mapped.
fn step_buffer(device: &Device) -> Buffer {
    device.create_buffer(&BufferDescriptor {
        label: Some("gpu_culling steps"),
        size: STEPS as u64 * STEP_STRIDE,
        usage: BufferUsages::UNIFORM | BufferUsages::COPY_DST,
        mapped_at_creation: false,
    })
}

/// Reaches 1, 2, 4 and so on.
fn step_bytes() -> Vec<u8> {
    let mut bytes = vec![0; STEPS * STEP_STRIDE as usize];
    for (step, place) in bytes.chunks_exact_mut(STEP_STRIDE as usize).enumerate() {
        place[..4].copy_from_slice(&(1u32 << step).to_le_bytes());
    }
    bytes
}

/// Compiles a pass.
fn build_pass(
    device: &Device,
    pass: &'static Pass,
    options: &BuildOptions<'_>,
    after_doubling: bool,
) -> Result<BuiltPass, CullError> {
    let job = KernelJob {
        tier: options.sources.tier,
        label: pass.name,
        source: (options.edit)(pass.name, (pass.source)(&options.sources)),
        entry: pass.entry,
        checks: options.checks,
    };
    Ok(BuiltPass {
        pass,
        program: Program::build(device, &job, pass.binds())?,
        after_doubling,
    })
}
