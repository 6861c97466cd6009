//! Views that rows share. The rows of a large plan are filled on the GPU, from what each has of its
//! own, from its chunk, and from its view. So a view that moves changes one entry, however many
//! sets it sees, and a set that moves changes its chunks.

use super::{Plan, bands::bands, planner::views_of};
use crate::cull::{
    layout::RowSource,
    request::{CullFrame, CullRequest, CullView, DistanceRange, ErrorRange, LodEye},
};
use core::ops::Range;

/// Index of the view that keeps nothing. Those of the frame come behind it.
const NOTHING: u32 = 0;

/// What the rows of a plan share.
#[derive(Default)]
pub(in crate::cull) struct SharedViews {
    /// How the views saw levels and distances when the rows got theirs, without their positions.
    eyes: Vec<Option<LodEye>>,
    /// What the distances of each request's rows were computed from.
    distance_inputs: Vec<DistanceInputs>,
    /// The requests whose rows have no views yet.
    new: Range<usize>,
    /// Whether some request is far first.
    has_far_first: bool,
    /// Whether some rows of the frame got new distances.
    pub has_new_distances: bool,
}

/// What decides which distances the rows of a request keep, apart from what makes another plan.
#[derive(Clone, Copy, PartialEq)]
struct DistanceInputs {
    range: Option<DistanceRange>,
    fade: f32,
    thin_below: f32,
    errors: ErrorRange,
}

impl DistanceInputs {
    fn of(request: &CullRequest) -> Self {
        Self {
            range: request.range,
            fade: request.fade,
            thin_below: request.thin_below,
            errors: request.errors,
        }
    }
}

impl SharedViews {
    /// Has the rows of a plan share the views: it was just built for the frame.
    pub fn share(&mut self, plan: &mut Plan, frame: &CullFrame) {
        plan.start_sharing();
        *self = Self {
            eyes: eyes_of(frame).collect(),
            ..Self::default()
        };
        self.add(frame);
        self.update(plan, frame, &[]);
    }

    /// Adds the requests of a frame behind those that it knows, in a plan that has
    /// [grown](Plan::grow) by them.
    pub fn grow(&mut self, plan: &mut Plan, frame: &CullFrame) {
        plan.share_new_rows();
        self.add(frame);
    }

    fn add(&mut self, frame: &CullFrame) {
        let known = self.distance_inputs.len();
        let new = &frame.requests[known..];
        self.distance_inputs
            .extend(new.iter().map(DistanceInputs::of));
        self.has_far_first |= new.iter().any(CullRequest::is_far_first);
        self.new = known..frame.requests.len();
    }

    /// Gives the plan the views of a frame, and its rows theirs. `moved` are the requests with
    /// another transform.
    pub fn update(&mut self, plan: &mut Plan, frame: &CullFrame, moved: &[usize]) {
        let nothing = [CullView::nothing_source()];
        let views = frame.views.iter().map(CullView::source);
        plan.views.clear();
        plan.views.extend(nothing.into_iter().chain(views));
        self.update_distances(plan, frame, moved);
        let all = 0..frame.requests.len();
        match &frame.changed {
            Some(changed) => {
                let changed = changed.iter().copied();
                changed
                    .chain(self.new.clone())
                    .for_each(|request| set_rows(plan, frame, request));
            }
            None => all
                .clone()
                .for_each(|request| set_rows(plan, frame, request)),
        }
        self.new = 0..0;
        // The host sorts by these.
        if self.has_far_first {
            let far_first = all.filter(|request| frame.requests[*request].is_far_first());
            far_first.for_each(|request| set_far_first(plan, frame, request));
        }
    }

    /// Measures the rows whose distances may differ from the frame before.
    fn update_distances(&mut self, plan: &mut Plan, frame: &CullFrame, moved: &[usize]) {
        self.has_new_distances = !eyes_of(frame).eq(self.eyes.iter().copied());
        if self.has_new_distances {
            self.eyes.clear();
            self.eyes.extend(eyes_of(frame));
            plan.mend_all();
            for request in 0..frame.requests.len() {
                set_distances(plan, frame, request);
            }
        }
        let mut measure_again = |request: usize| {
            let now = DistanceInputs::of(&frame.requests[request]);
            if core::mem::replace(&mut self.distance_inputs[request], now) != now {
                self.has_new_distances = true;
                set_distances(plan, frame, request);
            }
        };
        match &frame.changed {
            Some(changed) => changed.iter().copied().for_each(&mut measure_again),
            None => (0..frame.requests.len()).for_each(&mut measure_again),
        }
        // Another transform stretches by something else.
        for &request in moved {
            set_distances(plan, frame, request);
        }
    }
}

