//! Reading a buffer back with a wait: for tests and verification, not for frames.

use super::Gpu;
use crate::cull::CullError;
use wgpu::{Buffer, BufferDescriptor, BufferUsages, MapMode, PollType};

/// Reads `len` values of `source` from byte `offset` on, and waits for them.
///
/// # Errors
/// [`CullError::Readback`].
pub(crate) fn read_buffer<T: bytemuck::AnyBitPattern + bytemuck::NoUninit>(
    gpu: Gpu<'_>,
    source: &Buffer,
    offset: u64,
    len: usize,
) -> Result<Vec<T>, CullError> {
    let bytes = (len * size_of::<T>()) as u64;
    if bytes == 0 {
        return Ok(Vec::new());
    }
    let failed = |what: &dyn core::fmt::Display| CullError::Readback(what.to_string());
    let staging = gpu.device.create_buffer(&BufferDescriptor {
        label: Some("gpu_culling readback"),
        size: bytes,
        usage: BufferUsages::COPY_DST | BufferUsages::MAP_READ,
        mapped_at_creation: false,
    });
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    encoder.copy_buffer_to_buffer(source, offset, &staging, 0, bytes);
    gpu.queue.submit([encoder.finish()]);
    let (send, receive) = std::sync::mpsc::channel();
    staging.map_async(MapMode::Read, .., move |result| {
        // The receiver is gone only if the wait below failed, which is reported there.
        let _ = send.send(result);
    });
    gpu.device
        .poll(PollType::wait_indefinitely())
        .map_err(|error| failed(&error))?;
    receive
        .recv()
        .map_err(|error| failed(&error))?
        .map_err(|error| failed(&error))?;
    let bytes = staging
        .get_mapped_range(..)
        .map_err(|error| failed(&error))?;
    Ok(bytemuck::pod_collect_to_vec(&bytes))
}
