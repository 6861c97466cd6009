//! The plan of the frame. It is built again when requests or sets change. If some only move, or get
//! or lose a few instances, it is mended, and if some come behind the others, it grows. Its rows
//! are updated in each frame.

mod inputs;
mod meanings;
mod planes;
mod requests;
mod resolved;

pub(in crate::cull) use requests::{further_shapes, hidden_requests, slot_of};

use super::{
    Plan, PlanLimits,
    mend::MendedRequest,
    occluded_rows::{NewOccludedRow, OccludedRows},
    planned::{BatchKey, PlannedBatches, batch_keys},
    shared_views::SharedViews,
};
use crate::cull::{
    gpu::version::Version,
    layout::ViewPlanes,
    policy::OWN_PLANES,
    request::{CullFrame, CullRequest, OcclusionView},
    store::ResidentSets,
};
use inputs::PlanInputs;
use meanings::row_meanings;
use planes::RequestPlanes;
pub(in crate::cull::plan) use requests::views_of;
use resolved::{ResolvedRequests, rings_of};

/// The plan of the current frame, and what it was made from.
pub(in crate::cull) struct Planner {
    limits: PlanLimits,
    own_planes: usize,
    planned: PlannedBatches,
    /// The views that the rows of a large plan share.
    shared: SharedViews,
    /// Whether rows share views: there are many, and something fills them.
    shares: bool,
    /// The plan with whole rows, for tests.
    #[cfg(feature = "testing")]
    whole: std::sync::OnceLock<Plan>,
    /// Whether some request is far first.
    has_far_first: bool,
    /// Rows that may be hidden.
    occluded: OccludedRows,
    /// `None` before the first frame.
    inputs: Option<PlanInputs>,
    /// Number of pages that were dropped so far, and before the first set of the plan went.
    dropped_pages: [u64; 2],
    /// The requests that the current frame mended.
    moved: Vec<usize>,
    /// A list of planes whose memory is used again.
    spare_planes: Vec<ViewPlanes>,
    /// Changes when a plan is built.
    version: Version,
    work: PlanWork,
}

/// What was planned, in numbers ([`CullerWork`](crate::cull::CullerWork)).
#[derive(Clone, Copy, Default)]
pub(in crate::cull) struct PlanWork {
    /// Number of plans.
    pub built: u64,
    /// Number of requests.
    pub mended: u64,
}

impl Planner {
    pub fn new(limits: PlanLimits) -> Self {
        Self {
            limits,
            own_planes: OWN_PLANES,
            planned: PlannedBatches::default(),
            shared: SharedViews::default(),
            shares: false,
            #[cfg(feature = "testing")]
            whole: std::sync::OnceLock::new(),
            has_far_first: false,
            occluded: OccludedRows::default(),
            inputs: None,
            dropped_pages: [0; 2],
            moved: Vec::new(),
            spare_planes: Vec::new(),
            version: Version::new(),
            work: PlanWork::default(),
        }
    }

    /// Drops the plan. The next one respects these limits.
    #[cfg(feature = "testing")]
    pub fn limit(&mut self, counts_per_batch: u32, few_counts: u32) {
        let limits = PlanLimits {
            counts: counts_per_batch.min(self.limits.counts),
            few_counts,
            ..self.limits
        };
        *self = Self::new(limits);
    }

    /// Drops the plan. The next one sorts batches with more visibility words by blocks.
    #[cfg(feature = "testing")]
    pub fn limit_fine_words(&mut self, fine_words: u32) {
        *self = Self::new(PlanLimits {
            fine_words,
            ..self.limits
        });
    }

    /// Drops the plan. The rows of the next one share views if there are more.
    #[cfg(feature = "testing")]
    pub fn limit_own_planes(&mut self, own_planes: usize) {
        *self = Self {
            own_planes,
            ..Self::new(self.limits)
        };
    }

    /// Largest number of rows that have their own planes.
    pub fn own_planes(&self) -> usize {
        self.own_planes
    }

    /// The batches of the current frame.
    pub fn planned(&self) -> &PlannedBatches {
        &self.planned
    }

    /// The tables of the current frame.
    pub fn plan(&self) -> &Plan {
        &self.planned.plan
    }

