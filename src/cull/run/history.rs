//! What each view has seen of each block: the records that `recall` and `occlude` read and write
//! (`shaders/occlusion/history.wesl`).
//!
//! The records of a row stay with its set and its view, while plans come and go. Each page has a
//! buffer, in which new rows get the records behind the last ones. If the buffer has no room, a new
//! one takes the records of the rows of this frame, without the gaps that other rows have left:
//!
//! ```text
//! old buffer      a a . . b c c | d d d d     d is new, . is left by a row that is gone
//! new buffer      a a b c c d d d d . . . .
//! ```

use crate::cull::{
    CullError,
    gpu::{Gpu, buffer::Growable, guard::guarded, limits::binding_limit, version::Version},
    layout::RECORD_WORDS,
    plan::occluded_rows::SlotKey,
    policy::KEEP_FRAMES,
};
use core::ops::Range;
use hashbrown::HashMap;
use wgpu::{Buffer, BufferUsages, CommandEncoder};

/// The records of a row.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// `None` until there is room for it.
    first: Option<u32>,
    last_used: u64,
    /// The frame in which it was made.
    made_in: u64,
}

/// The records of a page.
#[derive(Default)]
struct PageRecords {
    /// `None` before the first [`History::reserve`].
    buffer: Option<Growable>,
    slots: HashMap<SlotKey, Slot>,
    /// The slots that have no room yet, in the order in which they were asked for.
    new: Vec<SlotKey>,
    /// Number of records up to the end of the last slot.
    end: u32,
    /// Number of records that the buffer can hold.
    capacity: u32,
}

/// The records of all pages.
pub(in crate::cull) struct History {
    pages: HashMap<usize, PageRecords>,
    /// The last frame that named its slots.
    named_in: u64,
    /// The last frame that named them or [kept](Self::keep_used) them.
    kept_in: u64,
    /// Bumped when a buffer is replaced.
    version: Version,
}

/// Views that have no room for their records, by [`SlotKey::view`].
pub(in crate::cull) struct NoRoom {
    pub views: Vec<u64>,
    pub error: CullError,
}

impl History {
    pub fn new() -> Self {
        Self {
            pages: HashMap::new(),
            named_in: 0,
            kept_in: 0,
            version: Version::new(),
        }
    }

    /// The frame uses the slots of the frame before. Returns false if it must name them: they may
    /// be swept in this frame, or no frame before used any.
    pub fn keep_used(&mut self, now: u64) -> bool {
        let keeps = self.kept_in + 1 == now && !now.is_multiple_of(KEEP_FRAMES);
        if keeps {
            self.kept_in = now;
        }
        keeps
    }

    /// The frame names its slots: notes when those were used that frames have kept.
    fn settle(&mut self, now: u64) {
        let (named, kept) = (self.named_in, self.kept_in);
        (self.named_in, self.kept_in) = (now, now);
        if named == kept {
            return;
        }
        let slots = self
            .pages
            .values_mut()
            .flat_map(|page| page.slots.values_mut());
        for slot in slots.filter(|slot| slot.last_used == named) {
            slot.last_used = kept;
        }
    }

    /// Gives a row its records in this frame. [`Self::reserve`] then makes room for them.
    pub fn use_slot(&mut self, page: usize, key: SlotKey, now: u64) {
        if self.named_in != now {
            self.settle(now);
        }
        let page = self.pages.entry(page).or_default();
        let slot = page.slots.entry(key).or_insert_with(|| {
            page.new.push(key);
            Slot {
                first: None,
                last_used: now,
                made_in: now,
            }
        });
        // A view that paused has seen something else since.
        if slot.last_used + 1 < now {
            slot.made_in = now;
        }
        slot.last_used = now;
    }

    /// Drops pages that no frame has used for long. Call it before the slots of a frame.
    pub fn sweep(&mut self, now: u64) {
        if !now.is_multiple_of(KEEP_FRAMES) {
            return;
        }
        self.settle(now);
        let old = self.pages.len();
        self.pages.retain(|_, page| {
            let mut slots = page.slots.values();
            slots.any(|slot| slot.last_used + KEEP_FRAMES >= now)
        });
        if self.pages.len() != old {
            self.version.bump();
        }
    }

