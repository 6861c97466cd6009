//! Instances on their way to the GPU: changes at once, new sets in slices, so that no frame waits for a large one.

mod arrived;
mod known;
mod previous;

pub use arrived::InstanceUploadProgress;
pub(super) use arrived::{UploadInbox, receive_uploads};
pub(super) use known::{KnownSet, KnownSets, Reserved, UploadProblem};

use crate::{
    cull::{
        Channels, CullError, Culler, Gpu, Residency, SMALL_SET, SetId, WrittenRegion, WrittenSize,
        layout::BLOCK,
    },
    instance::{InstanceSet, SetChanges},
};
use arrived::Arrived;
use bevy::{asset::RenderAssetUsages, prelude::*};
use core::ops::Range;
use known::RefusedSet;
use previous::upload_with_previous;

/// The first frame with something new brings the budget divided by this, the next up to twice as much, and so on: staging memory has
/// to be got before it can be filled, which takes about as long.
const FIRST_SLICE: u64 = 4;

/// The uploads of one frame.
pub(super) struct Uploads<'a> {
    pub culler: &'a mut Culler,
    pub device: &'a wgpu::Device,
    pub queue: &'a wgpu::Queue,
    /// Bytes of new sets that the frame may bring.
    budget: u64,
    /// Those that it brings.
    pub streamed: u64,
    frame: u64,
    /// Large sets that the GPU has nothing of.
    newcomers: Vec<AssetId<InstanceSet>>,
    /// Sets that have not arrived in whole: bytes to go, asset.
    pending: Vec<(u64, AssetId<InstanceSet>)>,
    arrived: Arrived,
    /// Sets that are not drawn, and why: news only.
    pub problems: Vec<(AssetId<InstanceSet>, UploadProblem)>,
}

/// The result of catching up.
enum Progress {
    /// What the GPU has is what it should have, or on its way.
    Made,
    /// A large set: it is tried when all sets are known.
    Waits,
}

impl<'a> Uploads<'a> {
    /// With a budget of bytes, in this frame, after one that brought `streamed_before` bytes.
    pub fn new(
        culler: &'a mut Culler,
        (device, queue): (&'a wgpu::Device, &'a wgpu::Queue),
        budget: u64,
        (streamed_before, frame): (u64, u64),
    ) -> Self {
        Self {
            culler,
            device,
            queue,
            budget: budget.min((budget / FIRST_SLICE).max(streamed_before * 2)),
            streamed: 0,
            frame,
            newcomers: Vec::new(),
            pending: Vec::new(),
            arrived: Arrived::default(),
            problems: Vec::new(),
        }
    }

    /// Uploads what has changed of what the GPU has of a set, and notes what is to come.
    pub fn catch_up(
        &mut self,
        asset: AssetId<InstanceSet>,
        known: &mut KnownSet,
        set: &InstanceSet,
    ) {
        if known.is_refused(set, self.frame) {
            return;
        }
        match self.try_to_catch_up(asset, known, set) {
            // It has not been tried yet.
            Ok(Progress::Waits) => {}
            Ok(Progress::Made) => self.note(asset, known, set, Ok(())),
            Err(problem) => self.note(asset, known, set, Err(problem)),
        }
    }

    /// Notes that a set is refused, or not any more.
    fn note(
        &mut self,
        asset: AssetId<InstanceSet>,
        known: &mut KnownSet,
        set: &InstanceSet,
        result: Result<(), UploadProblem>,
    ) {
        let Err(problem) = result else {
            known.refused = None;
            return;
        };
        self.culler.store_mut().remove_set(known.id);
        known.forget();
        let now = RefusedSet {
            lineage: set.lineage(),
            revision: set.revision(),
            frame: self.frame,
        };
        // An edit of a set that is refused anyway is no news.
        let before = known.refused.replace(now);
        if before.is_none_or(|before| before.lineage != now.lineage) {
            self.problems.push((asset, problem));
        }
    }

    fn try_to_catch_up(
        &mut self,
        asset: AssetId<InstanceSet>,
        known: &mut KnownSet,
        set: &InstanceSet,
    ) -> Result<Progress, UploadProblem> {
        if set.is_released() && known.lineage == set.lineage() {
            // It was released in the frame in which it moved.
            let moved = core::mem::take(&mut known.moved);
            self.culler.store_mut().keep_previous(
                Gpu::new(self.device, self.queue),
                known.id,
                moved,
            )?;
        }
        if set.keeps_previous() && !set.is_released() {
            // Its motion is that of whole frames.
            upload_with_previous(self.culler, Gpu::new(self.device, self.queue), known, set)?;
        } else if known.lineage != set.lineage() {
            let is_large = set.len() > SMALL_SET as usize && !set.is_released();
            if is_large && self.culler.store().set_len(known.id).is_none() {
                self.newcomers.push(asset);
                return Ok(Progress::Waits);
            }
            self.start(known, set)?;
        } else if known.revision != set.revision() {
            self.change(known, set)?;
        }
        if known.arrived < known.len {
            let left = (known.len - known.arrived) as u64;
            self.pending.push((left * instance_bytes(set), asset));
        } else if set.asset_usage == RenderAssetUsages::RENDER_WORLD && !set.is_released() {
            let complete = (asset, known.lineage, known.revision);
            self.arrived.complete.push(complete);
        }
        Ok(Progress::Made)
    }

