//! What each view has seen of each block: the records that `recall` and `occlude` read and write
//! (`shaders/occlusion/history.wgsl`).
//!
//! A record stays at its place as long as its set and its view do, while plans come and go. Each
//! page has a buffer.

use crate::cull::{
    CullError,
    gpu::{buffer::Growable, guard::guarded, limits::binding_limit, version::Version},
    layout::RECORD_WORDS,
    policy::KEEP_FRAMES,
};
use hashbrown::HashMap;
use wgpu::{Buffer, BufferUsages, Device};

/// The blocks of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::cull) struct SlotKey {
    /// [`CullRequest::key`](crate::cull::CullRequest::key).
    pub request: u64,
    /// [`OcclusionView::key`](super::OcclusionView::key).
    pub view: u64,
    /// Index of the level of detail.
    pub level: u32,
    /// First instance of the chunk in its page.
    pub first_instance: u32,
    /// Number of blocks that its records are for: at least as many as it has.
    pub blocks: u32,
}

/// The records of a row.
#[derive(Clone, Copy, Debug)]
struct Slot {
    first: u32,
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
    /// Number of records up to the end of the last slot.
    end: u32,
    /// Number of records that the buffer can hold.
    capacity: u32,
}

/// The records of all pages.
pub(in crate::cull) struct History {
    pages: HashMap<usize, PageRecords>,
    /// Bumped when a buffer is replaced.
    version: Version,
}

impl History {
    pub fn new() -> Self {
        Self {
            pages: HashMap::new(),
            version: Version::new(),
        }
    }

    /// Gives a row its records in this frame. [`Self::reserve`] then makes room for them.
    pub fn use_slot(&mut self, page: usize, key: SlotKey, now: u64) {
        let page = self.pages.entry(page).or_default();
        let slot = page.slots.entry(key).or_insert_with(|| {
            let first = page.end;
            page.end += key.blocks;
            Slot {
                first,
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

    /// Drops the slots that no frame has used for long. Call it before the slots of a frame.
    pub fn sweep(&mut self, now: u64) {
        let old = self.pages.len();
        for page in self.pages.values_mut() {
            let live = |slot: &Slot| slot.last_used + KEEP_FRAMES >= now;
            let blocks = page.slots.iter().filter(|(_, slot)| live(slot));
            let used: u32 = blocks.map(|(key, _)| key.blocks).sum();
            // Half of the records are free: all move, and forget what they know.
            if page.end > 2 * used {
                page.slots.clear();
                page.end = 0;
            }
        }
        self.pages.retain(|_, page| page.end > 0);
        if self.pages.len() != old {
            self.version.bump();
        }
    }

    /// Makes room for the slots of all pages. The slots of a page whose buffer is replaced say
    /// nothing any more.
    ///
    /// # Errors
    /// [`CullError::Gpu`]; the old records stay.
    pub fn reserve(&mut self, device: &Device, now: u64) -> Result<(), CullError> {
        for page in self.pages.values_mut() {
            if page.end > page.capacity {
                page.reserve(device, now)?;
                self.version.bump();
            }
        }
        Ok(())
    }

    /// The first record of a row that has a slot in this frame, and whether it says nothing yet.
    pub fn find(&self, page: usize, key: &SlotKey, now: u64) -> Option<(u32, bool)> {
        let slot = self.pages.get(&page)?.slots.get(key)?;
        Some((slot.first, slot.made_in == now))
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

impl PageRecords {
    fn reserve(&mut self, device: &Device, now: u64) -> Result<(), CullError> {
        let each = u64::from(RECORD_WORDS) * 4;
        let (bytes, limit) = (u64::from(self.end) * each, binding_limit(&device.limits()));
        if bytes > limit {
            return Err(CullError::Gpu {
                what: "records of what views have seen",
                message: format!("{bytes} bytes are more than a binding of {limit} bytes holds"),
            });
        }
        let mut records = match self.buffer.take() {
            Some(records) => records,
            None => guarded(device, "records of what views have seen", || {
                Growable::new(device, "gpu_culling history", BufferUsages::STORAGE)
            })?,
        };
        // More than is needed, because all records are lost when the buffer grows.
        let room = (bytes + bytes / 2).min(limit);
        let replaced = match records.reserve(device, room) {
            Err(_) => records.reserve(device, bytes),
            reserved => reserved,
        };
        self.capacity = (records.buffer.size() / each) as u32;
        self.buffer = Some(records);
        if replaced? {
            for slot in self.slots.values_mut() {
                slot.made_in = now;
            }
        }
        Ok(())
    }
}
