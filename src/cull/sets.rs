//! Sets on the GPU: their room in the pages, and uploads.

use crate::{
    cull::{
        CullError, Culler, CullingTier,
        layout::{BLOCK, BoundJob},
        pages::{Channels, Region, Room, SetId},
        residents::{ResidentSets, Set},
    },
    instance::PackedInstance,
};
use hashbrown::HashMap;
use wgpu::{Device, Queue};
/// What [`Culler::reserve_set`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residency {
    /// The set's instances are where they were.
    Kept,
    /// The set has new room: upload all of it.
    Moved,
}

impl Culler {
    /// Room for a set of `len` instances. A set that outgrows its room gets half as much again, so that pushing
    /// to it every frame does not move it every frame.
    ///
    /// # Errors
    /// [`CullError::Gpu`], when the device has no room. The set is then not resident.
    pub fn reserve_set(
        &mut self,
        device: &Device,
        id: SetId,
        len: u32,
        channels: Channels,
    ) -> Result<Residency, CullError> {
        let room = Room::of(channels);
        let old = self.sets.get(id);
        // A set that the GPU writes has room of its own, which is not that.
        let known = old.filter(|old| old.room == room).map(Set::capacity);
        let residency = if known.is_some_and(|capacity| capacity >= len) {
            Residency::Kept
        } else {
            let instances = if known.is_some_and(|capacity| capacity > 0) {
                Set::grown(len)
            } else {
                len
            };
            let old = if channels.previous {
                // Its data is where the instances were.
                self.written.remove(&id);
                self.sets.remove(id)
            } else {
                self.remove_set(id);
                None
            };
            let made = self.pages.allocate(device, (id, instances), room, channels);
            // With the channels, before anything is copied there.
            let made = made.and_then(|regions| {
                let added = self.pages.add_channels(device, &regions, channels);
                added
                    .inspect_err(|_| self.pages.release(&regions, room))
                    .map(|()| regions)
            });
            let regions = match made {
                Ok(regions) => regions,
                Err(error) => {
                    if let Some(old) = old {
                        self.pages.release(&old.regions, old.room);
                    }
                    return Err(error);
                }
            };
            let set = Set::new(len, channels, (regions, room));
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

    /// Sets of more than [`SMALL_SET`](crate::cull::SMALL_SET) instances that will get room next, in this order: those with
    /// the same channels lie side by side, in one page as far as one binding holds them, and a stage is one dispatch for
    /// all. What was expected before is forgotten.
    ///
    /// A page that several sets share is given back with the last of them; until then, sets with the same channels may take the room
    /// of those that are gone.
    pub fn expect_sets(&mut self, sets: impl IntoIterator<Item = (SetId, u32, Channels)>) {
        self.pages.expect_sets(sets);
    }

    /// Whether [`Self::reserve_set`] finds room for such a set where there is memory already.
    #[must_use]
    pub fn has_room(&self, len: u32, channels: Channels) -> bool {
        self.pages.has_room(len, channels)
    }

    /// Takes the sets of another culler over, where they lie on the GPU. False, and nothing is taken, when one of the two culls on
    /// the CPU, which has a copy of its own.
    pub fn adopt_sets(&mut self, other: &mut Self) -> bool {
        let on_cpu = |culler: &Self| culler.tier == CullingTier::Cpu;
        if on_cpu(self) || on_cpu(other) || self.page_limit != other.page_limit {
            return false;
        }
        let generation = self.pages.generation.max(other.pages.generation) + 1;
        core::mem::swap(&mut self.pages, &mut other.pages);
        self.pages.generation = generation;
        self.sets = core::mem::take(&mut other.sets);
        self.written = core::mem::take(&mut other.written);
        self.stale = core::mem::take(&mut other.stale);
        self.previous = core::mem::take(&mut other.previous);
        true
    }

    /// The set's channels, if it is resident.
    #[must_use]
    pub fn set_channels(&self, id: SetId) -> Option<Channels> {
        self.sets.get(id).map(|set| set.channels)
    }

    /// Instances of the set, if it is resident.
    #[must_use]
    pub fn set_len(&self, id: SetId) -> Option<u32> {
        self.sets.get(id).map(|set| set.len)
    }

    /// Changes when a set comes, goes, or has another length, other channels or other regions.
    #[cfg(feature = "bevy")]
    pub(crate) fn sets_version(&self) -> u64 {
        self.sets.version()
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
            self.pages.release(&set.regions, set.room);
        }
    }

    /// Names of all resident sets.
    pub fn set_ids(&self) -> impl Iterator<Item = SetId> + '_ {
        self.sets.ids()
    }

