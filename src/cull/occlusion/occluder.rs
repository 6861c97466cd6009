//! The late lists of all views: their batches, depth and passes.
//!
//! This file is long because each step of a frame goes through all views.

use super::{
    late::LatePlan,
    motion::{Motion, Motions},
    pyramid::{Pyramid, PyramidBuilder},
    rows::{KnownProjections, ViewHistory, projection_in},
};
use crate::cull::{
    Compaction, CullError, CullingTier, DrawPart, FrameCounts, Refusal, Stage,
    compaction::occlude,
    gpu::{
        Gpu,
        on_demand::{OnDemand, RetryTimer},
        version::Version,
    },
    layout::Projection,
    pipelines::{BuildOptions, Pipelines},
    plan::{Plan, planner::Planner},
    policy::KEEP_FRAMES,
    refusal::{Missing, Refusals},
    request::{CullFrame, DrawList, OcclusionView},
    run::{
        Inputs, Runner,
        frame_number::FrameNumber,
        history::{History, NoRoom},
        inputs::{PyramidBuffers, SharedInputs},
        tables::FrameTables,
    },
    shaders::Sources,
    store::InstanceStore,
};
use core::ops::Range;
use glam::Affine3A;
use hashbrown::HashMap;
use std::{borrow::Cow, sync::Arc};
use wgpu::{CommandEncoder, ComputePass, Device};

/// What occlusion depends on.
pub(in crate::cull) struct OccluderOptions {
    pub checks: bool,
    pub survivor_capacity: u32,
    pub compaction: Compaction,
}

/// Leaves out what views hide.
pub(in crate::cull) struct Occluder {
    tier: CullingTier,
    options: OccluderOptions,
    /// Empty before the first view that hides.
    kernels: OnDemand<Kernels>,
    past: ViewHistory,
    /// By [`OcclusionView::key`].
    views: HashMap<u64, LateView>,
    /// The views of the current frame that have late lists, in its order.
    current: Vec<OcclusionView>,
    /// Indices of the views of the current frame that draw what they saw.
    frozen: Vec<u32>,
    /// Runs if the device refused something.
    retry: RetryTimer,
    /// Views that had no room, by their keys.
    without_room: HashMap<u64, RetryTimer>,
    /// The counters that were taken last.
    counts: FrameCounts,
    refusals: Refusals,
}

struct Kernels {
    pipelines: Arc<Pipelines>,
    pyramid: PyramidBuilder,
}

impl Kernels {
    fn build(
        device: &Device,
        tier: CullingTier,
        checks: bool,
        edit: &dyn Fn(&str, String) -> String,
    ) -> Result<Self, CullError> {
        let options = BuildOptions {
            sources: Sources::new(tier),
            // The code that reads its counters expects lists of blocks.
            compaction: Compaction::Classify,
            strategy: occlude(),
            checks,
            edit,
        };
        Ok(Self {
            pipelines: Arc::new(Pipelines::build(device, &options)?),
            pyramid: PyramidBuilder::new(device, checks)?,
        })
    }
}

/// The late lists of one view.
struct LateView {
    plan: LatePlan,
    runner: Runner,
    pyramid: Pyramid,
    /// Number of batches before its own.
    first_batch: usize,
    /// Version of the frame's plan that `plan` follows.
    frame_plan: Version,
    last_used: u64,
    /// How it moved in its last frame.
    motion: Motion,
}

impl LateView {
    fn has_batch(&self, batch: usize) -> bool {
        let batches = self.first_batch..self.first_batch + self.plan.planned.keys.len();
        batches.contains(&batch)
    }
}

impl Occluder {
    pub fn new(tier: CullingTier, options: OccluderOptions) -> Self {
        Self {
            tier,
            options,
            kernels: OnDemand::default(),
            past: ViewHistory {
                records: History::new(),
                motions: Motions::new(),
            },
            views: HashMap::new(),
            current: Vec::new(),
            frozen: Vec::new(),
            retry: RetryTimer::default(),
            without_room: HashMap::new(),
            counts: FrameCounts::default(),
            refusals: Refusals::default(),
        }
    }

    /// Changes kernels: a test breaks them.
    #[cfg(feature = "testing")]
    pub fn edit_kernels(
        &mut self,
        device: &Device,
        edit: &dyn Fn(&str, String) -> String,
    ) -> Result<(), CullError> {
        if Pipelines::are_edited(occlude(), &Sources::new(self.tier), edit) {
            self.kernels
                .set(Kernels::build(device, self.tier, true, edit)?);
        }
        Ok(())
    }