    /// The tables of the current frame, in which each row has its own planes.
    #[cfg(feature = "testing")]
    pub fn whole_plan(&self) -> &Plan {
        let plan = self.plan();
        if plan.views.is_empty() {
            return plan;
        }
        self.whole.get_or_init(|| {
            let mut whole = plan.clone();
            for batch in &mut whole.batches {
                let rows = 0..batch.chunk_views.len() as u32;
                let filled = rows.filter_map(|row| batch.row(row, &plan.views));
                batch.chunk_views = filled.collect();
            }
            whole
        })
    }

    /// Has the rows of the next frame share views, or have their own planes.
    pub fn let_share(&mut self, shares: bool) {
        if core::mem::replace(&mut self.shares, shares) != shares {
            self.inputs = None;
        }
    }

    /// Keys of the plan's batches.
    pub fn keys(&self) -> &[BatchKey] {
        &self.planned.keys
    }

    /// The limits of its plans.
    pub fn limits(&self) -> PlanLimits {
        self.limits
    }

    /// Whether some request of the plan is far first.
    pub fn has_far_first(&self) -> bool {
        self.has_far_first
    }

    /// Whether instances may be hidden in some view.
    pub fn hides(&self) -> bool {
        !self.occluded.is_empty()
    }

    /// The rows that may be hidden, and their tables.
    pub fn occluded_rows(&self) -> (&OccludedRows, &Plan) {
        (&self.occluded, &self.planned.plan)
    }

    /// The rows that may be hidden, and the tables to update.
    pub fn occluded_rows_mut(&mut self) -> (&mut OccludedRows, &mut Plan) {
        (&mut self.occluded, &mut self.planned.plan)
    }

    /// The requests of the current frame that moved or changed their length, if its plan is the
    /// plan of the frame before.
    pub fn moved(&self) -> &[usize] {
        &self.moved
    }

    /// Whether something of its rows, besides planes, differs from the frame before.
    pub fn has_mended(&self) -> bool {
        !self.moved.is_empty() || self.shared.has_new_distances
    }

    /// Version of the plan. Mended plans have the same.
    pub fn version(&self) -> Version {
        self.version
    }

    /// What was planned since the last call.
    pub fn take_work(&mut self) -> PlanWork {
        core::mem::take(&mut self.work)
    }

    /// Starts a frame.
    pub fn start_frame(&mut self) {
        self.planned.plan.start_mends();
    }

    /// Plans a frame in whose views `occlusion` instances may be hidden. Returns whether the plan
    /// is another one than in the frame before, or has more rows. If not, only the planes of its
    /// views differ, and the requests that [`Self::moved`] names.
    pub fn plan_frame(
        &mut self,
        frame: &CullFrame,
        occlusion: &[OcclusionView],
        sets: &ResidentSets,
    ) -> bool {
        #[cfg(feature = "testing")]
        self.whole.take();
        self.shared.has_new_distances = false;
        let moved = &mut self.moved;
        let follows = (self.inputs.as_mut())
            .is_some_and(|inputs| inputs.follow(frame, occlusion, sets, moved));
        if follows
            && self.has_pages()
            && let Some(grown) = self.grow(frame, occlusion, sets)
        {
            self.mend_moved(frame, sets);
            if self.shares {
                let (plan, moved) = (&mut self.planned.plan, &self.moved);
                self.shared.update(plan, frame, moved);
            } else {
                self.set_planes(frame);
            }
            return grown;
        }
        self.moved.clear();
        self.build(frame, occlusion, sets);
        self.version.bump();
        self.work.built += 1;
        true
    }

    /// Notes how many pages were dropped so far.
    pub fn note_dropped_pages(&mut self, dropped: u64) {
        self.dropped_pages[0] = dropped;
    }

    /// Whether the pages of all rows are there. Only rows of sets that went may outlive their page.
    fn has_pages(&mut self) -> bool {
        let [now, before] = &mut self.dropped_pages;
        if !self.inputs.as_ref().is_some_and(PlanInputs::has_hollow) {
            *before = *now;
        }
        now == before
    }