    /// Writes instances from `first` on.
    ///
    /// # Errors
    /// [`CullError::UnknownSet`], [`CullError::UploadOutOfRange`].
    pub fn upload(
        &mut self,
        queue: &Queue,
        id: SetId,
        first: usize,
        data: &[PackedInstance],
    ) -> Result<(), CullError> {
        let set = checked(&self.sets, id, first, data.len())?;
        self.pages.prove(queue, &set.regions)?;
        self.pages.write_instances(queue, &set.regions, first, data);
        self.stale.push((id, first..first + data.len()));
        self.uploaded += size_of_val(data) as u64;
        Ok(())
    }

    /// Writes uniform scales from `first` on.
    ///
    /// # Errors
    /// As [`Self::upload`].
    pub fn upload_scales(
        &mut self,
        queue: &Queue,
        id: SetId,
        first: usize,
        data: &[f32],
    ) -> Result<(), CullError> {
        let set = checked(&self.sets, id, first, data.len())?;
        self.pages.prove(queue, &set.regions)?;
        self.pages.write_scales(queue, &set.regions, first, data);
        self.stale.push((id, first..first + data.len()));
        self.uploaded += size_of_val(data) as u64;
        Ok(())
    }

    /// Writes tags from `first` on.
    ///
    /// # Errors
    /// As [`Self::upload`].
    pub fn upload_tags(
        &mut self,
        queue: &Queue,
        id: SetId,
        first: usize,
        data: &[u32],
    ) -> Result<(), CullError> {
        let set = checked(&self.sets, id, first, data.len())?;
        self.pages.prove(queue, &set.regions)?;
        self.pages.write_tags(queue, &set.regions, first, data);
        self.uploaded += size_of_val(data) as u64;
        Ok(())
    }

    /// Makes the bounds of the blocks whose instances have changed since the last frame.
    pub(super) fn update_bounds(&mut self, device: &Device, queue: &Queue) {
        if self.stale.is_empty() {
            return;
        }
        let stale = core::mem::take(&mut self.stale);
        let mut is_refused = false;
        let Some(builder) = &self.bounds else { return };
        let mut jobs: HashMap<usize, Vec<BoundJob>> = HashMap::new();
        for (id, range) in stale.iter().cloned() {
            let Some(set) = self.sets.get(id) else {
                continue;
            };
            let mut before = 0;
            for region in &set.regions {
                let used = (set.len - before).min(region.capacity);
                let from = (range.start as u32).max(before);
                let to = (range.end as u32).min(before + used);
                if from < to {
                    let first_block = (region.first + from - before) / BLOCK;
                    jobs.entry(region.page).or_default().push(BoundJob {
                        first_block,
                        block_count: (region.first + to - before).div_ceil(BLOCK) - first_block,
                        end: region.first + used,
                        has_scale: u32::from(set.channels.scale),
                    });
                }
                before += used;
            }
        }
        for (page, jobs) in jobs {
            if let Some(page) = self.pages.page(page) {
                let scales = page.scales.as_ref().unwrap_or(&self.no_channel);
                let buffers = [&page.instances, scales, &page.bounds];
                let made = builder.run((device, queue), buffers, &jobs);
                is_refused |= made.is_err();
                self.refusals.note(made);
            }
        }
        if is_refused {
            // Without bounds, new blocks are never kept: again in the next frame.
            self.stale = stale;
        }
    }

    /// Bytes uploaded since the last call: instances, channels and tables.
    pub fn take_uploaded(&mut self) -> u64 {
        core::mem::take(&mut self.uploaded)
    }
}

pub(super) fn checked(
    sets: &ResidentSets,
    id: SetId,
    first: usize,
    len: usize,
) -> Result<&Set, CullError> {
    let set = sets.get(id).ok_or(CullError::UnknownSet(id.0))?;
    let end = first.saturating_add(len);
    if end > set.len as usize {
        return Err(CullError::UploadOutOfRange {
            first,
            end,
            len: set.len as usize,
        });
    }
    Ok(set)
}
