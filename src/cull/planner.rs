//! The plan of a frame: made anew where requests or sets have changed, else only its rows are.

use crate::cull::{
    CullFrame, CullRequest, CullView, Culler,
    culler::BatchKey,
    layout::Row,
    pages::SetId,
    plan::{BoundingSphere, DrawShape, Plan, PlanRequest},
    readback::BatchRows,
    residents::{ResidentSets, Set},
};
use core::ops::Range;
use glam::Affine3A;

/// What a plan depends on, but for what the views see.
pub(super) struct PlanInputs {
    /// [`ResidentSets::version`]
    sets: u64,
    requests: Vec<RequestInputs>,
    /// [`Set::version`] of each; `None` where it is not resident.
    versions: Vec<Option<u64>>,
    /// Views of all requests, one after the other.
    views: Vec<u32>,
}

#[derive(PartialEq)]
struct RequestInputs {
    key: u64,
    set: SetId,
    world_from_local: Affine3A,
    sphere: BoundingSphere,
    shape: DrawShape,
    /// End of its views.
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

    /// Whether a frame has the same, as it does but for frames in which something comes, goes or changes.
    fn are_of(&mut self, frame: &CullFrame, sets: &ResidentSets) -> bool {
        if !self.have_requests_of(frame) {
            return false;
        }
        // Where only sets have changed that are not asked for, those that are need no second look.
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
            && known.zip(&frame.requests).all(|((known, own), request)| {
                let views = views_of(frame, &request.views).map(|(view, _)| view);
                *known == RequestInputs::new(request, known.views_end)
                    && views.eq(self.views[own].iter().copied())
            })
    }
}

/// The version of the set of each request.
fn versions(frame: &CullFrame, sets: &ResidentSets) -> impl Iterator<Item = Option<u64>> {
    let requests = frame.requests.iter();
    requests.map(|request| sets.get(request.set).map(Set::version))
}

/// The rows of one request after the other. Those of sets that lie in the world as the one before are not made anew.
#[derive(Default)]
struct RequestRows<'a> {
    last: Option<&'a CullRequest>,
    rows: Vec<Row>,
}

impl<'a> RequestRows<'a> {
    fn of(&mut self, frame: &CullFrame, request: &'a CullRequest) -> &[Row] {
        let same = |last: &CullRequest| {
            last.world_from_local == request.world_from_local && last.views == request.views
        };
        if !self.last.is_some_and(same) {
            let views = views_of(frame, &request.views);
            self.rows.clear();
            self.rows
                .extend(views.map(|(_, view)| view.to_row(&request.world_from_local)));
            self.last = Some(request);
        }
        &self.rows
    }
}

impl Culler {
    pub(super) fn plan_frame(&mut self, frame: &CullFrame) {
        let inputs = self.plan_inputs.as_mut();
        if inputs.is_some_and(|inputs| inputs.are_of(frame, &self.sets)) {
            self.plan_rows(frame);
        } else {
            self.plan_all(frame, PlanInputs::of(frame, &self.sets));
        }
    }

    /// The views have moved, if anything.
    fn plan_rows(&mut self, frame: &CullFrame) {
        let mut rows = RequestRows::default();
        for (index, request) in frame.requests.iter().enumerate() {
            for (slot, row) in rows.of(frame, request).iter().enumerate() {
                self.plan.set_row(index, slot, *row);
            }
        }
    }

    fn plan_all(&mut self, frame: &CullFrame, inputs: PlanInputs) {
        self.changed_in = self.frame;
        let mut rows: Vec<Row> = Vec::with_capacity(inputs.views.len());
        let mut each = RequestRows::default();
        for request in &frame.requests {
            rows.extend_from_slice(each.of(frame, request));
        }
        let gone = Set::default();
        let requests = frame.requests.iter().zip(inputs.views());
        let requests = requests.map(|(request, views)| {
            let set = self.sets.get(request.set).unwrap_or(&gone);
            PlanRequest {
                regions: &set.regions,
                len: set.len,
                has_scale: set.channels.scale,
                world_from_local: request.world_from_local,
                sphere: request.sphere,
                shape: request.shape,
                rows: &rows[views],
            }
        });
        let requests: Vec<_> = requests.collect();
        self.plan = Plan::build(&requests, self.plan_limits);
        // Batches of each page so far; pages are few and numbered from zero.
        let pages = self.plan.batches.iter().map(|batch| batch.page + 1).max();
        let mut ordinals = vec![0; pages.unwrap_or(0)];
        self.keys.clear();
        for batch in &self.plan.batches {
            self.keys.push((batch.page, ordinals[batch.page]));
            ordinals[batch.page] += 1;
        }
        self.rows = batch_rows(frame, &self.plan, &self.keys);
        self.plan_inputs = Some(inputs);
    }
}

/// Those of a request's views that the frame has, with their indices.
fn views_of<'a>(
    frame: &'a CullFrame,
    views: &'a [u32],
) -> impl Iterator<Item = (u32, &'a CullView)> {
    let found = |view: &u32| Some((*view, frame.views.get(*view as usize)?));
    views.iter().filter_map(found)
}

/// Which request and view each row of each batch belongs to.
fn batch_rows(frame: &CullFrame, plan: &Plan, keys: &[BatchKey]) -> Vec<BatchRows> {
    let mut batches: Vec<_> = plan
        .batches
        .iter()
        .map(|batch| vec![(0, 0, 0); batch.rows.len()])
        .collect();
    for (index, request) in frame.requests.iter().enumerate() {
        for (slot, (view, _)) in views_of(frame, &request.views).enumerate() {
            for part in plan.parts(index, slot) {
                batches[part.batch][part.row as usize] = (request.key, view, 0);
            }
        }
    }
    for (rows, plan) in batches.iter_mut().zip(&plan.batches) {
        for chunk in &plan.chunks {
            let own = chunk.first_row as usize..(chunk.first_row + chunk.row_count) as usize;
            rows[own]
                .iter_mut()
                .for_each(|row| row.2 = chunk.instance_count);
        }
    }
    let batches = keys.iter().zip(batches);
    batches
        .map(|(key, rows)| BatchRows {
            key: *key,
            rows: rows.into(),
            blocks: None,
        })
        .collect()
}
