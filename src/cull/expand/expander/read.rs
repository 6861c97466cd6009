//! What an expander holds on the GPU, and reading it back.

use super::Expander;
#[cfg(feature = "testing")]
use crate::cull::layout::expand::ExpandParams;
use crate::cull::{
    CullError,
    expand::report::ExpandReport,
    gpu::{Gpu, readback::read_buffer},
    layout::expand::ExpandState,
};
use wgpu::{Buffer, Device, Queue};

impl Expander {
    /// An `ExpandState` (`shaders/expand/layout.wesl`), written by pass 1.
    #[must_use]
    pub fn state(&self) -> &Buffer {
        &self.state
    }

    /// What pass 1 left for pass 2, divided as `ExpandParams` says.
    #[must_use]
    pub fn arena(&self) -> &Buffer {
        &self.arena
    }

    /// How the arena is divided.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn params(&self) -> ExpandParams {
        let bound = self.bound.as_ref();
        bound.map(|bound| bound.params).unwrap_or_default()
    }

    /// Entries that the arena holds.
    #[must_use]
    pub fn entry_capacity(&self) -> u32 {
        self.entry_capacity
    }

    /// Bytes of all buffers, without the input.
    #[must_use]
    pub fn gpu_bytes(&self) -> u64 {
        let fixed = [&self.params, &self.state, &self.arena].map(Buffer::size);
        fixed.iter().sum()
    }

    /// Reads what pass 1 found and waits for it.
    ///
    /// # Errors
    /// [`CullError::Readback`].
    pub fn read(&self, device: &Device, queue: &Queue) -> Result<ExpandReport, CullError> {
        Ok(ExpandReport::new(
            &self.read_state(device, queue)?,
            self.entry_capacity,
        ))
    }

    /// Reads the whole state and waits for it.
    ///
    /// # Errors
    /// [`CullError::Readback`].
    pub fn read_state(&self, device: &Device, queue: &Queue) -> Result<ExpandState, CullError> {
        let words: Vec<u32> = read_buffer(
            Gpu::new(device, queue),
            &self.state,
            0,
            size_of::<ExpandState>() / 4,
        )?;
        Ok(bytemuck::pod_read_unaligned(bytemuck::cast_slice(&words)))
    }

    /// Reads `len` words of the arena from word `at` on and waits for them.
    ///
    /// # Errors
    /// [`CullError::Readback`].
    #[cfg(feature = "testing")]
    pub fn read_arena(
        &self,
        device: &Device,
        queue: &Queue,
        at: u32,
        len: usize,
    ) -> Result<Vec<u32>, CullError> {
        read_buffer(Gpu::new(device, queue), &self.arena, u64::from(at) * 4, len)
    }
}