    pub fn history(&self) -> &History {
        &self.past.records
    }

    /// Whether tier and compaction can leave out what is hidden.
    pub fn can_hide(&self) -> bool {
        match self.options.compaction {
            Compaction::Auto | Compaction::Classify | Compaction::VoteScanCompact => {
                self.tier != CullingTier::Cpu
            }
            _ => false,
        }
    }

    // ---- prepare

    /// The views in which instances may be hidden in this frame: none if the tier, the compaction
    /// or the device cannot, and no view that had no room a short time ago.
    pub fn choose<'a>(
        &mut self,
        device: &Device,
        views: &'a [OcclusionView],
        now: u64,
    ) -> Cow<'a, [OcclusionView]> {
        if views.is_empty() || !self.can_hide() || self.retry.waits(now) {
            return Cow::default();
        }
        let build = || Kernels::build(device, self.tier, self.options.checks, &|_, source| source);
        match self.kernels.get_or_make(now, build) {
            Ok(_) => {
                self.without_room.retain(|_, retry| retry.waits(now));
                match self.without_room.is_empty() {
                    true => views.into(),
                    false => self.with_room(views).into(),
                }
            }
            Err(error) => {
                self.refusals.note(error, Missing::Occlusion);
                Cow::default()
            }
        }
    }

    /// The views that have room for their records.
    fn with_room(&self, views: &[OcclusionView]) -> Vec<OcclusionView> {
        let has_room = |view: &&OcclusionView| !self.without_room.contains_key(&view.key);
        views.iter().filter(has_room).cloned().collect()
    }

    /// Gives each row of the frame's plan its record in the history.
    ///
    /// # Errors
    /// The views that have room. The others hide nothing for some frames: plan the frame again.
    pub fn make_room(
        &mut self,
        gpu: Gpu<'_>,
        planner: &mut Planner,
        frame: &CullFrame,
        views: &[OcclusionView],
        now: u64,
    ) -> Result<(), Vec<OcclusionView>> {
        let past = &mut self.past;
        past.records.sweep(now);
        let (rows, plan) = planner.occluded_rows_mut();
        if rows.is_empty() {
            return Ok(());
        }
        past.motions.clear();
        for view in views {
            let known = self.views.get(&view.key);
            let motion = Motion::new(&view.clip_from_world, known.map(|known| &known.motion));
            past.motions.insert(view.key, motion);
        }
        let known = KnownProjections::default();
        if rows.stay(views, past) && past.records.keep_used(now) {
            rows.project(plan, views, known);
            return Ok(());
        }
        rows.use_slots(plan, &mut past.records, now);
        if let Err(NoRoom { views: last, error }) = past.records.reserve(gpu, now) {
            if last.is_empty() {
                self.refuse(error, now);
                return Err(Vec::new());
            }
            self.refusals.push(error, Missing::Occlusion);
            let retry = RetryTimer::start(now);
            (self.without_room).extend(last.into_iter().map(|view| (view, retry)));
            return Err(self.with_room(views));
        }
        rows.update(plan, frame, views, past, known, now);
        Ok(())
    }

    fn refuse(&mut self, error: CullError, now: u64) {
        self.retry = RetryTimer::start(now);
        self.refusals.push(error, Missing::Occlusion);
    }

    /// Plans the late lists of the frame's views, and prepares their depth. `planner` has planned
    /// the frame.
    pub fn plan(
        &mut self,
        gpu: Gpu<'_>,
        frame: &CullFrame,
        views: &[OcclusionView],
        planner: &Planner,
        store: &InstanceStore,
        number: FrameNumber,
    ) {
        let is_late = |view: &&OcclusionView| !view.is_frozen;
        replace_all(&mut self.current, views.iter().filter(is_late));
        self.frozen.clear();
        let frozen = views.iter().filter(|view| view.is_frozen);
        self.frozen.extend(frozen.map(|view| view.view));
        if self.views.len() > views.len() {
            self.views
                .retain(|_, view| view.last_used + KEEP_FRAMES >= number.now);
        }
        let Some(kernels) = self.kernels.get() else {
            return;
        };
        let mut first_batch = planner.keys().len();
        for (index, view) in views.iter().enumerate().filter(|(_, view)| is_late(view)) {
            let late = match self.views.entry(view.key) {
                hashbrown::hash_map::Entry::Occupied(known) => known.into_mut(),
                hashbrown::hash_map::Entry::Vacant(place) => {
                    let pyramid = match Pyramid::new(gpu) {
                        Ok(pyramid) => pyramid,
                        Err(error) => {
                            self.retry = RetryTimer::start(number.now);
                            self.refusals.push(error, Missing::Occlusion);
                            continue;
                        }
                    };
                    let pipelines = vec![kernels.pipelines.clone()];
                    place.insert(LateView {
                        plan: LatePlan::default(),
                        runner: Runner::new(gpu.device, pipelines, self.options.survivor_capacity),
                        pyramid,
                        first_batch: 0,
                        frame_plan: Version::new(),
                        last_used: 0,
                        motion: Motion::default(),
                    })
                }
            };
            let frame_plan = planner.version();
            if (late.frame_plan, late.first_batch) != (frame_plan, first_batch)
                || late.last_used + 1 != number.now
            {
                let (plan, sets, limits) = (planner.plan(), store.sets(), planner.limits());
                late.plan = LatePlan::build(frame, plan, index, view, sets, limits, first_batch);
                (late.frame_plan, late.first_batch) = (frame_plan, first_batch);
            } else {
                late.plan.start_mends();
                late.plan.mend(frame, store.sets(), planner.moved());
            }
            first_batch += late.plan.planned.keys.len();
            late.last_used = number.now;
            let (rows, plan) = planner.occluded_rows();
            let known = rows.projections(plan).starting_at(index);
            (late.plan).update(frame, plan, views, &self.past, known, number.now);
            if let Some(motion) = self.past.motions.get(&view.key) {
                late.motion = *motion;
            }
            late.runner.learn(gpu.device, number.now);
            if late.plan.planned.keys.is_empty() {
                // The view may get another depth buffer before it sees a set.
                late.pyramid.forget_depth();
            } else {
                let depth = &view.depth;
                let builder = &kernels.pyramid;
                let pyramid = &mut late.pyramid;
                let (texture, first, size) = (&depth.texture, depth.origin, depth.size);
                let made = pyramid.prepare(gpu, builder, texture, first, size);
                self.refusals.note_error(made, Missing::Occlusion);
            }
        }
    }

    /// Leaves out the late lists of this frame, and hides nothing in the next ones.
    pub fn refuse_late_lists(&mut self, error: CullError, now: u64) {
        if !self.current.is_empty() {
            self.current.clear();
            self.refuse(error, now);
        }
    }

    /// The plans of all late lists.
    pub fn plans(&self) -> impl Iterator<Item = &Plan> {
        let views = self.current.iter();
        let views = views.filter_map(|view| self.views.get(&view.key));
        views.map(|late| &late.plan.planned.plan)
    }

    /// Prepares the batches of all late lists, whose rows it adds to the frame's tables.
    pub fn prepare(
        &mut self,
        gpu: Gpu<'_>,
        tables: &mut FrameTables,
        shared: Option<SharedInputs<'_>>,
        store: &InstanceStore,
        number: FrameNumber,
    ) {
        for view in &self.current {
            let Some(late) = self.views.get_mut(&view.key) else {
                continue;
            };
            // The rows of late lists share the views of the frame's.
            let inputs = Inputs {
                store,
                history: &self.past.records,
                pyramid: Some(late.pyramid.buffers()),
                shared,
            };
            let planned = &late.plan.planned;
            late.runner.prepare(gpu, planned, tables, inputs, number);
            let mut keys = planned.keys.iter();
            if keys.any(|key| late.runner.batch(key).is_none()) {
                // What was not drawn early would be missing for long.
                self.retry = RetryTimer::start(number.now);
            }
        }
    }

    // ---- record

    /// Whether instances may be hidden in view `view` of the frame.
    pub fn hides(&self, view: u32) -> bool {
        self.late_view(view).is_some()
    }

    /// Whether view `view` of the frame draws what it saw.
    pub fn is_frozen(&self, view: u32) -> bool {
        self.frozen.contains(&view)
    }

    fn late_view(&self, view: u32) -> Option<&LateView> {
        let found = self.current.iter().find(|known| known.view == view)?;
        let late = self.views.get(&found.key)?;
        (!late.plan.planned.keys.is_empty()).then_some(late)
    }

    /// Records the late lists of a view into one pass. Returns the number of dispatches.
    pub fn record(&self, view: u32, pass: &mut ComputePass<'_>) -> u32 {
        let (Some(late), Some(kernels)) = (self.late_view(view), self.kernels.get()) else {
            return 0;
        };
        let planned = &late.plan.planned;
        late.pyramid.record(&kernels.pyramid, pass);
        let filled = late.runner.fill_rows(planned, pass);
        filled + late.runner.record_stage(planned, Stage::Occlude, pass)
    }

    /// Records the copy of a view's counters.
    pub fn record_readback(
        &mut self,
        device: &Device,
        encoder: &mut CommandEncoder,
        view: u32,
        number: FrameNumber,
    ) {
        let Some(found) = self.current.iter().find(|known| known.view == view) else {
            return;
        };
        if let Some(late) = self.views.get_mut(&found.key)
            && late.runner.wants_counts(number)
        {
            late.runner
                .record_readback(device, encoder, &late.plan.planned, number);
        }
    }

    /// Maps the counters whose copies were submitted.
    pub fn after_submit(&mut self) {
        for late in self.views.values_mut() {
            late.runner.after_submit();
        }
    }

    // ---- results

    /// The draws of a request's list in a view; `None` if its instances are not hidden there.
    pub fn parts(&self, request: usize, view: u32, list: DrawList) -> Option<&[DrawPart]> {
        self.late_view(view)?.plan.parts(request, list)
    }

    /// The runner of batch `batch`, counted with the frame's own batches before it, its name and
    /// its index in the runner's plan.
    pub fn batch(&self, batch: usize) -> Option<(&Runner, &LatePlan, usize)> {
        let late = self.view_with(batch)?;
        Some((&late.runner, &late.plan, batch - late.first_batch))
    }

    /// The depth that batch `batch` is compared with, counted as in [`Self::batch`].
    pub fn pyramid_of(&self, batch: usize) -> Option<PyramidBuffers<'_>> {
        self.view_with(batch).map(|late| late.pyramid.buffers())
    }

    fn view_with(&self, batch: usize) -> Option<&LateView> {
        let views = self.current.iter();
        let mut views = views.filter_map(|view| self.views.get(&view.key));
        views.find(|late| late.has_batch(batch))
    }

    /// How view `view` of the frame sees a set, if its instances may be hidden there.
    pub fn projection_of(&self, view: u32, world_from_local: &Affine3A) -> Option<Projection> {
        let view = self.current.iter().find(|known| known.view == view)?;
        Some(projection_in(view, world_from_local))
    }

    /// The batches of view `view` of the frame, counted as in [`Self::batch`].
    pub fn batches_of(&self, view: u32) -> Range<usize> {
        let late = self.late_view(view);
        late.map_or(0..0, |late| {
            late.first_batch..late.first_batch + late.plan.planned.keys.len()
        })
    }

    /// Number of batches of all views.
    pub fn batch_count(&self) -> usize {
        let views = self.current.iter();
        let views = views.filter_map(|view| self.views.get(&view.key));
        views.map(|late| late.plan.planned.keys.len()).sum()
    }

    /// Gives `take` the newest counters of each view since the last call.
    pub fn take_counts(
        &mut self,
        device: &Device,
        now: u64,
        mut take: impl FnMut(&mut FrameCounts),
    ) {
        for late in self.views.values_mut() {
            late.runner.learn(device, now);
            if late.runner.swap_counts(&mut self.counts) {
                take(&mut self.counts);
            }
        }
    }

    pub fn take_refusals(&mut self) -> Vec<Refusal> {
        let mut refusals = self.refusals.take();
        for late in self.views.values_mut() {
            refusals.append(&mut late.runner.take_refusals());
        }
        refusals
    }

    pub fn take_uploaded(&mut self) -> u64 {
        let views = self.views.values_mut();
        views.map(|late| late.runner.take_uploaded()).sum()
    }

    /// Label and size in bytes of each buffer.
    pub fn sizes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let views = self.views.values();
        let late = views.flat_map(|late| late.runner.sizes().chain(late.pyramid.sizes()));
        self.past.records.sizes().chain(late)
    }
}

/// Replaces a list of views. They keep the memory of their lists.
fn replace_all<'a>(
    views: &mut Vec<OcclusionView>,
    now: impl Iterator<Item = &'a OcclusionView> + Clone,
) {
    views.truncate(now.clone().count());
    for (at, view) in now.enumerate() {
        match views.get_mut(at) {
            Some(known) => known.clone_from(view),
            None => views.push(view.clone()),
        }
    }
}
