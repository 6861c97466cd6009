//! The plan of the frame. It is built again when requests or sets change. If some only move, or get
//! or lose a few instances, it is mended; its rows are updated in each frame.

mod inputs;
mod requests;

pub(in crate::cull) use requests::{coarser, further_shapes, hidden_requests, slot_of};

use super::{
    DrawPart, Plan, PlanLimits, PlanRequest, RowRings,
    bands::bands,
    mend::Mended,
    occluded_rows::OccludedRows,
    planned::{BatchKey, Planned, RowMeaning, batch_keys},
};
use crate::cull::{
    gpu::version::Version,
    layout::ViewPlanes,
    request::{CullFrame, CullRequest, DrawList, DrawShape, ErrorRange, OcclusionView, Order},
    store::{ResidentSets, Set},
};
use inputs::PlanInputs;
use requests::views_of;
use std::sync::Arc;

/// The plan of the current frame, and what it was made from.
pub(in crate::cull) struct Planner {
    limits: PlanLimits,
    planned: Planned,
    /// Rows that may be hidden.
    occluded: OccludedRows,
    /// `None` before the first frame.
    inputs: Option<PlanInputs>,
    /// The requests that the current frame mended.
    moved: Vec<usize>,
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
            planned: Planned::default(),
            occluded: OccludedRows::default(),
            inputs: None,
            moved: Vec::new(),
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

    /// The batches of the current frame.
    pub fn planned(&self) -> &Planned {
        &self.planned
    }

    /// The tables of the current frame.
    pub fn plan(&self) -> &Plan {
        &self.planned.plan
    }

    /// Keys of the plan's batches.
    pub fn keys(&self) -> &[BatchKey] {
        &self.planned.keys
    }

    /// The limits of its plans.
    pub fn limits(&self) -> PlanLimits {
        self.limits
    }

    /// Whether instances may be hidden in some view.
    pub fn hides(&self) -> bool {
        !self.occluded.is_empty()
    }

    /// The rows that may be hidden, and the tables to update.
    pub fn occluded(&mut self) -> (&OccludedRows, &mut Plan) {
        (&self.occluded, &mut self.planned.plan)
    }

    /// The requests of the current frame that moved or changed their length, if its plan is the
    /// plan of the frame before.
    pub fn moved(&self) -> &[usize] {
        &self.moved
    }

    /// Version of the plan. Mended plans have the same.
    pub fn version(&self) -> Version {
        self.version
    }

    /// What was planned since the last call.
    pub fn take_work(&mut self) -> PlanWork {
        core::mem::take(&mut self.work)
    }

    /// Plans a frame in whose views `occlusion` instances may be hidden. Returns whether the plan
    /// is another one than in the frame before. If not, only the planes of its views differ, and
    /// the requests that [`Self::moved`] names.
    pub fn plan_frame(
        &mut self,
        frame: &CullFrame,
        occlusion: &[OcclusionView],
        sets: &ResidentSets,
    ) -> bool {
        let moved = &mut self.moved;
        let follows = (self.inputs.as_mut())
            .is_some_and(|inputs| inputs.follow(frame, occlusion, sets, moved));
        if follows {
            self.mend_moved(frame, sets);
            self.set_planes(frame);
        } else {
            self.moved.clear();
            self.build(frame, occlusion, sets);
            self.version.bump();
            self.work.built += 1;
        }
        !follows
    }

    fn mend_moved(&mut self, frame: &CullFrame, sets: &ResidentSets) {
        for &index in &self.moved {
            if let Some(to) = mended(frame, sets, index) {
                self.planned.mend(index, &to);
            }
        }
        self.work.mended += self.moved.len() as u64;
    }

    /// Updates the planes: nothing else can have changed.
    fn set_planes(&mut self, frame: &CullFrame) {
        let mut each = RequestPlanes::default();
        for (index, request) in frame.requests.iter().enumerate() {
            let rings = rings_of(request);
            for (slot, planes) in each.of(frame, request).0.iter().enumerate() {
                (self.planned.plan).set_planes(index, slot, rings.of(planes));
            }
        }
    }

    fn build(&mut self, frame: &CullFrame, occlusion: &[OcclusionView], sets: &ResidentSets) {
        let old = self.inputs.take();
        let inputs = PlanInputs::of(frame, occlusion, sets, old);
        let mut planes: Vec<ViewPlanes> = Vec::new();
        let mut shapes: Vec<DrawShape> = Vec::with_capacity(frame.requests.len());
        let mut more = Vec::new();
        let mut ends = Vec::with_capacity(frame.requests.len());
        let mut each = RequestPlanes::default();
        let mut first_row = 0;
        for request in &frame.requests {
            let (rows, is_new) = each.of(frame, request);
            if is_new {
                first_row = planes.len();
                planes.extend_from_slice(rows);
            }
            shapes.push(request.shape);
            shapes.extend(coarser(request).iter().map(|level| level.shape));
            let levels = 0..=coarser(request).len();
            more.extend(levels.flat_map(|level| further_shapes(request, level)));
            ends.push((first_row..planes.len(), shapes.len(), more.len()));
        }
        let missing = Set::default();
        let mut first = (0, 0);
        let requests = frame.requests.iter().zip(&ends);
        let requests = requests.map(|(request, (rows, shapes_end, more_end))| {
            let set = sets.get(request.set).unwrap_or(&missing);
            let end = (*shapes_end, *more_end);
            let (first_shape, first_more) = core::mem::replace(&mut first, end);
            PlanRequest {
                regions: &set.regions,
                len: set.len,
                scale: set.channels.scale,
                world_from_local: request.world_from_local,
                sphere: request.sphere,
                shapes: &shapes[first_shape..end.0],
                more: &more[first_more..end.1],
                fades: request.fade > 0.0,
                thins: request.thins(),
                rows: &planes[rows.clone()],
                rings: Some(rings_of(request)),
                row_group: 1,
                lists: 1,
            }
        });
        let old = core::mem::take(&mut self.planned.plan);
        let mut plan = old.build_again(requests, self.limits);
        let mut early = Vec::new();
        self.occluded = OccludedRows::default();
        for (index, view) in occlusion.iter().enumerate() {
            let is_frozen = view.is_frozen;
            for request in hidden_requests(frame, view, sets, self.limits) {
                let Some(slot) = slot_of(frame, request, view.view) else {
                    continue;
                };
                for part in plan.parts(request, slot).to_vec() {
                    let key = frame.requests[request].key;
                    let (request, view) = ((request, key), (index, view.key));
                    let level = part.level as u32;
                    self.occluded
                        .add(&mut plan, (&part, None), request, view, level);
                    // All that a frozen view draws is in this list.
                    if !is_frozen {
                        early.push(part);
                    }
                }
            }
        }
        self.planned = Planned {
            keys: batch_keys(&plan, None),
            meanings: row_meanings(frame, &plan, &early),
            plan,
        };
        self.inputs = Some(inputs);
    }
}

