//! The plan of the frame. It is built again when requests or sets change; otherwise only its rows
//! are updated.

use super::{
    BoundingSphere, DrawShape, Plan, PlanLimits, PlanRequest, bands::bands, view::CullView,
};
use crate::cull::{
    gpu::version::Version,
    layout::ViewPlanes,
    request::{CoarserLevel, CullFrame, CullRequest, Order},
    store::{ResidentSets, Set, region::SetId},
};
use core::ops::Range;
use glam::Affine3A;
use std::sync::Arc;

/// Name of a batch, which stays the same from frame to frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BatchKey {
    /// The page.
    pub page: usize,
    /// Index among the batches of the page.
    pub ordinal: usize,
}

/// What the rows of a batch stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowMeaning {
    /// [`CullRequest::key`].
    pub request: u64,
    /// Index of the view in the frame.
    pub view: u32,
    /// Index of the level of detail.
    pub level: u32,
    /// Number of instances that the row tests; 0 for coarser levels.
    pub tested: u32,
}

/// The plan of the current frame, and what it was made from.
pub(in crate::cull) struct Planner {
    limits: PlanLimits,
    plan: Plan,
    /// `None` before the first frame.
    inputs: Option<PlanInputs>,
    /// Keys of the plan's batches.
    keys: Vec<BatchKey>,
    /// Meanings of the rows of each batch.
    meanings: Vec<Arc<[RowMeaning]>>,
}

impl Planner {
    pub fn new(limits: PlanLimits) -> Self {
        Self {
            limits,
            plan: Plan::default(),
            inputs: None,
            keys: Vec::new(),
            meanings: Vec::new(),
        }
    }

    /// Drops the plan. The next one respects these limits.
    pub fn limit(&mut self, counts_per_batch: u32, few_counts: u32) {
        let limits = PlanLimits {
            counts: counts_per_batch.min(self.limits.counts),
            few_counts,
            ..self.limits
        };
        *self = Self::new(limits);
    }

    /// Drops the plan. The next one sorts batches with more visibility words by blocks.
    pub fn limit_fine_words(&mut self, fine_words: u32) {
        *self = Self::new(PlanLimits {
            fine_words,
            ..self.limits
        });
    }

    /// The tables of the current frame.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Keys of the plan's batches.
    pub fn keys(&self) -> &[BatchKey] {
        &self.keys
    }

    /// What the rows of a batch stand for.
    pub fn meanings(&self, batch: usize) -> Option<&Arc<[RowMeaning]>> {
        self.meanings.get(batch)
    }

    /// Plans a frame. Returns whether anything except the views' planes changed.
    pub fn plan_frame(&mut self, frame: &CullFrame, sets: &ResidentSets) -> bool {
        if self
            .inputs
            .as_mut()
            .is_some_and(|inputs| inputs.still_hold(frame, sets))
        {
            self.set_planes(frame);
            return false;
        }
        self.build(frame, sets);
        true
    }

    /// Updates the planes: nothing else can have changed.
    fn set_planes(&mut self, frame: &CullFrame) {
        let mut each = RequestPlanes::default();
        for (index, request) in frame.requests.iter().enumerate() {
            for (slot, planes) in each.of(frame, request).iter().enumerate() {
                self.plan.set_planes(index, slot, *planes);
            }
        }
    }

    fn build(&mut self, frame: &CullFrame, sets: &ResidentSets) {
        let inputs = PlanInputs::of(frame, sets);
        let mut planes: Vec<ViewPlanes> = Vec::with_capacity(inputs.views.len());
        let mut shapes: Vec<DrawShape> = Vec::with_capacity(frame.requests.len());
        let mut ends = Vec::with_capacity(frame.requests.len());
        let mut each = RequestPlanes::default();
        for request in &frame.requests {
            planes.extend_from_slice(each.of(frame, request));
            shapes.push(request.shape);
            shapes.extend(coarser(request).iter().map(|level| level.shape));
            ends.push((planes.len(), shapes.len()));
        }
        let missing = Set::default();
        let mut first = (0, 0);
        let requests = frame.requests.iter().zip(ends).map(|(request, end)| {
            let set = sets.get(request.set).unwrap_or(&missing);
            let (first_row, first_shape) = core::mem::replace(&mut first, end);
            PlanRequest {
                regions: &set.regions,
                len: set.len,
                has_scale: set.channels.scale,
                world_from_local: request.world_from_local,
                sphere: request.sphere,
                shapes: &shapes[first_shape..end.1],
                fades: request.fade > 0.0,
                rows: &planes[first_row..end.0],
            }
        });
        let requests: Vec<_> = requests.collect();
        self.plan = Plan::build(&requests, self.limits);
        self.keys = batch_keys(&self.plan);
        self.meanings = row_meanings(frame, &self.plan);
        self.inputs = Some(inputs);
    }
}

/// What a plan depends on, except the planes of the views.
struct PlanInputs {
    /// [`ResidentSets::version`].
    sets: Version,
    requests: Vec<RequestInputs>,
    /// [`Set::version`] of each request's set; `None` if it is not resident.
    versions: Vec<Option<Version>>,
    /// Views of all requests, request after request.
    views: Vec<u32>,
}

