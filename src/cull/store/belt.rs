//! Writes: large ones through staging buffers that are kept while uploads continue, and many small
//! ones together.

use crate::{
    cull::gpu::{buffer::Growable, guard::guarded},
    parallel,
};
use core::num::NonZeroU64;
use wgpu::{
    Buffer, BufferUsages, COPY_BUFFER_ALIGNMENT, CommandEncoderDescriptor, Device, Queue,
    util::StagingBelt,
};

/// Size of a staging buffer, in bytes: the GPU copies one while the CPU fills the next.
const CHUNK: usize = 32 << 20;
/// Size of a write, in bytes, when memory is short.
const LITTLE: usize = 1 << 20;
/// Smallest write, in bytes, that is staged here and copied by several threads. The queue takes
/// smaller ones.
const LARGE_WRITE: usize = 8 << 20;
/// Number of copy threads. More do not increase the memory bandwidth.
const COPY_THREADS: usize = 8;
/// Largest number of small writes that the queue takes one by one. Each costs it a staging buffer,
/// which is more than a copy.
const FEW_WRITES: usize = 8;
/// Bytes of small writes that are staged together.
const TOGETHER: usize = 4 << 20;
/// Number of frames without a large write after which the staging buffers are dropped.
const IDLE_FRAMES: u32 = 30;

/// Bytes for a place in a buffer.
pub(super) struct Write<'a> {
    pub buffer: &'a Buffer,
    /// In bytes.
    pub offset: u64,
    pub bytes: &'a [u8],
}

impl<'a> Write<'a> {
    /// Writes `data` from element `at` on.
    pub fn new<T: bytemuck::NoUninit>(buffer: &'a Buffer, at: usize, data: &'a [T]) -> Self {
        Self {
            buffer,
            offset: (at * size_of::<T>()) as u64,
            bytes: bytemuck::cast_slice(data),
        }
    }
}

/// Writes to buffers. Creating staging memory takes longer than filling it, so this keeps it.
pub(crate) struct UploadBelt {
    device: Device,
    belt: Option<StagingBelt>,
    /// Stages many small writes.
    together: Option<Growable>,
    /// Number of frames since the last large write.
    idle: u32,
}

impl UploadBelt {
    pub fn new(device: &Device) -> Self {
        Self {
            device: device.clone(),
            belt: None,
            together: None,
            idle: 0,
        }
    }

