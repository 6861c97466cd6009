//! The places of selectors, tables and slots in the buffer of slots.

use crate::cull::{CullError, guarded};
use bevy::render::{
    render_resource::{Buffer, BufferDescriptor, BufferUsages},
    renderer::{RenderDevice, RenderQueue},
};
use core::ops::Range;

/// Distance of slots, and of selectors, in bytes.
pub(in crate::render) const SLOT_STRIDE: u64 = 512;
/// Size of a `MeshUniform` in bytes.
pub(in crate::render) const UNIFORM_BYTES: u64 = 176;
/// Size of a slot in bytes, without padding: a `MeshUniform`, a `SlotInfo` and a `SlotOffset`.
pub(in crate::render) const SLOT_BYTES: u64 = 448;
/// Number of granules that a [`SlotTable`] describes: those of a million instances and more.
pub(in crate::render) const GRANULES_OF_TABLE: u32 = 8316;
/// Bytes before the granules of a selector: mask, first slot, and padding.
pub(super) const SELECTOR_HEAD: usize = 16;
/// Place of the slots in a window, in bytes (`DrawSlots` in `shaders/draw/instance.wesl`).
pub(super) const WINDOW_SLOTS: u64 = 65 * SLOT_STRIDE;
const _: () = assert!(WINDOW_SLOTS == SELECTOR_HEAD as u64 + 4 * GRANULES_OF_TABLE as u64);

/// The slot of each granule of a page, up to the last one that has a slot, for what is drawn of
/// several sets at once. A slot is 0 if no such set has the granule.
#[derive(Clone, Default, PartialEq, Eq)]
pub(in crate::render) struct SlotTable {
    pub(super) slots: Vec<u32>,
    /// Whether a set has the granule.
    is_taken: Vec<bool>,
}

impl SlotTable {
    /// Gives granules their slot. Returns whether the table describes all of them and none had one:
    /// a set that is drawn with several slots keeps the first.
    pub fn put(&mut self, granules: Range<u32>, slot: u32) -> bool {
        if granules.end > GRANULES_OF_TABLE {
            return false;
        }
        let granules = granules.start as usize..granules.end as usize;
        if self.slots.len() < granules.end {
            self.slots.resize(granules.end, 0);
            self.is_taken.resize(granules.end, false);
        }
        let is_taken = &mut self.is_taken[granules.clone()];
        if is_taken.contains(&true) {
            return false;
        }
        is_taken.fill(true);
        self.slots[granules].fill(slot);
        true
    }

    /// Takes granules from a slot, if it has them.
    pub fn remove(&mut self, granules: Range<u32>, slot: u32) {
        let granules = granules.start as usize..granules.end as usize;
        let has_slot = |slots: &[u32]| slots.iter().all(|own| *own == slot);
        if self.slots.get(granules.clone()).is_some_and(has_slot) {
            self.is_taken[granules.clone()].fill(false);
            self.slots[granules].fill(0);
        }
    }
}

/// Numbers of slots and of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotCapacity {
    pub slots: u64,
    pub tables: u64,
}

/// Least number of slots that the buffer has room for.
const FEWEST_SLOTS: u64 = 16;

impl SlotCapacity {
    /// Room for as many slots and tables, and for up to an eighth more slots, so that the buffer is
    /// not replaced with each new set.
    pub fn with(slots: u64, tables: u64) -> Self {
        let step = (slots / 16).next_power_of_two();
        Self {
            slots: slots.next_multiple_of(step.max(FEWEST_SLOTS)),
            tables: tables.next_power_of_two(),
        }
    }

    /// Whether this number of slots and of tables fit.
    pub fn holds(self, slots: u64, tables: u64) -> bool {
        self.slots >= slots && self.tables >= tables
    }

    /// Byte offset of a table in the buffer of slots.
    pub fn table(self, table: u64) -> u64 {
        self.slots * SLOT_STRIDE + table * WINDOW_SLOTS
    }

    /// Byte offset of the slots: a selector and a table fit before them.
    pub fn first_slot(self) -> u64 {
        self.table(self.tables) + WINDOW_SLOTS
    }

    /// Size of a window in bytes: from the first selector to the last slot.
    pub fn window(self) -> u64 {
        self.first_slot() + self.slots * SLOT_STRIDE
    }

    /// Size of the buffer of slots in bytes: the window of the last table fits.
    pub fn bytes(self) -> u64 {
        self.table(self.tables) + self.window()
    }

    /// The place of slot 0 among the slots of a window that begins at a byte offset. It may lie
    /// before them: a sum in 32 bits wraps.
    fn first_in(self, window: u64) -> u32 {
        let slots = (window + WINDOW_SLOTS).cast_signed();
        ((self.first_slot().cast_signed() - slots) / SLOT_STRIDE as i64) as u32
    }

    /// The selectors of all slots, in words. A selector has a mask of 0: each instance has the slot
    /// of the first granule.
    pub fn selectors(self) -> Vec<u32> {
        let mut words = vec![0u32; (self.slots * SLOT_STRIDE / 4) as usize];
        let each = words.chunks_exact_mut(SLOT_STRIDE as usize / 4);
        for (slot, selector) in (0..).zip(each) {
            selector[1] = self.first_in(u64::from(slot) * SLOT_STRIDE);
            selector[SELECTOR_HEAD / 4] = slot;
        }
        words
    }

    /// A table as a selector, in words.
    pub fn selector_of(self, index: u64, table: &SlotTable) -> Vec<u32> {
        let mut words = vec![u32::MAX, self.first_in(self.table(index)), 0, 0];
        words.extend_from_slice(&table.slots);
        words
    }
}

/// The buffers of the slots.
pub(super) struct Buffers {
    pub capacity: SlotCapacity,
    /// Selectors, and behind them the slots.
    pub slots: Buffer,
    pub uniforms: Buffer,
}

impl Buffers {
    /// Makes the buffers.
    ///
    /// # Errors
    /// [`CullError::Gpu`].
    pub fn new(device: &RenderDevice, capacity: SlotCapacity) -> Result<Self, CullError> {
        let buffer = |label, size| {
            device.create_buffer(&BufferDescriptor {
                label: Some(label),
                size,
                usage: BufferUsages::STORAGE | BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        };
        guarded(device.wgpu_device(), "gpu_culling slots", || Self {
            capacity,
            slots: buffer("gpu_culling slots", capacity.bytes()),
            uniforms: buffer("gpu_culling mesh uniforms", capacity.slots * UNIFORM_BYTES),
        })
    }

    /// Writes selectors at a byte offset; their size in bytes.
    pub fn write(&self, queue: &RenderQueue, at: u64, selectors: &[u32]) -> u64 {
        let bytes = bytemuck::cast_slice(selectors);
        queue.write_buffer(&self.slots, at, bytes);
        bytes.len() as u64
    }
}