    /// Makes room for the slots of all pages. What they know stays.
    ///
    /// # Errors
    /// [`NoRoom`]: the views that asked last. Plan the frame without them, and call it again. If it
    /// names none, what there is cannot be kept.
    pub fn reserve(&mut self, gpu: Gpu<'_>, now: u64) -> Result<(), NoRoom> {
        let mut encoder = None;
        let mut result = Ok(());
        for page in self.pages.values_mut() {
            let placed = page.place(gpu, &mut encoder, now);
            if placed.as_ref().is_ok_and(|is_replaced| *is_replaced) {
                self.version.bump();
            }
            if let Err(refused) = placed {
                result = Err(refused);
                break;
            }
        }
        if let Some(encoder) = encoder {
            gpu.queue.submit([encoder.finish()]);
        }
        result
    }

    /// The first record of a row that has a slot in this frame, and whether it says nothing yet.
    pub fn find(&self, page: usize, key: &SlotKey, now: u64) -> Option<(u32, bool)> {
        let slot = self.pages.get(&page)?.slots.get(key)?;
        Some((slot.first?, slot.made_in == now))
    }

    /// The records of a page; `None` if none of its rows may be hidden.
    pub fn buffer(&self, page: usize) -> Option<&Buffer> {
        Some(&self.pages.get(&page)?.buffer.as_ref()?.buffer)
    }

    /// Changes when a buffer is replaced.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Label and size in bytes of each buffer.
    pub fn sizes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let buffers = self.pages.values().flat_map(|page| &page.buffer);
        buffers.map(|records| (records.label, records.buffer.size()))
    }
}

/// Size of a record, in bytes.
const RECORD: u64 = 4 * RECORD_WORDS as u64;

impl PageRecords {
    /// Makes room for the slots of frame `now`. Returns whether the buffer was replaced; `encoder`
    /// then copies what the slots know.
    fn place(
        &mut self,
        gpu: Gpu<'_>,
        encoder: &mut Option<CommandEncoder>,
        now: u64,
    ) -> Result<bool, NoRoom> {
        let added: u64 = self.new.iter().map(|key| u64::from(key.blocks)).sum();
        let fits = u64::from(self.end) + added <= u64::from(self.capacity);
        // Seldom, because it takes time to find out.
        let is_wasteful = || u64::from(self.capacity) > 4 * self.needed(now);
        if fits && !(now.is_multiple_of(KEEP_FRAMES) && is_wasteful()) {
            self.append();
            return Ok(false);
        }
        // What the frame does not use has nothing to say in the next one.
        self.slots.retain(|_, slot| slot.last_used == now);
        self.new.retain(|key| self.slots.contains_key(key));
        let limit = binding_limit(&gpu.device.limits());
        let bytes = self.needed(now) * RECORD;
        if bytes > limit {
            let message = format!("{bytes} bytes are more than a binding of {limit} bytes holds");
            return Err(self.refuse_last(limit, now, message));
        }
        let made = guarded(gpu.device, WHAT, || {
            let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST;
            Growable::new(gpu.device, "gpu_culling history", usage)
        });
        // More than is needed, because all records are copied when the buffer grows.
        let room = (bytes + bytes / 2).min(limit);
        let made = made.and_then(|mut records| {
            let all = records.reserve(gpu.device, room);
            all.or_else(|_| records.reserve(gpu.device, bytes))?;
            Ok(records)
        });
        let records = match made {
            Ok(records) => records,
            Err(_) if fits => {
                self.append();
                return Ok(false);
            }
            Err(error) => {
                // All that fits into the old buffer may stay.
                let capacity = u64::from(self.capacity) * RECORD;
                let message = match error {
                    CullError::Gpu { message, .. } => message,
                    other => other.to_string(),
                };
                return Err(self.refuse_last(capacity, now, message));
            }
        };
        let copies = self.lay_out();
        if let Some(old) = &self.buffer {
            let encoder = encoder
                .get_or_insert_with(|| gpu.device.create_command_encoder(&Default::default()));
            for (from, to) in copies {
                let (first, len) = (u64::from(from.start), u64::from(from.end - from.start));
                encoder.copy_buffer_to_buffer(
                    &old.buffer,
                    first * RECORD,
                    &records.buffer,
                    u64::from(to) * RECORD,
                    len * RECORD,
                );
            }
        }
        self.capacity = (records.buffer.size() / RECORD) as u32;
        self.buffer = Some(records);
        Ok(true)
    }

