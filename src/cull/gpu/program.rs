//! A compiled kernel that knows which buffers it binds.

#[cfg(not(feature = "testing"))]
use super::kernel::compile_kernel;
#[cfg(feature = "testing")]
use super::shared_kernels::kernel_of;
use super::{
    binding::{Bind, layout_entry},
    kernel::KernelJob,
};
use crate::cull::CullError;
use wgpu::{
    BindGroup, BindGroupDescriptor, BindGroupEntry, BindGroupLayout, BindingResource,
    ComputePipeline, Device,
};

/// A kernel, compiled, and its bindings.
pub(crate) struct Program<S> {
    label: &'static str,
    pipeline: ComputePipeline,
    layout: BindGroupLayout,
    binds: Vec<Bind<S>>,
}

impl<S: Copy> Program<S> {
    /// Compiles a kernel that binds `binds`.
    ///
    /// # Errors
    /// [`CullError::Pipeline`].
    pub fn build(
        device: &Device,
        job: &KernelJob<'_>,
        binds: impl Iterator<Item = Bind<S>>,
    ) -> Result<Self, CullError> {
        let binds: Vec<_> = binds.collect();
        let entries: Vec<_> = binds
            .iter()
            .map(|bind| layout_entry(bind.number, bind.access))
            .collect();
        #[cfg(feature = "testing")]
        let (pipeline, layout) = kernel_of(device, job, &entries)?;
        #[cfg(not(feature = "testing"))]
        let (pipeline, layout) = compile_kernel(device, job, &entries, None)?;
        Ok(Self {
            label: job.label,
            pipeline,
            layout,
            binds,
        })
    }

    pub fn pipeline(&self) -> &ComputePipeline {
        &self.pipeline
    }

    /// A bind group over what `binding` gives for each resource. It is created unguarded: callers
    /// create several inside one [`guarded`](super::guard::guarded).
    pub fn bind<'a>(
        &self,
        device: &Device,
        binding: impl Fn(S) -> BindingResource<'a>,
    ) -> BindGroup {
        let entry = |bind: &Bind<S>| BindGroupEntry {
            binding: bind.number,
            resource: binding(bind.resource),
        };
        let create = |entries: &[BindGroupEntry<'_>]| {
            device.create_bind_group(&BindGroupDescriptor {
                label: Some(self.label),
                layout: &self.layout,
                entries,
            })
        };
        // The first pass of a pyramid is bound in each frame: no list on the heap.
        match &*self.binds {
            [first, second, third] => create(&[first, second, third].map(entry)),
            binds => create(&binds.iter().map(entry).collect::<Vec<_>>()),
        }
    }
}
