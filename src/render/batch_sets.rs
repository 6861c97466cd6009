//! Batch sets: entities whose draws differ in nothing but their commands. One multi-draw draws all
//! of them in a view.
//!
//! Entities are in one batch set if they have the same material, or bindless ones of one bind group
//! ([`material`]), and meshes in the same buffers with the same attributes. Bevy calls that a batch
//! set, too, and draws it with one multi-draw. Of the entities of a batch set that a view sees, one
//! is the *leader*: its item in Bevy's phase draws all, and the items of the others are
//! [withheld](super::withheld).
//!
//! ```text
//! entities       houses A    houses B    a moving set C    trees D (blended)
//! batch set      0           0           0                 none
//! draws          A, B, C     -           -                 D
//! ```
//!
//! The vertex stage finds the draw slot of an instance by its granule, 128 places of its page
//! ([`draw_slots`](super::draw_slots)). So a set that is drawn at several places keeps its own
//! draws, and so does what has several slots per region: sets that fade, are thinned out or
//! colored.

mod find;
mod material;

pub(super) mod member;
mod view;

use super::{
    draw_slots::DrawSlots,
    set_draws::{Drawn, SetDraws},
};
use crate::cull::{
    CullError, Culler, CullingTier, DrawList, Gpu, IndirectDraws, MultiDraws, OnDemand, RetryTimer,
    Version,
};
use bevy::{log::warn_once, prelude::*};
use find::Found;
use member::Member;
use view::BatchSetDraw;

/// The batch sets of the frame.
#[derive(Resource, Default)]
pub(super) struct BatchSets {
    found: Found,
    /// Empty before the first batch set.
    draws: OnDemand<MultiDraws>,
    /// Runs if the device refused them.
    retry: RetryTimer,
    /// Bytes uploaded since [`Self::take_uploaded`].
    uploaded: u64,
    /// What the batch sets were made from.
    made_from: Option<BatchSetInputs>,
    /// How often the batch sets were found, or given up.
    pub found_in: u64,
}

/// What the batch sets of a frame depend on.
struct BatchSetInputs {
    /// [`Culler::plan_version`].
    plan: Version,
    /// Which batches the device has, late ones, too. One that it refused may come back.
    batches: Vec<bool>,
    entities: Vec<EntityInputs>,
}

impl BatchSetInputs {
    /// The number of entities whose batch sets still hold, before others that are new; `None` if
    /// all must be found again.
    fn known(
        &self,
        draws: &SetDraws,
        plan: Version,
        batches: impl Iterator<Item = bool>,
    ) -> Option<usize> {
        let known = draws.drawn.get(..self.entities.len())?;
        let is_kept = draws.is_kept && draws.requests_made == 0;
        let all_stay = || {
            known
                .iter()
                .map(EntityInputs::from)
                .eq(self.entities.iter().copied())
        };
        let holds = self.plan == plan
            && self.batches.iter().copied().eq(batches)
            && (is_kept || all_stay());
        holds.then_some(known.len())
    }
}

/// What a batch set depends on of an entity.
#[derive(Clone, Copy, PartialEq, Eq)]
struct EntityInputs {
    member: Option<Member>,
    first_slot: u32,
}

impl EntityInputs {
    fn from(drawn: &Drawn) -> Self {
        Self {
            member: drawn.member,
            first_slot: drawn.first_slot,
        }
    }
}