#[derive(PartialEq)]
struct RequestInputs {
    key: u64,
    set: SetId,
    world_from_local: Affine3A,
    sphere: BoundingSphere,
    shape: DrawShape,
    coarser: Option<Arc<[CoarserLevel]>>,
    fades: bool,
    order: Order,
    /// End of its views in [`PlanInputs::views`].
    views_end: usize,
}

impl RequestInputs {
    fn new(request: &CullRequest, views_end: usize) -> Self {
        Self {
            key: request.key,
            set: request.set,
            world_from_local: request.world_from_local,
            sphere: request.sphere,
            shape: request.shape,
            coarser: request.coarser.clone(),
            fades: request.fade > 0.0,
            order: request.order,
            views_end,
        }
    }
}

impl PlanInputs {
    fn of(frame: &CullFrame, sets: &ResidentSets) -> Self {
        let (mut requests, mut views) = (Vec::new(), Vec::new());
        for request in &frame.requests {
            views.extend(views_of(frame, &request.views).map(|(view, _)| view));
            requests.push(RequestInputs::new(request, views.len()));
        }
        Self {
            sets: sets.version(),
            versions: versions(frame, sets).collect(),
            requests,
            views,
        }
    }

    /// Each request's views.
    fn views(&self) -> impl Iterator<Item = Range<usize>> {
        let mut first = 0;
        let ends = self.requests.iter().map(|request| request.views_end);
        ends.map(move |end| core::mem::replace(&mut first, end)..end)
    }

    /// Whether `frame` would produce the same plan (only the planes of its views may differ). True
    /// in steady state.
    fn still_hold(&mut self, frame: &CullFrame, sets: &ResidentSets) -> bool {
        if !self.have_requests_of(frame) {
            return false;
        }
        // Most changes concern sets that no request names.
        let stay =
            self.sets == sets.version() || versions(frame, sets).eq(self.versions.iter().copied());
        if stay {
            self.sets = sets.version();
        }
        stay
    }

    fn have_requests_of(&self, frame: &CullFrame) -> bool {
        let known = self.requests.iter().zip(self.views());
        self.requests.len() == frame.requests.len()
            && known.zip(&frame.requests).all(|((known, range), request)| {
                let views = views_of(frame, &request.views).map(|(view, _)| view);
                *known == RequestInputs::new(request, known.views_end)
                    && views.eq(self.views[range].iter().copied())
            })
    }
}

/// The version of the set of each request.
fn versions(frame: &CullFrame, sets: &ResidentSets) -> impl Iterator<Item = Option<Version>> {
    let requests = frame.requests.iter();
    requests.map(|request| sets.get(request.set).and_then(Set::version))
}

/// The planes of each request's rows. If a request without levels and ranges has the same
/// transform, the same radius and the same views as the request before it, both share their planes.
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

    fn of(&mut self, frame: &CullFrame, request: &'a CullRequest) -> &[ViewPlanes] {
        let is_far_first = request.order == Order::FarFirst;
        let (world, radius) = (&request.world_from_local, request.sphere.radius);
        let is_plain = |request: &CullRequest| request.coarser.is_none() && request.range.is_none();
        let same = |last: &CullRequest| {
            last.world_from_local == request.world_from_local
                && last.views == request.views
                && is_plain(last)
                && is_plain(request)
                && (last.sphere.radius == radius || self.are_of_all_sizes())
                && (last.order == Order::FarFirst) == is_far_first
        };
        if !self.last.is_some_and(same) {
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
        for planes in &mut self.planes {
            planes.order.begin_at(radius);
            // Also if the view has no eye. It may get one, and the tables of the batch stay.
            planes.order.is_near_first = u32::from(request.order == Order::NearFirst);
        }
        self.last = Some(request);
        &self.planes
    }
}

/// The views of a request that the frame has, with their indices.
fn views_of<'a>(
    frame: &'a CullFrame,
    views: &'a [u32],
) -> impl Iterator<Item = (u32, &'a CullView)> {
    let found = |view: &u32| Some((*view, frame.views.get(*view as usize)?));
    views.iter().filter_map(found)
}

/// The coarser levels of a request.
fn coarser(request: &CullRequest) -> &[CoarserLevel] {
    request.coarser.as_deref().unwrap_or_default()
}

/// Page and ordinal of each batch. Pages are few and numbered from zero.
fn batch_keys(plan: &Plan) -> Vec<BatchKey> {
    let pages = plan.batches.iter().map(|batch| batch.page + 1).max();
    let mut ordinals = vec![0; pages.unwrap_or(0)];
    let key = |page: usize| {
        let ordinal = ordinals[page];
        ordinals[page] += 1;
        BatchKey { page, ordinal }
    };
    plan.batches
        .iter()
        .map(|batch| batch.page)
        .map(key)
        .collect()
}

/// Request, view and number of instances of each row of each batch.
fn row_meanings(frame: &CullFrame, plan: &Plan) -> Vec<Arc<[RowMeaning]>> {
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
                    level: part.level as u32,
                    tested: 0,
                };
            }
        }
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
