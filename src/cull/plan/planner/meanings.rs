//! What the rows of a plan mean.

use super::requests::views_of;
use crate::cull::{
    plan::{DrawPart, Plan, planned::RowMeaning},
    request::{CullFrame, DrawList},
};
use std::sync::Arc;

/// Request, view and number of instances of each row of each batch. `known` is what the rows of the
/// first `first_new` requests mean, before other rows. `early` are the rows that may be hidden.
pub(super) fn row_meanings(
    frame: &CullFrame,
    plan: &Plan,
    known: &[Arc<[RowMeaning]>],
    first_new: usize,
    early: &[DrawPart],
) -> Vec<Arc<[RowMeaning]>> {
    let mut batches: Vec<_> = plan
        .batches
        .iter()
        .enumerate()
        .map(|(index, batch)| {
            let mut rows = Vec::with_capacity(batch.chunk_views.len());
            rows.extend(known.get(index).into_iter().flat_map(|known| known.iter()));
            rows.resize(batch.chunk_views.len(), RowMeaning::default());
            rows
        })
        .collect();
    for (index, request) in frame.requests.iter().enumerate().skip(first_new) {
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
    for (index, (rows, plan)) in batches.iter_mut().zip(&plan.batches).enumerate() {
        let first_row = known.get(index).map_or(0, |known| known.len() as u32);
        let chunks = &plan.chunks;
        let first_chunk = chunks.partition_point(|chunk| chunk.first_row < first_row);
        for chunk in &chunks[first_chunk..] {
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
