//! The device and its queue, as systems ask for them.

use crate::cull::Gpu;
use bevy::{
    ecs::system::SystemParam,
    prelude::*,
    render::renderer::{RenderDevice, RenderQueue},
};

/// The strictest alignment of a dynamic offset that a device may ask for, in bytes.
pub(super) const OFFSET_ALIGNMENT: u64 = 256;

/// Bevy's device and queue.
#[derive(SystemParam)]
pub(super) struct RenderGpu<'w> {
    pub device: Res<'w, RenderDevice>,
    pub queue: Res<'w, RenderQueue>,
}

impl RenderGpu<'_> {
    /// The device and the queue of wgpu, as the engine takes them.
    pub fn wgpu(&self) -> Gpu<'_> {
        Gpu::new(self.device.wgpu_device(), &self.queue)
    }
}
