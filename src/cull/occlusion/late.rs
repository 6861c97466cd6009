//! The plan of a view's late lists: two rows for each row that may be hidden, of what is late and
//! of all that is visible.
//!
//! The rows of a list are contiguous, level after level, so that the levels of a list can be one
//! draw. A region too large for a batch with all its rows has both rows of a level together.
//!
//! ```text
//! three levels            late 0, late 1, late 2, visible 0, visible 1, visible 2
//! a region of 60 M        late 0, visible 0 | late 1, visible 1 | late 2, visible 2
//! ```

use super::rows::{KnownProjections, ViewHistory};
use crate::cull::{
    layout::{BLOCK, ViewPlanes},
    plan::{
        DrawPart, Plan, PlanLimits, PlanRequest,
        mend::MendedRequest,
        occluded_rows::{NewOccludedRow, OccludedRows},
        planned::{PlannedBatches, RowMeaning, batch_keys},
        planner::{further_shapes, hidden_requests, slot_of},
    },
    request::{CullFrame, CullRequest, DrawList, DrawShape, OcclusionView},
    store::{ResidentSets, Set},
};
use core::ops::Range;

/// The lists of a level: late, visible.
const LISTS: usize = 2;

/// The plan of a view's late lists.
#[derive(Default)]
pub(in crate::cull) struct LatePlan {
    pub planned: PlannedBatches,
    occluded: OccludedRows,
    requests: Vec<LateRequest>,
    draws: Vec<DrawPart>,
}

/// The order of a request's rows.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RowOrder {
    levels: usize,
    /// List after list; otherwise level after level.
    by_list: bool,
}

impl RowOrder {
    /// The rows that share a batch.
    fn row_group(self) -> usize {
        match self.by_list {
            true => self.levels * LISTS,
            false => LISTS,
        }
    }

    /// The level and the list of each row, in order.
    fn rows(self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.levels * LISTS).map(move |row| self.of_row(row))
    }

    /// The level and the list of a row.
    fn of_row(self, row: usize) -> (usize, usize) {
        match self.by_list {
            true => (row % self.levels, row / self.levels),
            false => (row / LISTS, row % LISTS),
        }
    }

    /// The row of a level in a list.
    fn row(self, level: usize, list: usize) -> usize {
        match self.by_list {
            true => list * self.levels + level,
            false => level * LISTS + list,
        }
    }
}

/// A request whose instances may be hidden in the view.
struct LateRequest {
    /// Its index in the frame.
    index: usize,
    order: RowOrder,
    /// Batch and row of the frame's plan from which each level takes its planes.
    sources: Vec<(usize, u32)>,
    /// Its draws in [`LatePlan::draws`]: late, visible.
    draws: [Range<usize>; LISTS],
}

