//! Instances on their way to the GPU: changes in one frame, new sets in slices, so that no frame
//! waits for a large one.
//!
//! 1. `known`: what the GPU has of each set.
//! 2. `target`: the engine, on a device; `previous` and `written` are sets with further needs.
//! 3. `arrived`: what the main world is told.
//!
//! This file is long because all ways to catch up are in it: they share the frame's budget.

mod arrived;
mod known;
mod previous;
mod target;
mod written;

pub use arrived::InstanceUploadProgress;
pub(super) use arrived::{UploadInbox, receive_uploads};
pub(super) use known::{KnownSet, KnownSets, Reserved, UploadProblem};

use crate::{
    cull::{CullError, Culler, Gpu, Residency, RetryTimer, SMALL_SET, SetId, layout::BLOCK},
    instance::{InstanceSet, SetChanges},
};
use arrived::{Arrived, CompleteSet};
use bevy::{asset::RenderAssetUsages, prelude::*};
use core::ops::Range;
use known::{RefusedSet, SetOnGpu};
use previous::upload_with_previous;
use target::{UploadTarget, channels, instance_bytes};
use written::reserve_written;

/// The first frame with a new set uploads the budget divided by this; each next frame up to twice
/// as much as the one before. Staging memory must be allocated before it is filled, which takes
/// about as long.
const FIRST_SLICE: u64 = 4;

/// The uploads of one frame.
pub(super) struct Uploads<'a> {
    target: UploadTarget<'a>,
    /// Bytes of new sets that the frame may still upload.
    budget: u64,
    /// Bytes of new sets that a frame may upload if the ones before did.
    full_budget: u64,
    /// The last number that names a set of the engine.
    pub last_id: u64,
    /// Bytes of new sets that the frame uploads.
    pub streamed: u64,
    /// The number of the frame's extraction.
    frame: u64,
    /// Large sets that are not on the GPU.
    newcomers: Vec<AssetId<InstanceSet>>,
    /// Sets whose assets are others than what is drawn.
    outdated: Vec<OutdatedSet>,
    /// Sets that have not arrived completely.
    pending: Vec<PendingSet>,
    arrived: Arrived,
    /// Sets that are not drawn, and why, unless the log says so already.
    pub problems: Vec<(AssetId<InstanceSet>, UploadProblem)>,
}

/// A set that has not arrived completely.
struct PendingSet {
    asset: AssetId<InstanceSet>,
    /// Bytes that are still to be uploaded.
    bytes: u64,
    /// The number of the extraction that began to upload it.
    started_in: u64,
}

/// A set whose asset is another one than what is drawn.
struct OutdatedSet {
    asset: AssetId<InstanceSet>,
    /// The number of the extraction since which it is.
    since: u64,
}

/// The result of an upload.
enum Progress {
    /// The GPU has what it should have, or it is on its way.
    Made,
    /// A large new set, or one that replaces another, for which room is made when all sets are
    /// known.
    Waits,
}

impl<'a> Uploads<'a> {
    /// Uploads of a frame with a budget in bytes, after one that uploaded `streamed_before` bytes.
    pub fn new(
        culler: &'a mut Culler,
        gpu: Gpu<'a>,
        budget: u64,
        streamed_before: u64,
        frame: u64,
        last_id: u64,
    ) -> Self {
        Self {
            target: UploadTarget { culler, gpu },
            budget: budget.min((budget / FIRST_SLICE).max(streamed_before * 2)),
            full_budget: budget,
            last_id,
            streamed: 0,
            frame,
            newcomers: Vec::new(),
            outdated: Vec::new(),
            pending: Vec::new(),
            arrived: Arrived::default(),
            problems: Vec::new(),
        }
    }

    /// A set that is not on the GPU.
    pub fn new_set(&mut self) -> KnownSet {
        self.last_id += 1;
        KnownSet::new(SetId(self.last_id))
    }

    /// Removes what the GPU has of a set.
    fn remove(&mut self, known: &mut KnownSet) {
        for id in known.ids() {
            self.target.culler.store_mut().remove_set(id);
        }
        known.next = None;
        known.current.forget();
    }

    /// Uploads what changed of a set, and notes what is left to upload.
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

