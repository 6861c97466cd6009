//! Staging buffers for results that arrive some frames later and are never waited for.

#[cfg(feature = "testing")]
use super::faults::Fault;
use super::guard::guarded;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::Arc;
use wgpu::{Buffer, BufferDescriptor, BufferUsages, CommandEncoder, Device, MapMode};

const IDLE: u8 = 0;
const RECORDED: u8 = 1;
const MAPPING: u8 = 2;
const READY: u8 = 3;
const FAILED: u8 = 4;

/// More bytes than this take only the first [`FEW_SLOTS`] buffers: the others would hold as much.
const LARGE: u64 = 1 << 18;
const FEW_SLOTS: usize = 2;

struct Slot<M> {
    buffer: Option<Buffer>,
    state: Arc<AtomicU8>,
    frame: u64,
    bytes: u64,
    meaning: M,
}

/// A ring of staging buffers. A frame is not read back if no buffer is idle. `M` says what the
/// bytes mean.
pub(crate) struct StagingRing<M> {
    label: &'static str,
    slots: [Slot<M>; 4],
    /// Whether some slot waits for its submit.
    has_recorded: bool,
    /// Number of mappings that were answered. An answer may be seen before it is counted.
    answered: Arc<AtomicU64>,
    /// Number of answers that [`Self::collect`] has looked at; most calls find no new one.
    seen: u64,
}

impl<M: Default> StagingRing<M> {
    pub fn new(label: &'static str) -> Self {
        let slot = || Slot {
            buffer: None,
            state: Arc::new(AtomicU8::new(IDLE)),
            frame: 0,
            bytes: 0,
            meaning: M::default(),
        };
        Self {
            label,
            slots: [(); 4].map(|()| slot()),
            has_recorded: false,
            answered: Arc::default(),
            seen: 0,
        }
    }

    /// Bytes of all staging buffers.
    pub fn bytes(&self) -> u64 {
        let buffers = self.slots.iter().filter_map(|slot| slot.buffer.as_ref());
        buffers.map(Buffer::size).sum()
    }

    /// Copies the given number of bytes from the start of each buffer, contiguously. Without memory
    /// for it, the frame is not read back. `note` notes what the bytes mean, over what earlier ones
    /// meant.
    pub fn record<'a>(
        &mut self,
        device: &Device,
        encoder: &mut CommandEncoder,
        frame: u64,
        copies: impl Iterator<Item = (&'a Buffer, u64)> + Clone,
        note: impl FnOnce(&mut M),
    ) {
        let bytes = copies.clone().map(|(_, size)| size).sum();
        if bytes == 0 {
            return;
        }
        let count = match bytes {
            LARGE.. => FEW_SLOTS,
            _ => self.slots.len(),
        };
        let mut slots = self.slots[..count].iter_mut();
        let idle = slots.find(|slot| slot.state.load(Ordering::Acquire) == IDLE);
        let Some(slot) = idle else {
            return;
        };
        let buffer = match &slot.buffer {
            Some(buffer) if buffer.size() >= bytes => buffer.clone(),
            _ => {
                let made = guarded(device, self.label, || {
                    device.create_buffer(&BufferDescriptor {
                        label: Some(self.label),
                        size: bytes.next_multiple_of(256),
                        usage: BufferUsages::COPY_DST | BufferUsages::MAP_READ,
                        mapped_at_creation: false,
                    })
                });
                let Ok(buffer) = made else {
                    return;
                };
                buffer
            }
        };
        let mut at = 0;
        for (source, size) in copies {
            encoder.copy_buffer_to_buffer(source, 0, &buffer, at, size);
            at += size;
        }
        slot.buffer = Some(buffer);
        slot.frame = frame;
        slot.bytes = bytes;
        note(&mut slot.meaning);
        slot.state.store(RECORDED, Ordering::Release);
        self.has_recorded = true;
    }

    /// Maps the buffers whose copies were submitted.
    pub fn after_submit(&mut self) {
        if !core::mem::take(&mut self.has_recorded) {
            return;
        }
        for slot in &mut self.slots {
            if slot.state.load(Ordering::Acquire) != RECORDED {
                continue;
            }
            if let Some(buffer) = &slot.buffer {
                slot.state.store(MAPPING, Ordering::Release);
                let (state, answered) = (slot.state.clone(), self.answered.clone());
                #[cfg(feature = "testing")]
                let [fails, is_unanswered] = [Fault::MapFailed, Fault::MapUnanswered]
                    .map(|fault| super::faults::has(fault, self.label));
                buffer
                    .slice(..slot.bytes)
                    .map_async(MapMode::Read, move |result| {
                        #[cfg(feature = "testing")]
                        let result = if fails {
                            Err(wgpu::BufferAsyncError)
                        } else {
                            result
                        };
                        #[cfg(feature = "testing")]
                        if is_unanswered {
                            return;
                        }
                        state.store(
                            if result.is_ok() { READY } else { FAILED },
                            Ordering::Release,
                        );
                        answered.fetch_add(1, Ordering::Release);
                    });
            }
        }
    }

    /// Reads the newest results since the last call: frame, bytes, what the bytes mean. `None` if
    /// there are none.
    pub fn collect<T>(&mut self, read: impl FnOnce(u64, &[u8], &mut M) -> T) -> Option<T> {
        if self.answered.load(Ordering::Acquire) == self.seen {
            return None;
        }
        // What is answered meanwhile is for the next call.
        let states = [0, 1, 2, 3].map(|at: usize| self.slots[at].state.load(Ordering::Acquire));
        let ready = (0..states.len()).filter(|at| states[*at] == READY);
        let newest = ready.max_by_key(|at| self.slots[*at].frame);
        let (mut read, mut result) = (Some(read), None);
        for (at, slot) in self.slots.iter_mut().enumerate() {
            match (states[at], &slot.buffer) {
                (READY, Some(buffer)) => {
                    // It fails only if the device is lost.
                    if Some(at) == newest
                        && let Ok(bytes) = buffer.get_mapped_range(..slot.bytes)
                    {
                        let read = read.take();
                        result = read.map(|read| read(slot.frame, &bytes, &mut slot.meaning));
                    }
                    buffer.unmap();
                }
                (READY, None) => {}
                (FAILED, _) => slot.buffer = None,
                _ => continue,
            }
            slot.state.store(IDLE, Ordering::Release);
            self.seen += 1;
        }
        result
    }
}
