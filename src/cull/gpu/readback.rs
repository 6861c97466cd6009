//! Reading a buffer back with a wait: for tests, also the one at the start, and verification, not
//! for frames.
//!
//! A browser cannot wait. There, the first call for some bytes begins to read them and is an error;
//! a call after the browser's event loop has turned has them. So a caller tries again as long as
//! [`reading_is_pending`], and no frame may change the buffers meanwhile.

use super::{Gpu, guard::guarded};
use crate::cull::CullError;
use core::{cell::RefCell, fmt::Display};
use hashbrown::HashMap;
use std::sync::{Arc, OnceLock};
use wgpu::{Buffer, BufferAsyncError, BufferDescriptor, BufferUsages, MapMode, PollType};

/// Whether the map's callback was called, and its result.
type Mapped = Arc<OnceLock<Result<(), BufferAsyncError>>>;

/// Buffer, first byte and number of bytes.
type Bytes = (Buffer, u64, u64);

thread_local! {
    /// What a browser reads or has read, by what it is a copy of.
    static READS: RefCell<HashMap<Bytes, (Buffer, Mapped)>> = RefCell::default();
}

/// Reads `len` values of `source` from byte `offset` on, and waits for them.
///
/// # Errors
/// [`CullError::Readback`], or [`CullError::Gpu`] if there is no room for them.
pub(crate) fn read_buffer<T: bytemuck::AnyBitPattern + bytemuck::NoUninit>(
    gpu: Gpu<'_>,
    source: &Buffer,
    offset: u64,
    len: usize,
) -> Result<Vec<T>, CullError> {
    let size = (len * size_of::<T>()) as u64;
    if size == 0 {
        return Ok(Vec::new());
    }
    let (staging, mapped) = if cfg!(target_arch = "wasm32") {
        let bytes = (source.clone(), offset, size);
        let known = READS.with_borrow(|reads| reads.get(&bytes).cloned());
        match known {
            Some(known) => known,
            None => {
                let begun = begin(gpu, source, offset, size)?;
                READS.with_borrow_mut(|reads| reads.insert(bytes, begun.clone()));
                begun
            }
        }
    } else {
        let begun = begin(gpu, source, offset, size)?;
        let waited = gpu.device.poll(PollType::wait_indefinitely());
        waited.map_err(|error| failed(&error))?;
        // Another thread that polls the device may have taken the callback, and call it in a
        // moment, or drop it.
        while begun.1.get().is_none() && Arc::strong_count(&begun.1) > 1 {
            std::thread::yield_now();
        }
        begun
    };
    let result = mapped.get().ok_or_else(|| failed(&"it has not arrived"))?;
    result.clone().map_err(|error| failed(&error))?;
    let bytes = staging
        .get_mapped_range(..)
        .map_err(|error| failed(&error))?;
    Ok(bytemuck::pod_collect_to_vec(&bytes))
}

fn failed(what: &dyn Display) -> CullError {
    CullError::Readback(what.to_string())
}

/// Copies bytes of `source`, and asks for the copy.
fn begin(
    gpu: Gpu<'_>,
    source: &Buffer,
    offset: u64,
    size: u64,
) -> Result<(Buffer, Mapped), CullError> {
    let label = "gpu_culling readback";
    let staging = guarded(gpu.device, label, || {
        gpu.device.create_buffer(&BufferDescriptor {
            label: Some(label),
            size,
            usage: BufferUsages::COPY_DST | BufferUsages::MAP_READ,
            mapped_at_creation: false,
        })
    })?;
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    encoder.copy_buffer_to_buffer(source, offset, &staging, 0, size);
    gpu.queue.submit([encoder.finish()]);
    let mapped = Mapped::default();
    let answer = Arc::clone(&mapped);
    staging.map_async(MapMode::Read, .., move |result| {
        // It is called once.
        let _ = answer.set(result);
    });
    Ok((staging, mapped))
}

/// Whether a browser still reads. Elsewhere, nothing is read after a call has returned.
#[cfg(all(feature = "bevy", feature = "testing"))]
pub(crate) fn reading_is_pending() -> bool {
    READS.with_borrow(|reads| reads.values().any(|(_, mapped)| mapped.get().is_none()))
}

/// Forgets what a browser has read: the buffers may have changed.
#[cfg(all(feature = "bevy", feature = "testing"))]
pub(crate) fn forget_reads() {
    READS.with_borrow_mut(HashMap::clear);
}