    /// Notes whether a set is refused.
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
        self.remove(known);
        let now = RefusedSet {
            lineage: set.lineage(),
            revision: set.revision(),
            retry: RetryTimer::start(self.frame),
        };
        // An edit of a set that stays refused is not logged again.
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
        if let Some(next) = known.next.take_if(|next| next.is_complete()) {
            let old = core::mem::replace(&mut known.current, next);
            self.target.culler.store_mut().remove_set(old.id);
            known.outdated_since = None;
        }
        if known.is_current() && known.current.lineage == set.lineage() {
            known.outdated_since = None;
        }
        if set.is_released() && known.newest().lineage == set.lineage() {
            // It was released in the frame in which it moved.
            let moved = core::mem::take(&mut known.current.moved);
            self.target.keep_previous(&known.current, moved)?;
        }
        if set.is_empty() && known.newest().lineage != set.lineage() {
            self.arrived.progress.push(InstanceUploadProgress {
                set: asset,
                uploaded: 0,
                total: 0,
            });
        }
        if set.keeps_previous() && !set.is_released() {
            let is_new = known.current.lineage != set.lineage();
            let streams = !known.is_current() || !known.current.is_complete();
            self.drop_next(known);
            upload_with_previous(&mut self.target, &mut known.current, set)?;
            if (is_new || streams) && !set.is_empty() {
                let all = set.len() as u32;
                self.arrived.progress.push(InstanceUploadProgress {
                    set: asset,
                    uploaded: all,
                    total: all,
                });
            }
        } else if known.newest().lineage != set.lineage() {
            let is_large = set.len() > SMALL_SET as usize && !set.is_released();
            self.drop_next(known);
            if known.current.arrived > 0 && !set.is_released() {
                let since = *known.outdated_since.get_or_insert(self.frame);
                self.outdated.push(OutdatedSet { asset, since });
                return Ok(Progress::Waits);
            }
            if is_large
                && self
                    .target
                    .culler
                    .store()
                    .set_len(known.current.id)
                    .is_none()
            {
                self.newcomers.push(asset);
                return Ok(Progress::Waits);
            } else {
                self.start(&mut known.current, set)?;
            }
        } else if known.newest().revision != set.revision() {
            if known.is_current() && self.starts_over(&known.current, set) {
                self.start_next(known, set)?;
            } else {
                self.change(known.newest(), set)?;
            }
        }
        self.note_rest(asset, known, set);
        Ok(Progress::Made)
    }

    /// Notes what is left to upload of a set, or that all of it has arrived.
    fn note_rest(&mut self, asset: AssetId<InstanceSet>, known: &mut KnownSet, set: &InstanceSet) {
        let newest = known.newest();
        if !newest.is_complete() {
            let left = (newest.len - newest.arrived) as u64;
            self.pending.push(PendingSet {
                asset,
                bytes: left * instance_bytes(set),
                started_in: newest.started_in,
            });
        } else if set.asset_usage == RenderAssetUsages::RENDER_WORLD
            // An empty set has nothing to release, and is to be filled.
            && !set.is_empty()
            && !set.is_released()
        {
            self.arrived.complete.push(CompleteSet {
                asset,
                lineage: newest.lineage,
                revision: newest.revision,
            });
        }
    }

    /// Replaces what is outdated: the oldest first, as far as the budget goes, so that each set has
    /// its turn if many are replaced in each frame. Of the others, the ones that no frame's budget
    /// holds begin to stream, and the oldest of the rest.
    fn replace_outdated(&mut self, known: &mut KnownSets, sets: &Assets<InstanceSet>) {
        let mut outdated = core::mem::take(&mut self.outdated);
        outdated.sort_by_key(|set| set.since);
        let mut has_started = false;
        for OutdatedSet { asset, .. } in outdated {
            let (Some(known), Some(set)) = (known.get_mut(&asset), sets.get(asset)) else {
                continue;
            };
            let bytes = set.len() as u64 * instance_bytes(set);
            let result = if bytes <= self.budget {
                known.outdated_since = None;
                self.start(&mut known.current, set)
                    .and_then(|()| self.replace_now(asset, &mut known.current, set))
            } else if bytes > self.full_budget || !has_started {
                has_started |= bytes <= self.full_budget;
                self.start_next(known, set)
            } else {
                continue;
            };
            if result.is_ok() {
                self.note_rest(asset, known, set);
            }
            self.note(asset, known, set, result);
        }
    }

    /// Uploads all of a set that fits into what is left of the frame's budget, so that no frame
    /// draws neither the set before nor this one.
    fn replace_now(
        &mut self,
        asset: AssetId<InstanceSet>,
        known: &mut SetOnGpu,
        set: &InstanceSet,
    ) -> Result<(), UploadProblem> {
        let bytes = set.len() as u64 * instance_bytes(set);
        self.budget = self.budget.saturating_sub(bytes);
        self.streamed += bytes;
        known.arrived = known.len;
        self.upload_slice(known, set, 0..known.len)?;
        self.arrived.progress.push(InstanceUploadProgress {
            set: asset,
            uploaded: known.len as u32,
            total: known.len as u32,
        });
        Ok(())
    }

    /// Whether what is drawn goes on being drawn until all of a set has arrived, because that takes
    /// more than this frame.
    fn replaces_later(&self, known: &SetOnGpu, set: &InstanceSet) -> bool {
        let bytes = set.len() as u64 * instance_bytes(set);
        let fits = bytes <= self.budget;
        known.arrived > 0 && !set.is_released() && !fits
    }

    /// Whether a change means that all instances are uploaded again, in more than a frame.
    fn starts_over(&self, known: &SetOnGpu, set: &InstanceSet) -> bool {
        let store = self.target.culler.store();
        let stays = || {
            store.keeps_place(known.id, set.len() as u32, channels(set))
                && set.changes_since(known.revision) != SetChanges::Everything
        };
        // Changes are looked up last: that takes time in a large set.
        known.is_complete() && self.replaces_later(known, set) && !stays()
    }

    /// Starts what takes the place of a set that is drawn. If there is no room for both, the old
    /// one goes at once.
    fn start_next(&mut self, known: &mut KnownSet, set: &InstanceSet) -> Result<(), UploadProblem> {
        let mut next = self.new_set().current;
        if self.start(&mut next, set).is_ok() {
            known.next = Some(next);
            return Ok(());
        }
        self.target.culler.store_mut().remove_set(next.id);
        self.start(&mut known.current, set)
    }

    /// Gives up what is on its way.
    fn drop_next(&mut self, known: &mut KnownSet) {
        if let Some(next) = known.next.take() {
            self.target.culler.store_mut().remove_set(next.id);
        }
    }

    /// Makes room for a set that the GPU writes. `is_unknown` if the app does not have its buffers.
    pub fn reserve_written(
        &mut self,
        asset: AssetId<InstanceSet>,
        known: &mut KnownSet,
        set: &InstanceSet,
        is_unknown: bool,
    ) -> Reserved {
        if known.is_refused(set, self.frame) {
            return Reserved::Refused;
        }
        self.drop_next(known);
        let is_new = known.current.lineage != set.lineage();
        let reserved = reserve_written(&mut self.target, &mut known.current, set, is_unknown);
        let (reserved, result) = match reserved {
            Ok(Some(regions)) => (Reserved::Moved(regions), Ok(())),
            Ok(None) => (Reserved::Kept, Ok(())),
            Err(error) => (Reserved::Refused, Err(error.into())),
        };
        if is_new && result.is_ok() {
            let all = set.len() as u32;
            self.arrived.progress.push(InstanceUploadProgress {
                set: asset,
                uploaded: all,
                total: all,
            });
        }
        self.note(asset, known, set, result);
        reserved
    }

    /// Makes room for a set that is not on the GPU.
    fn start(&mut self, known: &mut SetOnGpu, set: &InstanceSet) -> Result<(), UploadProblem> {
        if set.is_released() {
            return Err(UploadProblem::Dropped(set.len()));
        }
        self.target.reserve(known, set, set.len())?;
        known.lineage = set.lineage();
        known.revision = set.revision();
        known.arrived = 0;
        known.started_in = self.frame;
        known.len = set.len();
        self.target.show_arrived(known, set)?;
        Ok(())
    }

    /// Uploads all changes in this frame, so that no picture shows half of an edit.
    fn change(&mut self, known: &mut SetOnGpu, set: &InstanceSet) -> Result<(), CullError> {
        let mut changes = set.changes_since(known.revision);
        let was_complete = known.arrived == known.len;
        known.revision = set.revision();
        known.len = set.len();
        if set.is_released() {
            // Only a shorter length can have changed.
            known.arrived = known.arrived.min(known.len);
            return self.target.show_arrived(known, set);
        }
        let moved = self.target.reserve(known, set, known.len)? == Residency::Moved;
        if moved {
            changes = SetChanges::Everything;
        }
        known.arrived = match was_complete {
            true => known.len,
            false if moved => 0,
            false => known.arrived.min(known.len),
        };
        let all = 0..known.len;
        let one = core::slice::from_ref(&all);
        let (instances, scales, data) = match &changes {
            SetChanges::Nothing => (&[][..], &[][..], &[][..]),
            SetChanges::Everything => (one, one, one),
            SetChanges::Ranges(ranges) => {
                (&ranges.instances[..], &ranges.scales[..], &ranges.data[..])
            }
        };
        let end = known.arrived;
        let arrived =
            |range: &Range<usize>| (range.start < end).then(|| range.start..range.end.min(end));
        let [instances, scales, data] = [instances, scales, data]
            .map(|ranges| ranges.iter().filter_map(arrived).collect::<Vec<_>>());
        self.target.upload_instances(known, set, &instances)?;
        self.target.upload_scales(known, set, &scales)?;
        self.target.upload_data(known, set, &data)?;
        self.target.show_arrived(known, set)
    }

    /// Makes room for large sets; similar ones share pages. Allocating gigabytes takes as long as
    /// filling them: after one set that does not fit the pages that exist, other such sets wait for
    /// the next frame.
    fn make_room(&mut self, known: &mut KnownSets, sets: &Assets<InstanceSet>) {
        let newcomers = core::mem::take(&mut self.newcomers);
        let has_room = |culler: &Culler, set: &InstanceSet| {
            culler.store().has_room(set.len() as u32, channels(set))
        };
        let expected = newcomers.iter().filter_map(|asset| {
            let set = sets.get(*asset)?;
            // Sets that fit existing pages need no new one.
            if has_room(self.target.culler, set) {
                return None;
            }
            Some((
                known.get(asset)?.current.id,
                set.len() as u32,
                channels(set),
            ))
        });
        let expected: Vec<_> = expected.collect();
        self.target.culler.store_mut().expect_sets(expected);
        let mut has_made_room = false;
        for asset in newcomers {
            let (Some(known), Some(set)) = (known.get_mut(&asset), sets.get(asset)) else {
                continue;
            };
            if !has_room(self.target.culler, set) {
                if has_made_room {
                    continue;
                }
                has_made_room = true;
            }
            let result = self.start(&mut known.current, set);
            let is_started = result.is_ok();
            self.note(asset, known, set, result);
            if is_started {
                let bytes = known.current.len as u64 * instance_bytes(set);
                self.pending.push(PendingSet {
                    asset,
                    bytes,
                    started_in: self.frame,
                });
            }
        }
        // Sets still waiting are announced again next frame.
        self.target.culler.store_mut().expect_sets([]);
    }

    /// Uploads new sets, and the next slices of those that have not arrived, within the budget.
    ///
    /// Sets with few bytes left come first, but in every second frame what began earlier does, the
    /// oldest first: no flow of small or replaced sets keeps a large one from arriving.
    pub fn advance(&mut self, known: &mut KnownSets, sets: &Assets<InstanceSet>) {
        let mut first = Vec::new();
        if self.frame.is_multiple_of(2) {
            let frame = self.frame;
            first = self
                .pending
                .extract_if(.., |set| set.started_in < frame)
                .collect();
            first.sort_by_key(|set| set.started_in);
        }
        let mut is_first = true;
        self.stream(first, known, sets, &mut is_first);
        self.replace_outdated(known, sets);
        if !self.newcomers.is_empty() {
            self.make_room(known, sets);
        }
        let mut rest = core::mem::take(&mut self.pending);
        rest.sort_by_key(|set| set.bytes);
        self.stream(rest, known, sets, &mut is_first);
    }

    /// Uploads the next slices of these sets. The first of a frame gets at least one block.
    fn stream(
        &mut self,
        pending: Vec<PendingSet>,
        known: &mut KnownSets,
        sets: &Assets<InstanceSet>,
        is_first: &mut bool,
    ) {
        for PendingSet { asset, .. } in pending {
            let (Some(all), Some(set)) = (known.get_mut(&asset), sets.get(asset)) else {
                continue;
            };
            let known = all.newest();
            let bytes = instance_bytes(set);
            // Whole blocks; at least one per frame, whatever the budget.
            let min = u64::from(core::mem::take(is_first));
            let blocks = (self.budget / bytes / u64::from(BLOCK)).max(min);
            let room = (blocks * u64::from(BLOCK)).min(usize::MAX as u64) as usize;
            let end = known.arrived.saturating_add(room).min(known.len);
            if end == known.arrived {
                continue;
            }
            let slice_bytes = (end - known.arrived) as u64 * bytes;
            self.budget = self.budget.saturating_sub(slice_bytes);
            self.streamed += slice_bytes;
            let slice = known.arrived..end;
            known.arrived = end;
            let total = known.len as u32;
            let result = self.upload_slice(known, set, slice);
            let has_arrived = result.is_ok();
            self.note(asset, all, set, result.map_err(UploadProblem::from));
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
        known: &SetOnGpu,
        set: &InstanceSet,
        slice: Range<usize>,
    ) -> Result<(), CullError> {
        let target = &mut self.target;
        target.show_arrived(known, set)?;
        let slice = core::slice::from_ref(&slice);
        target.upload_instances(known, set, slice)?;
        target.upload_scales(known, set, slice)?;
        target.upload_data(known, set, slice)
    }

    /// Tells the main world what has arrived.
    pub fn send(self, inbox: &UploadInbox) {
        inbox.send(self.arrived);
    }
}
