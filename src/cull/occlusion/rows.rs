//! The tables of rows that may be hidden, of a plan's batches.

use super::{
    history::{History, SlotKey},
    motion::Motions,
    view::{DepthBuffer, OcclusionView},
};
use crate::cull::{
    layout::{
        OCCLUSION_IS_CUT, OCCLUSION_IS_FROZEN, OCCLUSION_IS_NEW, OcclusionRow, Projection, ROUNDING,
    },
    plan::{BatchPlan, DrawPart, Plan, greatest_stretch},
    request::CullFrame,
};
use core::ops::Range;
use glam::{Affine3A, DMat4, Mat4};

/// The rows of a plan that may be hidden.
#[derive(Default)]
pub(in crate::cull) struct OccludedRows {
    rows: Vec<OccludedRow>,
}

/// A row that may be hidden.
struct OccludedRow {
    /// Index of the batch.
    batch: usize,
    /// Index of its chunk in the batch.
    chunk: usize,
    /// Index in the batch's table.
    place: usize,
    /// Index of the request in the frame.
    request: usize,
    /// Index among the frame's views in which instances may be hidden.
    view: usize,
    slot: SlotKey,
}

impl OccludedRows {
    /// Adds a row of `plan` to its batch's table. `part` is the row; `visible` is the row of all
    /// visible survivors, of a late plan. `level` is its level of detail.
    pub fn add(
        &mut self,
        plan: &mut Plan,
        (part, visible): (&DrawPart, Option<&DrawPart>),
        (request, request_key): (usize, u64),
        (view, view_key): (usize, u64),
        level: u32,
    ) {
        let batch = &mut plan.batches[part.batch];
        let first_count = |row: u32| batch.chunk_views[row as usize].first_count;
        let chunk = &batch.chunks[part.chunk as usize];
        let row = OcclusionRow {
            sphere: chunk.sphere,
            first_instance: chunk.first_instance,
            instance_count: chunk.instance_count,
            chunk_flags: chunk.flags,
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
            request,
            view,
            slot: SlotKey {
                request: request_key,
                view: view_key,
                level,
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

    /// Gives the rows their records in frame `now`.
    pub fn use_slots(&self, plan: &Plan, history: &mut History, now: u64) {
        for row in &self.rows {
            history.use_slot(plan.batches[row.batch].page, row.slot, now);
        }
    }

    /// Updates what changes from frame to frame: projections, records and lengths.
    pub fn update(
        &self,
        plan: &mut Plan,
        frame: &CullFrame,
        views: &[OcclusionView],
        (history, motions): (&History, &Motions),
        now: u64,
    ) {
        // Contiguous rows of one request in one view have one projection.
        let mut last = None;
        for row in &self.rows {
            let (Some(view), Some(request)) =
                (views.get(row.view), frame.requests.get(row.request))
            else {
                continue;
            };
            let of = (row.view, row.request);
            let (projection, is_cut) = match last {
                Some((known, seen)) if known == of => seen,
                _ => {
                    let world_from_local = &request.world_from_local;
                    let stretch = greatest_stretch(&world_from_local.matrix3);
                    let motion = motions.get(&row.slot.view);
                    let width = 2.0 * request.sphere.radius * stretch;
                    let near = view.near_pixels * 2.0 / view.depth.size.y as f32;
                    let is_cut = motion.is_none_or(|motion| motion.is_cut(near, width));
                    (projection_in(view, world_from_local), is_cut)
                }
            };
            last = Some((of, (projection, is_cut)));
            let batch: &mut BatchPlan = &mut plan.batches[row.batch];
            let found = history.find(batch.page, &row.slot, now);
            let to = &mut batch.occlusion[row.place];
            to.projection = projection;
            to.instance_count = batch.chunks[row.chunk].instance_count;
            let (first_record, is_new) = found.unwrap_or((0, true));
            to.first_record = first_record;
            to.flags = if is_new { OCCLUSION_IS_NEW } else { 0 };
            if view.is_frozen {
                to.flags |= OCCLUSION_IS_FROZEN;
            }
            if is_cut {
                to.flags |= OCCLUSION_IS_CUT;
            }
            to.near_pixels = view.near_pixels;
        }
    }
}

/// To depths as a viewport with this range stores them.
fn stored_from_clip(range: &Range<f32>) -> DMat4 {
    let (start, end) = (f64::from(range.start), f64::from(range.end));
    let mut matrix = DMat4::IDENTITY;
    (matrix.z_axis.z, matrix.w_axis.z) = (end - start, start);
    matrix
}

/// How a view sees a set.
pub(super) fn projection_in(view: &OcclusionView, world_from_local: &Affine3A) -> Projection {
    let clip_from_set = view.clip_from_world.as_dmat4() * Mat4::from(*world_from_local).as_dmat4();
    let clip_from_set = stored_from_clip(&view.depth.range) * clip_from_set;
    let DepthBuffer { size, samples, .. } = view.depth;
    let projection = Projection::new(clip_from_set, size, samples, view.is_jittered);
    // Positions in the world are rounded when they are drawn: by this much in the set's units.
    let world_from_local = &world_from_local;
    let from_world = world_from_local.matrix3.inverse();
    let far = world_from_local.translation.abs().max_element();
    match far * greatest_stretch(&from_world) * ROUNDING {
        rounded if rounded.is_finite() => projection.widened(rounded),
        // A flat set.
        _ => Projection::default(),
    }
}
