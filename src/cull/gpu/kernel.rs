//! Compiling a kernel: the module, its errors, its pipeline.

use super::guard::{OUT_OF_MEMORY, guarded};
use crate::cull::{
    CullError, CullingTier,
    policy::OVERRIDES,
    shaders::{Composed, origin},
};
use wgpu::{
    BindGroupLayout, BindGroupLayoutDescriptor, BindGroupLayoutEntry, ComputePipeline,
    ComputePipelineDescriptor, Device, PipelineCompilationOptions, PipelineLayoutDescriptor,
    ShaderModuleDescriptor, ShaderRuntimeChecks, ShaderSource,
    naga::{
        Module, ResourceBinding,
        front::wgsl::parse_str,
        valid::{Capabilities, ValidationFlags, Validator},
    },
};

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

impl KernelJob<'_> {
    /// A kernel with one entry point of its name, which is the same on all tiers.
    pub fn on_all_tiers(name: &'static str, composed: &Composed, checks: bool) -> Self {
        let tier = CullingTier::Workgroup;
        Self {
            tier,
            label: name,
            source: composed.on(tier).to_owned(),
            entry: name,
            checks,
        }
    }
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
        let line = error.location(&job.source).map(|at| at.line_number);
        CullError::Pipeline {
            tier: job.tier,
            label,
            message: with_place(&job.source, line, error.emit_to_string(&job.source)),
        }
    })?;
    let constants = constants(&parsed);
    let descriptor = ShaderModuleDescriptor {
        label: Some(label),
        // A browser takes text only. What naga makes of the parsed kernel is not all WGSL: it
        // rounds the largest `f32` up.
        source: if cfg!(target_arch = "wasm32") {
            ShaderSource::Wgsl(job.source.as_str().into())
        } else {
            ShaderSource::Naga(std::borrow::Cow::Owned(parsed))
        },
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
            compilation_options: PipelineCompilationOptions {
                constants: &constants,
                ..PipelineCompilationOptions::default()
            },
            cache: None,
        });
        (pipeline, layout)
    });
    #[cfg(feature = "testing")]
    let built = match super::faults::has(super::faults::Fault::NotBuilt, label) {
        true => Err(super::guard::refused(label, &driver_error())),
        false => built,
    };
    built.map_err(|error| match error {
        // The kernel is not to blame: there may be memory later.
        CullError::Gpu { ref message, .. } if message == OUT_OF_MEMORY => error,
        _ => CullError::Pipeline {
            tier: job.tier,
            label,
            message: reason(job, entries).unwrap_or_else(|| error.to_string()),
        },
    })
}

/// The error of a fault on purpose.
#[cfg(feature = "testing")]
fn driver_error() -> wgpu::Error {
    wgpu::Error::Internal {
        source: "injected".into(),
        description: "injected".into(),
    }
}

/// `text` after the place in `shaders/` of a line of a composed kernel.
fn with_place(source: &str, line: Option<u32>, text: String) -> String {
    match line.and_then(|line| origin(source, line as usize)) {
        Some(place) => format!("{place}: {text}"),
        None => text,
    }
}

/// Why the device refused a kernel, with the place in `shaders/`, if the kernel is to blame: wgpu's
/// message has no place, or a line of the composed text. It is looked for only after an error,
/// because wgpu validates each kernel already.
fn reason(job: &KernelJob<'_>, entries: &[BindGroupLayoutEntry]) -> Option<String> {
    let module = parse_str(&job.source).ok()?;
    let validated = Validator::new(ValidationFlags::all(), Capabilities::all()).validate(&module);
    let info = match validated {
        Ok(info) => info,
        Err(error) => {
            // The whole function comes first; the narrowest span is the expression.
            let spans = error.spans().filter_map(|(span, _)| {
                let len = span.to_range()?.len();
                Some((len, span.location(&job.source).line_number))
            });
            let line = spans.min_by_key(|(len, _)| *len).map(|(_, line)| line);
            let text = error.emit_to_string(&job.source);
            return Some(with_place(&job.source, line, text));
        }
    };
    let mut points = module.entry_points.iter();
    let uses = info.get_entry_point(points.position(|point| point.name == job.entry)?);
    module
        .global_variables
        .iter()
        .find_map(|(handle, variable)| {
            let ResourceBinding { group, binding } = variable.binding?;
            let is_bound = entries.iter().any(|entry| entry.binding == binding);
            if group != 0 || is_bound || uses[handle].is_empty() {
                return None;
            }
            let line = module
                .global_variables
                .get_span(handle)
                .location(&job.source);
            let name = variable.name.as_deref().unwrap_or("a variable");
            let text = format!("{name} has binding {binding}, which the pass does not bind");
            Some(with_place(&job.source, Some(line.line_number), text))
        })
}

/// The policy's values of the overrides that a module declares: wgpu refuses any other.
fn constants(module: &Module) -> Vec<(&'static str, f64)> {
    let is_declared = |name: &str| {
        let mut declared = module.overrides.iter();
        declared.any(|(_, found)| found.name.as_deref() == Some(name))
    };
    let values = OVERRIDES.iter().filter(|(name, _)| is_declared(name));
    values
        .map(|(name, value)| (*name, f64::from(*value)))
        .collect()
}

/// The module, without bounds checks unless asked for.
#[expect(
    unsafe_code,
    reason = "bounds checks halve the speed of the memory-bound stages (docs/internals/results.md)"
)]
fn shader_module(
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
    // from; survivors are compared with the capacity; keys are within the spans that `make_spans`
    // compares with their capacity; loops end. The tests run the same kernels
    // with the checks on.
    unsafe { device.create_shader_module_trusted(descriptor, ShaderRuntimeChecks::unchecked()) }
}
