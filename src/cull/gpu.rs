//! The layer between the engine and wgpu: guarded creation, buffers that grow, results on their way
//! back.

pub(crate) mod binding;
pub(crate) mod buffer;
pub(crate) mod changes;
pub(crate) mod draw_counts;
#[cfg(feature = "testing")]
pub(crate) mod faults;
pub(crate) mod guard;
pub(crate) mod kernel;
pub(crate) mod limits;
pub(crate) mod on_demand;
pub(crate) mod program;
pub(crate) mod readback;
#[cfg(feature = "testing")]
pub(crate) mod shared_kernels;
pub(crate) mod staging;
mod tier_support;
pub(crate) mod version;

use wgpu::{Device, Queue};

/// A device and its queue: what every function that creates or writes a buffer needs.
#[derive(Clone, Copy, Debug)]
pub struct Gpu<'a> {
    /// The device.
    pub device: &'a Device,
    /// The queue of the device.
    pub queue: &'a Queue,
}

impl<'a> Gpu<'a> {
    /// A device and its queue.
    #[must_use]
    pub const fn new(device: &'a Device, queue: &'a Queue) -> Self {
        Self { device, queue }
    }
}
