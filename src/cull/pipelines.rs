//! The compiled passes of a compaction: layouts, pipelines, bind groups, dispatches.

use crate::cull::{
    Compaction, CullError, CullingTier, Stage,
    compaction::{Access, Dispatch, DispatchLimits, Pass, Resource, doublings},
    gpu::guard::guarded,
    layout::BLOCK,
    plan::BatchPlan,
    shaders::{Sources, origin},
};
use core::num::NonZeroU64;
use wgpu::{
    BindGroup, BindGroupDescriptor, BindGroupEntry, BindGroupLayout, BindGroupLayoutDescriptor,
    BindGroupLayoutEntry, BindingResource, BindingType, Buffer, BufferBinding, BufferBindingType,
    BufferDescriptor, BufferUsages, ComputePass, ComputePipeline, ComputePipelineDescriptor,
    Device, PipelineLayoutDescriptor, Queue, ShaderModuleDescriptor, ShaderRuntimeChecks,
    ShaderSource, ShaderStages, naga::front::wgsl::parse_str,
};

/// One pass of a strategy, compiled.
pub(crate) struct BuiltPass {
    pub pass: &'static Pass,
    pub pipeline: ComputePipeline,
    pub layout: BindGroupLayout,
    /// A [`Dispatch::Doubling`] ran before: which of `Front` and `Back` is which depends on its
    /// steps.
    after_doubling: bool,
}

/// The passes of one compaction on one tier.
pub(crate) struct Pipelines {
    pub compaction: Compaction,
    pub passes: Vec<BuiltPass>,
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
        let all = options.compaction.strategy().passes.iter();
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
        (device, queue): (&Device, &Queue),
        buffer: impl Fn(Resource) -> &'a Buffer,
    ) -> Vec<Vec<BindGroup>> {
        if self.passes.iter().any(|built| built.after_doubling) {
            queue.write_buffer(&self.steps, 0, &step_bytes());
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
                    .map(|step| self.bind_step(device, built, step, &buffer))
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
        let entries: Vec<_> = built
            .pass
            .binds()
            .map(|bind| {
                let whole = |slot| buffer(slot).as_entire_binding();
                let resource = match bind.slot {
                    Resource::Step => BindingResource::Buffer(BufferBinding {
                        buffer: &self.steps,
                        offset: step as u64 * STEP_STRIDE,
                        size: NonZeroU64::new(16),
                    }),
                    Resource::Front if step % 2 == 1 => whole(Resource::Back),
                    Resource::Back if step % 2 == 1 => whole(Resource::Front),
                    slot => whole(slot),
                };
                BindGroupEntry {
                    binding: bind.number,
                    resource,
                }
            })
            .collect();
        device.create_bind_group(&BindGroupDescriptor {
            label: Some(built.pass.name),
            layout: &built.layout,
            entries: &entries,
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
                    compute.set_pipeline(&built.pipeline);
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

pub(crate) fn build_pass(
    device: &Device,
    pass: &'static Pass,
    options: &BuildOptions<'_>,
    after_doubling: bool,
) -> Result<BuiltPass, CullError> {
    let label = pass.name;
    let job = KernelJob {
        tier: options.sources.tier,
        label,
        source: (options.edit)(label, (pass.source)(&options.sources)),
        entry: pass.entry,
        checks: options.checks,
    };
    let entries: Vec<_> = pass
        .binds()
        .map(|bind| layout_entry(bind.number, bind.access))
        .collect();
    let (pipeline, layout) = compile_kernel(device, &job, &entries, None)?;
    Ok(BuiltPass {
        pass,
        pipeline,
        layout,
        after_doubling,
    })
}

/// A buffer of a compute pass.
pub(crate) fn layout_entry(binding: u32, access: Access) -> BindGroupLayoutEntry {
    BindGroupLayoutEntry {
        binding,
        visibility: ShaderStages::COMPUTE,
        ty: BindingType::Buffer {
            ty: match access {
                Access::Uniform => BufferBindingType::Uniform,
                access => BufferBindingType::Storage {
                    read_only: access == Access::Read,
                },
            },
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    }
}

/// A kernel to compile.
pub(crate) struct KernelJob<'a> {
    pub tier: CullingTier,
    pub label: &'static str,
    /// The whole WGSL.
    pub source: String,
    pub entry: &'a str,
    /// Keeps the bounds checks.
    pub checks: bool,
}

/// The pipeline of a kernel and the layout of its group 0; group 1 is the caller's, if there is
/// one.
pub(crate) fn compile_kernel(
    device: &Device,
    job: &KernelJob<'_>,
    entries: &[BindGroupLayoutEntry],
    callers: Option<&BindGroupLayout>,
) -> Result<(ComputePipeline, BindGroupLayout), CullError> {
    let label = job.label;
    // Parsed here, as Bevy does: with the text, a debug build names WGSL as the source language in
    // SPIR-V, which the validation layer of Debian 12 calls invalid.
    let parsed = parse_str(&job.source).map_err(|error| {
        let line = error
            .location(&job.source)
            .map(|at| at.line_number as usize);
        let place = line.and_then(|line| origin(&job.source, line));
        let text = error.emit_to_string(&job.source);
        CullError::Pipeline {
            tier: job.tier,
            label,
            message: place.map_or(text.clone(), |place| format!("{place}: {text}")),
        }
    })?;
    let descriptor = ShaderModuleDescriptor {
        label: Some(label),
        source: ShaderSource::Naga(std::borrow::Cow::Owned(parsed)),
    };
    let built = guarded(device, label, || {
        let module = shader_module(device, descriptor, job.checks);
        let layout = device.create_bind_group_layout(&BindGroupLayoutDescriptor {
            label: Some(label),
            entries,
        });
        let groups = [Some(&layout), callers];
        let pipeline_layout = device.create_pipeline_layout(&PipelineLayoutDescriptor {
            label: Some(label),
            bind_group_layouts: &groups[..1 + usize::from(callers.is_some())],
            immediate_size: 0,
        });
        let pipeline = device.create_compute_pipeline(&ComputePipelineDescriptor {
            label: Some(label),
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some(job.entry),
            compilation_options: Default::default(),
            cache: None,
        });
        (pipeline, layout)
    });
    built.map_err(|error| CullError::Pipeline {
        tier: job.tier,
        label,
        message: error.to_string(),
    })
}

/// The module, without bounds checks unless asked for.
#[expect(
    unsafe_code,
    reason = "bounds checks halve the speed of the memory-bound stages (docs/internals/results.md)"
)]
pub(crate) fn shader_module(
    device: &Device,
    descriptor: ShaderModuleDescriptor<'_>,
    checks: bool,
) -> wgpu::ShaderModule {
    if checks {
        return device.create_shader_module(descriptor);
    }
    // SAFETY: the WGSL is ours (or a benchmark's, for the reading of an instance) and every index
    // in it is bounded by construction: instances are clamped to the chunk; words, counts, votes,
    // sums, statuses and counters are within the sizes that `Plan` derives and the buffers are made
    // from; survivors are compared with the capacity; loops end. The tests run the same kernels
    // with the checks on.
    unsafe { device.create_shader_module_trusted(descriptor, ShaderRuntimeChecks::unchecked()) }
}
