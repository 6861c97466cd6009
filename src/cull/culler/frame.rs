//! One frame, in order: prepare, record, submit, finish.
//!
//! ```text
//! let recorded = culler.prepare(gpu, &frame).record(gpu, &mut encoder);
//! queue.submit([encoder.finish()]);
//! culler.finish(recorded);
//! culler.take_counts(device)      a few frames later
//! ```
//!
//! The types keep the order: only [`Culler::prepare`] and [`Culler::prepared`] give a [`Frame`],
//! only a `Frame` records, and [`Culler::finish`] takes what the recording returned. A frame is
//! recorded once.

use super::Culler;
use crate::cull::{
    CullFrame, OcclusionView, Stage,
    gpu::Gpu,
    run::{Inputs, inputs::SharedInputs},
};
use std::borrow::Cow;
use wgpu::{CommandEncoder, ComputePass, ComputePassDescriptor, Device};

/// A frame that is prepared: it can be recorded once.
pub struct Frame<'a> {
    culler: &'a mut Culler,
}

/// What [`Frame::record`] recorded. [`Culler::finish`] takes it after the submission.
#[derive(Debug, Default)]
#[must_use = "pass it to `Culler::finish` after the submission, or no counters come back"]
pub struct RecordedPasses {
    /// Number of compute passes.
    pub passes: u32,
    /// Number of dispatches of the stages.
    pub dispatches: u32,
}

/// Makes the compute passes of a frame. A caller that times passes implements this.
pub trait PassRecorder {
    /// Records a compute pass named `label`; `record` fills it.
    fn pass(
        &mut self,
        encoder: &mut CommandEncoder,
        label: &'static str,
        record: &mut dyn FnMut(&mut ComputePass<'_>),
    );

    /// Whether each stage of a frame has a separate pass, which can be timed. Otherwise they share
    /// one, which costs less.
    fn separates_stages(&self) -> bool;
}

/// Compute passes without timestamps.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainPasses;

impl PassRecorder for PlainPasses {
    fn pass(
        &mut self,
        encoder: &mut CommandEncoder,
        label: &'static str,
        record: &mut dyn FnMut(&mut ComputePass<'_>),
    ) {
        record(&mut encoder.begin_compute_pass(&ComputePassDescriptor {
            label: Some(label),
            timestamp_writes: None,
        }));
    }

    fn separates_stages(&self) -> bool {
        false
    }
}

/// Work in passes right after the stages of a frame, on what they have written.
pub trait Follower {
    /// Whether the frame has work for it.
    fn has_work(&self) -> bool;

    /// Whether it needs the counters of each frame.
    fn needs_counts(&self) -> bool {
        false
    }

    /// Records its passes.
    fn record(
        &mut self,
        culler: &Culler,
        device: &Device,
        encoder: &mut CommandEncoder,
        passes: &mut dyn PassRecorder,
    );
}

impl Culler {
    /// Plans a frame, and uploads what changed of its tables; on the `Cpu` tier also tests it.
    /// Requests whose set is not resident are not drawn.
    pub fn prepare(&mut self, gpu: Gpu<'_>, frame: &CullFrame) -> Frame<'_> {
        self.prepare_hiding(gpu, frame, &[])
    }

    /// Same as [`Self::prepare`], but the views in `occlusion` skip instances that are hidden. The
    /// caller draws [`DrawList::Early`](crate::cull::DrawList) of such a view, then
    /// [records its late lists](Self::record_late), then draws those. On the `Cpu` tier, and
    /// with a fixed compaction other than [`Compaction::Classify`](crate::cull::Compaction) and
    /// [`Compaction::VoteScanCompact`](crate::cull::Compaction), nothing is hidden.
    pub fn prepare_hiding(
        &mut self,
        gpu: Gpu<'_>,
        frame: &CullFrame,
        occlusion: &[OcclusionView],
    ) -> Frame<'_> {
        let views = self.plan_hiding(gpu, frame, occlusion);
        self.store.end_uploads(gpu);
        let (planner, store) = (&self.planner, &self.store);
        (self.occluder).plan(gpu, frame, &views, planner, store, self.frame);
        self.prepare_tables(gpu);
        self.is_prepared = true;
        Frame { culler: self }
    }

