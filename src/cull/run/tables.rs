//! The tables of all batches that change from frame to frame, in one buffer.
//!
//! Each `write_buffer` of wgpu makes a staging buffer, which costs more than a small copy. So a
//! frame makes one or few, however many batches and views it has.

use crate::cull::{
    CullError, Gpu,
    gpu::{buffer::Growable, changes::ChangedBytes, version::Version},
    layout::{OcclusionRow, Projection, ViewSource},
    plan::{BatchPlan, Plan},
};
use bytemuck::NoUninit;
use wgpu::{BufferBinding, BufferSize, BufferUsages, Device};

/// Size of the binding of an empty table: one row.
const SMALLEST_BINDING: u64 = 512;
const _: () = assert!(size_of::<OcclusionRow>() as u64 <= SMALLEST_BINDING);
const _: () = assert!(size_of::<ViewSource>() as u64 <= SMALLEST_BINDING);

/// The buffer, and what it holds.
pub(in crate::cull) struct FrameTables {
    gpu: Growable,
    /// Changes when the buffer is replaced.
    version: Version,
    /// The tables of the current frame so far, each at a place that can be bound.
    bytes: Vec<u8>,
    /// What the GPU holds.
    held: Vec<u8>,
    changed: ChangedBytes,
    /// Alignment of each table's offset and size.
    alignment: u64,
    /// Why there is no room for the current frame.
    refusal: Option<CullError>,
    uploaded: u64,
}

/// The place of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::cull) struct TablePlace {
    first: u64,
    bytes: u64,
}

impl FrameTables {
    /// Unguarded: callers create several buffers inside one
    /// [`guarded`](crate::cull::gpu::guard::guarded).
    pub fn new(device: &Device) -> Self {
        let usage = BufferUsages::STORAGE | BufferUsages::COPY_DST;
        let alignment = device.limits().min_storage_buffer_offset_alignment;
        Self {
            gpu: Growable::new(device, "gpu_culling frame tables", usage),
            version: Version::new(),
            bytes: Vec::new(),
            held: Vec::new(),
            changed: ChangedBytes::default(),
            alignment: u64::from(alignment).max(SMALLEST_BINDING),
            refusal: None,
            uploaded: 0,
        }
    }

    /// Starts a frame with the tables of these plans.
    ///
    /// # Errors
    /// [`CullError::Gpu`], if there is no room. Each [push](Self::push) then returns it, too.
    pub fn start<'a>(
        &mut self,
        device: &Device,
        plans: impl Iterator<Item = &'a Plan>,
    ) -> Result<(), CullError> {
        self.bytes.clear();
        let of_batch = |batch: &BatchPlan, projections: &[Projection]| {
            let rows = match batch.sources.is_empty() {
                true => self.padded(size_of_val(&*batch.chunk_views)),
                false => 0,
            };
            let projections = size_of_val(batch.projections(projections));
            let occlusion = size_of_val(&*batch.occlusion) + projections;
            rows + self.padded(occlusion)
        };
        let needed = plans.map(|plan| {
            let batches = plan.batches.iter();
            let batches = batches.map(|batch| of_batch(batch, &plan.projections));
            batches.sum::<u64>() + self.padded(size_of_val(&*plan.views))
        });
        let needed = needed.sum::<u64>();
        let mut reserved = Ok(false);
        if needed > self.gpu.buffer.size() {
            // More than is needed, because all bind groups are made again when the buffer grows.
            reserved = self.gpu.reserve(device, needed + needed / 2);
            if reserved.is_err() {
                reserved = self.gpu.reserve(device, needed);
            }
        }
        if let Ok(true) = reserved {
            self.held.clear();
            self.version.bump();
        }
        self.refusal = reserved.err();
        self.refusal.clone().map_or(Ok(()), Err)
    }

    /// Adds a table.
    ///
    /// # Errors
    /// [`CullError::Gpu`], if the device has no room for the tables of the frame.
    pub fn push<T: NoUninit>(&mut self, table: &[T]) -> Result<TablePlace, CullError> {
        self.push_both(table, &[] as &[T])
    }

    /// Adds a table, and another one right behind it.
    ///
    /// # Errors
    /// Same as [`Self::push`].
    pub fn push_both<T: NoUninit, U: NoUninit>(
        &mut self,
        table: &[T],
        behind: &[U],
    ) -> Result<TablePlace, CullError> {
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        let place = TablePlace {
            first: self.bytes.len() as u64,
            bytes: self.padded(size_of_val(table) + size_of_val(behind)),
        };
        debug_assert!(place.first + place.bytes <= self.gpu.buffer.size());
        self.bytes.extend_from_slice(bytemuck::cast_slice(table));
        self.bytes.extend_from_slice(bytemuck::cast_slice(behind));
        self.bytes.resize((place.first + place.bytes) as usize, 0);
        Ok(place)
    }

    /// Uploads what changed of the frame's tables.
    pub fn upload(&mut self, gpu: Gpu<'_>) {
        self.changed.find(&self.held, &self.bytes);
        self.uploaded += (self.changed).write(gpu.queue, &self.gpu.buffer, &self.bytes);
        core::mem::swap(&mut self.held, &mut self.bytes);
    }

    /// Number of bytes uploaded since the last call.
    pub fn take_uploaded(&mut self) -> u64 {
        core::mem::take(&mut self.uploaded)
    }

    /// A table as a binding.
    pub fn binding(&self, place: TablePlace) -> BufferBinding<'_> {
        BufferBinding {
            buffer: &self.gpu.buffer,
            offset: place.first,
            size: BufferSize::new(place.bytes),
        }
    }

    /// Changes when bindings are stale.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Label and size in bytes of the buffer.
    pub fn size(&self) -> (&'static str, u64) {
        (self.gpu.label, self.gpu.buffer.size())
    }

    /// The room for a table. It grows in steps of up to an eighth, so that most tables keep their
    /// place, and the bind groups stay, while some rows come and go.
    fn padded(&self, bytes: usize) -> u64 {
        let bytes = bytes as u64;
        let step = (bytes / 16).next_power_of_two().max(self.alignment);
        bytes.next_multiple_of(step).max(self.alignment)
    }
}
