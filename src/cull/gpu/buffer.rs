//! Buffers that grow, and tables that are uploaded when they change.

use super::{Gpu, changes::ChangedBytes, guard::guarded, limits::buffer_size};
use crate::cull::CullError;
use bytemuck::NoUninit;
use wgpu::{Buffer, BufferDescriptor, BufferUsages, Device};

/// A buffer that is replaced by a larger one when needed.
pub(crate) struct Growable {
    pub buffer: Buffer,
    pub label: &'static str,
    usage: BufferUsages,
}

impl Growable {
    /// The smallest buffer, created unguarded: callers create several inside one [`guarded`].
    pub fn new(device: &Device, label: &'static str, usage: BufferUsages) -> Self {
        // Never of size zero: an empty binding is an error.
        Self {
            buffer: create(device, label, usage, 256),
            label,
            usage,
        }
    }

    /// Makes room for `bytes`. Returns whether the buffer was replaced; its content is then gone.
    ///
    /// # Errors
    /// [`CullError::Gpu`]; the old buffer stays.
    pub fn reserve(&mut self, device: &Device, bytes: u64) -> Result<bool, CullError> {
        if bytes <= self.buffer.size() {
            return Ok(false);
        }
        let size = buffer_size(bytes, &device.limits());
        self.buffer = guarded(device, self.label, || {
            create(device, self.label, self.usage, size)
        })?;
        Ok(true)
    }

    /// Replaces the buffer by another of `bytes`, also by a smaller one.
    ///
    /// # Errors
    /// [`CullError::Gpu`]; the old buffer stays.
    pub fn replace(&mut self, device: &Device, bytes: u64) -> Result<(), CullError> {
        let mut other = guarded(device, self.label, || {
            Self::new(device, self.label, self.usage)
        })?;
        other.reserve(device, bytes)?;
        *self = other;
        Ok(())
    }

    /// Replaces the buffer by the smallest one.
    pub fn shrink(&mut self, device: &Device) {
        let small = guarded(device, self.label, || {
            Self::new(device, self.label, self.usage)
        });
        if let Ok(small) = small {
            *self = small;
        }
    }
}

/// A buffer with this content, created unguarded.
pub(crate) fn filled(device: &Device, label: &str, usage: BufferUsages, content: &[u8]) -> Buffer {
    let buffer = device.create_buffer(&BufferDescriptor {
        label: Some(label),
        size: content.len() as u64,
        usage,
        mapped_at_creation: true,
    });
    // It fails if the device has refused the buffer, or is lost. wgpu's `create_buffer_init` panics.
    if let Ok(mut mapped) = buffer.get_mapped_range_mut(..) {
        mapped.copy_from_slice(content);
        drop(mapped);
        buffer.unmap();
    }
    buffer
}

fn create(device: &Device, label: &str, usage: BufferUsages, size: u64) -> Buffer {
    device.create_buffer(&BufferDescriptor {
        label: Some(label),
        size,
        usage,
        mapped_at_creation: false,
    })
}

/// A table that is uploaded when it differs from what the GPU holds.
pub(crate) struct Table {
    pub gpu: Growable,
    /// What the GPU holds.
    bytes: Vec<u8>,
    changed: ChangedBytes,
}

impl Table {
    pub fn new(device: &Device, label: &'static str, usage: BufferUsages) -> Self {
        Self {
            gpu: Growable::new(device, label, usage | BufferUsages::COPY_DST),
            bytes: Vec::new(),
            changed: ChangedBytes::default(),
        }
    }

    /// Uploads what changed of `table`.
    ///
    /// # Errors
    /// [`CullError::Gpu`]; nothing is then uploaded.
    pub fn write<T: NoUninit>(
        &mut self,
        gpu: Gpu<'_>,
        table: &[T],
    ) -> Result<TableWrite, CullError> {
        let bytes: &[u8] = bytemuck::cast_slice(table);
        let replaced = self.gpu.reserve(gpu.device, bytes.len() as u64)?;
        if replaced {
            self.bytes.clear();
        }
        self.changed.find(&self.bytes, bytes);
        let written = (self.changed).write(gpu.queue, &self.gpu.buffer, bytes);
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        Ok(TableWrite {
            bytes: written,
            replaced,
        })
    }

    /// The same, if at most the entries with these indices changed since the last write.
    ///
    /// # Errors
    /// Same as [`Self::write`].
    pub fn write_some<T: NoUninit>(
        &mut self,
        gpu: Gpu<'_>,
        table: &[T],
        indices: &[u32],
    ) -> Result<TableWrite, CullError> {
        let bytes: &[u8] = bytemuck::cast_slice(table);
        if bytes.len() != self.bytes.len() {
            return self.write(gpu, table);
        }
        let mut indices = indices.to_vec();
        indices.sort_unstable();
        for index in indices {
            let first = index as usize * size_of::<T>();
            let range = first..first + size_of::<T>();
            if self.bytes[range.clone()] != bytes[range.clone()] {
                self.bytes[range.clone()].copy_from_slice(&bytes[range.clone()]);
                self.changed.add(range);
            }
        }
        Ok(TableWrite {
            bytes: (self.changed).write(gpu.queue, &self.gpu.buffer, bytes),
            replaced: false,
        })
    }
}

/// What [`Table::write`] did.
#[derive(Clone, Copy, Default)]
pub(crate) struct TableWrite {
    /// Bytes uploaded.
    pub bytes: u64,
    /// Whether the buffer was replaced: bind groups with the old one are stale.
    pub replaced: bool,
}
