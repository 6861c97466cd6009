//! The plan of a view's late lists: two rows for each row that may be hidden, of what is late and
//! of all that is visible.

use super::{
    history::History,
    rows::OccludedRows,
    view::{DrawList, OcclusionView},
};
use crate::cull::{
    layout::ViewPlanes,
    plan::{
        DrawPart, DrawShape, Plan, PlanLimits, PlanRequest,
        planned::{Planned, RowMeaning, batch_keys},
        planner::{coarser, further_shapes, hidden_requests, slot_of},
    },
    request::{CullFrame, CullRequest},
    store::{ResidentSets, Set},
};
use core::ops::Range;

/// The lists of a level: late, visible.
const LISTS: usize = 2;

/// The plan of a view's late lists.
#[derive(Default)]
pub(in crate::cull) struct LatePlan {
    pub planned: Planned,
    occluded: OccludedRows,
    requests: Vec<LateRequest>,
    draws: Vec<DrawPart>,
}

/// A request whose instances may be hidden in the view.
struct LateRequest {
    /// Its index in the frame.
    index: usize,
    /// Batch and row of the frame's plan from which each level takes its planes.
    sources: Vec<(usize, u32)>,
    /// Its draws in [`LatePlan::draws`]: late, visible.
    draws: [Range<usize>; LISTS],
}

impl LatePlan {
    /// Plans the lists of the `view_index`-th of the views in which instances may be hidden.
    /// `frame_plan` is the plan of the frame. Draws count batches from `first_batch` on.
    pub fn build(
        (frame, frame_plan): (&CullFrame, &Plan),
        (view_index, view): (usize, &OcclusionView),
        sets: &ResidentSets,
        limits: PlanLimits,
        first_batch: usize,
    ) -> Self {
        let inputs: Vec<_> = hidden_requests(frame, view, sets, limits)
            .filter_map(|index| LateInput::new((frame, frame_plan), view, sets, index))
            .collect();
        let requests: Vec<_> = inputs.iter().map(LateInput::to_plan).collect();
        let mut late = Self::default();
        let mut plan = Plan::build(&requests, limits);
        let mut meanings: Vec<_> = plan
            .batches
            .iter()
            .map(|batch| vec![RowMeaning::default(); batch.chunk_views.len()])
            .collect();
        for (number, input) in inputs.iter().enumerate() {
            // Level after level; of each level the late row, then the visible one.
            let parts = plan.parts(number, 0).to_vec();
            let rows = |list: usize| parts.iter().filter(move |part| part.level % LISTS == list);
            for (part, visible) in rows(0).zip(rows(1)) {
                let level = (part.level / LISTS) as u32;
                let request = (input.index, input.request.key);
                let of = (view_index, view.key);
                late.occluded
                    .add(&mut plan, (part, Some(visible)), request, of, level);
            }
            let mut draws = [0..0, 0..0];
            let lists = [DrawList::Late, DrawList::Visible];
            for (draws, (row, list)) in draws.iter_mut().zip(lists.into_iter().enumerate()) {
                let first = late.draws.len();
                for part in rows(row) {
                    let level = part.level / LISTS;
                    meanings[part.batch][part.row as usize] = RowMeaning {
                        request: input.request.key,
                        view: view.view,
                        level: input.request.errors.levels_before + level as u32,
                        tested: 0,
                        list,
                        more_elements: plan.batches[part.batch].sibling_elements(part.row),
                    };
                    late.draws.push(DrawPart {
                        batch: first_batch + part.batch,
                        level,
                        ..*part
                    });
                }
                *draws = first..late.draws.len();
            }
            late.requests.push(LateRequest {
                index: input.index,
                sources: input.sources.clone(),
                draws,
            });
        }
        late.planned = Planned {
            keys: batch_keys(&plan, Some(view.key)),
            meanings: meanings.into_iter().map(Into::into).collect(),
            plan,
        };
        late
    }

    /// Updates what changes from frame to frame.
    pub fn update(
        &mut self,
        (frame, frame_plan): (&CullFrame, &Plan),
        views: &[OcclusionView],
        (history, cuts): (&History, &[u64]),
        now: u64,
    ) {
        let plan = &mut self.planned.plan;
        for (number, request) in self.requests.iter().enumerate() {
            for (level, (batch, row)) in request.sources.iter().enumerate() {
                let planes = frame_plan.batches[*batch].chunk_views[*row as usize].planes;
                for list in 0..LISTS {
                    plan.set_planes(number, level * LISTS + list, planes);
                }
            }
        }
        self.occluded
            .update(plan, frame, views, (history, cuts), now);
    }

    /// The draws of a request's list; `None` if its instances are not hidden in the view.
    pub fn parts(&self, request: usize, list: DrawList) -> Option<&[DrawPart]> {
        let list = match list {
            DrawList::Kept | DrawList::Early => return None,
            DrawList::Late => 0,
            DrawList::Visible => 1,
        };
        // Their indices increase.
        let requests = &self.requests;
        let found = requests.binary_search_by_key(&request, |known| known.index);
        self.draws.get(requests[found.ok()?].draws[list].clone())
    }
}

/// What the plan of a request is made from.
struct LateInput<'a> {
    index: usize,
    request: &'a CullRequest,
    set: &'a Set,
    sources: Vec<(usize, u32)>,
    shapes: Vec<DrawShape>,
    more: Vec<DrawShape>,
    rows: Vec<ViewPlanes>,
}

impl<'a> LateInput<'a> {
    fn new(
        (frame, frame_plan): (&'a CullFrame, &Plan),
        view: &OcclusionView,
        sets: &'a ResidentSets,
        index: usize,
    ) -> Option<Self> {
        let request = frame.requests.get(index)?;
        let slot = slot_of(frame, index, view.view)?;
        let mut input = Self {
            index,
            request,
            set: sets.get(request.set)?,
            sources: Vec::new(),
            shapes: Vec::new(),
            more: further_shapes(request, LISTS).collect(),
            rows: Vec::new(),
        };
        let coarser = coarser(request).iter().map(|level| level.shape);
        let parts = frame_plan.parts(index, slot);
        for (level, shape) in core::iter::once(request.shape).chain(coarser).enumerate() {
            let part = parts.iter().find(|part| part.level == level)?;
            let planes = frame_plan.batches[part.batch].chunk_views[part.row as usize].planes;
            input.sources.push((part.batch, part.row));
            input.shapes.extend([shape; LISTS]);
            input.rows.extend([planes; LISTS]);
        }
        Some(input)
    }

    fn to_plan(&self) -> PlanRequest<'_> {
        PlanRequest {
            regions: &self.set.regions,
            len: self.set.len,
            scale: self.set.channels.scale,
            world_from_local: self.request.world_from_local,
            sphere: self.request.sphere,
            shapes: &self.shapes,
            more: &self.more,
            fades: self.request.fade > 0.0,
            thins: false,
            rows: &self.rows,
            row_group: LISTS,
        }
    }
}
