//! Sets on the GPU: their room in the pages, and what is known about them.

mod belt;
pub(super) mod bounds;
mod fill;
#[cfg(feature = "testing")]
mod inspect;
mod pages;
mod previous;
pub(crate) mod region;
mod residents;
mod upload;
mod written;
mod written_bounds;
mod written_room;

pub use pages::SMALL_SET;
pub(super) use pages::{Page, page_limit};
pub(super) use residents::{ResidentSets, Set};
pub use written_room::{WrittenRegion, WrittenSize};

use crate::cull::{
    CullError, Refusal,
    gpu::{guard::guarded, version::Version},
    refusal::Refusals,
};
use bounds::BoundsBuilder;
use core::ops::Range;
use hashbrown::HashMap;
use pages::Pages;
use previous::PreviousCopies;
use region::{Channels, Region, RegionLayout, SetId};
use std::sync::Arc;
use wgpu::{Buffer, BufferDescriptor, BufferUsages, Device};
use written_room::WrittenRoom;

/// What [`InstanceStore::reserve_set`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residency {
    /// The set keeps its instances.
    Kept,
    /// The set has new room, and all of it must be uploaded.
    Moved,
}

/// The options of an [`InstanceStore`].
pub(super) struct StoreOptions {
    /// Whether pages keep a copy in main memory, which the `Cpu` tier tests.
    pub keeps_cpu_copy: bool,
    /// Number of instances per page.
    pub page_limit: u32,
    /// Kernels that compute the bounds of blocks; `None` on the `Cpu` tier.
    pub bounds: Option<Arc<BoundsBuilder>>,
}

/// Sets of instances on the GPU.
pub struct InstanceStore {
    is_on_cpu: bool,
    page_limit: u32,
    pages: Pages,
    sets: ResidentSets,
    /// The resident sets that the GPU writes.
    written: HashMap<SetId, WrittenRoom>,
    previous: PreviousCopies,
    bounds: Option<Arc<BoundsBuilder>>,
    /// Instances whose blocks have outdated bounds.
    stale: Vec<(SetId, Range<usize>)>,
    /// Bound in place of channels that a page does not have.
    no_channel: Buffer,
    uploaded: u64,
    work: StoreWork,
    refusals: Refusals,
}

/// What was done for the sets, in numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StoreWork {
    /// Writes of the queue.
    pub writes: u64,
    /// Dispatches that compute bounds of blocks.
    pub bound_jobs: u64,
}

/// The buffers of a page that kernels bind.
pub(crate) struct PageBuffers<'a> {
    pub instances: &'a Buffer,
    /// Another buffer, which is never read, if no set of the page has scales.
    pub scales: &'a Buffer,
    /// Another buffer, which is never read, if the compaction does not read bounds.
    pub bounds: &'a Buffer,
}

impl InstanceStore {
    pub(super) fn new(device: &Device, options: StoreOptions) -> Result<Self, CullError> {
        let no_channel = guarded(device, "gpu_culling no channel", || {
            device.create_buffer(&BufferDescriptor {
                label: Some("gpu_culling no channel"),
                size: 256,
                usage: BufferUsages::STORAGE,
                mapped_at_creation: false,
            })
        })?;
        let StoreOptions {
            keeps_cpu_copy,
            page_limit,
            bounds,
        } = options;
        Ok(Self {
            is_on_cpu: keeps_cpu_copy,
            page_limit,
            pages: Pages::new(device, page_limit, keeps_cpu_copy),
            sets: ResidentSets::default(),
            written: HashMap::new(),
            previous: PreviousCopies::default(),
            bounds,
            stale: Vec::new(),
            no_channel,
            uploaded: 0,
            work: StoreWork::default(),
            refusals: Refusals::default(),
        })
    }

    /// Drops every set. New pages hold at most `page_limit` instances.
    #[cfg(feature = "testing")]
    pub(super) fn clear(&mut self, page_limit: u32) {
        self.page_limit = page_limit;
        self.pages.clear(page_limit);
        self.sets = ResidentSets::default();
        self.written.clear();
    }

