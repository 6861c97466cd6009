//! The pages: buffers of instances, and which of their blocks are free.

mod expected;
mod free;
mod writes;

use super::{
    belt::UploadBelt,
    region::{ChannelLayout, Channels, Region, Room, SetId},
};
use crate::{
    cull::{
        CullError,
        gpu::{guard::guarded, limits::binding_limit, version::Version},
        layout::{BLOCK, Bound},
    },
    instance::PackedInstance,
};
use core::ops::Range;
use expected::Expected;
use free::FreeBlocks;
use wgpu::{Buffer, BufferDescriptor, BufferUsages, Device};

/// Sets of up to this many instances share pages with others that have the same layout of channels.
pub const SMALL_SET: u32 = 1 << 18;
/// Number of instances in a shared page (16 MiB).
const SHARED_PAGE: u32 = 1 << 20;

/// The sets that may lie in a page.
#[derive(Clone, Copy, PartialEq)]
enum Tenants {
    /// Small sets whose channels have this layout.
    Small(ChannelLayout),
    /// Large sets with these channels: no set pays for a channel that only its neighbor has.
    Large(Channels),
    /// The set that the page was made for.
    One,
}

/// A buffer of instances, and buffers of their optional channels.
pub(crate) struct Page {
    pub instances: Buffer,
    pub scales: Option<Buffer>,
    pub data: Option<Buffer>,
    /// One [`Bound`] per block.
    pub bounds: Buffer,
    /// The copy in main memory that the `Cpu` tier tests.
    pub cpu: Option<PageCopy>,
    /// Whether the buffers are known to exist: a lost device creates none, and reports no error.
    is_proven: bool,
    tenants: Tenants,
    capacity: u32,
    free: FreeBlocks,
}

/// A page in main memory.
#[derive(Default)]
pub(crate) struct PageCopy {
    pub instances: Vec<PackedInstance>,
    pub scales: Vec<f32>,
    /// Numbers per scale.
    scale_floats: usize,
}

impl PageCopy {
    /// The numbers of the scales of these instances; none in a page without scales.
    pub fn scales_of(&self, instances: Range<usize>) -> &[f32] {
        let floats = self.scale_floats;
        let range = instances.start * floats..instances.end * floats;
        self.scales.get(range).unwrap_or_default()
    }
}

/// All pages of a culler.
pub(crate) struct Pages {
    slots: Vec<Option<Page>>,
    expected: Expected,
    /// Largest number of instances in one buffer: a multiple of [`BLOCK`].
    page_limit: u32,
    keep_cpu_copy: bool,
    pub belt: UploadBelt,
    /// Bumped whenever a buffer is created or dropped: older bind groups are stale then.
    pub version: Version,
}

/// Number of instances that a page may hold on an adapter with these limits: the whole blocks that
/// one binding holds, at most 2^27 instances (ids and words of a page then stay far below 2^32
/// bytes).
///
/// # Errors
/// [`CullError::BindingTooSmall`] if one binding does not hold a block.
pub(crate) fn page_limit(limits: &wgpu::Limits) -> Result<u32, CullError> {
    let bytes = binding_limit(limits);
    let instances = bytes / size_of::<PackedInstance>() as u64;
    if instances < u64::from(BLOCK) {
        let needed = u64::from(BLOCK) * size_of::<PackedInstance>() as u64;
        return Err(CullError::BindingTooSmall {
            limit: bytes,
            needed,
        });
    }
    let whole = instances - instances % u64::from(BLOCK);
    Ok(whole.min(1 << 27) as u32)
}

impl Pages {
    pub fn new(device: &Device, page_limit: u32, keep_cpu_copy: bool) -> Self {
        Self {
            slots: Vec::new(),
            expected: Expected::default(),
            page_limit,
            keep_cpu_copy,
            belt: UploadBelt::new(device),
            version: Version::new(),
        }
    }

    /// Drops every page. New pages hold at most `page_limit` instances.
    #[cfg(feature = "testing")]
    pub fn clear(&mut self, page_limit: u32) {
        self.slots.clear();
        self.expected = Expected::default();
        self.page_limit = page_limit;
        self.version.bump();
    }

