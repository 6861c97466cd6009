//! Where instances lie on the GPU: pages, and the regions of them that belong to a set.

mod expected;
mod free;

use crate::{
    cull::{
        CullError,
        belt::UploadBelt,
        guard::guarded,
        layout::{BLOCK, Bound},
    },
    instance::PackedInstance,
};
use core::{
    ops::Range,
    sync::atomic::{AtomicU64, Ordering},
};
use expected::Expected;
use free::FreeBlocks;
use wgpu::{Buffer, BufferDescriptor, BufferUsages, Device, Queue};

/// Names a set of instances; the caller chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetId(pub u64);

/// Optional channels of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Channels {
    /// A uniform scale for each instance.
    pub scale: bool,
    /// A tag for each instance.
    pub tag: bool,
    /// Where each instance was in the frame before, for motion vectors: twice the room. In each page it lies behind
    /// the region, [`Region::capacity`] further on.
    pub previous: bool,
}

/// How a set's room is laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Room {
    /// As much again behind each region.
    pub previous: bool,
    /// Pages of its own, which do not move until the set does.
    pub own: bool,
}

impl Room {
    /// That of a set which is uploaded.
    pub fn of(channels: Channels) -> Self {
        Self {
            previous: channels.previous,
            own: false,
        }
    }

    /// What a region takes for each instance that it has room for.
    fn factor(self) -> u32 {
        if self.previous { 2 } else { 1 }
    }
}

/// A run of a set's instances in one page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The page.
    pub page: usize,
    /// First instance of the region, counted from the start of the page; a multiple of [`BLOCK`].
    pub first: u32,
    /// Instances that the region has room for; a multiple of [`BLOCK`].
    pub capacity: u32,
}

/// Sets of up to this many instances share pages with others of any kind.
pub const SMALL_SET: u32 = 1 << 18;
/// Instances of a shared page (16 MiB).
const SHARED_PAGE: u32 = 1 << 20;

/// Whom a page is for.
#[derive(Clone, Copy, PartialEq)]
enum Tenants {
    /// Small sets of any kind.
    Small,
    /// Large sets that came with these channels: nobody pays for those of a neighbour.
    Large(Channels),
    /// The set that it was made for.
    One,
}

/// A buffer of instances, and the optional channels that lie beside it.
pub(crate) struct Page {
    pub instances: Buffer,
    pub scales: Option<Buffer>,
    pub tags: Option<Buffer>,
    /// Bounds of the page's blocks.
    pub bounds: Buffer,
    /// The copy that the `Cpu` tier culls.
    pub cpu: Option<PageCopy>,
    /// The device was seen to have the buffers: a lost device makes none, and does not say so.
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
}

/// Where the next holder of buffers starts to count its generations: what was bound for one is never taken for another's.
pub(crate) fn first_generation() -> u64 {
    static FIRST: AtomicU64 = AtomicU64::new(0);
    FIRST.fetch_add(1 << 32, Ordering::Relaxed)
}

/// All pages of a culler.
pub(crate) struct Pages {
    slots: Vec<Option<Page>>,
    expected: Expected,
    /// Instances that one buffer may hold: a multiple of [`BLOCK`].
    page_limit: u32,
    keep_cpu_copy: bool,
    pub belt: UploadBelt,
    /// Increases whenever a buffer is created or dropped: bind groups made before are stale.
    pub generation: u64,
}

/// Instances that a page may hold on an adapter with these limits: the whole blocks that one binding holds, at most
/// 2^27 instances (ids and words of a page then stay far below 2^32 bytes).
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

/// Bytes of the largest storage binding.
pub(crate) fn binding_limit(limits: &wgpu::Limits) -> u64 {
    limits
        .max_storage_buffer_binding_size
        .min(limits.max_buffer_size)
}

impl Pages {
    pub fn new(device: &Device, page_limit: u32, keep_cpu_copy: bool) -> Self {
        Self {
            slots: Vec::new(),
            expected: Expected::default(),
            page_limit,
            keep_cpu_copy,
            belt: UploadBelt::new(device),
            generation: first_generation(),
        }
    }

    /// Without any page, and pages of at most so many instances from now on.
    pub fn clear(&mut self, page_limit: u32) {
        self.slots.clear();
        self.expected = Expected::default();
        self.page_limit = page_limit;
        self.generation += 1;
    }

    pub fn page(&self, index: usize) -> Option<&Page> {
        self.slots.get(index)?.as_ref()
    }

    /// Large sets that get room next, in this order, instead of those that were expected before.
    pub fn expect_sets(&mut self, sets: impl IntoIterator<Item = (SetId, u32, Channels)>) {
        let is_large = |(_, len, channels): &(SetId, u32, Channels)| {
            self.tenants(*len, Room::of(*channels), *channels) != Tenants::Small
        };
        let large = sets.into_iter().filter(is_large);
        self.expected = Expected::new(large, self.page_limit / BLOCK);
    }