    /// Adds the requests of the frame that come after those of the plan. Returns whether there are
    /// any; `None` if the frame needs another plan.
    fn grow(
        &mut self,
        frame: &CullFrame,
        occlusion: &[OcclusionView],
        sets: &ResidentSets,
    ) -> Option<bool> {
        let plan = &mut self.planned.plan;
        let first_new = self.inputs.as_ref()?.len();
        let new = frame.requests.get(first_new..).unwrap_or_default();
        if new.is_empty() {
            return Some(false);
        }
        // Late lists and the commands of further shapes come behind all rows.
        let has_siblings = plan.batches.iter().any(|batch| !batch.siblings.is_empty());
        if !occlusion.is_empty() || has_siblings || new.iter().any(|new| !new.more.is_empty()) {
            return None;
        }
        let resolved = ResolvedRequests::of(frame, first_new, self.shares);
        plan.grow(resolved.requests(frame, sets), self.limits);
        for (index, request) in frame.requests.iter().enumerate().skip(first_new) {
            set_resting(plan, index, request);
        }
        if self.shares {
            self.shared.grow(plan, frame);
        }
        self.has_far_first |= new.iter().any(CullRequest::is_far_first);
        self.planned.keys = batch_keys(plan, None);
        let known = &self.planned.meanings;
        self.planned.meanings = row_meanings(frame, plan, known, first_new, &[]);
        self.inputs.as_mut()?.grow(frame, sets);
        self.work.mended += new.len() as u64;
        Some(true)
    }

    fn mend_moved(&mut self, frame: &CullFrame, sets: &ResidentSets) {
        if !self.moved.is_empty() {
            self.occluded.settled = None;
        }
        for &index in &self.moved {
            if let Some(to) = MendedRequest::of(frame, sets, index) {
                self.planned.mend(index, &to);
            }
        }
        self.work.mended += self.moved.len() as u64;
    }

    /// Updates the planes: nothing else can have changed.
    fn set_planes(&mut self, frame: &CullFrame) {
        let mut each = RequestPlanes::new(false, core::mem::take(&mut self.spare_planes));
        for (index, request) in frame.requests.iter().enumerate() {
            let rings = rings_of(request);
            for (slot, planes) in each.of(frame, request).0.iter().enumerate() {
                (self.planned.plan).set_planes(index, slot, rings.of(planes));
            }
            set_resting(&mut self.planned.plan, index, request);
        }
        self.spare_planes = each.into_spare();
    }

    fn build(&mut self, frame: &CullFrame, occlusion: &[OcclusionView], sets: &ResidentSets) {
        self.has_far_first = frame.requests.iter().any(CullRequest::is_far_first);
        let old = self.inputs.take();
        let inputs = PlanInputs::of(frame, occlusion, sets, old);
        let resolved = ResolvedRequests::of(frame, 0, self.shares);
        let old = core::mem::take(&mut self.planned.plan);
        let mut plan = old.build_again(resolved.requests(frame, sets), self.limits);
        for (index, request) in frame.requests.iter().enumerate() {
            set_resting(&mut plan, index, request);
        }
        if self.shares {
            self.shared.share(&mut plan, frame);
        }
        let mut early = Vec::new();
        self.occluded = OccludedRows::default();
        for (index, view) in occlusion.iter().enumerate() {
            for request in hidden_requests(frame, view, sets, self.limits) {
                let Some(slot) = slot_of(frame, request, view.view) else {
                    continue;
                };
                for part in plan.parts(request, slot).to_vec() {
                    let row = NewOccludedRow {
                        part: &part,
                        visible: None,
                        request: &frame.requests[request],
                        request_index: request,
                        view,
                        view_index: index,
                        level: part.level,
                    };
                    self.occluded.add(&mut plan, row);
                    // All that a frozen view draws is in this list.
                    if !view.is_frozen {
                        early.push(part);
                    }
                }
            }
        }
        self.planned = PlannedBatches {
            keys: batch_keys(&plan, None),
            meanings: row_meanings(frame, &plan, &[], 0, &early),
            plan,
        };
        self.inputs = Some(inputs);
        self.dropped_pages[1] = self.dropped_pages[0];
    }
}

/// Notes which rows of a request keep nothing in the frame.
fn set_resting(plan: &mut Plan, index: usize, request: &CullRequest) {
    // Most frames have none.
    if request.resting == 0 && plan.batches.iter().all(|batch| batch.resting.is_empty()) {
        return;
    }
    let levels = request.level_count();
    for slot in 0..request.views.len() {
        let rests = request.rests_in(slot);
        for row in slot * levels..(slot + 1) * levels {
            plan.set_resting(index, row, rests);
        }
    }
}
