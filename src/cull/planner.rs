//! The plan of a frame: made anew where requests or sets have changed, else only its rows are.

use crate::cull::{
    CullFrame, CullView, Culler,
    culler::BatchKey,
    layout::Row,
    pages::{Region, SetId},
    plan::{BoundingSphere, DrawShape, Plan, PlanRequest},
    readback::BatchRows,
    sets::Set,
};
use glam::Affine3A;

/// What a plan depends on, but for what the views see. Lists of all requests lie one after the other: a frame fills them
/// without an allocation.
#[derive(Default, PartialEq)]
pub(super) struct PlanInputs {
    requests: Vec<RequestInputs>,
    views: Vec<u32>,
    regions: Vec<Region>,
}

#[derive(PartialEq)]
struct RequestInputs {
    key: u64,
    set: SetId,
    world_from_local: Affine3A,
    sphere: BoundingSphere,
    shape: DrawShape,
    len: u32,
    has_scale: bool,
    /// Ends of its lists.
    views: usize,
    regions: usize,
}

impl PlanInputs {
    fn clear(&mut self) {
        self.requests.clear();
        self.views.clear();
        self.regions.clear();
    }
}

impl Culler {
    pub(super) fn plan_frame(&mut self, frame: &CullFrame) {
        let mut inputs = core::mem::take(&mut self.spare_inputs);
        self.fill_inputs(frame, &mut inputs);
        self.spare_inputs = core::mem::replace(&mut self.plan_inputs, inputs);
        if self.plan_inputs == self.spare_inputs {
            self.plan_rows(frame);
        } else {
            self.plan_all(frame);
        }
    }

    fn fill_inputs(&self, frame: &CullFrame, inputs: &mut PlanInputs) {
        let empty = Set::default();
        inputs.clear();
        for request in &frame.requests {
            let set = self.sets.get(&request.set).unwrap_or(&empty);
            inputs
                .views
                .extend(views_of(frame, &request.views).map(|(view, _)| view));
            inputs.regions.extend_from_slice(&set.regions);
            inputs.requests.push(RequestInputs {
                key: request.key,
                set: request.set,
                world_from_local: request.world_from_local,
                sphere: request.sphere,
                shape: request.shape,
                len: set.len,
                has_scale: set.channels.scale,
                views: inputs.views.len(),
                regions: inputs.regions.len(),
            });
        }
    }

    /// The views have moved, if anything.
    fn plan_rows(&mut self, frame: &CullFrame) {
        for (index, request) in frame.requests.iter().enumerate() {
            for (slot, (_, view)) in views_of(frame, &request.views).enumerate() {
                let row = view.to_row(&request.world_from_local);
                self.plan.set_row(index, slot, row);
            }
        }
    }

    fn plan_all(&mut self, frame: &CullFrame) {
        self.changed_in = self.frame;
        let inputs = &self.plan_inputs;
        let mut rows: Vec<Row> = Vec::with_capacity(inputs.views.len());
        for request in &frame.requests {
            let views = views_of(frame, &request.views);
            rows.extend(views.map(|(_, view)| view.to_row(&request.world_from_local)));
        }
        let (mut first_view, mut first_region) = (0, 0);
        let requests: Vec<_> = inputs
            .requests
            .iter()
            .map(|request| {
                let views = core::mem::replace(&mut first_view, request.views)..request.views;
                let regions =
                    core::mem::replace(&mut first_region, request.regions)..request.regions;
                PlanRequest {
                    regions: &inputs.regions[regions],
                    len: request.len,
                    has_scale: request.has_scale,
                    world_from_local: request.world_from_local,
                    sphere: request.sphere,
                    shape: request.shape,
                    rows: &rows[views],
                }
            })
            .collect();
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
        .zip(keys)
        .map(|(batch, key)| BatchRows {
            key: *key,
            rows: vec![(0, 0, 0); batch.rows.len()],
            blocks: None,
        })
        .collect();
    for (index, request) in frame.requests.iter().enumerate() {
        for (slot, (view, _)) in views_of(frame, &request.views).enumerate() {
            for part in plan.parts(index, slot) {
                batches[part.batch].rows[part.row as usize] = (request.key, view, 0);
            }
        }
    }
    for (batch, plan) in batches.iter_mut().zip(&plan.batches) {
        for chunk in &plan.chunks {
            let rows = chunk.first_row as usize..(chunk.first_row + chunk.row_count) as usize;
            batch.rows[rows]
                .iter_mut()
                .for_each(|row| row.2 = chunk.instance_count);
        }
    }
    batches
}
