//! Kernels that the tests bring, their buffers, and what is in a buffer.

use bevy_gpu_culling::cull::Gpu;
use wgpu::{
    BindGroupEntry, BindingResource, Buffer, BufferUsages, CommandEncoder, Device,
    util::{BufferInitDescriptor, DeviceExt},
};

/// A compute kernel of a test.
pub struct Kernel(wgpu::ComputePipeline);

impl Kernel {
    pub fn new(device: &Device, source: &str, entry: &str) -> Self {
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(source.into()),
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some(entry),
            compilation_options: Default::default(),
            cache: None,
        });
        Self(pipeline)
    }

    /// Records a pass with these bindings of group 0.
    pub fn record<'a>(
        &self,
        device: &Device,
        encoder: &mut CommandEncoder,
        bindings: impl IntoIterator<Item = (u32, BindingResource<'a>)>,
        workgroups: u32,
    ) {
        let entries: Vec<_> = (bindings.into_iter())
            .map(|(binding, resource)| BindGroupEntry { binding, resource })
            .collect();
        let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.0.get_bind_group_layout(0),
            entries: &entries,
        });
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&self.0);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(workgroups, 1, 1);
    }

    /// Runs a pass with these buffers.
    pub fn run(&self, gpu: Gpu<'_>, buffers: &[(u32, &Buffer)], workgroups: u32) {
        let mut encoder = gpu.device.create_command_encoder(&Default::default());
        let bindings = buffers
            .iter()
            .map(|(binding, buffer)| (*binding, buffer.as_entire_binding()));
        self.record(gpu.device, &mut encoder, bindings, workgroups);
        gpu.queue.submit([encoder.finish()]);
    }
}

/// A buffer with this content for kernels, which can be read.
pub fn buffer_of(device: &Device, contents: &[u8]) -> Buffer {
    device.create_buffer_init(&BufferInitDescriptor {
        label: None,
        contents,
        usage: BufferUsages::STORAGE | BufferUsages::COPY_SRC,
    })
}

/// A buffer of zeros for kernels, which can be read.
pub fn buffer(device: &Device, size: u64) -> Buffer {
    device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size,
        usage: BufferUsages::STORAGE | BufferUsages::COPY_SRC,
        mapped_at_creation: false,
    })
}

/// Waits for the GPU, and reads `len` values from a byte of a buffer on.
pub fn read<T: bytemuck::AnyBitPattern + bytemuck::NoUninit>(
    Gpu { device, queue }: Gpu<'_>,
    from: &Buffer,
    offset: u64,
    len: usize,
) -> Vec<T> {
    let size = (len * size_of::<T>()) as u64;
    let staging = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size,
        usage: BufferUsages::MAP_READ | BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let mut encoder = device.create_command_encoder(&Default::default());
    encoder.copy_buffer_to_buffer(from, offset, &staging, 0, size);
    queue.submit([encoder.finish()]);
    staging.map_async(wgpu::MapMode::Read, .., |result| result.unwrap());
    device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    bytemuck::pod_collect_to_vec(&staging.get_mapped_range(..).unwrap())
}
