//! The pages: buffers of instances, and which of their granules are free.

mod expected;
mod free;
mod tenants;
mod writes;

use super::{
    belt::UploadBelt,
    region::{Channels, Region, RegionLayout, SetId},
};
use crate::{
    cull::{
        CullError,
        gpu::{guard::guarded, limits::binding_limit, version::Version},
        layout::{BLOCK, Bound, GRANULE},
    },
    instance::PackedInstance,
};
use core::ops::Range;
use expected::ExpectedSets;
use free::FreeGranules;
use tenants::Tenants;
use wgpu::{Buffer, BufferDescriptor, BufferUsages, Device};

/// Sets of up to this many instances share pages with others that have the same layout of channels.
pub const SMALL_SET: u32 = 1 << 18;
/// Number of instances in the largest page that small sets share (16 MiB).
const SHARED_PAGE: u32 = 1 << 20;

/// A buffer of instances, and buffers of their optional channels.
pub(crate) struct Page {
    pub instances: Buffer,
    pub scales: Option<Buffer>,
    pub data: Option<Buffer>,
    /// One [`Bound`] per granule. The blocks of a region have the first ones of the region.
    pub bounds: Buffer,
    /// The copy in main memory that the `Cpu` tier tests.
    pub cpu: Option<PageCopy>,
    /// Whether the buffers are known to exist: a lost device creates none, and reports no error.
    is_proven: bool,
    tenants: Tenants,
    capacity: u32,
    free: FreeGranules,
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
    expected: ExpectedSets,
    /// Largest number of instances in one buffer: a multiple of [`BLOCK`].
    page_limit: u32,
    keep_cpu_copy: bool,
    pub belt: UploadBelt,
    /// Bumped whenever a buffer is created or dropped: older bind groups are stale then.
    pub version: Version,
    /// Number of pages that were dropped.
    pub dropped: u64,
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
            expected: ExpectedSets::default(),
            page_limit,
            keep_cpu_copy,
            belt: UploadBelt::new(device),
            version: Version::new(),
            dropped: 0,
        }
    }

    /// Drops every page. New pages hold at most `page_limit` instances.
    #[cfg(feature = "testing")]
    pub fn clear(&mut self, page_limit: u32) {
        self.slots.clear();
        self.expected = ExpectedSets::default();
        self.page_limit = page_limit;
        self.version.bump();
    }

    pub fn page(&self, index: usize) -> Option<&Page> {
        self.slots.get(index)?.as_ref()
    }

    /// Replaces the list of sets that get room next, in this order.
    pub fn expect_sets(&mut self, sets: impl IntoIterator<Item = (SetId, u32, Channels)>) {
        let sets = sets.into_iter().map(|(id, len, channels)| {
            let tenants = self.tenants(len, RegionLayout::of(channels), channels);
            (id, len, channels, tenants)
        });
        self.expected = ExpectedSets::new(sets, self.page_limit);
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
        layout: RegionLayout,
        channels: Channels,
    ) -> Result<Vec<Region>, CullError> {
        self.expected.remove(id);
        let mut regions = Vec::new();
        let max = self.max_together(layout);
        let tenants = self.tenants(len, layout, channels);
        let granule = tenants.granule();
        let mut left = len;
        while left > 0 {
            let take = left.min(max);
            let capacity = take.next_multiple_of(granule);
            let granules = capacity / granule * layout.factor();
            let found = self.with_room(tenants, granules).and_then(|page| {
                let first = self.slots[page].as_mut()?.free.take(granules)?;
                Some((page, first))
            });
            let made = match found {
                Some(found) => Ok(found),
                None => self.allocate_page(device, tenants, granules),
            };
            let (page, first_granule) = match made {
                Ok(made) => made,
                Err(error) => {
                    self.release(&regions, layout);
                    return Err(error);
                }
            };
            regions.push(Region {
                page,
                first: first_granule * granule,
                first_bound: first_granule,
                capacity,
            });
            left -= take;
        }
        Ok(regions)
    }

    /// Largest number of instances in one region.
    fn max_together(&self, layout: RegionLayout) -> u32 {
        (self.page_limit / BLOCK / layout.factor()).max(1) * BLOCK
    }

    /// The pages that a set of `len` instances may lie in.
    fn tenants(&self, len: u32, layout: RegionLayout, channels: Channels) -> Tenants {
        let places = u64::from(len) * u64::from(layout.factor());
        if layout.is_private {
            Tenants::One
        } else if len <= self.max_together(layout) && places <= u64::from(SMALL_SET) {
            Tenants::Small(channels.layout())
        } else {
            Tenants::Large(channels)
        }
    }

    /// Whether a set of `len` instances fits without another page.
    pub fn has_room(&self, len: u32, channels: Channels) -> bool {
        let layout = RegionLayout::of(channels);
        let tenants = self.tenants(len, layout, channels);
        let granules = len.div_ceil(tenants.granule()) * layout.factor();
        len <= self.max_together(layout) && self.with_room(tenants, granules).is_some()
    }

    /// The first page for `tenants` with this many contiguous free granules.
    fn with_room(&self, tenants: Tenants, granules: u32) -> Option<usize> {
        let has_room = |page: &Page| page.tenants == tenants && page.free.has(granules);
        let found = |slot: &Option<Page>| slot.as_ref().is_some_and(has_room);
        self.slots
            .iter()
            .position(found)
            .filter(|_| tenants != Tenants::One)
    }

    /// Creates a page whose first tenant takes some granules. Returns its index and the first
    /// granule.
    fn allocate_page(
        &mut self,
        device: &Device,
        tenants: Tenants,
        granules: u32,
    ) -> Result<(usize, u32), CullError> {
        let limit = self.page_limit / tenants.granule();
        let all = match tenants {
            Tenants::Small(_) => {
                let limit = limit.min(SHARED_PAGE / GRANULE);
                let mut all = self.expected.page_granules(granules, tenants, limit);
                if all == granules {
                    // Sets that come one after the other get few pages: this one is as large as all
                    // before it together.
                    let pages = self.slots.iter().flatten();
                    let alike = pages.filter(|page| page.tenants == tenants);
                    all = alike.map(|page| page.capacity / GRANULE).sum();
                }
                all.max(SMALL_SET / GRANULE).min(limit).max(granules)
            }
            Tenants::Large(_) => self.expected.page_granules(granules, tenants, limit),
            Tenants::One => granules,
        };
        let made = self.make_page(device, tenants, all, granules);
        let (page, first) = match made {
            // The page with all expected sets does not fit; this set alone may.
            Err(_) if all > granules => self.make_page(device, tenants, granules, granules)?,
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
        Ok((slot, first))
    }

    /// Creates a page of `all` granules, of which `taken` are taken. Returns it and its first taken
    /// granule.
    fn make_page(
        &self,
        device: &Device,
        tenants: Tenants,
        all: u32,
        taken: u32,
    ) -> Result<(Page, u32), CullError> {
        let capacity = all * tenants.granule();
        let mut free = FreeGranules::new(all);
        let first = free.take(taken).unwrap_or(0);
        let page = Page {
            instances: channel_buffer(
                device,
                "gpu_culling instances",
                capacity,
                size_of::<PackedInstance>(),
            )?,
            scales: None,
            data: None,
            bounds: channel_buffer(device, "gpu_culling bounds", all, size_of::<Bound>())?,
            cpu: self.keep_cpu_copy.then(PageCopy::default),
            is_proven: false,
            tenants,
            capacity,
            free,
        };
        Ok((page, first))
    }

    /// Frees regions, and drops pages that are no longer used.
    pub fn release(&mut self, regions: &[Region], layout: RegionLayout) {
        for region in regions {
            let Some(Some(page)) = self.slots.get_mut(region.page) else {
                continue;
            };
            let granule = page.tenants.granule();
            let first = region.first / granule;
            page.free
                .give(first..first + region.capacity / granule * layout.factor());
            if page.free.is_whole(page.capacity / granule) {
                self.slots[region.page] = None;
                self.version.bump();
                self.dropped += 1;
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