    /// Number of instances that one page holds.
    #[must_use]
    pub fn page_limit(&self) -> u32 {
        self.page_limit
    }

    // ---- room

    /// Makes room for a set of `len` instances. A set that outgrows its room gets room for half
    /// as many instances again, so a set that grows every frame does not move every frame.
    ///
    /// # Errors
    /// [`CullError::Gpu`] if the device is out of memory. The set is then not resident.
    pub fn reserve_set(
        &mut self,
        device: &Device,
        id: SetId,
        len: u32,
        channels: Channels,
    ) -> Result<Residency, CullError> {
        let layout = RegionLayout::of(channels);
        let old = self.sets.get(id);
        let known = old
            .filter(|old| old.can_have(layout, channels))
            .map(Set::capacity);
        let residency = if known.is_some_and(|capacity| capacity >= len) {
            Residency::Kept
        } else {
            let instances = if known.is_some_and(|capacity| capacity > 0) {
                Set::grown(len)
            } else {
                len
            };
            let old = if channels.previous {
                // The old room stays until its instances are copied: they are the previous ones.
                self.written.remove(&id);
                self.sets.remove(id)
            } else {
                self.remove_set(id);
                None
            };
            let made = self.pages.allocate(device, id, instances, layout, channels);
            // Create the channels first: something is copied to them below.
            let made = made.and_then(|regions| {
                let added = self.pages.add_channels(device, &regions, channels);
                added
                    .inspect_err(|_| self.pages.release(&regions, layout))
                    .map(|()| regions)
            });
            let regions = match made {
                Ok(regions) => regions,
                Err(error) => {
                    if let Some(old) = old {
                        self.pages.release(&old.regions, old.layout);
                    }
                    return Err(error);
                }
            };
            let set = Set::new(len, channels, regions, layout);
            if let Some(old) = old {
                self.previous.move_set(&self.pages, old, &set);
            }
            self.sets.insert(id, set);
            Residency::Moved
        };
        self.sets.resize(id, len, channels);
        if let Some(set) = self.sets.get(id)
            && let Err(error) = self.pages.add_channels(device, &set.regions, channels)
        {
            self.remove_set(id);
            return Err(error);
        }
        Ok(residency)
    }

    /// Whether a set of this size and with these channels stays at its place, and so need not be
    /// uploaded again.
    #[must_use]
    pub fn keeps_place(&self, id: SetId, len: u32, channels: Channels) -> bool {
        let layout = RegionLayout::of(channels);
        let set = self.sets.get(id);
        set.is_some_and(|set| set.can_have(layout, channels) && set.capacity() >= len)
    }

    /// Announces sets that will get room next, in this order. Sets with the same channels and more
    /// than [`SMALL_SET`](crate::cull::SMALL_SET) instances become contiguous, in one page as far
    /// as one binding holds them, so that a stage is one dispatch for all. The page that smaller
    /// ones share becomes as large as they need, up to a million places. The list replaces the
    /// previous one.
    ///
    /// A page that several sets share is given back with the last of them. Until then, sets with
    /// the same channels may take the room of removed ones.
    pub fn expect_sets(&mut self, sets: impl IntoIterator<Item = (SetId, u32, Channels)>) {
        self.pages.expect_sets(sets);
    }

    /// Whether a set of `len` instances fits into the pages that exist.
    #[must_use]
    pub fn has_room(&self, len: u32, channels: Channels) -> bool {
        self.pages.has_room(len, channels)
    }

    /// Takes over the sets of another store, without a copy. Returns false, and takes nothing, if
    /// only one of the two stores serves the `Cpu` tier, which has copies in main memory, or if
    /// their pages differ in size.
    pub fn adopt_sets(&mut self, other: &mut Self) -> bool {
        if self.is_on_cpu != other.is_on_cpu || self.page_limit != other.page_limit {
            return false;
        }
        core::mem::swap(&mut self.pages, &mut other.pages);
        self.pages.version = Version::new();
        self.sets = core::mem::take(&mut other.sets);
        self.written = core::mem::take(&mut other.written);
        self.stale = core::mem::take(&mut other.stale);
        self.previous = core::mem::take(&mut other.previous);
        true
    }

