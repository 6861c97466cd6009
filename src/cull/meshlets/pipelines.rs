//! The kernels of the meshlet stages, compiled: pipelines, bind groups, dispatches.

use super::{
    kernels::{Dispatch, Form, Kernel, MeshletStage, Resource, StageEdit},
    options::MeshletOptions,
};
use crate::cull::{
    CullError, CullingTier,
    gpu::{
        binding::{Access, Bind},
        kernel::KernelJob,
        on_demand::OnDemand,
        program::Program,
    },
};
use wgpu::{BindGroup, Buffer, Device};

/// A compiled kernel.
struct BuiltKernel {
    stage: MeshletStage,
    kernel: &'static Kernel,
    program: Program<Resource>,
}

/// A batch, as the dispatches of its kernels see it.
#[derive(Clone, Copy)]
pub(super) struct BatchWork<'a> {
    pub rows: u32,
    /// Number of work items if every instance survived.
    pub max_items: u64,
    /// Of [`Pipelines::bind`].
    pub bind_groups: &'a [Option<BindGroup>],
}

/// The kernels on one tier.
pub(super) struct Pipelines {
    tier: CullingTier,
    checks: bool,
    built: Vec<BuiltKernel>,
    /// The forms whose kernels were compiled.
    forms: Vec<(Form, OnDemand<()>)>,
    /// Workgroups of a dispatch at most.
    workgroups: u32,
    /// Workgroups of [`Dispatch::Stride`] at most.
    stride: u32,
}

impl Pipelines {
    /// Compiles the kernels that all batches need, and the ones of [`Form::Division`]; `edit`
    /// may change the WGSL of a stage.
    pub fn build(
        device: &Device,
        tier: CullingTier,
        options: &MeshletOptions,
        edit: &StageEdit,
    ) -> Result<Self, CullError> {
        let workgroups = device.limits().max_compute_workgroups_per_dimension;
        let mut pipelines = Self {
            tier,
            checks: options.shader_checks,
            built: Vec::new(),
            forms: Vec::new(),
            workgroups,
            stride: options.workgroups.clamp(1, workgroups),
        };
        pipelines.add(device, None, edit)?;
        pipelines.add(device, Some(Form::Division), edit)?;
        Ok(pipelines)
    }

    fn add(
        &mut self,
        device: &Device,
        form: Option<Form>,
        edit: &StageEdit,
    ) -> Result<(), CullError> {
        for stage in MeshletStage::ALL {
            let kernels = stage.kernels().iter();
            for kernel in kernels.filter(|kernel| kernel.form == form) {
                self.built
                    .push(self.build_kernel(device, stage, kernel, edit)?);
            }
        }
        Ok(())
    }

    fn build_kernel(
        &self,
        device: &Device,
        stage: MeshletStage,
        kernel: &'static Kernel,
        edit: &StageEdit,
    ) -> Result<BuiltKernel, CullError> {
        let job = KernelJob {
            tier: self.tier,
            label: stage.name(),
            source: edit(stage, kernel.composed.on(self.tier).to_owned()),
            entry: kernel.entry,
            checks: self.checks,
        };
        let reads = kernel.reads.iter().map(|read| match read {
            Resource::Sizes | Resource::PyramidShape => (read, Access::Uniform),
            _ => (read, Access::Read),
        });
        let writes = kernel.writes.iter().map(|write| (write, Access::Write));
        let binds = reads.chain(writes);
        let binds = binds.map(|(&resource, access)| Bind::at(resource as u32, resource, access));
        Ok(BuiltKernel {
            stage,
            kernel,
            program: Program::build(device, &job, binds)?,
        })
    }

    /// Compiles the kernels of a form, unless they are there. Returns whether they are.
    ///
    /// # Errors
    /// [`CullError::Pipeline`] or [`CullError::Gpu`], each time that they were compiled.
    pub fn ready(
        &mut self,
        device: &Device,
        form: Form,
        now: u64,
        edit: &StageEdit,
    ) -> Result<bool, CullError> {
        // They were compiled with what all batches need.
        if form == Form::Division {
            return Ok(true);
        }
        let known = self.forms.iter().position(|(known, _)| *known == form);
        let known = known.map(|known| self.forms.swap_remove(known).1);
        let mut kernels = known.unwrap_or_default();
        let mut is_new = false;
        let made = kernels.get_or_make(now, || {
            is_new = true;
            let before = self.built.len();
            let added = self.add(device, Some(form), edit);
            added.inspect_err(|_| self.built.truncate(before))
        });
        let made = made.map(|_| true);
        self.forms.push((form, kernels));
        match made {
            Err(_) if !is_new => Ok(false),
            made => made,
        }
    }

    /// Bind groups of the kernels that a batch of this form needs.
    pub fn bind<'a>(
        &self,
        device: &Device,
        form: Form,
        buffer: impl Fn(Resource) -> &'a Buffer,
    ) -> Vec<Option<BindGroup>> {
        let binding = |resource| buffer(resource).as_entire_binding();
        let groups = self.built.iter().map(|built| {
            let is_for = built.kernel.form.is_none_or(|of| of == form);
            is_for.then(|| built.program.bind(device, binding))
        });
        groups.collect()
    }

    /// Records a stage of all batches.
    pub fn record<'a>(
        &self,
        stage: MeshletStage,
        batches: impl Iterator<Item = BatchWork<'a>> + Clone,
        pass: &mut wgpu::ComputePass<'_>,
    ) {
        let kernels = self.built.iter().enumerate();
        for (index, built) in kernels.filter(|(_, built)| built.stage == stage) {
            pass.set_pipeline(built.program.pipeline());
            for batch in batches.clone() {
                let Some(Some(group)) = batch.bind_groups.get(index) else {
                    continue;
                };
                let workgroups = match built.kernel.dispatch {
                    Dispatch::One => 1,
                    Dispatch::Stride => batch.max_items.clamp(1, u64::from(self.stride)) as u32,
                    Dispatch::Rows => batch.rows,
                };
                pass.set_bind_group(0, group, &[]);
                pass.dispatch_workgroups(workgroups.min(self.workgroups), 1, 1);
            }
        }
    }
}