    /// Plans the frame, and chooses its compaction. Returns the views in which instances may be
    /// hidden.
    fn plan_hiding<'a>(
        &mut self,
        gpu: Gpu<'_>,
        frame: &CullFrame,
        occlusion: &'a [OcclusionView],
    ) -> Cow<'a, [OcclusionView]> {
        self.frame.now += 1;
        let now = self.frame.now;
        let tested = frame.requests.iter();
        let tested = tested.filter(|request| request.is_tested());
        self.store.note_tested(tested.map(|request| request.set));
        self.store.keep_before_writes(gpu);
        self.learn(gpu.device);
        let mut occlusion = self.occluder.choose(gpu.device, occlusion, now);
        // The number of rows changes only with the plan.
        if frame.changed.is_none() || self.frame.changed_in + 1 >= now {
            self.row_count = row_count_of(frame);
        }
        let share = self.row_count > self.planner.own_planes() && self.can_fill_rows(gpu.device);
        self.planner.let_share(share);
        let sets = self.store.sets();
        self.planner.note_dropped_pages(self.store.dropped_pages());
        self.planner.start_frame();
        let mut is_new = self.planner.plan_frame(frame, &occlusion, sets);
        while let Err(others) =
            (self.occluder).make_room(gpu, &mut self.planner, frame, &occlusion, now)
        {
            occlusion = others.into();
            is_new |= self.planner.plan_frame(frame, &occlusion, sets);
        }
        if is_new {
            self.frame.changed_in = now;
        }
        let hides = self.planner.hides();
        let compaction = self.choice.pick(self.planner.plan(), hides, self.frame.now);
        if self.runner.choose(compaction) {
            self.frame.changed_in = now;
        }
        self.frame.mended_before = self.frame.mended_in;
        if self.frame.changed_in == now || self.planner.has_mended() {
            self.frame.mended_in = now;
        }
        occlusion
    }

    /// Prepares the tables and buffers of all batches of the frame.
    fn prepare_tables(&mut self, gpu: Gpu<'_>) {
        let now = self.frame.now;
        if self.runner.pipelines().is_some() {
            let own = || core::iter::once(self.planner.plan());
            let all = own().chain(self.occluder.plans());
            if let Err(error) = self.tables.start(gpu.device, all) {
                // Without late lists there may be room. If not, each batch is refused.
                self.occluder.refuse_late_lists(error, now);
                let _ = self.tables.start(gpu.device, own());
            }
        }
        let shared = match (self.filler.get(), &*self.planner.plan().views) {
            (Some(filler), views) if !views.is_empty() => {
                // Without room for views, no batch has any.
                let views = self.tables.push(views).ok();
                views.map(|views| SharedInputs { filler, views })
            }
            _ => None,
        };
        let inputs = Inputs {
            store: &self.store,
            history: self.occluder.history(),
            pyramid: None,
            shared,
        };
        let (planner, tables) = (&self.planner, &mut self.tables);
        self.runner
            .prepare(gpu, planner.planned(), tables, inputs, self.frame);
        self.far_first
            .prepare(gpu, now, planner, &self.runner, &self.store);
        self.occluder
            .prepare(gpu, tables, shared, &self.store, self.frame);
        tables.upload(gpu);
    }

