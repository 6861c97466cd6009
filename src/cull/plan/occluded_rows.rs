//! The rows of a plan that may be hidden.

use super::{DrawPart, Plan, center_flag};
use crate::cull::{
    gpu::version::Version,
    layout::{CHUNK_OFF_CENTER, OcclusionRow},
    request::{CullRequest, OcclusionView},
};
use glam::Affine3A;

/// The rows of a plan that may be hidden.
#[derive(Default)]
pub(in crate::cull) struct OccludedRows {
    pub rows: Vec<OccludedRow>,
    /// The view and the transform of each of [`Plan::projections`].
    pub projected: Vec<(usize, Affine3A)>,
    /// What the rows hold for; `None` if the next frame must look at each, because a record is new,
    /// a view was cut or a set has moved.
    pub settled: Option<SettledInputs>,
}

/// What rows depend on that may be hidden, besides their plan and their projections, if no record
/// is new and no view was cut.
pub(in crate::cull) struct SettledInputs {
    /// [`History::version`](crate::cull::run::history::History::version).
    pub history: Version,
    /// Of each view, [`OcclusionView::near_pixels`](crate::cull::OcclusionView), and whether it is
    /// frozen.
    pub views: Vec<(f32, bool)>,
}

/// A row that may be hidden.
pub(in crate::cull) struct OccludedRow {
    /// Index of the batch.
    pub batch: usize,
    /// Index of its chunk in the batch.
    pub chunk: usize,
    /// Index in the batch's table.
    pub place: usize,
    /// Index of the request in the frame.
    pub request: usize,
    /// Index among the frame's views in which instances may be hidden.
    pub view: usize,
    pub slot: SlotKey,
}

/// The blocks of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::cull) struct SlotKey {
    /// [`CullRequest::key`](crate::cull::CullRequest::key).
    pub request: u64,
    /// [`OcclusionView::key`](crate::cull::OcclusionView::key).
    pub view: u64,
    /// Index of the level of detail.
    pub level: u32,
    /// First instance of the chunk in its page.
    pub first_instance: u32,
    /// Number of blocks that its records are for: at least as many as it has.
    pub blocks: u32,
}

/// A row of a plan that is to be added.
pub(in crate::cull) struct NewOccludedRow<'a> {
    pub part: &'a DrawPart,
    /// The row of all visible survivors, of a late plan.
    pub visible: Option<&'a DrawPart>,
    pub request: &'a CullRequest,
    /// Index of the request in the frame.
    pub request_index: usize,
    pub view: &'a OcclusionView,
    /// Index among the frame's views in which instances may be hidden.
    pub view_index: usize,
    /// Level of detail.
    pub level: usize,
}

impl OccludedRows {
    /// Adds a row to its batch's table.
    pub fn add(&mut self, plan: &mut Plan, new: NewOccludedRow<'_>) {
        let NewOccludedRow { part, visible, .. } = new;
        let sphere = new.request.sphere_of_level(new.level);
        let batch = &mut plan.batches[part.batch];
        let first_count = |row: u32| batch.chunk_views[row as usize].first_count;
        let chunk = &batch.chunks[part.chunk as usize];
        let row = OcclusionRow {
            sphere: sphere.center.extend(sphere.radius),
            first_instance: chunk.first_instance,
            first_bound: chunk.first_bound,
            instance_count: chunk.instance_count,
            chunk_flags: chunk.flags & !CHUNK_OFF_CENTER | center_flag(sphere),
            block_count: chunk.block_count,
            first_cell: batch.batch.occluded_cells,
            first_count: first_count(part.row),
            first_visible: visible.map_or(0, |part| first_count(part.row)),
            ..OcclusionRow::default()
        };
        self.rows.push(OccludedRow {
            batch: part.batch,
            chunk: part.chunk as usize,
            place: batch.occlusion.len(),
            request: new.request_index,
            view: new.view_index,
            slot: SlotKey {
                request: new.request.key,
                view: new.view.key,
                level: new.level as u32,
                first_instance: chunk.first_instance,
                // A set that grows keeps its records for a while.
                blocks: chunk.block_count.next_power_of_two(),
            },
        });
        batch.batch.occluded_rows += 1;
        batch.batch.occluded_cells += row.block_count;
        batch.occlusion.push(row);
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}