    /// The set's number of instances, if it is resident.
    #[must_use]
    pub fn set_len(&self, id: SetId) -> Option<u32> {
        self.sets.get(id).map(|set| set.len)
    }

    /// Changes whenever a set is added or removed, or gets another length, other channels or other
    /// regions.
    #[cfg(feature = "bevy")]
    pub(crate) fn sets_version(&self) -> Version {
        self.sets.version()
    }

    /// The sets that changed since an earlier version of the sets; `None` if there were too many
    /// changes.
    #[cfg(feature = "bevy")]
    pub(crate) fn sets_changed_since(
        &self,
        before: Version,
    ) -> Option<impl Iterator<Item = SetId> + '_> {
        self.sets.changed_since(before)
    }

    /// Changes whenever the set gets other channels or other regions; `None` if it is not resident.
    #[cfg(feature = "bevy")]
    pub(crate) fn placed(&self, id: SetId) -> Option<Version> {
        self.sets.get(id)?.placed()
    }

    /// The set's channels and its regions, in order, if it is resident.
    #[cfg(feature = "bevy")]
    pub(crate) fn resident(&self, id: SetId) -> Option<(Channels, &[Region])> {
        let set = self.sets.get(id)?;
        Some((set.channels, &set.regions))
    }

    /// The set's regions, in order.
    #[must_use]
    pub fn set_regions(&self, id: SetId) -> &[Region] {
        self.sets.get(id).map_or(&[], |set| &set.regions)
    }

    /// Gives the set's room back.
    pub fn remove_set(&mut self, id: SetId) {
        self.written.remove(&id);
        if let Some(set) = self.sets.remove(id) {
            self.pages.release(&set.regions, set.layout);
        }
    }

    /// Names of all resident sets.
    #[cfg(feature = "testing")]
    pub fn set_ids(&self) -> impl Iterator<Item = SetId> + '_ {
        self.sets.ids()
    }

    // ---- what others read

    /// All resident sets.
    pub(super) fn sets(&self) -> &ResidentSets {
        &self.sets
    }

    /// A page.
    pub(super) fn page(&self, page: usize) -> Option<&Page> {
        self.pages.page(page)
    }

    /// The buffers of a page that kernels bind.
    pub(super) fn page_buffers(&self, page: usize) -> Option<PageBuffers<'_>> {
        let page = self.pages.page(page)?;
        Some(PageBuffers {
            instances: &page.instances,
            scales: page.scales.as_ref().unwrap_or(&self.no_channel),
            bounds: &page.bounds,
        })
    }

    /// The buffers of a page that draws bind: instances, scales, data. If no set of the page has a
    /// channel, another buffer stands in for it, which is never read.
    pub(super) fn draw_buffers(&self, page: usize) -> Option<[&Buffer; 3]> {
        let page = self.pages.page(page)?;
        Some([
            &page.instances,
            page.scales.as_ref().unwrap_or(&self.no_channel),
            page.data.as_ref().unwrap_or(&self.no_channel),
        ])
    }

    /// Number of pages that were dropped.
    pub(super) fn dropped_pages(&self) -> u64 {
        self.pages.dropped
    }

    /// Changes whenever a buffer of a page is created or dropped.
    pub(super) fn pages_version(&self) -> Version {
        self.pages.version
    }

    /// Label and size in bytes of each buffer.
    pub(super) fn sizes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let others = [
            ("gpu_culling no channel", self.no_channel.size()),
            ("gpu_culling previous", self.previous.bytes()),
        ];
        self.pages.sizes().chain(others)
    }

    /// Bytes uploaded since the last call: instances and channels.
    pub(super) fn take_uploaded(&mut self) -> u64 {
        core::mem::take(&mut self.uploaded)
    }

    /// What was done since the last call.
    pub(super) fn take_work(&mut self) -> StoreWork {
        core::mem::take(&mut self.work)
    }

    /// What the device refused since the last call.
    pub(super) fn take_refusals(&mut self) -> Vec<Refusal> {
        self.refusals.take()
    }
}