    /// Makes writes, after everything that the queue has written before. Many small ones become one
    /// write and as many copies. Returns the number of writes of the queue.
    pub fn write_all(&mut self, queue: &Queue, writes: &[Write<'_>]) -> u64 {
        let mut made = 0;
        let is_small = |write: &&Write| write.bytes.len() < TOGETHER;
        let mut small: Vec<_> = writes.iter().filter(is_small).collect();
        if small.len() <= FEW_WRITES {
            small.clear();
        }
        for write in writes {
            if small.is_empty() || write.bytes.len() >= TOGETHER {
                self.write(queue, write.buffer, write.offset, write.bytes);
                made += 1;
            }
        }
        let mut rest = &small[..];
        while !rest.is_empty() {
            let mut bytes = 0;
            let fitting = rest.iter().take_while(|write| {
                bytes += write.bytes.len();
                bytes <= TOGETHER
            });
            let (turn, next) = rest.split_at(fitting.count());
            made += self.write_together(queue, turn);
            rest = next;
        }
        made
    }

    fn write_together(&mut self, queue: &Queue, writes: &[&Write<'_>]) -> u64 {
        let bytes: Vec<u8> = writes
            .iter()
            .flat_map(|write| write.bytes)
            .copied()
            .collect();
        let usage = BufferUsages::COPY_SRC | BufferUsages::COPY_DST;
        let label = "gpu_culling upload";
        let make = || {
            guarded(&self.device, label, || {
                Growable::new(&self.device, label, usage)
            })
        };
        let staging = match self.together.take() {
            Some(staging) => Ok(staging),
            None => make(),
        };
        let staging = staging.and_then(|mut staging| {
            staging.reserve(&self.device, bytes.len() as u64)?;
            Ok(staging)
        });
        let Ok(staging) = staging else {
            for write in writes {
                queue.write_buffer(write.buffer, write.offset, write.bytes);
            }
            return writes.len() as u64;
        };
        self.idle = 0;
        queue.write_buffer(&staging.buffer, 0, &bytes);
        let mut encoder = self
            .device
            .create_command_encoder(&CommandEncoderDescriptor { label: Some(label) });
        let mut from = 0;
        for Write {
            buffer,
            offset,
            bytes,
        } in writes
        {
            let len = bytes.len() as u64;
            encoder.copy_buffer_to_buffer(&staging.buffer, from, buffer, *offset, len);
            from += len;
        }
        queue.submit([encoder.finish()]);
        self.together = Some(staging);
        1
    }

    /// Writes bytes from `offset` on.
    fn write(&mut self, queue: &Queue, buffer: &Buffer, offset: u64, bytes: &[u8]) {
        if bytes.len() < LARGE_WRITE {
            queue.write_buffer(buffer, offset, bytes);
            return;
        }
        self.idle = 0;
        for (offset, part) in (offset..).step_by(CHUNK).zip(bytes.chunks(CHUNK)) {
            // The rest of the write does not justify a staging buffer.
            if part.len() < LARGE_WRITE {
                queue.write_buffer(buffer, offset, part);
            } else if self.stage(queue, buffer, offset, part).is_none() {
                // There is no memory to stage the part. If the queue fails as well, wgpu treats the
                // device as lost. So write a little at a time: each submission frees its memory.
                self.belt = None;
                for (offset, little) in (offset..).step_by(LITTLE).zip(part.chunks(LITTLE)) {
                    queue.write_buffer(buffer, offset, little);
                    queue.submit([]);
                }
            }
        }
    }

    /// `None` if there is no memory for it, or the device is lost.
    fn stage(&mut self, queue: &Queue, buffer: &Buffer, offset: u64, bytes: &[u8]) -> Option<()> {
        let belt = self
            .belt
            .get_or_insert_with(|| StagingBelt::new(self.device.clone(), CHUNK as u64));
        let mut encoder = self
            .device
            .create_command_encoder(&CommandEncoderDescriptor {
                label: Some("gpu_culling upload"),
            });
        let alignment = NonZeroU64::new(COPY_BUFFER_ALIGNMENT)?;
        // A lost device refuses memory without an error, and wgpu panics if such a buffer is
        // mapped. The copies below overwrite what this writes.
        drop(queue.write_buffer_with(buffer, offset, alignment)?);
        let part = bytes.len().div_ceil(COPY_THREADS).next_multiple_of(4096);
        let mut parts = Vec::with_capacity(COPY_THREADS);
        for (offset, from) in (offset..).step_by(part).zip(bytes.chunks(part)) {
            let size = NonZeroU64::new(from.len() as u64)?;
            let staged = guarded(&self.device, "gpu_culling upload", || {
                belt.allocate(size, alignment)
            })
            .ok()?;
            let (chunk, at) = (staged.buffer(), staged.offset());
            encoder.copy_buffer_to_buffer(chunk, at, buffer, offset, size.get());
            parts.push((staged.get_mapped_range_mut().ok()?, from));
        }
        // One core alone does not reach the memory bandwidth.
        parallel::each(parts.into_iter(), |(mut into, from)| {
            into.copy_from_slice(from);
        });
        belt.finish();
        queue.submit([encoder.finish()]);
        belt.recall();
        Some(())
    }

    /// The device that the buffers are on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Call this once per frame.
    pub fn end_frame(&mut self) {
        self.idle = self.idle.saturating_add(1);
        if self.idle > IDLE_FRAMES {
            self.belt = None;
            self.together = None;
        }
    }
}
