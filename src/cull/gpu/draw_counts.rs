//! The numbers of commands that draws read.

use super::{buffer::filled, guard::guarded};
use crate::cull::CullError;
use wgpu::{Buffer, BufferUsages, Device};

/// A table of numbers, for draws whose number of commands the host knows and the device must read:
/// word `n` is `n`.
pub(in crate::cull) struct DrawCounts {
    buffer: Buffer,
}

impl DrawCounts {
    /// The largest number.
    pub const MAX: u32 = 16;

    /// # Errors
    /// [`CullError::Gpu`].
    pub fn new(device: &Device) -> Result<Self, CullError> {
        let numbers: Vec<u32> = (0..=Self::MAX).collect();
        let buffer = guarded(device, "counts of draws", || {
            let label = "gpu_culling draw counts";
            let numbers = bytemuck::cast_slice(&numbers);
            filled(device, label, BufferUsages::INDIRECT, numbers)
        })?;
        Ok(Self { buffer })
    }

    /// Buffer and byte offset of the word that holds `count`, which is at most [`Self::MAX`].
    pub fn word(&self, count: u32) -> (&Buffer, u64) {
        debug_assert!(count <= Self::MAX, "{count} commands");
        (&self.buffer, u64::from(count) * 4)
    }
}
