//! The compiled passes of a compaction: layouts, pipelines, bind groups, dispatches.

#[cfg(feature = "study")]
use crate::cull::compaction::doubling::{Doubling, Steps};
use crate::cull::{
    Compaction, CullError, CullingTier, Gpu, Stage,
    compaction::{DispatchLimits, Pass, Resource, Strategy},
    gpu::{kernel::KernelJob, program::Program},
    plan::BatchPlan,
    shaders::Sources,
};
use wgpu::{BindGroup, BindingResource, BufferBinding, ComputePass, Device};

/// One pass of a strategy, compiled.
struct BuiltPass {
    pass: &'static Pass,
    program: Program<Resource>,
    #[cfg(feature = "study")]
    steps: Steps,
}

/// The passes of one compaction on one tier.
pub(crate) struct Pipelines {
    /// The compaction. For late lists, the one whose buffers they use.
    pub compaction: Compaction,
    passes: Vec<BuiltPass>,
    #[cfg(feature = "study")]
    doubling: Doubling,
    /// What dispatches depend on.
    limits: DispatchLimits,
}

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
        #[cfg(feature = "study")]
        let mut doubling = Doubling::default();
        let all = options.strategy.passes.iter();
        for pass in all.filter(|pass| pass.runs_with(limits.subgroups_of_32)) {
            passes.push(BuiltPass {
                program: build_pass(device, pass, options)?,
                #[cfg(feature = "study")]
                steps: doubling.steps_of(device, pass)?,
                pass,
            });
        }
        Ok(Self {
            compaction: options.compaction,
            passes,
            #[cfg(feature = "study")]
            doubling,
            limits,
        })
    }

    /// Whether `edit` changes the WGSL of a pass.
    #[cfg(feature = "testing")]
    pub fn are_edited(
        strategy: &Strategy,
        sources: &Sources<'_>,
        edit: &dyn Fn(&str, String) -> String,
    ) -> bool {
        strategy.passes.iter().any(|pass| {
            let source = (pass.source)(sources);
            edit(pass.name, source.clone()) != source
        })
    }

    /// Whether the passes read the bounds of blocks.
    pub fn needs_bounds(&self) -> bool {
        let mut binds = self.passes.iter().flat_map(|built| built.pass.binds());
        binds.any(|bind| bind.resource == Resource::Bounds)
    }

    /// The buffers of [`Resource::SCRATCH`] that the passes bind.
    pub fn scratch(&self) -> impl Iterator<Item = Resource> {
        let binds = |resource: &Resource| {
            self.passes
                .iter()
                .any(|built| built.pass.binds().any(|bind| bind.resource == *resource))
        };
        Resource::SCRATCH.into_iter().filter(binds)
    }

    /// Bind groups of every pass, over what `buffer` gives for a resource: one, or one per step of
    /// a pass for study that doubles its reach.
    pub fn bind<'a>(
        &'a self,
        gpu: Gpu<'_>,
        buffer: impl Fn(Resource) -> BufferBinding<'a>,
    ) -> Vec<Vec<BindGroup>> {
        let passes = self.passes.iter();
        let bind = |built: &'a BuiltPass| {
            #[cfg(feature = "study")]
            if built.steps != Steps::One {
                return (self.doubling).bind(gpu, built.steps, &built.program, &buffer);
            }
            let entry = |resource| BindingResource::Buffer(buffer(resource));
            vec![built.program.bind(gpu.device, entry)]
        };
        passes.map(bind).collect()
    }

    /// Records each pass of `stage` for all batches before the next pass. Batches share no buffer,
    /// so they may overlap. Returns the number of dispatches.
    pub fn record<'a>(
        &self,
        stage: Stage,
        batches: impl Iterator<Item = (&'a BatchPlan, &'a [Vec<BindGroup>])> + Clone,
        compute: &mut ComputePass<'_>,
    ) -> u32 {
        let mut dispatches = 0;
        let limits = DispatchLimits {
            // The number of batches, from the size hint.
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
                #[cfg(feature = "study")]
                let groups = built.steps.of_batch(groups, plan);
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

/// Compiles a pass.
fn build_pass(
    device: &Device,
    pass: &'static Pass,
    options: &BuildOptions<'_>,
) -> Result<Program<Resource>, CullError> {
    let job = KernelJob {
        tier: options.sources.tier,
        label: pass.name,
        source: (options.edit)(pass.name, (pass.source)(&options.sources)),
        entry: pass.entry,
        checks: options.checks,
    };
    Program::build(device, &job, pass.binds())
}