    pub fn page(&self, index: usize) -> Option<&Page> {
        self.slots.get(index)?.as_ref()
    }

    /// Replaces the list of large sets that get room next, in this order.
    pub fn expect_sets(&mut self, sets: impl IntoIterator<Item = (SetId, u32, Channels)>) {
        let is_large = |(_, len, channels): &(SetId, u32, Channels)| {
            self.tenants(*len, Room::of(*channels), *channels) != Tenants::Small(channels.layout())
        };
        let large = sets.into_iter().filter(is_large);
        self.expected = Expected::new(large, self.page_limit / BLOCK);
    }

    /// Allocates room for `len` instances in pages of the same tenants, or in a new page.
    ///
    /// # Errors
    /// [`CullError::Gpu`]; then nothing is allocated.
    pub fn allocate(
        &mut self,
        device: &Device,
        id: SetId,
        len: u32,
        room: Room,
        channels: Channels,
    ) -> Result<Vec<Region>, CullError> {
        self.expected.remove(id);
        let mut regions = Vec::new();
        let max = self.max_together(room);
        let tenants = self.tenants(len, room, channels);
        let mut left = len;
        while left > 0 {
            let take = left.min(max);
            let capacity = take.next_multiple_of(BLOCK);
            let blocks = capacity / BLOCK * room.factor();
            let found = self.with_room(tenants, blocks).and_then(|page| {
                let first = self.slots[page].as_mut()?.free.take(blocks)?;
                Some((page, first * BLOCK))
            });
            let made = match found {
                Some(found) => Ok(found),
                None => self.allocate_page(device, tenants, blocks),
            };
            let (page, first) = match made {
                Ok(made) => made,
                Err(error) => {
                    self.release(&regions, room);
                    return Err(error);
                }
            };
            regions.push(Region {
                page,
                first,
                capacity,
            });
            left -= take;
        }
        Ok(regions)
    }

    /// Largest number of instances in one region.
    fn max_together(&self, room: Room) -> u32 {
        (self.page_limit / BLOCK / room.factor()).max(1) * BLOCK
    }

    /// The pages that a set of `len` instances may lie in.
    fn tenants(&self, len: u32, room: Room, channels: Channels) -> Tenants {
        let blocks = len.div_ceil(BLOCK) * room.factor();
        if room.is_private {
            Tenants::One
        } else if len <= self.max_together(room) && blocks <= SMALL_SET / BLOCK {
            Tenants::Small(channels.layout())
        } else {
            Tenants::Large(channels)
        }
    }

    /// Whether a set of `len` instances fits without another page.
    pub fn has_room(&self, len: u32, channels: Channels) -> bool {
        let room = Room::of(channels);
        let blocks = len.div_ceil(BLOCK) * room.factor();
        let tenants = self.tenants(len, room, channels);
        len <= self.max_together(room) && self.with_room(tenants, blocks).is_some()
    }

    /// The first page for `tenants` with `blocks` contiguous free blocks.
    fn with_room(&self, tenants: Tenants, blocks: u32) -> Option<usize> {
        let has_room = |page: &Page| page.tenants == tenants && page.free.has(blocks);
        let found = |slot: &Option<Page>| slot.as_ref().is_some_and(has_room);
        self.slots
            .iter()
            .position(found)
            .filter(|_| tenants != Tenants::One)
    }

    /// Creates a page whose first tenant takes `blocks`. Returns its index and the first instance.
    fn allocate_page(
        &mut self,
        device: &Device,
        tenants: Tenants,
        blocks: u32,
    ) -> Result<(usize, u32), CullError> {
        let limit = self.page_limit / BLOCK;
        let page_blocks = match tenants {
            Tenants::Small(_) => (SHARED_PAGE / BLOCK).min(limit).max(blocks),
            Tenants::Large(channels) => self.expected.page_blocks(blocks, channels, limit),
            Tenants::One => blocks,
        };
        let made = self.make_page(device, tenants, page_blocks, blocks);
        let (page, first) = match made {
            // The page with all expected sets does not fit; this set alone may.
            Err(_) if page_blocks > blocks => self.make_page(device, tenants, blocks, blocks)?,
            made => made?,
        };
        self.version.bump();
        let slot = self
            .slots
            .iter()
            .position(Option::is_none)
            .unwrap_or_else(|| {
                self.slots.push(None);
                self.slots.len() - 1
            });
        self.slots[slot] = Some(page);
        Ok((slot, first * BLOCK))
    }

