//! The device that stages share. So kernels are compiled once per program, and lavapipe, which keeps
//! memory of each pipeline, keeps less.

use bevy::{
    render::{
        renderer::{RenderDevice, RenderQueue, initialize_renderer},
        settings::{RenderCreation, RenderResources, WgpuSettings},
    },
    tasks::block_on,
};
use bevy_gpu_culling::cull::share_kernels;
use std::sync::{Arc, OnceLock};
use wgpu::{Device, DeviceDescriptor, Features, InstanceFlags};

struct Shared {
    resources: RenderResources,
    /// The first device of the instance. [`share_kernels`] tells devices apart by their numbers,
    /// and a stage with its own device has the first one of another instance.
    _first: Device,
}

static SHARED: OnceLock<Shared> = OnceLock::new();

impl Shared {
    fn new() -> Self {
        let settings = WgpuSettings {
            // Otherwise each shader gets the line of each statement.
            instance_flags: InstanceFlags::empty().with_env(),
            ..Default::default()
        };
        let backends = settings.backends.unwrap();
        let mut resources = block_on(initialize_renderer(backends, None, &settings));
        let first = resources.0.wgpu_device().clone();
        let same = DeviceDescriptor {
            // Bevy's own device has experimental ones, too. To ask for them is unsafe.
            required_features: first.features() - Features::all_experimental_mask(),
            required_limits: first.limits(),
            ..Default::default()
        };
        let (device, queue) = block_on(resources.3.request_device(&same)).unwrap();
        share_kernels(&device);
        resources.0 = RenderDevice::from(device);
        resources.1 = RenderQueue::new(queue);
        Self {
            resources,
            _first: first,
        }
    }
}

/// The shared device, with Bevy's default settings.
pub fn shared_device() -> RenderCreation {
    let shared = SHARED.get_or_init(Shared::new);
    shared.resources.clone().into()
}

/// From now on, an error of the shared device panics in the thread that causes it: the app that
/// was made last would hear of it otherwise.
pub fn panic_at_errors() {
    if let Some(shared) = SHARED.get() {
        let device = shared.resources.0.wgpu_device();
        device.on_uncaptured_error(Arc::new(|error| panic!("wgpu: {error}")));
    }
}