impl BatchSets {
    /// Finds the batch sets of a frame that is planned, and gives `slots` their tables.
    pub fn prepare(
        &mut self,
        draws: &SetDraws,
        culler: &Culler,
        slots: &mut DrawSlots,
        gpu: Gpu<'_>,
    ) {
        let now = slots.frame;
        if self.retry.is_due(now) {
            self.retry.stop();
            self.made_from = None;
        }
        let plan = culler.plan_version();
        let batches = (0..culler.batch_count()).map(|batch| culler.batch_version(batch).is_some());
        self.found.let_go(&draws.went, draws);
        let known = self.made_from.as_ref();
        let known = known.and_then(|from| from.known(draws, plan, batches.clone()));
        if known != Some(draws.drawn.len()) {
            let grows = |first_new| {
                self.found.grow(first_new, draws, culler) && self.upload_wanted(slots, gpu, now)
            };
            if !known.is_some_and(grows) {
                self.find(draws, culler, slots, gpu);
            }
            let made_from = self.made_from.take();
            let mut entities = made_from.map_or(Vec::new(), |from| from.entities);
            entities.truncate(known.unwrap_or(0));
            let new = draws.drawn.iter().skip(entities.len());
            entities.extend(new.map(EntityInputs::from));
            self.made_from = Some(BatchSetInputs {
                plan,
                batches: batches.collect(),
                entities,
            });
        }
        if let Some(multi) = self.draws.get_mut()
            && !self.found.views.is_empty()
            && let Err(error) = multi.prepare(gpu.device, culler)
        {
            self.give_up(&error, now);
        }
    }

    /// Number of bytes uploaded since the last call.
    pub fn take_uploaded(&mut self) -> u64 {
        core::mem::take(&mut self.uploaded)
    }

    /// Bytes that multi-draws hold on the GPU.
    pub fn gpu_bytes(&self) -> u64 {
        match self.draws.get() {
            Some(draws) => draws.gpu_bytes(),
            None => 0,
        }
    }

    /// All entities draw themselves.
    pub fn clear(&mut self) {
        self.found = Found::default();
        self.found_in += 1;
        self.made_from = None;
    }

    fn give_up(&mut self, error: &CullError, now: u64) {
        self.retry = RetryTimer::start_after(Some(error), now);
        warn_once!(
            "sets are drawn one by one: {error}. The picture is the same, but each set has its own draw calls. Free GPU \
             memory: it is tried again"
        );
        self.found = Found::default();
        self.found_in += 1;
    }

    fn find(&mut self, draws: &SetDraws, culler: &Culler, slots: &mut DrawSlots, gpu: Gpu<'_>) {
        self.found_in += 1;
        self.found = match culler.tier() {
            CullingTier::Cpu => Found::default(),
            _ => Found::new(draws, culler),
        };
        self.upload_wanted(slots, gpu, slots.frame);
    }

    /// Uploads the tables and commands of what was found. Returns false if the device refused them:
    /// then there are no batch sets.
    fn upload_wanted(&mut self, slots: &mut DrawSlots, gpu: Gpu<'_>, now: u64) -> bool {
        slots.set_tables(&self.found.tables);
        if self.found.wanted.is_empty() {
            return true;
        }
        let make = || MultiDraws::new(gpu.device);
        let multi = self.draws.get_or_make(now, make);
        let planned = multi.and_then(|multi| multi.plan(gpu, &self.found.wanted));
        match planned {
            Ok(bytes) => self.uploaded += bytes,
            Err(error) => {
                self.give_up(&error, now);
                return false;
            }
        }
        true
    }

    /// What gathers the commands of the frame's multi-draws.
    pub fn multi_draws(&self) -> Option<&MultiDraws> {
        self.draws.get().filter(|_| !self.found.views.is_empty())
    }

    /// The batch set of an entity in a view. All are indices of the frame.
    pub fn set_of(&self, view: usize, drawn: usize) -> Option<u32> {
        self.found.views.get(view)?.of(drawn)
    }

    /// The members of a batch set in a view, as indices in [`SetDraws::drawn`].
    pub fn members(&self, view: usize, set: u32) -> &[usize] {
        let view = self.found.views.get(view);
        let members = view.and_then(|view| view.members.get(set as usize));
        members.map_or(&[], Vec::as_slice)
    }

    /// The draws of a list of a batch set of a view.
    pub fn draws(
        &self,
        view: usize,
        set: u32,
        list: DrawList,
    ) -> impl Iterator<Item = (&BatchSetDraw, IndirectDraws<'_>)> {
        let sets = self
            .found
            .views
            .get(view)
            .map_or(&[][..], |view| &view.sets);
        let lists = sets.get(set as usize);
        let draws = lists.into_iter().flat_map(move |lists| lists.of(list));
        draws.filter_map(|draw| Some((draw, self.draws.get()?.source(draw.batch, draw.draw)?)))
    }
}