    /// The frame that was prepared last, for a caller that prepares and records in different
    /// places. `None` if it was recorded already, or if no frame was prepared.
    pub fn prepared(&mut self) -> Option<Frame<'_>> {
        self.is_prepared.then_some(Frame { culler: self })
    }

    /// Whether the frame that was prepared last has stages for the GPU.
    #[must_use]
    pub fn has_gpu_work(&self) -> bool {
        self.runner.pipelines().is_some() && !self.planner.plan().batches.is_empty()
    }

    /// Whether the counters of the frame that was prepared last will be read back. Most frames of
    /// an unchanged plan do not read them back.
    #[must_use]
    pub fn wants_counts(&self) -> bool {
        self.runner.wants_counts(self.frame)
    }

    /// The stages of the frame that was prepared last, in order.
    pub fn stages(&self) -> impl Iterator<Item = Stage> + use<> {
        let far_first = self.far_first.has_work().then_some(Stage::FarFirst);
        let stages = self.compaction().stages_if(self.planner.hides());
        stages.chain(far_first)
    }

    /// Records one stage of all batches. A [`Frame`] records all of them in order; this is for
    /// benchmarks, which time each alone and repeat them. Returns the number of dispatches.
    pub fn record_stage(&self, stage: Stage, pass: &mut ComputePass<'_>) -> u32 {
        if stage == Stage::FarFirst {
            return self.far_first.record(pass);
        }
        let planned = self.planner.planned();
        let is_first = self.compaction().stages_if(false).next() == Some(stage);
        let filled = match is_first {
            true => self.runner.fill_rows(planned, pass),
            false => 0,
        };
        filled + self.runner.record_stage(planned, stage, pass)
    }

    /// Whether views can [hide](Self::prepare_hiding) instances on this tier and with this
    /// compaction.
    #[must_use]
    pub fn can_hide(&self) -> bool {
        self.occluder.can_hide()
    }

    /// Whether view `view` of the frame that was prepared last skips instances that are hidden. If
    /// so, its late lists must be recorded.
    #[must_use]
    pub fn hides(&self, view: u32) -> bool {
        self.occluder.hides(view)
    }

    /// Whether view `view` of the frame that was prepared last draws only what it saw
    /// ([`OcclusionView::is_frozen`]).
    #[must_use]
    pub fn is_frozen(&self, view: u32) -> bool {
        self.occluder.is_frozen(view)
    }

    /// Records the late lists of a view, after its early draws and before its late ones: a compute
    /// pass. Nothing if the view does not [hide](Self::hides).
    pub fn record_late(
        &mut self,
        gpu: Gpu<'_>,
        encoder: &mut CommandEncoder,
        view: u32,
        passes: &mut dyn PassRecorder,
    ) -> RecordedPasses {
        let mut recorded = RecordedPasses::default();
        if !self.hides(view) {
            return recorded;
        }
        passes.pass(encoder, Stage::Occlude.span(), &mut |pass| {
            recorded.dispatches += self.occluder.record(view, pass);
        });
        recorded.passes += 1;
        self.occluder
            .record_readback(gpu.device, encoder, view, self.frame);
        recorded
    }

    /// Ends a frame after its commands were submitted.
    pub fn finish(&mut self, _recorded: RecordedPasses) {
        self.runner.after_submit();
        self.occluder.after_submit();
    }
}

impl Frame<'_> {
    /// Records the whole frame: bounds of written sets, all stages, the copy of the counters.
    /// Nothing on the `Cpu` tier.
    pub fn record(self, gpu: Gpu<'_>, encoder: &mut CommandEncoder) -> RecordedPasses {
        self.record_all(gpu, encoder, &mut PlainPasses, &mut [], true)
    }

    /// Records the whole frame in passes of `passes`, with `followers` after the stages. The
    /// counters are copied only if [`Culler::wants_counts`], or a follower needs them: a copy costs
    /// as much as the recording of a stage.
    pub fn record_with(
        self,
        gpu: Gpu<'_>,
        encoder: &mut CommandEncoder,
        passes: &mut dyn PassRecorder,
        followers: &mut [&mut dyn Follower],
    ) -> RecordedPasses {
        let wants_counts = self.culler.wants_counts();
        self.record_all(gpu, encoder, passes, followers, wants_counts)
    }

    fn record_all(
        self,
        gpu: Gpu<'_>,
        encoder: &mut CommandEncoder,
        passes: &mut dyn PassRecorder,
        followers: &mut [&mut dyn Follower],
        mut wants_counts: bool,
    ) -> RecordedPasses {
        let culler = self.culler;
        culler.is_prepared = false;
        let mut recorded = RecordedPasses::default();
        let has_work = culler.has_gpu_work();
        if culler.store.has_written() {
            let reads_bounds = has_work && culler.runner.reads_bounds();
            culler.store.record_written(gpu, encoder, reads_bounds);
        }
        if !has_work {
            return recorded;
        }
        if passes.separates_stages() {
            for stage in culler.stages() {
                passes.pass(encoder, stage.span(), &mut |pass| {
                    recorded.dispatches += culler.record_stage(stage, pass);
                });
                recorded.passes += 1;
            }
        } else {
            passes.pass(encoder, "gpu_culling", &mut |pass| {
                let stages = culler.stages();
                recorded.dispatches += stages
                    .map(|stage| culler.record_stage(stage, pass))
                    .sum::<u32>();
            });
            recorded.passes += 1;
        }
        for follower in followers {
            if follower.has_work() {
                wants_counts |= follower.needs_counts();
                follower.record(culler, gpu.device, encoder, passes);
            }
        }
        if wants_counts {
            let Culler {
                runner,
                planner,
                frame,
                ..
            } = culler;
            runner.record_readback(gpu.device, encoder, planner.planned(), *frame);
        }
        recorded
    }
}

/// Number of rows of the frame, if each set lies in one region.
fn row_count_of(frame: &CullFrame) -> usize {
    let requests = frame.requests.iter();
    requests
        .map(|request| request.views.len() * request.level_count())
        .sum()
}
