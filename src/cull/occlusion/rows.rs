//! What changes from frame to frame in the tables of rows that may be hidden.

use super::motion::{Motion, Motions};
use crate::cull::{
    layout::{
        OCCLUSION_IS_CUT, OCCLUSION_IS_FROZEN, OCCLUSION_IS_NEW, Projection, ROUNDING,
        greatest_stretch,
    },
    plan::{
        BatchPlan, Plan,
        occluded_rows::{OccludedRows, SettledInputs},
    },
    request::{CullFrame, DepthBuffer, OcclusionView},
    run::history::History,
};
use core::ops::Range;
use glam::{Affine3A, DMat4, Mat4};

/// What the views of a frame have seen, and how they have moved.
pub(in crate::cull) struct ViewHistory {
    pub records: History,
    pub motions: Motions,
}

impl OccludedRows {
    /// Gives the rows their records in frame `now`.
    pub fn use_slots(&self, plan: &Plan, history: &mut History, now: u64) {
        for row in &self.rows {
            history.use_slot(plan.batches[row.batch].page, row.slot, now);
        }
    }

    /// Whether only the projections of the rows differ from the frame before, in a frame whose plan
    /// is the same.
    pub fn stay(&self, views: &[OcclusionView], past: &ViewHistory) -> bool {
        // A frozen view draws what it saw, wherever it looks.
        let cuts = |view: &OcclusionView| {
            let motion = past.motions.get(&view.key);
            !view.is_frozen && motion.is_none_or(Motion::may_be_cut)
        };
        let is_settled = |settled: &SettledInputs| {
            settled.history == past.records.version()
                && settled.views.iter().copied().eq(views.iter().map(state_of))
        };
        self.settled.as_ref().is_some_and(is_settled) && !views.iter().any(cuts)
    }

    /// Updates what changes while rows [stay](Self::stay). `known` has projections of the same
    /// frame.
    pub fn project(
        &self,
        plan: &mut Plan,
        views: &[OcclusionView],
        mut known: KnownProjections<'_>,
    ) {
        for (projection, seen) in plan.projections.iter_mut().zip(&self.projected) {
            if let Some(view) = views.get(seen.0) {
                *projection = known.projection(view, seen);
            }
        }
    }

    /// The projections of the rows, which are of `plan`.
    pub fn projections<'a>(&'a self, plan: &'a Plan) -> KnownProjections<'a> {
        KnownProjections {
            seen: &self.projected,
            projections: &plan.projections,
        }
    }

    /// Updates what changes from frame to frame: projections, records and lengths. `known` has
    /// projections of the same frame.
    pub fn update(
        &mut self,
        plan: &mut Plan,
        frame: &CullFrame,
        views: &[OcclusionView],
        past: &ViewHistory,
        mut known: KnownProjections<'_>,
        now: u64,
    ) {
        self.projected.clear();
        plan.projections.clear();
        let mut stretch = 1.0;
        let mut is_settled = true;
        for row in &self.rows {
            let (Some(view), Some(request)) =
                (views.get(row.view), frame.requests.get(row.request))
            else {
                continue;
            };
            let seen = (row.view, request.world_from_local);
            // Most rows of a view have the same transform.
            if self.projected.last() != Some(&seen) {
                stretch = greatest_stretch(&seen.1.matrix3);
                plan.projections.push(known.projection(view, &seen));
                self.projected.push(seen);
            }
            let motion = past.motions.get(&row.slot.view);
            let width = 2.0 * request.sphere.radius * stretch;
            let near = view.near_pixels * 2.0 / view.depth.size.y as f32;
            let is_cut = !view.is_frozen && motion.is_none_or(|motion| motion.is_cut(near, width));
            let batch: &mut BatchPlan = &mut plan.batches[row.batch];
            let found = past.records.find(batch.page, &row.slot, now);
            let to = &mut batch.occlusion[row.place];
            to.projection = plan.projections.len() as u32 - 1;
            to.instance_count = batch.chunks[row.chunk].instance_count;
            let (first_record, is_new) = found.unwrap_or((0, true));
            to.first_record = first_record;
            to.flags = if is_new { OCCLUSION_IS_NEW } else { 0 };
            if view.is_frozen {
                to.flags |= OCCLUSION_IS_FROZEN;
            }
            if is_cut {
                to.flags |= OCCLUSION_IS_CUT;
            }
            to.near_pixels = view.near_pixels;
            is_settled &= !is_new && !is_cut;
        }
        let before = self.settled.take();
        self.settled = is_settled.then(|| {
            let mut states = before.map_or_else(Vec::new, |before| before.views);
            states.clear();
            states.extend(views.iter().map(state_of));
            SettledInputs {
                history: past.records.version(),
                views: states,
            }
        });
    }
}

/// Projections that a frame has computed, by view.
#[derive(Clone, Copy, Default)]
pub(in crate::cull) struct KnownProjections<'a> {
    seen: &'a [(usize, Affine3A)],
    projections: &'a [Projection],
}

impl KnownProjections<'_> {
    /// Those from the first one of a view on.
    pub fn starting_at(mut self, view: usize) -> Self {
        self.skip(self.seen.partition_point(|seen| seen.0 < view));
        self
    }

    fn skip(&mut self, count: usize) {
        self.seen = &self.seen[count..];
        self.projections = &self.projections[count..];
    }

    /// How a view sees a set. Callers ask in the order of the known projections, and may leave out
    /// some.
    fn projection(&mut self, view: &OcclusionView, seen: &(usize, Affine3A)) -> Projection {
        let mut next = self.seen.iter().take(MAX_LEFT_OUT);
        if let Some(at) = next.position(|known| known == seen) {
            self.skip(at);
            return self.projections[0];
        }
        projection_in(view, &seen.1)
    }
}

/// Largest number of successive projections that are skipped to find one.
const MAX_LEFT_OUT: usize = 8;

/// What rows depend on of a view.
fn state_of(view: &OcclusionView) -> (f32, bool) {
    (view.near_pixels, view.is_frozen)
}

/// To depths as a viewport with this range stores them.
fn stored_from_clip(range: &Range<f32>) -> DMat4 {
    let (start, end) = (f64::from(range.start), f64::from(range.end));
    let mut matrix = DMat4::IDENTITY;
    (matrix.z_axis.z, matrix.w_axis.z) = (end - start, start);
    matrix
}

/// How a view sees a set.
pub(super) fn projection_in(view: &OcclusionView, world_from_local: &Affine3A) -> Projection {
    let clip_from_set = view.clip_from_world.as_dmat4() * Mat4::from(*world_from_local).as_dmat4();
    let clip_from_set = stored_from_clip(&view.depth.range) * clip_from_set;
    let DepthBuffer { size, samples, .. } = view.depth;
    let projection = Projection::new(clip_from_set, size, samples, view.is_jittered);
    // Positions in the world are rounded when they are drawn: by this much in the set's units.
    let world_from_local = &world_from_local;
    let from_world = world_from_local.matrix3.inverse();
    let far = world_from_local.translation.abs().max_element();
    match far * greatest_stretch(&from_world) * ROUNDING {
        rounded if rounded.is_finite() => projection.widened(rounded),
        // A flat set.
        _ => Projection::default(),
    }
}