    /// Room for `len` instances, next to what is like them; for large sets in a page of their own where nothing is.
    ///
    /// # Errors
    /// [`CullError::Gpu`]; nothing is then taken.
    pub fn allocate(
        &mut self,
        device: &Device,
        (id, len): (SetId, u32),
        room: Room,
        channels: Channels,
    ) -> Result<Vec<Region>, CullError> {
        self.expected.remove(id);
        let mut regions = Vec::new();
        let most = self.most_together(room);
        let tenants = self.tenants(len, room, channels);
        let mut left = len;
        while left > 0 {
            let take = left.min(most);
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

    /// Instances that one region may hold.
    fn most_together(&self, room: Room) -> u32 {
        (self.page_limit / BLOCK / room.factor()).max(1) * BLOCK
    }

    /// Whom the pages of a set of so many instances are for.
    fn tenants(&self, len: u32, room: Room, channels: Channels) -> Tenants {
        let blocks = len.div_ceil(BLOCK) * room.factor();
        if room.own {
            Tenants::One
        } else if len <= self.most_together(room) && blocks <= SMALL_SET / BLOCK {
            Tenants::Small
        } else {
            Tenants::Large(channels)
        }
    }

    /// Whether there is room for a set of so many instances without another page.
    pub fn has_room(&self, len: u32, channels: Channels) -> bool {
        let room = Room::of(channels);
        let blocks = len.div_ceil(BLOCK) * room.factor();
        let tenants = self.tenants(len, room, channels);
        len <= self.most_together(room) && self.with_room(tenants, blocks).is_some()
    }

    /// The first page for such tenants that has so many blocks left.
    fn with_room(&self, tenants: Tenants, blocks: u32) -> Option<usize> {
        let has_room = |page: &Page| page.tenants == tenants && page.free.has(blocks);
        let found = |slot: &Option<Page>| slot.as_ref().is_some_and(has_room);
        self.slots
            .iter()
            .position(found)
            .filter(|_| tenants != Tenants::One)
    }

    /// A page whose first tenant takes so many blocks: its number, and the first instance.
    fn allocate_page(
        &mut self,
        device: &Device,
        tenants: Tenants,
        blocks: u32,
    ) -> Result<(usize, u32), CullError> {
        let limit = self.page_limit / BLOCK;
        let page_blocks = match tenants {
            Tenants::Small => (SHARED_PAGE / BLOCK).min(limit).max(blocks),
            Tenants::Large(channels) => self.expected.page_blocks(blocks, channels, limit),
            Tenants::One => blocks,
        };
        let made = self.make_page(device, tenants, (page_blocks, blocks));
        let (page, first) = match made {
            // The sets that are expected beside it do not fit: this one alone may.
            Err(_) if page_blocks > blocks => self.make_page(device, tenants, (blocks, blocks))?,
            made => made?,
        };
        self.generation += 1;
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

    /// A page of `page_blocks`, of which `blocks` are taken: the page, and its first taken block.
    fn make_page(
        &self,
        device: &Device,
        tenants: Tenants,
        (page_blocks, blocks): (u32, u32),
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
            tags: None,
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

    /// Gives regions back; a page that nobody uses is dropped.
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
                self.generation += 1;
            }
        }
    }

    /// Makes sure that the buffers of regions are there, before anything is written to them.
    ///
    /// # Errors
    /// [`CullError::Gpu`], on a lost device.
    pub fn prove(&mut self, queue: &Queue, regions: &[Region]) -> Result<(), CullError> {
        for region in regions {
            let Some(Some(page)) = self.slots.get_mut(region.page) else {
                continue;
            };
            if page.is_proven {
                continue;
            }
            guarded(self.belt.device(), "gpu_culling instances", || {
                let channels = [page.scales.as_ref(), page.tags.as_ref()];
                let always = [&page.instances, &page.bounds];
                for buffer in always.into_iter().chain(channels.into_iter().flatten()) {
                    queue.write_buffer(buffer, 0, &[]);
                }
            })?;
            page.is_proven = true;
        }
        Ok(())
    }

    pub fn write_instances(
        &mut self,
        queue: &Queue,
        regions: &[Region],
        first: usize,
        data: &[PackedInstance],
    ) {
        for (region, at, part) in split(regions, first, data) {
            let Some(Some(page)) = self.slots.get_mut(region.page) else {
                continue;
            };
            self.belt.write(queue, &page.instances, at, part);
            if let Some(cpu) = &mut page.cpu {
                store(
                    &mut cpu.instances,
                    page.capacity,
                    at,
                    part,
                    PackedInstance::default(),
                );
            }
        }
    }

    pub fn write_scales(&mut self, queue: &Queue, regions: &[Region], first: usize, data: &[f32]) {
        for (region, at, part) in split(regions, first, data) {
            let Some(Some(page)) = self.slots.get_mut(region.page) else {
                continue;
            };
            if let Some(buffer) = &page.scales {
                self.belt.write(queue, buffer, at, part);
            }
            if let Some(cpu) = &mut page.cpu {
                store(&mut cpu.scales, page.capacity, at, part, 1.0);
            }
        }
    }

    pub fn write_tags(&mut self, queue: &Queue, regions: &[Region], first: usize, data: &[u32]) {
        for (region, at, part) in split(regions, first, data) {
            if let Some(Some(page)) = self.slots.get_mut(region.page)
                && let Some(buffer) = &page.tags
            {
                self.belt.write(queue, buffer, at, part);
            }
        }
    }

    /// Writes instances where those of the frame before are kept.
    pub fn write_previous(
        &mut self,
        queue: &Queue,
        regions: &[Region],
        first: usize,
        (instances, scales): (&[PackedInstance], Option<&[f32]>),
    ) {
        for (region, at, part) in split(regions, first, instances) {
            if let Some(Some(page)) = self.slots.get(region.page) {
                let at = at + region.capacity as usize;
                self.belt.write(queue, &page.instances, at, part);
            }
        }
        for (region, at, part) in split(regions, first, scales.unwrap_or(&[])) {
            if let Some(Some(page)) = self.slots.get(region.page)
                && let Some(buffer) = &page.scales
            {
                let at = at + region.capacity as usize;
                self.belt.write(queue, buffer, at, part);
            }
        }
    }

    /// Buffers for the channels of a set that lies in `regions`.
    ///
    /// # Errors
    /// [`CullError::Gpu`]; some pages may have them then.
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
            for (wanted, buffer, label) in [
                (channels.scale, &mut page.scales, "gpu_culling scales"),
                (channels.tag, &mut page.tags, "gpu_culling tags"),
            ] {
                if wanted && buffer.is_none() {
                    *buffer = Some(channel_buffer(device, label, page.capacity, 4)?);
                    page.is_proven = false;
                    self.generation += 1;
                }
            }
            if channels.scale
                && let Some(cpu) = &mut page.cpu
            {
                cpu.scales.resize(page.capacity as usize, 1.0);
            }
        }
        Ok(())
    }

    /// Label and bytes of each buffer.
    pub fn sizes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.slots.iter().flatten().flat_map(|page| {
            let channels = [
                ("gpu_culling scales", page.scales.as_ref()),
                ("gpu_culling tags", page.tags.as_ref()),
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

/// `data`, which starts at instance `first` of the set, cut at the regions' borders: region, instance in the page, part.
fn split<'a, T>(
    regions: &'a [Region],
    first: usize,
    data: &'a [T],
) -> impl Iterator<Item = (&'a Region, usize, &'a [T])> + 'a {
    runs(regions, first..first + data.len()).map(move |(region, at, part)| {
        let part = part.start - first..part.end - first;
        (region, at, &data[part])
    })
}

/// `range` of a set, cut at the regions' borders: region, instance in the page, instances of the set.
pub(crate) fn runs(
    regions: &[Region],
    range: Range<usize>,
) -> impl Iterator<Item = (&Region, usize, Range<usize>)> {
    let mut start = 0;
    regions.iter().filter_map(move |region| {
        let own = start..start + region.capacity as usize;
        start = own.end;
        let part = own.start.max(range.start)..own.end.min(range.end);
        let at = region.first as usize + part.start.saturating_sub(own.start);
        (part.start < part.end).then_some((region, at, part))
    })
}

fn store<T: Copy>(copy: &mut Vec<T>, capacity: u32, at: usize, data: &[T], empty: T) {
    copy.resize(capacity as usize, empty);
    copy[at..at + data.len()].copy_from_slice(data);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(page: usize, first: u32, capacity: u32) -> Region {
        Region {
            page,
            first,
            capacity,
        }
    }

    #[test]
    fn an_upload_is_cut_at_the_borders_of_regions() {
        let regions = [region(4, 1024, 1024), region(2, 0, 2048)];
        let data: Vec<u32> = (0..1500).collect();
        let parts: Vec<_> = split(&regions, 1000, &data)
            .map(|(region, at, part)| (region.page, at, part.len(), part[0]))
            .collect();
        assert_eq!(parts, [(4, 2024, 24, 0), (2, 0, 1476, 24)]);
        assert_eq!(split(&regions, 0, &[] as &[u32]).count(), 0);
    }

    #[test]
    fn pages_are_whole_blocks_within_the_binding() {
        let mut limits = wgpu::Limits {
            max_storage_buffer_binding_size: 128 << 20,
            ..Default::default()
        };
        assert_eq!(page_limit(&limits), Ok(1 << 23));
        limits.max_storage_buffer_binding_size = (1 << 31) - 4;
        limits.max_buffer_size = u64::MAX;
        assert_eq!(page_limit(&limits), Ok((1 << 27) - BLOCK));
        limits.max_storage_buffer_binding_size = u64::MAX;
        assert_eq!(page_limit(&limits), Ok(1 << 27));
        limits.max_storage_buffer_binding_size = 16383;
        assert!(matches!(
            page_limit(&limits),
            Err(CullError::BindingTooSmall {
                limit: 16383,
                needed: 16384
            })
        ));
    }
}
