//! What the rows of a plan mean.

use super::requests::views_of;
use crate::cull::{
    plan::{DrawPart, Plan, planned::RowMeaning},
    request::{CullFrame, DrawList},
};
use std::sync::Arc;

/// Request, view and number of instances of each row of each batch.
/// `early` are the rows that may be hidden.
pub(super) fn row_meanings(
    frame: &CullFrame,
    plan: &Plan,
    early: &[DrawPart],
) -> Vec<Arc<[RowMeaning]>> {
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
