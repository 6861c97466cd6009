//! From requests to tables: which chunks, rows and counts each batch has. This is a pure
//! computation, and the one place that derives sizes and dispatch counts.

mod bands;
mod batch;
mod limits;
mod memory;
pub(super) mod mend;
pub(super) mod occluded_rows;
pub(super) mod planned;
pub(super) mod planner;
mod rings;
mod shared_views;
mod siblings;

use crate::cull::{
    layout::{
        BLOCK, BLOCK_WORDS, CHUNK_HAS_SCALE, CHUNK_IS_THINNED, CHUNK_NON_UNIFORM_SCALE,
        CHUNK_OFF_CENTER, Chunk, ChunkView, Projection, VIEW_INDEXED, ViewPlanes, ViewSource,
    },
    policy::MANY_BLOCKS,
    request::{BoundingSphere, DrawShape},
    store::region::Region,
};
use crate::instance::ScaleKind;
use batch::OpenBatches;
pub use batch::{BatchPlan, MendedEntries};
use core::ops::Range;
use glam::{Affine3A, Vec3};
pub use limits::PlanLimits;
use memory::emptied;
pub use rings::RowRings;

impl DrawShape {
    /// A view of a chunk that draws the shape.
    fn to_chunk_view(self, planes: ViewPlanes, first_count: u32, block_count: u32) -> ChunkView {
        let draw = ChunkView {
            planes,
            first_count,
            block_count,
            ..ChunkView::default()
        };
        match self {
            Self::Indexed {
                index_count,
                first_index,
                base_vertex,
            } => ChunkView {
                element_count: index_count,
                first_element: first_index,
                base_vertex,
                flags: VIEW_INDEXED,
                ..draw
            },
            Self::NonIndexed {
                vertex_count,
                first_vertex,
            } => ChunkView {
                element_count: vertex_count,
                first_element: first_vertex,
                ..draw
            },
        }
    }
}

/// The draw call for the survivors of one view in one region of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DrawPart {
    /// Index of the batch.
    pub batch: usize,
    /// Index of the chunk in the batch.
    pub chunk: u32,
    /// Index of the row in the batch.
    pub row: u32,
    /// Index of the set's region.
    pub region: usize,
    /// Index of the level of detail, the full mesh first.
    pub level: usize,
}

impl DrawPart {
    /// Whether its row is the `rows`-th one after the row of `first`.
    #[must_use]
    pub fn follows(&self, first: &Self, rows: u32) -> bool {
        self.batch == first.batch && first.row.checked_add(rows) == Some(self.row)
    }
}

/// One request, resolved: the input of [`Plan::build`].
#[derive(Clone, Copy)]
pub struct PlanRequest<'a> {
    /// The set's regions, in order.
    pub regions: &'a [Region],
    /// Number of instances in the set.
    pub len: u32,
    /// The set's scales.
    pub scale: ScaleKind,
    /// Transform from the set's space to the world.
    pub world_from_local: Affine3A,
    /// Bounding sphere of the mesh.
    pub sphere: BoundingSphere,
    /// What each level of detail draws, the full mesh first.
    pub shapes: &'a [DrawShape],
    /// What each level draws besides, with the same survivors: level after level, equally many.
    pub more: &'a [DrawShape],
    /// Whether an instance may be drawn at two levels of one view.
    pub fades: bool,
    /// Whether views may thin instances out.
    pub thins: bool,
    /// What each row keeps, in the set's space: view after view, and of each view level after
    /// level.
    pub rows: &'a [ViewPlanes],
    /// The order of the rows' survivors, if `rows` are of requests of several sizes.
    pub rings: Option<RowRings>,
    /// Number of contiguous rows that share a batch.
    pub row_group: usize,
    /// Number of lists of a view, each of which may hold every instance once: each level of detail
    /// has a row in each.
    pub lists: usize,
}

/// The tables of a frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The batches.
    pub batches: Vec<BatchPlan>,
    /// The views that rows share; empty if each row has its own planes. The first keeps nothing.
    pub views: Vec<ViewSource>,
    /// The projections of rows that may be hidden.
    pub projections: Vec<Projection>,
    /// Draws of all requests and views. The draws of one view of one request are contiguous;
    /// [`Self::parts`] finds them.
    pub draws: Vec<DrawPart>,
    /// The end of the draws of each row, request after request. They begin at the end of the
    /// previous ones.
    ends: Vec<u32>,
    /// Each request's rows in `ends`, and behind them the number of all rows.
    requests: Vec<RequestRows>,
}