/// What a request has become. `None` if its set is not resident: it then has no rows.
pub(in crate::cull) fn mended<'a>(
    frame: &'a CullFrame,
    sets: &'a ResidentSets,
    index: usize,
) -> Option<Mended<'a>> {
    let request = frame.requests.get(index)?;
    let set = sets.get(request.set)?;
    Some(Mended {
        world_from_local: &request.world_from_local,
        regions: &set.regions,
        len: set.len,
    })
}

/// The order in which a request's rows list their survivors.
fn rings_of(request: &CullRequest) -> RowRings {
    RowRings {
        radius: request.sphere.radius,
        is_near_first: request.order == Order::NearFirst,
    }
}

/// The planes of each request's rows, without [`RowRings`]. If a request without levels and ranges
/// has the same transform and the same views as the request before it, both share their planes,
/// also if their radii differ, as long as both have a size.
#[derive(Default)]
struct RequestPlanes<'a> {
    last: Option<&'a CullRequest>,
    planes: Vec<ViewPlanes>,
}

impl<'a> RequestPlanes<'a> {
    /// Whether the planes that are kept hold for spheres of all sizes.
    fn are_of_all_sizes(&self) -> bool {
        let has_size = self.last.is_some_and(|last| last.sphere.radius > 0.0);
        has_size && self.planes.iter().all(|planes| planes.band.flags == 0)
    }

    /// The planes of a request, and whether they differ from the request before.
    fn of(&mut self, frame: &CullFrame, request: &'a CullRequest) -> (&[ViewPlanes], bool) {
        let is_far_first = request.order == Order::FarFirst;
        let (world, radius) = (&request.world_from_local, request.sphere.radius);
        let is_plain = |request: &CullRequest| {
            let errors = ErrorRange {
                levels_before: 0,
                ..request.errors
            };
            let is_whole = request.range.is_none() && errors == ErrorRange::default();
            request.coarser.is_none() && is_whole && !request.thins()
        };
        let same = |last: &CullRequest| {
            last.world_from_local == request.world_from_local
                && last.views == request.views
                && is_plain(last)
                && is_plain(request)
                && (last.sphere.radius == radius || self.are_of_all_sizes())
                && (last.order == Order::FarFirst) == is_far_first
        };
        let is_new = !self.last.is_some_and(same);
        if is_new {
            let views = views_of(frame, &request.views);
            self.planes.clear();
            for (_, view) in views {
                let mut planes = view.planes_in(world);
                planes.order = match is_far_first {
                    true => view.far_first_in(world),
                    false => view.order_in(world, radius),
                };
                let bands = bands(view.lod_eye(), request);
                let rows = bands.map(|band| ViewPlanes { band, ..planes });
                self.planes.extend(rows);
            }
        }
        self.last = Some(request);
        (&self.planes, is_new)
    }
}

/// Request, view and number of instances of each row of each batch.
/// `early` are the rows that may be hidden.
fn row_meanings(frame: &CullFrame, plan: &Plan, early: &[DrawPart]) -> Vec<Arc<[RowMeaning]>> {
    let mut batches: Vec<_> = plan
        .batches
        .iter()
        .map(|batch| vec![RowMeaning::default(); batch.chunk_views.len()])
        .collect();
    for (index, request) in frame.requests.iter().enumerate() {
        for (slot, (view, _)) in views_of(frame, &request.views).enumerate() {
            for part in plan.parts(index, slot) {
                batches[part.batch][part.row as usize] = RowMeaning {
                    request: request.key,
                    view,
                    level: request.errors.levels_before + part.level as u32,
                    tested: 0,
                    list: DrawList::Kept,
                    more_elements: plan.batches[part.batch].sibling_elements(part.row),
                };
            }
        }
    }
    for part in early {
        batches[part.batch][part.row as usize].list = DrawList::Early;
    }
    for (rows, plan) in batches.iter_mut().zip(&plan.batches) {
        for chunk in &plan.chunks {
            let range = chunk.first_row as usize..(chunk.first_row + chunk.row_count) as usize;
            for row in &mut rows[range] {
                if row.level == 0 {
                    row.tested = chunk.instance_count;
                }
            }
        }
    }
    batches.into_iter().map(Into::into).collect()
}
