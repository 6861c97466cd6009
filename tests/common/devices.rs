//! Devices for the engine's tests.

use bevy_gpu_culling::cull::{CullingTier, Expansion, Gpu, share_kernels};
use std::sync::{Arc, Mutex, OnceLock};
use wgpu::{Device, Queue};

/// The instance of all devices of a test program, as [`share_kernels`] demands.
pub fn instance() -> &'static wgpu::Instance {
    static INSTANCE: OnceLock<wgpu::Instance> = OnceLock::new();
    INSTANCE
        .get_or_init(|| wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle()))
}

/// A device with its queue and its adapter's name.
pub struct TestGpu {
    pub device: Device,
    pub queue: Queue,
    pub adapter: wgpu::AdapterInfo,
}

impl TestGpu {
    /// As the engine takes it.
    pub fn gpu(&self) -> Gpu<'_> {
        Gpu::new(&self.device, &self.queue)
    }
}

/// The device of [`test_gpu`].
pub fn gpu() -> Gpu<'static> {
    test_gpu().gpu()
}

/// A device with all features and limits of the adapter, which compiles each kernel once. The tests
/// need an adapter; software Vulkan (Mesa's lavapipe) suffices.
///
/// A test that begins takes the device of a test that has ended. So a program makes few devices
/// while others work: old drivers and Vulkan loaders have races there.
pub fn test_gpu() -> &'static TestGpu {
    LEASE.with(|lease| lease.0)
}

/// Devices whose tests have ended.
static FREE: Mutex<Vec<&TestGpu>> = Mutex::new(Vec::new());

thread_local! {
    /// Each test has a thread.
    static LEASE: Lease = {
        let free = FREE.lock().unwrap().pop();
        let gpu = free.unwrap_or_else(|| {
            let gpu: &'static TestGpu = Box::leak(Box::new(gpu_with(|_| ())));
            share_kernels(&gpu.device);
            gpu
        });
        // wgpu's variables of the thread, which begin now, outlive this one.
        gpu.device.poll(wgpu::PollType::Poll).unwrap();
        Lease(gpu)
    };
}

/// The device of a test, which goes back when the test's thread ends.
struct Lease(&'static TestGpu);

impl Drop for Lease {
    fn drop(&mut self) {
        // A driver that still works when the program ends may crash.
        let device = &self.0.device;
        let is_idle = device.poll(wgpu::PollType::wait_indefinitely()).is_ok();
        if let (true, Ok(mut free)) = (is_idle, FREE.lock()) {
            free.push(self.0);
        }
    }
}

/// A device whose limits `lower` lowers.
pub fn gpu_with(lower: impl Fn(&mut wgpu::Limits)) -> TestGpu {
    let adapter = pollster::block_on(instance().request_adapter(&wgpu::RequestAdapterOptions {
        power_preference: wgpu::PowerPreference::HighPerformance,
        ..Default::default()
    }))
    .expect("no GPU adapter: `cargo xtask test` installs a software one");
    let mut limits = adapter.limits();
    lower(&mut limits);
    let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
        required_features: adapter.features()
            & (CullingTier::wanted_features() | Expansion::wanted_features()),
        required_limits: limits,
        ..Default::default()
    }))
    .unwrap();
    device.on_uncaptured_error(Arc::new(|error| panic!("wgpu: {error}")));
    TestGpu {
        device,
        queue,
        adapter: adapter.get_info(),
    }
}
