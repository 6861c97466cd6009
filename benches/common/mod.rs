//! Code that the benchmarks share: a device with timestamps, timed runs and their statistics.
#![allow(dead_code, reason = "not every benchmark uses every helper")]

pub mod chart;
pub mod encoding;
pub mod reader;
pub mod stats;
pub mod verify;

use anyhow::{Context, Result, bail, ensure};
use bevy_gpu_culling::cull::{CullingTier, Expansion};
use wgpu::{
    Buffer, BufferDescriptor, BufferUsages, CommandEncoder, ComputePass, ComputePassDescriptor,
    ComputePassTimestampWrites, ComputePipeline, ComputePipelineDescriptor, Device, Features,
    MapMode, PollType, QuerySet, QuerySetDescriptor, QueryType, Queue, ShaderModuleDescriptor,
    ShaderRuntimeChecks, ShaderSource,
};

/// A device with everything that a timed run needs.
pub struct Gpu {
    pub device: Device,
    pub queue: Queue,
    pub info: wgpu::AdapterInfo,
    queries: QuerySet,
    resolved: Buffer,
}

/// Size of both timestamps in bytes.
const STAMPS: u64 = 16;

impl Gpu {
    /// Opens the most capable adapter with all its features and limits that the benchmarks can use,
    /// without validation layers.
    pub fn new() -> Result<Self> {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.flags = wgpu::InstanceFlags::empty();
        let instance = wgpu::Instance::new(descriptor.with_env());
        let options = wgpu::RequestAdapterOptions {
            power_preference: wgpu::PowerPreference::HighPerformance,
            ..Default::default()
        };
        let adapter = pollster::block_on(instance.request_adapter(&options))
            .context("no GPU adapter: `cargo xtask setup` installs a software one")?;
        let info = adapter.get_info();
        ensure!(
            adapter.features().contains(Features::TIMESTAMP_QUERY),
            "{} lacks the feature TIMESTAMP_QUERY, which a benchmark needs",
            info.name
        );
        let wanted = CullingTier::wanted_features()
            | Expansion::wanted_features()
            | Features::TIMESTAMP_QUERY;
        let (device, queue) =
            pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
                required_features: adapter.features() & wanted,
                required_limits: adapter.limits(),
                ..Default::default()
            }))?;
        let queries = device.create_query_set(&QuerySetDescriptor {
            label: Some("timestamps"),
            ty: QueryType::Timestamp,
            count: 2,
        });
        let usage = BufferUsages::QUERY_RESOLVE | BufferUsages::COPY_SRC;
        let resolved = buffer(&device, "timestamps", STAMPS, usage);
        Ok(Self {
            device,
            queue,
            info,
            queries,
            resolved,
        })
    }

    /// The tier that was asked for, or else the best one. It has work for the GPU.
    pub fn tier(&self, asked: Option<CullingTier>) -> Result<CullingTier> {
        let (features, limits) = (self.device.features(), self.device.limits());
        let tier = asked.unwrap_or(CullingTier::supported(features, &limits).0);
        ensure!(
            tier != CullingTier::Cpu,
            "the tier \"cpu\" has nothing for the GPU to time"
        );
        tier.check(features, &limits)?;
        Ok(tier)
    }

    /// Adapter and driver in one line.
    pub fn name(&self) -> String {
        let info = &self.info;
        format!("{} ({}, {})", info.name, info.driver, info.driver_info)
    }

    /// Whether the adapter is software. Its times then say nothing about a GPU.
    pub fn is_software(&self) -> bool {
        self.info.device_type == wgpu::DeviceType::Cpu
    }

    /// The size in bytes of the largest storage binding.
    pub fn binding_limit(&self) -> u64 {
        let limits = self.device.limits();
        limits
            .max_storage_buffer_binding_size
            .min(limits.max_buffer_size)
    }

    /// Times the compute pass that `timed` records between the work of `before` and `after`.
    /// Returns the pass's microseconds and the words of `result` after all work is done.
    pub fn run(
        &self,
        before: impl FnOnce(&mut CommandEncoder),
        timed: impl FnOnce(&mut ComputePass<'_>),
        after: impl FnOnce(&mut CommandEncoder),
        result: Option<&Buffer>,
    ) -> Result<(f64, Vec<u32>)> {
        let extra = result.map_or(0, Buffer::size);
        let usage = BufferUsages::COPY_DST | BufferUsages::MAP_READ;
        let staging = buffer(&self.device, "result", STAMPS + extra, usage);
        let mut encoder = self.device.create_command_encoder(&Default::default());
        before(&mut encoder);
        {
            let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor {
                label: Some("timed"),
                timestamp_writes: Some(ComputePassTimestampWrites {
                    query_set: &self.queries,
                    beginning_of_pass_write_index: Some(0),
                    end_of_pass_write_index: Some(1),
                }),
            });
            timed(&mut pass);
        }
        after(&mut encoder);
        encoder.resolve_query_set(&self.queries, 0..2, &self.resolved, 0);
        encoder.copy_buffer_to_buffer(&self.resolved, 0, &staging, 0, STAMPS);
        if let Some(result) = result {
            encoder.copy_buffer_to_buffer(result, 0, &staging, STAMPS, extra);
        }
        self.queue.submit([encoder.finish()]);
        let bytes = self.map(&staging)?;
        let (stamps, words) = bytes.split_at(STAMPS as usize);
        let [start, end] = [&stamps[..8], &stamps[8..]].map(bytemuck::pod_read_unaligned::<u64>);
        let period = f64::from(self.queue.get_timestamp_period());
        let us = end.wrapping_sub(start) as f64 * period / 1e3;
        Ok((us, bytemuck::pod_collect_to_vec(words)))
    }

    /// Repeats the work that `record` records until the GPU runs at its full clock. A GPU that
    /// idles while a benchmark creates its input may be several times slower.
    pub fn warm_up(&self, record: impl Fn(&mut ComputePass<'_>)) -> Result<()> {
        let begin = std::time::Instant::now();
        let busy = std::time::Duration::from_millis(if self.is_software() { 0 } else { 1000 });
        while begin.elapsed() < busy {
            let mut encoder = self.device.create_command_encoder(&Default::default());
            {
                let mut pass = encoder.begin_compute_pass(&Default::default());
                (0..20).for_each(|_| record(&mut pass));
            }
            self.queue.submit([encoder.finish()]);
            self.device.poll(PollType::wait_indefinitely())?;
        }
        Ok(())
    }

    fn map(&self, staging: &Buffer) -> Result<Vec<u8>> {
        let (send, receive) = std::sync::mpsc::channel();
        staging.map_async(MapMode::Read, .., move |result| {
            // The receiver is gone only if the wait below failed. That error is reported there.
            let _ = send.send(result);
        });
        self.device.poll(PollType::wait_indefinitely())?;
        receive.recv()??;
        Ok(staging.get_mapped_range(..)?.to_vec())
    }

    /// Returns what `create` makes, or an error if it runs out of memory.
    pub fn within_memory<T>(&self, create: impl FnOnce() -> Result<T>) -> Result<T> {
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let made = create();
        if let Some(error) = pollster::block_on(scope.pop()) {
            bail!("out of memory: {error}");
        }
        made
    }

    /// A pipeline without bounds checks. Its layout is derived from the WGSL.
    #[expect(
        unsafe_code,
        reason = "checks would slow down what the kernels are compared with"
    )]
    pub fn pipeline(&self, label: &str, wgsl: String, entry: &str) -> ComputePipeline {
        let source = ShaderSource::Wgsl(wgsl.into());
        let descriptor = ShaderModuleDescriptor {
            label: Some(label),
            source,
        };
        // SAFETY: the benchmarks supply the WGSL. It clamps every index, and its loops end.
        let module = unsafe {
            self.device
                .create_shader_module_trusted(descriptor, ShaderRuntimeChecks::unchecked())
        };
        self.device
            .create_compute_pipeline(&ComputePipelineDescriptor {
                label: Some(label),
                layout: None,
                module: &module,
                entry_point: Some(entry),
                compilation_options: Default::default(),
                cache: None,
            })
    }

    /// Binds `buffers` to bindings 0, 1 and so on of group 0.
    pub fn bind(&self, pipeline: &ComputePipeline, buffers: &[&Buffer]) -> wgpu::BindGroup {
        let entries: Vec<_> = buffers
            .iter()
            .zip(0..)
            .map(|(buffer, binding)| wgpu::BindGroupEntry {
                binding,
                resource: buffer.as_entire_binding(),
            })
            .collect();
        self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        })
    }
}