impl LatePlan {
    /// Plans the lists of the `view_index`-th of the views in which instances may be hidden.
    /// `frame_plan` is the plan of the frame. Draws count batches from `first_batch` on.
    pub fn build(
        frame: &CullFrame,
        frame_plan: &Plan,
        view_index: usize,
        view: &OcclusionView,
        sets: &ResidentSets,
        limits: PlanLimits,
        first_batch: usize,
    ) -> Self {
        let inputs: Vec<_> = hidden_requests(frame, view, sets, limits)
            .filter_map(|index| LateInput::new(frame, frame_plan, view, sets, limits, index))
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
            let order = input.order;
            let parts = plan.parts(number, 0).to_vec();
            // Level after level, and of each level region after region.
            let rows = |list: usize| {
                let is_of = move |part: &&DrawPart| order.of_row(part.level).1 == list;
                parts.iter().filter(is_of)
            };
            for (part, visible) in rows(0).zip(rows(1)) {
                let row = NewOccludedRow {
                    part,
                    visible: Some(visible),
                    request_index: input.index,
                    request: input.request,
                    view_index,
                    view,
                    level: order.of_row(part.level).0,
                };
                late.occluded.add(&mut plan, row);
            }
            let mut draws = [0..0, 0..0];
            let lists = [DrawList::Late, DrawList::Visible];
            for (draws, (row, list)) in draws.iter_mut().zip(lists.into_iter().enumerate()) {
                let first = late.draws.len();
                for part in rows(row) {
                    let (level, _) = order.of_row(part.level);
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
                order,
                sources: input.sources.clone(),
                draws,
            });
        }
        late.planned = PlannedBatches {
            keys: batch_keys(&plan, Some(view.key)),
            meanings: meanings.into_iter().map(Into::into).collect(),
            plan,
        };
        if !frame_plan.views.is_empty() {
            late.planned.plan.start_sharing();
        }
        late
    }

    /// Starts a frame whose late lists are planned as in the frame before.
    pub fn start_mends(&mut self) {
        self.planned.plan.start_mends();
    }

    /// Gives requests of the frame their new transforms and lengths.
    pub fn mend(&mut self, frame: &CullFrame, sets: &ResidentSets, moved: &[usize]) {
        if !moved.is_empty() {
            self.occluded.settled = None;
        }
        for &index in moved {
            if let Some(number) = self.number_of(index)
                && let Some(to) = MendedRequest::of(frame, sets, index)
            {
                self.planned.plan.mend(number, &to);
            }
        }
    }

    /// The place of a request of the frame among the plan's requests.
    fn number_of(&self, request: usize) -> Option<usize> {
        // Their indices increase.
        let requests = &self.requests;
        let found = requests.binary_search_by_key(&request, |known| known.index);
        found.ok()
    }

    /// Updates what changes from frame to frame. Of the planes, the kernels of late lists read the
    /// order alone, and meshlets all.
    pub fn update(
        &mut self,
        frame: &CullFrame,
        frame_plan: &Plan,
        views: &[OcclusionView],
        past: &ViewHistory,
        known: KnownProjections<'_>,
        now: u64,
    ) {
        let plan = &mut self.planned.plan;
        for (number, request) in self.requests.iter().enumerate() {
            for (level, (batch, row)) in request.sources.iter().enumerate() {
                let source = &frame_plan.batches[*batch];
                let row = *row as usize;
                let rows = (0..LISTS).map(|list| request.order.row(level, list));
                match source.views_of_rows.get(row) {
                    Some(view) => rows.for_each(|row| plan.share_view(number, row, *view)),
                    None => {
                        let planes = source.chunk_views[row].planes;
                        let rests = source.resting.get(row).copied().unwrap_or_default();
                        rows.for_each(|row| {
                            plan.set_planes(number, row, planes);
                            plan.set_resting(number, row, rests);
                        });
                    }
                }
            }
        }
        if self.occluded.stay(views, past) {
            self.occluded.project(plan, views, known);
        } else {
            (self.occluded).update(plan, frame, views, past, known, now);
        }
    }

    /// The draws of a request's list; `None` if its instances are not hidden in the view.
    pub fn parts(&self, request: usize, list: DrawList) -> Option<&[DrawPart]> {
        let list = match list {
            DrawList::Kept | DrawList::Early => return None,
            DrawList::Late => 0,
            DrawList::Visible => 1,
        };
        let found = &self.requests[self.number_of(request)?];
        self.draws.get(found.draws[list].clone())
    }
}

/// What the plan of a request is made from.
struct LateInput<'a> {
    index: usize,
    request: &'a CullRequest,
    set: &'a Set,
    order: RowOrder,
    sources: Vec<(usize, u32)>,
    shapes: Vec<DrawShape>,
    more: Vec<DrawShape>,
    rows: Vec<ViewPlanes>,
}

impl<'a> LateInput<'a> {
    fn new(
        frame: &'a CullFrame,
        frame_plan: &Plan,
        view: &OcclusionView,
        sets: &'a ResidentSets,
        limits: PlanLimits,
        index: usize,
    ) -> Option<Self> {
        let request = frame.requests.get(index)?;
        let set = sets.get(request.set)?;
        let slot = slot_of(frame, index, view.view)?;
        let parts = frame_plan.parts(index, slot);
        let levels = request.level_count();
        let source = |level: usize| {
            let part = parts.iter().find(|part| part.level == level)?;
            Some((part.batch, part.row))
        };
        let sources: Vec<_> = (0..levels).map(source).collect::<Option<_>>()?;
        let mut regions = set.regions.iter();
        let order = RowOrder {
            levels,
            by_list: regions.all(|region| {
                let blocks = u64::from(region.capacity.div_ceil(BLOCK));
                blocks * (levels * LISTS) as u64 <= u64::from(limits.counts)
            }),
        };
        let shape = |level: usize| match level.checked_sub(1) {
            None => request.shape,
            Some(at) => request.coarser_levels()[at].shape,
        };
        let planes = |level: usize| {
            let (batch, row) = sources[level];
            frame_plan.batches[batch].chunk_views[row as usize].planes
        };
        let rows = order.rows();
        let more = rows.flat_map(|(level, _)| further_shapes(request, level));
        Some(Self {
            index,
            request,
            set,
            order,
            shapes: order.rows().map(|(level, _)| shape(level)).collect(),
            more: more.collect(),
            rows: order.rows().map(|(level, _)| planes(level)).collect(),
            sources,
        })
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
            rings: None,
            row_group: self.order.row_group(),
            lists: LISTS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_list_are_contiguous_or_rows_of_a_level_are() {
        let rows = |by_list| RowOrder { levels: 3, by_list }.rows().collect::<Vec<_>>();
        assert_eq!(rows(true), [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]);
        assert_eq!(
            rows(false),
            [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
        );
        for order in [true, false].map(|by_list| RowOrder { levels: 3, by_list }) {
            for (row, (level, list)) in order.rows().enumerate() {
                assert_eq!(order.row(level, list), row);
            }
        }
    }
}
