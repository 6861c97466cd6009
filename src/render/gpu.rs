//! The device and its queue, as systems ask for them.

use bevy::{
    ecs::system::SystemParam,
    prelude::*,
    render::renderer::{RenderDevice, RenderQueue},
};

/// Bevy's device and queue.
#[derive(SystemParam)]
pub(super) struct Gpu<'w> {
    pub device: Res<'w, RenderDevice>,
    pub queue: Res<'w, RenderQueue>,
}

impl Gpu<'_> {
    /// The device and the queue of wgpu, as the engine takes them.
    pub fn wgpu(&self) -> (&wgpu::Device, &wgpu::Queue) {
        (self.device.wgpu_device(), &self.queue)
    }
}
