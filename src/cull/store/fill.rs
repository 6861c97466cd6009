//! Buffers that are filled with one value, on the GPU.

use crate::cull::{
    CullError,
    gpu::{Gpu, guard::guarded},
};
use bytemuck::NoUninit;
use wgpu::{Buffer, BufferDescriptor, BufferUsages, CommandEncoder};

/// Maximum number of staged bytes: the GPU copies them again and again.
const STAGED: usize = 1 << 20;

/// Copies of a value, for buffers of any size.
pub(super) struct Filler {
    staging: Buffer,
    /// Size of a value, in bytes.
    each: u64,
    /// Number of values in the staging buffer.
    count: u64,
}

impl Filler {
    /// Stages as many copies of a value as some buffer takes, but no more than a megabyte.
    ///
    /// # Errors
    /// [`CullError::Gpu`].
    pub fn new<T: NoUninit>(gpu: Gpu<'_>, value: T, max: u64) -> Result<Self, CullError> {
        let fitting = (STAGED / size_of::<T>()) as u64;
        let count = fitting.min(max).max(1);
        let values = vec![value; count as usize];
        let bytes: &[u8] = bytemuck::cast_slice(&values);
        let staging = guarded(gpu.device, "gpu_culling fill", || {
            let staging = gpu.device.create_buffer(&BufferDescriptor {
                label: Some("gpu_culling fill"),
                size: bytes.len() as u64,
                usage: BufferUsages::COPY_SRC | BufferUsages::COPY_DST,
                mapped_at_creation: false,
            });
            gpu.queue.write_buffer(&staging, 0, bytes);
            staging
        })?;
        Ok(Self {
            staging,
            each: size_of::<T>() as u64,
            count,
        })
    }

    /// Number of bytes that were staged.
    pub fn bytes(&self) -> u64 {
        self.staging.size()
    }

    /// Records the fill of the first `count` values of a buffer.
    pub fn record(&self, encoder: &mut CommandEncoder, buffer: &Buffer, count: u64) {
        let mut first = 0;
        while first < count {
            let len = self.count.min(count - first);
            let (at, bytes) = (first * self.each, len * self.each);
            encoder.copy_buffer_to_buffer(&self.staging, 0, buffer, at, bytes);
            first += len;
        }
    }
}