/// Runs a benchmark and ends the program. A failure is one line and a nonzero exit code. `cargo
/// test --all-targets` starts benchmarks without the flag `--bench`; then nothing is measured.
#[expect(clippy::print_stderr, reason = "a command-line tool talks by printing")]
pub fn main(bench: bool, run: impl FnOnce() -> Result<()>) {
    if !bench && std::env::var_os("CARGO_PKG_NAME").is_some() {
        eprintln!("not measured: start benchmarks with `cargo bench`");
    } else if let Err(error) = run() {
        eprintln!("error: {error:#}");
        std::process::exit(1);
    }
}

/// Parses a count such as 64000, 64k or 64M.
pub fn parse_count(text: &str) -> Result<u32, String> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1000),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1_000_000),
        _ => (text, 1),
    };
    let count = digits
        .parse::<u32>()
        .ok()
        .and_then(|count| count.checked_mul(unit));
    count
        .filter(|count| *count > 0)
        .ok_or_else(|| format!("\"{text}\" is not a count such as 64000, 64k or 64M"))
}

/// A buffer of at least 4 bytes.
pub fn buffer(device: &Device, label: &str, size: u64, usage: BufferUsages) -> Buffer {
    device.create_buffer(&BufferDescriptor {
        label: Some(label),
        size: size.max(4),
        usage,
        mapped_at_creation: false,
    })
}

/// Workgroups in x and y that give at least `count`, with at most 65,535 in x.
pub fn groups(count: u64) -> (u32, u32) {
    let width = count.clamp(1, 65_535);
    (width as u32, count.div_ceil(width).max(1) as u32)
}

/// Serializes a value as its `Display` text, for `serialize_with`.
pub fn text<T: core::fmt::Display, S: serde::Serializer>(
    value: &T,
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}