    /// Creates a page of `page_blocks` blocks, of which `blocks` are taken. Returns it and its
    /// first taken block.
    fn make_page(
        &self,
        device: &Device,
        tenants: Tenants,
        page_blocks: u32,
        blocks: u32,
    ) -> Result<(Page, u32), CullError> {
        let capacity = page_blocks * BLOCK;
        let mut free = FreeBlocks::new(page_blocks);
        let first = free.take(blocks).unwrap_or(0);
        let page = Page {
            instances: channel_buffer(
                device,
                "gpu_culling instances",
                capacity,
                size_of::<PackedInstance>(),
            )?,
            scales: None,
            data: None,
            bounds: channel_buffer(
                device,
                "gpu_culling bounds",
                page_blocks,
                size_of::<Bound>(),
            )?,
            cpu: self.keep_cpu_copy.then(PageCopy::default),
            is_proven: false,
            tenants,
            capacity,
            free,
        };
        Ok((page, first))
    }

    /// Frees regions, and drops pages that are no longer used.
    pub fn release(&mut self, regions: &[Region], room: Room) {
        for region in regions {
            let Some(Some(page)) = self.slots.get_mut(region.page) else {
                continue;
            };
            let first = region.first / BLOCK;
            page.free
                .give(first..first + region.capacity / BLOCK * room.factor());
            if page.free.is_whole(page.capacity / BLOCK) {
                self.slots[region.page] = None;
                self.version.bump();
            }
        }
    }

    /// Adds buffers for the channels of a set that lies in `regions`.
    ///
    /// # Errors
    /// [`CullError::Gpu`]; some pages may then have the buffers.
    pub fn add_channels(
        &mut self,
        device: &Device,
        regions: &[Region],
        channels: Channels,
    ) -> Result<(), CullError> {
        for region in regions {
            let Some(Some(page)) = self.slots.get_mut(region.page) else {
                continue;
            };
            let floats = channels.scale.floats();
            for (stride, buffer, label) in [
                (4 * floats, &mut page.scales, "gpu_culling scales"),
                (
                    4 * channels.data_words as usize,
                    &mut page.data,
                    "gpu_culling data",
                ),
            ] {
                if stride > 0 && buffer.is_none() {
                    *buffer = Some(channel_buffer(device, label, page.capacity, stride)?);
                    page.is_proven = false;
                    self.version.bump();
                }
            }
            if floats > 0
                && let Some(cpu) = &mut page.cpu
            {
                cpu.scale_floats = floats;
                cpu.scales.resize(page.capacity as usize * floats, 1.0);
            }
        }
        Ok(())
    }

    /// Label and size in bytes of each buffer.
    pub fn sizes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.slots.iter().flatten().flat_map(|page| {
            let channels = [
                ("gpu_culling scales", page.scales.as_ref()),
                ("gpu_culling data", page.data.as_ref()),
            ];
            let channels = channels
                .into_iter()
                .filter_map(|(label, buffer)| Some((label, buffer?)));
            let always = [
                ("gpu_culling instances", &page.instances),
                ("gpu_culling bounds", &page.bounds),
            ];
            let all = always.into_iter().chain(channels);
            all.map(|(label, buffer)| (label, buffer.size()))
        })
    }
}

fn channel_buffer(
    device: &Device,
    label: &'static str,
    capacity: u32,
    stride: usize,
) -> Result<Buffer, CullError> {
    guarded(device, label, || {
        device.create_buffer(&BufferDescriptor {
            label: Some(label),
            size: u64::from(capacity) * stride as u64,
            usage: BufferUsages::STORAGE | BufferUsages::COPY_DST | BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        })
    })
}

#[cfg(test)]
mod tests;
