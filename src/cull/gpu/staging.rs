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
    meaning: Option<M>,
}

/// A ring of staging buffers. A frame is not read back if no buffer is idle. `M` says what the
/// bytes mean.
pub(crate) struct StagingRing<M> {
    label: &'static str,
    slots: Vec<Slot<M>>,
    /// Whether some slot waits for its submit.
    recorded: bool,
    /// Number of mappings that were answered. An answer may be seen before it is counted.
    answered: Arc<AtomicU64>,
    /// Number of answers that [`Self::collect`] has looked at; most calls find no new one.
    seen: u64,
}

impl<M> StagingRing<M> {
    pub fn new(label: &'static str) -> Self {
        let slot = || Slot {
            buffer: None,
            state: Arc::new(AtomicU8::new(IDLE)),
            frame: 0,
            bytes: 0,
            meaning: None,
        };
        Self {
            label,
            slots: (0..4).map(|_| slot()).collect(),
            recorded: false,
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
    /// for it, the frame is not read back.
    pub fn record(
        &mut self,
        device: &Device,
        encoder: &mut CommandEncoder,
        frame: u64,
        copies: &[(&Buffer, u64)],
        meaning: M,
    ) {
        let bytes = copies.iter().map(|(_, size)| size).sum();
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
            encoder.copy_buffer_to_buffer(source, 0, &buffer, at, *size);
            at += size;
        }
        slot.buffer = Some(buffer);
        slot.frame = frame;
        slot.bytes = bytes;
        slot.meaning = Some(meaning);
        slot.state.store(RECORDED, Ordering::Release);
        self.recorded = true;
    }

    /// Maps the buffers whose copies were submitted.
    pub fn after_submit(&mut self) {
        if !core::mem::take(&mut self.recorded) {
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

    /// The newest results since the last call: frame, bytes, what the bytes mean.
    pub fn collect(&mut self) -> Option<(u64, Vec<u8>, M)> {
        let mut newest: Option<(u64, Vec<u8>, M)> = None;
        if self.answered.load(Ordering::Acquire) == self.seen {
            return newest;
        }
        for slot in &mut self.slots {
            match slot.state.load(Ordering::Acquire) {
                READY => {
                    if let (Some(buffer), Some(meaning)) = (&slot.buffer, slot.meaning.take()) {
                        if newest
                            .as_ref()
                            .is_none_or(|(frame, ..)| *frame < slot.frame)
                        {
                            // It fails only if the device is lost.
                            if let Ok(bytes) = buffer.get_mapped_range(..slot.bytes) {
                                newest = Some((slot.frame, bytes.to_vec(), meaning));
                            }
                        }
                        buffer.unmap();
                    }
                    slot.state.store(IDLE, Ordering::Release);
                    self.seen += 1;
                }
                FAILED => {
                    slot.buffer = None;
                    slot.state.store(IDLE, Ordering::Release);
                    self.seen += 1;
                }
                _ => {}
            }
        }
        newest
    }
}