/// Gives the rows of a request their views.
fn set_rows(plan: &mut Plan, frame: &CullFrame, request: usize) {
    let asked = &frame.requests[request];
    let levels = asked.level_count();
    for (slot, (view, _)) in views_of(frame, &asked.views).enumerate() {
        let view = match asked.rests_in(slot) {
            true => NOTHING,
            false => view + 1,
        };
        for row in slot * levels..(slot + 1) * levels {
            plan.share_view(request, row, view);
        }
    }
}

/// Gives the rows of a far-first request their axes.
fn set_far_first(plan: &mut Plan, frame: &CullFrame, request: usize) {
    let asked = &frame.requests[request];
    let levels = asked.level_count();
    for (slot, (_, view)) in views_of(frame, &asked.views).enumerate() {
        let order = view.far_first_in(&asked.world_from_local);
        for part in plan.part_range(request, slot * levels..(slot + 1) * levels) {
            let part = plan.draws[part];
            let row = &mut plan.batches[part.batch].chunk_views[part.row as usize];
            row.planes.order = order;
        }
    }
}

impl Plan {
    /// Has the rows share views. They keep nothing yet.
    pub(in crate::cull) fn start_sharing(&mut self) {
        for batch in &mut self.batches {
            batch.sources.clear();
            batch.views_of_rows.clear();
        }
        self.share_new_rows();
    }

    /// The same for rows that the plan got after the others.
    fn share_new_rows(&mut self) {
        for batch in &mut self.batches {
            let first_row = batch.sources.len() as u32;
            let chunks = &batch.chunks;
            let first_chunk = chunks.partition_point(|chunk| chunk.first_row < first_row);
            for (index, chunk) in chunks.iter().enumerate().skip(first_chunk) {
                let rows = chunk.first_row as usize..(chunk.first_row + chunk.row_count) as usize;
                let rows = batch.chunk_views[rows].iter();
                let radius = chunk.sphere.w;
                (batch.sources).extend(rows.map(|row| RowSource::of(row, index as u32, radius)));
            }
            batch.views_of_rows.resize(batch.chunk_views.len(), NOTHING);
        }
    }

    /// Gives the `row`-th row of a request a shared view: it rests if the view keeps nothing.
    pub(in crate::cull) fn share_view(&mut self, request: usize, row: usize, view: u32) {
        for part in self.part_range(request, row..row + 1) {
            let part = self.draws[part];
            let batch = &mut self.batches[part.batch];
            let known = &mut batch.views_of_rows[part.row as usize];
            if core::mem::replace(known, view) != view {
                batch.mends.views.push(part.row);
            }
            // Also the first time: a row begins with the view that keeps nothing.
            batch.set_resting(part.chunk, part.row, view == NOTHING);
        }
    }
}

/// How the views of a frame see levels and distances, without their positions.
fn eyes_of(frame: &CullFrame) -> impl Iterator<Item = Option<LodEye>> {
    let placeless = |eye| LodEye {
        position: glam::Vec3::ZERO,
        ..eye
    };
    let views = frame.views.iter();
    views.map(move |view| view.lod_eye().map(placeless))
}

/// Measures the distances that a request's rows keep.
fn set_distances(plan: &mut Plan, frame: &CullFrame, index: usize) {
    let request = &frame.requests[index];
    let levels = request.level_count();
    for (slot, (_, view)) in views_of(frame, &request.views).enumerate() {
        for (level, band) in bands(view.lod_eye(), request).enumerate() {
            let row = slot * levels + level;
            for part in plan.part_range(index, row..row + 1) {
                let part = plan.draws[part];
                let batch = &mut plan.batches[part.batch];
                let source = &mut batch.sources[part.row as usize];
                let before = *source;
                source.set_distances(&band);
                if *source != before {
                    batch.mends.rows.push(part.row);
                }
            }
        }
    }
}