    /// Room for what the GPU writes; the buffers, if they are not those of the last frame.
    pub fn reserve_written(
        &mut self,
        asset: AssetId<InstanceSet>,
        known: &mut KnownSet,
        set: &InstanceSet,
    ) -> Reserved {
        if known.is_refused(set, self.frame) {
            return Reserved::Refused;
        }
        let made = reserve_written(self.culler, Gpu::new(self.device, self.queue), known, set);
        let (reserved, result) = match made {
            Ok(Some(regions)) => (Reserved::Moved(regions), Ok(())),
            Ok(None) => (Reserved::Kept, Ok(())),
            Err(error) => (Reserved::Refused, Err(error.into())),
        };
        self.note(asset, known, set, result);
        reserved
    }

    /// Room for a set that the GPU has nothing of.
    fn start(&mut self, known: &mut KnownSet, set: &InstanceSet) -> Result<(), UploadProblem> {
        if set.is_released() {
            return Err(UploadProblem::Dropped(set.len()));
        }
        self.reserve(known, set, set.len())?;
        known.lineage = set.lineage();
        known.revision = set.revision();
        known.arrived = 0;
        known.len = set.len();
        self.show_arrived(known, set)?;
        Ok(())
    }

    /// Uploads the changes, whole and in this frame: no picture shows half of an edit.
    fn change(&mut self, known: &mut KnownSet, set: &InstanceSet) -> Result<(), CullError> {
        let mut changes = set.changes_since(known.revision);
        let was_whole = known.arrived == known.len;
        known.revision = set.revision();
        if set.is_released() {
            // Only a shorter length can have changed.
            known.len = set.len();
            known.arrived = known.arrived.min(known.len);
            self.show_arrived(known, set)?;
            return Ok(());
        }
        known.len = set.len();
        let moved = self.reserve(known, set, known.len)? == Residency::Moved;
        if moved {
            changes = SetChanges::Everything;
        }
        known.arrived = match was_whole {
            true => known.len,
            false if moved => 0,
            false => known.arrived.min(known.len),
        };
        let all = 0..known.len;
        let one = core::slice::from_ref(&all);
        let (instances, scales, tags) = match &changes {
            SetChanges::Nothing => (&[][..], &[][..], &[][..]),
            SetChanges::Everything => (one, one, one),
            SetChanges::Ranges(ranges) => {
                (&ranges.instances[..], &ranges.scales[..], &ranges.tags[..])
            }
        };
        let end = known.arrived;
        let within =
            |range: &Range<usize>| (range.start < end).then(|| range.start..range.end.min(end));
        for range in instances.iter().filter_map(within) {
            self.upload_instances(known.id, set, range)?;
        }
        for range in scales.iter().filter_map(within) {
            self.upload_scales(known.id, set, range)?;
        }
        for range in tags.iter().filter_map(within) {
            self.upload_tags(known.id, set, range)?;
        }
        self.show_arrived(known, set)
    }

    /// Room for large sets, for those that are alike side by side. To get gigabytes takes as long as to fill them: after one set
    /// that finds no room in the pages that are there, others like it wait for the next frame.
    fn make_room(&mut self, known: &mut KnownSets, sets: &Assets<InstanceSet>) {
        let newcomers = core::mem::take(&mut self.newcomers);
        let expected = newcomers.iter().filter_map(|asset| {
            let set = sets.get(*asset)?;
            // Who finds room already needs none in a new page.
            if self
                .culler
                .store()
                .has_room(set.len() as u32, channels(set))
            {
                return None;
            }
            Some((known.get(asset)?.id, set.len() as u32, channels(set)))
        });
        let expected: Vec<_> = expected.collect();
        self.culler.store_mut().expect_sets(expected);
        let mut has_made_room = false;
        for asset in newcomers {
            let (Some(known), Some(set)) = (known.get_mut(&asset), sets.get(asset)) else {
                continue;
            };
            if !self
                .culler
                .store()
                .has_room(set.len() as u32, channels(set))
            {
                if has_made_room {
                    continue;
                }
                has_made_room = true;
            }
            let result = self.start(known, set);
            let is_started = result.is_ok();
            self.note(asset, known, set, result);
            if is_started {
                let bytes = known.len as u64 * instance_bytes(set);
                self.pending.push((bytes, asset));
            }
        }
        // Who waits is expected anew in the next frame, if it is still there.
        self.culler.store_mut().expect_sets([]);
    }

