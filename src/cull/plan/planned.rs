//! The batches of a frame, as they are run.

use super::{Plan, mend::MendedRequest};
use crate::cull::request::DrawList;
use std::sync::Arc;

/// Name of a batch, which stays the same from frame to frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BatchKey {
    /// The page.
    pub page: usize,
    /// Index among the batches of the page.
    pub ordinal: usize,
    /// [`OcclusionView::key`](crate::cull::OcclusionView::key) of the view whose visible instances
    /// the batch lists; `None` if the frustum alone decides, or comes first.
    pub visible_in: Option<u64>,
}

/// What the rows of a batch mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowMeaning {
    /// [`CullRequest::key`].
    pub request: u64,
    /// Index of the view in the frame.
    pub view: u32,
    /// Index of the level of detail, also counted over requests that share out levels.
    pub level: u32,
    /// Number of instances that the row tests; 0 for coarser levels.
    pub tested: u32,
    /// What the row lists.
    pub list: DrawList,
    /// Number of indices or vertices that each survivor draws besides the row's own command.
    pub more_elements: u32,
}

/// The batches of a frame: their tables, names and the meanings of their rows.
#[derive(Default)]
pub(in crate::cull) struct PlannedBatches {
    pub plan: Plan,
    /// Keys of the plan's batches.
    pub keys: Vec<BatchKey>,
    /// Meanings of the rows of each batch.
    pub meanings: Vec<Arc<[RowMeaning]>>,
}

impl PlannedBatches {
    /// Gives a request its new transform and length.
    pub fn mend(&mut self, request: usize, to: &MendedRequest<'_>) {
        self.plan.mend(request, to);
        for part in &self.plan.draws[self.plan.all_parts(request)] {
            let chunk = &self.plan.batches[part.batch].chunks[part.chunk as usize];
            let (tested, row) = (chunk.instance_count, part.row as usize);
            let rows = &mut self.meanings[part.batch];
            if rows[row].level == 0 && rows[row].tested != tested {
                Arc::make_mut(rows)[row].tested = tested;
            }
        }
    }
}

/// Page and ordinal of each batch. Pages are few and numbered from zero.
pub(in crate::cull) fn batch_keys(plan: &Plan, visible_in: Option<u64>) -> Vec<BatchKey> {
    let pages = plan.batches.iter().map(|batch| batch.page + 1).max();
    let mut ordinals = vec![0; pages.unwrap_or(0)];
    let key = |page: usize| {
        let ordinal = ordinals[page];
        ordinals[page] += 1;
        BatchKey {
            page,
            ordinal,
            visible_in,
        }
    };
    plan.batches
        .iter()
        .map(|batch| batch.page)
        .map(key)
        .collect()
}