    /// Number of records of the rows of frame `now`.
    fn needed(&self, now: u64) -> u64 {
        let used = self.slots.iter().filter(|(_, slot)| slot.last_used == now);
        used.map(|(key, _)| u64::from(key.blocks)).sum()
    }

    /// Gives the new slots their places behind the others.
    fn append(&mut self) {
        for key in self.new.drain(..) {
            if let Some(slot) = self.slots.get_mut(&key) {
                slot.first = Some(self.end);
                self.end += key.blocks;
            }
        }
    }

    /// Gives each slot a place behind the one before. Returns the old and the new places of records
    /// that move.
    fn lay_out(&mut self) -> Vec<(Range<u32>, u32)> {
        let mut all: Vec<_> = self.slots.iter_mut().collect();
        all.sort_unstable_by_key(|(_, slot)| slot.first.unwrap_or(u32::MAX));
        let mut copies: Vec<(Range<u32>, u32)> = Vec::new();
        self.end = 0;
        for (key, slot) in all {
            if let Some(first) = slot.first {
                match copies.last_mut() {
                    Some((last, _)) if last.end == first => last.end += key.blocks,
                    _ => copies.push((first..first + key.blocks, self.end)),
                }
            }
            slot.first = Some(self.end);
            self.end += key.blocks;
        }
        self.new.clear();
        copies
    }

    /// Drops the views of the newest slots, until the others need at most `max` bytes.
    fn refuse_last(&mut self, max: u64, now: u64, message: String) -> NoRoom {
        let mut views = Vec::new();
        while let Some(view) = self.new.last().map(|key| key.view)
            && self.needed(now) * RECORD > max
        {
            views.push(view);
            self.slots.retain(|key, _| key.view != view);
            self.new.retain(|key| key.view != view);
        }
        NoRoom {
            views,
            error: CullError::Gpu {
                what: WHAT,
                message,
            },
        }
    }
}

/// What a device refuses.
const WHAT: &str = "records of what views have seen";

#[cfg(test)]
mod tests {
    use super::*;

    fn key(view: u64, blocks: u32) -> SlotKey {
        SlotKey {
            request: 1,
            view,
            level: 0,
            first_instance: 0,
            blocks,
        }
    }

    fn page(slots: &[(SlotKey, Option<u32>)]) -> PageRecords {
        let slot = |first| Slot {
            first,
            last_used: 9,
            made_in: 3,
        };
        let new = slots.iter().filter(|(_, first)| first.is_none());
        PageRecords {
            new: new.map(|(key, _)| *key).collect(),
            slots: slots
                .iter()
                .map(|(key, first)| (*key, slot(*first)))
                .collect(),
            ..PageRecords::default()
        }
    }

    #[test]
    fn records_move_together_and_keep_what_they_know() {
        let (a, b, c, d) = (key(1, 2), key(2, 1), key(3, 2), key(4, 4));
        let mut page = page(&[(d, None), (c, Some(5)), (a, Some(0)), (b, Some(4))]);
        // Between a and b, a row has left a gap.
        assert_eq!(page.lay_out(), [(0..2, 0), (4..7, 2)]);
        let firsts = [a, b, c, d].map(|key| page.slots[&key].first);
        assert_eq!(firsts, [Some(0), Some(2), Some(3), Some(5)]);
        assert_eq!((page.end, page.new.len()), (9, 0));
        assert!(page.slots.values().all(|slot| slot.made_in == 3));
        // The next time, nothing moves against the others.
        assert_eq!(page.lay_out(), [(0..9, 0)]);
    }

    #[test]
    fn the_views_that_came_last_are_refused() {
        let known = [(key(1, 4), Some(0)), (key(2, 4), Some(4))];
        let refused = |new: &[SlotKey], max: u64| {
            let all = known.into_iter().chain(new.iter().map(|key| (*key, None)));
            let mut page = page(&all.collect::<Vec<_>>());
            let refused = page.refuse_last(max * RECORD, 9, String::new());
            let mut kept: Vec<_> = page.slots.keys().map(|key| key.view).collect();
            kept.sort_unstable();
            (refused.views, kept)
        };
        let new = [key(3, 4), key(4, 4)];
        assert_eq!(refused(&new, 12), (vec![4], vec![1, 2, 3]));
        assert_eq!(refused(&new, 11), (vec![4, 3], vec![1, 2]));
        // A view that asks for more than there is.
        assert_eq!(refused(&[key(2, 8)], 15), (vec![2], vec![1]));
    }
}