    /// The next slices of the sets that have not arrived, within the budget.
    pub fn advance(&mut self, known: &mut KnownSets, sets: &Assets<InstanceSet>) {
        if !self.newcomers.is_empty() {
            self.make_room(known, sets);
        }
        let mut pending = core::mem::take(&mut self.pending);
        pending.sort_unstable_by_key(|(bytes, _)| *bytes);
        let mut left = self.budget;
        for (index, (_, asset)) in pending.into_iter().enumerate() {
            let (Some(known), Some(set)) = (known.get_mut(&asset), sets.get(asset)) else {
                continue;
            };
            let bytes = instance_bytes(set);
            // Whole blocks; at least one in a frame, whatever the budget.
            let blocks = (left / bytes / u64::from(BLOCK)).max(u64::from(index == 0));
            let room = (blocks * u64::from(BLOCK)).min(usize::MAX as u64) as usize;
            let end = known.arrived.saturating_add(room).min(known.len);
            if end == known.arrived {
                continue;
            }
            let slice_bytes = (end - known.arrived) as u64 * bytes;
            left = left.saturating_sub(slice_bytes);
            self.streamed += slice_bytes;
            let slice = known.arrived..end;
            known.arrived = end;
            let total = known.len as u32;
            let result = self.upload_slice(known, set, slice);
            let has_arrived = result.is_ok();
            self.note(asset, known, set, result.map_err(UploadProblem::from));
            if has_arrived {
                self.arrived.progress.push(InstanceUploadProgress {
                    set: asset,
                    uploaded: end as u32,
                    total,
                });
            }
        }
    }

    fn upload_slice(
        &mut self,
        known: &KnownSet,
        set: &InstanceSet,
        slice: Range<usize>,
    ) -> Result<(), CullError> {
        self.show_arrived(known, set)?;
        self.upload_instances(known.id, set, slice.clone())?;
        self.upload_scales(known.id, set, slice.clone())?;
        self.upload_tags(known.id, set, slice)
    }

    /// Tells the main world.
    pub fn send(self, inbox: &UploadInbox) {
        inbox.send(self.arrived);
    }

    fn reserve(
        &mut self,
        known: &KnownSet,
        set: &InstanceSet,
        len: usize,
    ) -> Result<Residency, CullError> {
        self.culler
            .store_mut()
            .reserve_set(self.device, known.id, len as u32, channels(set))
    }

    /// Culls and draws what has arrived. There is room for it, so nothing moves.
    fn show_arrived(&mut self, known: &KnownSet, set: &InstanceSet) -> Result<(), CullError> {
        if self.culler.store().set_len(known.id) != Some(known.arrived as u32) {
            self.reserve(known, set, known.arrived)?;
        }
        Ok(())
    }

    fn upload_instances(
        &mut self,
        id: SetId,
        set: &InstanceSet,
        range: Range<usize>,
    ) -> Result<(), CullError> {
        self.culler
            .store_mut()
            .upload(self.queue, id, range.start, &set.packed()[range])
    }

    fn upload_scales(
        &mut self,
        id: SetId,
        set: &InstanceSet,
        range: Range<usize>,
    ) -> Result<(), CullError> {
        let Some(scales) = set.scales() else {
            return Ok(());
        };
        self.culler
            .store_mut()
            .upload_scales(self.queue, id, range.start, &scales[range])
    }

    fn upload_tags(
        &mut self,
        id: SetId,
        set: &InstanceSet,
        range: Range<usize>,
    ) -> Result<(), CullError> {
        let Some(tags) = set.tags() else {
            return Ok(());
        };
        self.culler
            .store_mut()
            .upload_tags(self.queue, id, range.start, &tags[range])
    }
}

/// Room for what the GPU writes; the buffers, if they are not those of the last frame.
fn reserve_written(
    culler: &mut Culler,
    on: Gpu<'_>,
    known: &mut KnownSet,
    set: &InstanceSet,
) -> Result<Option<Vec<WrittenRegion>>, CullError> {
    let (Some(settings), Some(capacity)) = (set.written(), set.written_capacity()) else {
        return Ok(None);
    };
    let channels = Channels {
        scale: settings.scales,
        tag: settings.tags,
        previous: set.keeps_previous(),
    };
    if known.lineage != set.lineage() {
        // Another set in its place is hidden until it is written, even if it has the same shape.
        culler.store_mut().remove_set(known.id);
    }
    let residency = culler.store_mut().reserve_written(
        on,
        known.id,
        WrittenSize {
            capacity,
            active: set.len() as u32,
            channels,
            classify: settings.classify,
        },
    )?;
    known.forget();
    known.lineage = set.lineage();
    Ok((residency == Residency::Moved).then(|| culler.store().written_regions(known.id)))
}

/// The channels of a set that is uploaded.
fn channels(set: &InstanceSet) -> Channels {
    Channels {
        scale: set.has_scales(),
        tag: set.has_tags(),
        previous: set.keeps_previous(),
    }
}

/// Bytes of an instance with its channels.
fn instance_bytes(set: &InstanceSet) -> u64 {
    16 + 4 * u64::from(set.has_scales()) + 4 * u64::from(set.has_tags())
}
