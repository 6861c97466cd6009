//! The stages: their bindings, pipelines and dispatches.

use crate::cull::{CullError, CullingTier, shaders::Kernel};
use core::{
    future::Future,
    task::{Context, Poll, Waker},
};
use wgpu::{
    BindGroup, BindGroupDescriptor, BindGroupEntry, BindGroupLayout, BindGroupLayoutDescriptor,
    BindGroupLayoutEntry, BindingType, Buffer, BufferBindingType, ComputePipeline,
    ComputePipelineDescriptor, Device, ErrorFilter, PipelineLayoutDescriptor,
    ShaderModuleDescriptor, ShaderRuntimeChecks, ShaderSource, ShaderStages,
};

/// A step of the frame, in order; each has its own time in the diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Instances to visibility words.
    Vote,
    /// Words to exclusive prefixes.
    Scan,
    /// Words to survivor ids.
    Compact,
    /// Prefixes to indirect commands.
    Args,
}

impl Stage {
    /// All stages, in the order of the frame.
    pub const ALL: [Self; 4] = [Self::Vote, Self::Scan, Self::Compact, Self::Args];

    /// The stem that names the stage in shaders, labels and diagnostics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vote => "vote",
            Self::Scan => "scan",
            Self::Compact => "compact",
            Self::Args => "args",
        }
    }

    fn kernel(self) -> Kernel {
        match self {
            Self::Vote => Kernel::Vote,
            Self::Scan => Kernel::Scan,
            Self::Compact => Kernel::Compact,
            Self::Args => Kernel::Args,
        }
    }

    /// Binding 0 is the batch's uniform; these follow, and say whether the stage writes them.
    const fn storage(self) -> &'static [Access] {
        use Access::{Read, Write};
        match self {
            // chunks, rows, instances, scales, words
            Self::Vote => &[Read, Read, Read, Read, Write],
            // words, counts, partials
            Self::Scan => &[Read, Write, Write],
            // chunks, words, counts, partials, survivors
            Self::Compact => &[Read, Read, Read, Read, Write],
            // row draws, counts, partials, args
            Self::Args => &[Read, Read, Read, Write],
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Access {
    Read,
    Write,
}

/// Layout and pipelines of one stage: one for each entry point, in the order in which they run.
pub(crate) struct StagePipelines {
    layout: BindGroupLayout,
    pub pipelines: Vec<ComputePipeline>,
}

/// The stages of one tier.
pub(crate) struct Pipelines([StagePipelines; 4]);

impl Pipelines {
    /// Compiles the stages of `tier`; `checks` keeps the bounds checks that a release leaves out.
    pub fn new(device: &Device, tier: CullingTier, checks: bool) -> Result<Self, CullError> {
        Self::with_sources(device, tier, checks, Kernel::source)
    }

    /// [`Self::new`] with other WGSL (a test mutates it).
    pub fn with_sources(
        device: &Device,
        tier: CullingTier,
        checks: bool,
        source: impl Fn(Kernel, CullingTier) -> String,
    ) -> Result<Self, CullError> {
        let mut stages = Vec::with_capacity(4);
        for stage in Stage::ALL {
            stages.push(build_stage(
                device,
                tier,
                stage,
                checks,
                source(stage.kernel(), tier),
            )?);
        }
        let [vote, scan, compact, args] = stages.try_into().map_err(|_| CullError::Pipeline {
            tier,
            label: "all",
            message: "not every stage was built".into(),
        })?;
        Ok(Self([vote, scan, compact, args]))
    }

    pub fn stage(&self, stage: Stage) -> &StagePipelines {
        &self.0[stage as usize]
    }
}

impl StagePipelines {
    /// Buffers in the order of [`Stage::storage`], after the uniform.
    pub fn bind(&self, device: &Device, stage: Stage, buffers: &[&Buffer]) -> BindGroup {
        let entries: Vec<_> = buffers
            .iter()
            .zip(0..)
            .map(|(buffer, binding)| BindGroupEntry {
                binding,
                resource: buffer.as_entire_binding(),
            })
            .collect();
        device.create_bind_group(&BindGroupDescriptor {
            label: Some(stage.name()),
            layout: &self.layout,
            entries: &entries,
        })
    }
}

fn build_stage(
    device: &Device,
    tier: CullingTier,
    stage: Stage,
    checks: bool,
    source: String,
) -> Result<StagePipelines, CullError> {
    let label = stage.name();
    let scope = device.push_error_scope(ErrorFilter::Validation);
    let descriptor = ShaderModuleDescriptor {
        label: Some(label),
        source: ShaderSource::Wgsl(source.into()),
    };
    let module = shader_module(device, descriptor, checks);

    let entry = |binding, ty| BindGroupLayoutEntry {
        binding,
        visibility: ShaderStages::COMPUTE,
        ty: BindingType::Buffer {
            ty,
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    };
    let storage = stage.storage().iter().zip(1..).map(|(access, binding)| {
        entry(
            binding,
            BufferBindingType::Storage {
                read_only: *access == Access::Read,
            },
        )
    });
    let entries: Vec<_> = core::iter::once(entry(0, BufferBindingType::Uniform))
        .chain(storage)
        .collect();
    let layout = device.create_bind_group_layout(&BindGroupLayoutDescriptor {
        label: Some(label),
        entries: &entries,
    });
    let pipeline_layout = device.create_pipeline_layout(&PipelineLayoutDescriptor {
        label: Some(label),
        bind_group_layouts: &[Some(&layout)],
        immediate_size: 0,
    });
    let entry_points: &[&str] = match stage {
        Stage::Vote => &["vote"],
        Stage::Scan => &["scan", "spine"],
        Stage::Compact => &["compact"],
        Stage::Args => &["write_args"],
    };
    let pipelines = entry_points
        .iter()
        .map(|entry_point| {
            device.create_compute_pipeline(&ComputePipelineDescriptor {
                label: Some(entry_point),
                layout: Some(&pipeline_layout),
                module: &module,
                entry_point: Some(entry_point),
                compilation_options: Default::default(),
                cache: None,
            })
        })
        .collect();
    match now(scope.pop()).flatten() {
        Some(error) => Err(CullError::Pipeline {
            tier,
            label,
            message: error.to_string(),
        }),
        None => Ok(StagePipelines { layout, pipelines }),
    }
}

/// The module, without bounds checks unless asked for.
#[expect(
    unsafe_code,
    reason = "bounds checks halve the speed of the memory-bound stages (docs/performance.md)"
)]
fn shader_module(
    device: &Device,
    descriptor: ShaderModuleDescriptor<'_>,
    checks: bool,
) -> wgpu::ShaderModule {
    if checks {
        return device.create_shader_module(descriptor);
    }
    // SAFETY: the WGSL is ours and every index in it is bounded by construction: instances are clamped to the
    // chunk, words and counts are within the sizes that `Plan` derives and the buffers are made from, survivors
    // are compared with the capacity; loops end. The tests run the same kernels with the checks on.
    unsafe { device.create_shader_module_trusted(descriptor, ShaderRuntimeChecks::unchecked()) }
}

/// The value of a future that is ready at once, as error scopes of native backends are; elsewhere `None`.
fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match core::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