/// The rows of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct RequestRows {
    /// Number of rows before the request.
    first: u32,
    /// Number of rows per view.
    levels: u32,
}

impl Plan {
    /// The tables for `requests`.
    #[must_use]
    pub fn build(requests: &[PlanRequest<'_>], limits: PlanLimits) -> Self {
        Self::default().build_again(requests.iter().copied(), limits)
    }

    /// The tables for other `requests`, in the memory of these.
    #[must_use]
    pub(crate) fn build_again<'a>(
        self,
        requests: impl Iterator<Item = PlanRequest<'a>>,
        limits: PlanLimits,
    ) -> Self {
        let mut plan = Self {
            batches: Vec::with_capacity(self.batches.len()),
            views: emptied(self.views),
            projections: emptied(self.projections),
            draws: emptied(self.draws),
            ends: emptied(self.ends),
            requests: emptied(self.requests),
        };
        let mut open = OpenBatches {
            spare: self.batches,
            ..OpenBatches::default()
        };
        // The first batch, which has the most rows, comes first again.
        open.spare.reverse();
        plan.add(requests, limits, open);
        plan
    }

    /// Adds requests behind those that it has.
    fn add<'a>(
        &mut self,
        requests: impl Iterator<Item = PlanRequest<'a>>,
        limits: PlanLimits,
        mut open: OpenBatches,
    ) {
        let plan = self;
        let mut parts: Vec<Vec<DrawPart>> = Vec::new();
        for request in requests {
            plan.requests.push(RequestRows {
                first: plan.ends.len() as u32,
                levels: request.shapes.len() as u32,
            });
            let rows = request.rows.len();
            if parts.len() < rows {
                parts.resize_with(rows, Vec::new);
            }
            let mut left = request.len;
            for (index, region) in request.regions.iter().enumerate() {
                let instances = left.min(region.capacity);
                left -= instances;
                if instances > 0 {
                    let to = (&mut open, &mut parts[..]);
                    plan.add_region(&request, (index, region), instances, limits, to);
                }
            }
            for row in &mut parts[..rows] {
                plan.draws.append(row);
                plan.ends.push(plan.draws.len() as u32);
            }
        }
        plan.requests.push(RequestRows {
            first: plan.ends.len() as u32,
            levels: 1,
        });
        for batch in &mut plan.batches {
            batch.batch.dispatch_width = batch.batch.block_count.min(limits.workgroups);
            batch.crossed_block_per_subgroup = batch.batch.count_len > limits.few_counts;
            batch.block_per_subgroup = batch.batch.row_count == batch.batch.chunk_count
                && batch.batch.count_len > limits.few_counts.saturating_mul(MANY_BLOCKS);
            batch.number_siblings();
            batch.number_strips(limits.few_counts / 2);
            batch.number_order_tiles(limits.fine_words);
            // `compact` adds up whole blocks only.
            let is_scanned =
                batch.batch.count_len > limits.few_counts || batch.batch.unit_words < BLOCK_WORDS;
            batch.batch.is_scanned = u32::from(is_scanned);
        }
    }

    /// Notes whether the `row`-th row of a request keeps nothing at present.
    pub(in crate::cull) fn set_resting(&mut self, request: usize, row: usize, rests: bool) {
        for part in self.part_range(request, row..row + 1) {
            let part = self.draws[part];
            self.batches[part.batch].set_resting(part.chunk, part.row, rests);
        }
    }

    /// Replaces what the `row`-th row of a request keeps.
    pub(crate) fn set_planes(&mut self, request: usize, row: usize, planes: ViewPlanes) {
        for part in &self.draws[self.part_range(request, row..row + 1)] {
            self.batches[part.batch].chunk_views[part.row as usize].planes = planes;
        }
    }

    /// The draws of a request's `view`-th view: level after level, and of each level in instance
    /// order.
    #[must_use]
    pub fn parts(&self, request: usize, view: usize) -> &[DrawPart] {
        let levels = self.requests.get(request).map_or(0, |rows| rows.levels) as usize;
        &self.draws[self.part_range(request, view * levels..(view + 1) * levels)]
    }

    /// The draws of some rows of a request.
    fn part_range(&self, request: usize, rows: Range<usize>) -> Range<usize> {
        let Some([this, next]) = self.requests.get(request..request + 2) else {
            return 0..0;
        };
        let (first, end) = (
            this.first as usize + rows.start,
            this.first as usize + rows.end,
        );
        if first >= end || end > next.first as usize {
            return 0..0;
        }
        let begin = first.checked_sub(1).map_or(0, |before| self.ends[before]);
        begin as usize..self.ends[end - 1] as usize
    }

    /// Adds a region: one chunk with as many rows as a batch holds, then the next chunk.
    fn add_region(
        &mut self,
        request: &PlanRequest<'_>,
        (index, region): (usize, &Region),
        instances: u32,
        limits: PlanLimits,
        (open, parts): (&mut OpenBatches, &mut [Vec<DrawPart>]),
    ) {
        let blocks = instances.div_ceil(BLOCK);
        let max_groups = (limits.counts / blocks) as usize / request.row_group;
        let max_rows = max_groups.max(1) * request.row_group;
        for (group, rows) in request.rows.chunks(max_rows).enumerate() {
            let counts = blocks * rows.len() as u32;
            let at = self.open_batch(region.page, counts, limits, open);
            let batch = &mut self.batches[at];
            let first_row = batch.batch.row_count;
            let mut flags = match request.scale {
                ScaleKind::One => 0,
                ScaleKind::Uniform => CHUNK_HAS_SCALE,
                ScaleKind::NonUniform => CHUNK_HAS_SCALE | CHUNK_NON_UNIFORM_SCALE,
            };
            flags |= center_flag(request.sphere);
            if request.thins {
                flags |= CHUNK_IS_THINNED;
            }
            let mut chunk = Chunk {
                sphere: request.sphere.center.extend(request.sphere.radius),
                first_instance: region.first,
                first_bound: region.first_bound,
                instance_count: instances,
                first_block: batch.batch.block_count,
                block_count: blocks,
                first_row,
                row_count: rows.len() as u32,
                first_count: batch.batch.count_len,
                flags,
                ..Chunk::default()
            };
            chunk.place(&request.world_from_local);
            batch.chunks.push(chunk);
            // An instance that fades is in two levels.
            let max_rows_of_instance = request.lists * (1 + usize::from(request.fades));
            let mut rows_of_view = 0;
            let mut lists = 0;
            for (k, planes) in rows.iter().enumerate() {
                let first_count = batch.batch.count_len + k as u32 * blocks;
                let row = group * max_rows + k;
                let level = row % request.shapes.len();
                let more = request.more.len() / request.shapes.len();
                let siblings = &request.more[level * more..(level + 1) * more];
                let planes = match request.rings {
                    Some(rings) => rings.of(planes),
                    None => *planes,
                };
                let view = request.shapes[level].to_chunk_view(planes, first_count, blocks);
                batch.push_row(view, siblings);
                parts[row].push(DrawPart {
                    batch: at,
                    chunk: batch.batch.chunk_count,
                    row: first_row + k as u32,
                    region: index,
                    level,
                });
                rows_of_view = if level == 0 { 1 } else { rows_of_view + 1 };
                lists += u32::from(rows_of_view <= max_rows_of_instance);
            }
            batch.lists.push(lists);
            batch.max_survivors += u64::from(lists) * u64::from(instances);
            batch.awake_rows.push(rows.len() as u32);
            batch.awake_survivors += u64::from(lists) * u64::from(instances);
            batch.has_levels |= request.shapes.len() > 1;
            batch.batch.row_count += rows.len() as u32;
            batch.batch.block_count += blocks;
            batch.batch.count_len += counts;
            batch.batch.chunk_count += 1;
        }
    }

    /// The last batch of the page if `counts` more fit into it; otherwise a new one.
    fn open_batch(
        &mut self,
        page: usize,
        counts: u32,
        limits: PlanLimits,
        open: &mut OpenBatches,
    ) -> usize {
        match open.last.get(page).copied().flatten() {
            Some(at)
                if u64::from(self.batches[at].batch.count_len) + u64::from(counts)
                    <= u64::from(limits.counts) =>
            {
                at
            }
            _ => {
                let mut batch = open.spare.pop().unwrap_or_default().emptied();
                batch.page = page;
                self.batches.push(batch);
                open.set_last(page, self.batches.len() - 1);
                self.batches.len() - 1
            }
        }
    }
}

/// [`CHUNK_OFF_CENTER`] if the mesh's sphere is not around the mesh's origin.
fn center_flag(sphere: BoundingSphere) -> u32 {
    match sphere.center == Vec3::ZERO {
        true => 0,
        false => CHUNK_OFF_CENTER,
    }
}

#[cfg(test)]
mod tests;
