//! The draws of a frame: commands, and the buffers that their vertex stage reads.

use super::Culler;
use crate::cull::{
    BatchKey, CullingTier, DrawList, DrawPart, Version,
    gpu::draw_counts::DrawCounts,
    layout::{ChunkView, DRAW_COUNT_OFFSET, DrawCommand, Projection, args_offset},
    plan::{BatchPlan, planned::PlannedBatches},
    run::{BatchVersion, Runner, batch::GpuBatch, inputs::PyramidBuffers},
};
use core::ops::Range;
use glam::Affine3A;
use wgpu::Buffer;

/// Commands that the GPU wrote, 20 bytes each, and the word that holds their
/// number.
///
/// A device with `MULTI_DRAW_INDIRECT_COUNT` reads the word. Another device draws
/// [`max`](Self::max) commands, of which those beyond the number draw nothing. Both draw the
/// same.
#[derive(Clone, Copy, Debug)]
pub struct IndirectDraws<'a> {
    /// The argument buffer.
    pub buffer: &'a Buffer,
    /// Byte offset of the first command.
    pub offset: u64,
    /// Buffer and byte offset of the number of commands.
    pub count: (&'a Buffer, u64),
    /// Largest number of commands.
    pub max: u32,
}

impl<'a> IndirectDraws<'a> {
    /// The one command at `offset` of `buffer`. `args` starts with the totals of a batch, whose
    /// draw count is 1.
    #[must_use]
    pub const fn one(buffer: &'a Buffer, offset: u64, args: &'a Buffer) -> Self {
        Self {
            buffer,
            offset,
            count: (args, DRAW_COUNT_OFFSET),
            max: 1,
        }
    }
}

/// Where a draw's command comes from.
pub enum DrawSource<'a> {
    /// The GPU wrote it.
    Indirect(IndirectDraws<'a>),
    /// The CPU knows it.
    Direct(DrawCommand),
}

impl Culler {
    /// The draws of request `request` in its `view`-th view (both are indices into the frame): of
    /// what the frustum keeps, or in a view in which instances may be hidden, of
    /// [what is drawn early](DrawList::Early).
    #[must_use]
    pub fn draw_parts(&self, request: usize, view: usize) -> &[DrawPart] {
        self.planner.plan().parts(request, view)
    }

    /// The draws of a list of request `request` in its `slot`-th view, which is the frame's view
    /// `view`.
    #[must_use]
    pub fn draw_parts_of(
        &self,
        request: usize,
        slot: usize,
        view: u32,
        list: DrawList,
    ) -> &[DrawPart] {
        match (self.occluder.parts(request, view, list), list) {
            (Some(parts), _) => parts,
            (None, DrawList::Late) => &[],
            (None, _) => self.draw_parts(request, slot),
        }
    }

    /// Version of the frame's plan. While it stays, batches, rows and commands keep their indices:
    /// sets only move, or requests are added behind the others.
    #[must_use]
    pub fn plan_version(&self) -> Version {
        self.planner.version()
    }

    /// Number of batches that the frustum alone decides, or comes first in.
    pub(in crate::cull) fn early_batch_count(&self) -> usize {
        self.planner.keys().len()
    }

    /// Number of batches whose draws bind buffers.
    #[must_use]
    pub fn batch_count(&self) -> usize {
        self.early_batch_count() + self.occluder.batch_count()
    }

    /// A batch, its name and its plan. The batches of late lists come after
    /// the frame's.
    pub(super) fn batch(&self, batch: usize) -> Option<(&GpuBatch, &BatchKey, &BatchPlan)> {
        if batch < self.planner.keys().len() {
            return find(&self.runner, self.planner.planned(), batch);
        }
        let (runner, plan, index) = self.occluder.batch(batch)?;
        find(runner, &plan.planned, index)
    }

    /// The batches of the late lists of view `view` of the frame; none if it does not
    /// [hide](Culler::hides).
    #[must_use]
    pub fn late_batches(&self, view: u32) -> Range<usize> {
        self.occluder.batches_of(view)
    }

    /// The depth that a batch of late lists is compared with; `None` of other batches.
    #[must_use]
    pub(in crate::cull) fn batch_pyramid(&self, batch: usize) -> Option<PyramidBuffers<'_>> {
        self.occluder.pyramid_of(batch)
    }

    /// How view `view` of the frame sees a set with this transform, if it
    /// [hides](Culler::hides).
    #[must_use]
    pub(in crate::cull) fn projection_in(
        &self,
        view: u32,
        world_from_local: &Affine3A,
    ) -> Option<Projection> {
        self.occluder.projection_of(view, world_from_local)
    }

    /// The row of a draw, with its planes.
    #[must_use]
    pub(in crate::cull) fn row_of(&self, part: &DrawPart) -> Option<ChunkView> {
        // The rows of late lists share the views of the frame's.
        let shared = &self.planner.plan().views;
        self.batch_plan(part.batch)?.row(part.row, shared)
    }

    /// The tables of a batch. The batches of late lists come after the frame's.
    #[must_use]
    pub(in crate::cull) fn batch_plan(&self, batch: usize) -> Option<&BatchPlan> {
        let (_, _, plan) = self.batch(batch)?;
        Some(plan)
    }

    /// The command of a draw, of the request's [shape](crate::cull::CullRequest::shape).
    #[must_use]
    pub fn draw_source(&self, part: &DrawPart) -> Option<DrawSource<'_>> {
        self.shape_source(part, 0)
    }

    /// The command of a draw, of one of the request's shapes. 0 is
    /// [`CullRequest::shape`](crate::cull::CullRequest::shape); then come the shapes in
    /// [`CullRequest::more`](crate::cull::CullRequest::more). All draw the same survivors. `None`
    /// if the request has fewer shapes, or if the device refused the batch.
    #[must_use]
    pub fn shape_source(&self, part: &DrawPart, shape: usize) -> Option<DrawSource<'_>> {
        let (batch, _, plan) = self.batch(part.batch)?;
        let command = plan.command_of(part.row, shape)?;
        Some(if self.tier == CullingTier::Cpu {
            DrawSource::Direct(*batch.cpu_args.get(command as usize)?)
        } else {
            let args = batch.args();
            DrawSource::Indirect(IndirectDraws::one(args, args_offset(command), args))
        })
    }

    /// Index of a draw's command in its batch, for [`MultiDraws`](crate::cull::MultiDraws); of one
    /// of the request's shapes, as [`Self::shape_source`] counts them. `None` if there is none.
    #[must_use]
    pub fn command_of(&self, part: &DrawPart, shape: usize) -> Option<u32> {
        self.batch_plan(part.batch)?.command_of(part.row, shape)
    }

    /// The commands of `rows` contiguous rows of a batch as one draw, from the row of `first` on;
    /// each draws the request's [shape](crate::cull::CullRequest::shape). Their meshes must have
    /// indices, in the same buffers. `None` on [`CullingTier::Cpu`], for more rows than
    /// [`Culler::MAX_ROWS_OF_A_DRAW`], if the batch has fewer, or if the device refused it.
    #[must_use]
    pub fn rows_source(&self, first: &DrawPart, rows: u32) -> Option<IndirectDraws<'_>> {
        let (batch, _, plan) = self.batch(first.batch)?;
        let is_there = first.row.checked_add(rows)? as usize <= plan.chunk_views.len();
        let is_few = rows <= Self::MAX_ROWS_OF_A_DRAW;
        (is_there && is_few && self.tier != CullingTier::Cpu).then(|| IndirectDraws {
            buffer: batch.args(),
            offset: args_offset(first.row),
            count: self.draw_counts.word(rows),
            max: rows,
        })
    }

    /// The most rows of a [draw of several](Self::rows_source).
    pub const MAX_ROWS_OF_A_DRAW: u32 = DrawCounts::MAX;

    /// [Keys](crate::cull::CullRequest::key) of the requests that a batch draws.
    #[cfg(feature = "bevy")]
    pub(crate) fn batch_requests(&self, batch: usize) -> impl Iterator<Item = u64> {
        let meanings = match batch < self.early_batch_count() {
            true => self.planner.planned().meanings.get(batch),
            false => (self.occluder.batch(batch))
                .and_then(|(_, plan, index)| plan.planned.meanings.get(index)),
        };
        let rows = meanings.into_iter().flat_map(|rows| &**rows);
        rows.map(|row| row.request)
    }

    /// Version of the buffers that a batch's draws bind ([`Self::batch_buffers`]).
    #[must_use]
    pub fn batch_version(&self, batch: usize) -> Option<BatchVersion> {
        let (batch, key, _) = self.batch(batch)?;
        Some(BatchVersion {
            key: *key,
            batch: batch.version,
            pages: self.store.pages_version(),
        })
    }

    /// What the vertex stage of a batch's draws binds: survivors, instances, scales, data. The last
    /// two are another buffer, which is never read, if no set of the page has the channel.
    #[must_use]
    pub fn batch_buffers(&self, batch: usize) -> Option<[&Buffer; 4]> {
        let (batch, key, _) = self.batch(batch)?;
        let [instances, scales, data] = self.store.draw_buffers(key.page)?;
        Some([batch.survivors(), instances, scales, data])
    }
}

/// A batch of a plan, its name and its tables.
fn find<'a>(
    runner: &'a Runner,
    planned: &'a PlannedBatches,
    index: usize,
) -> Option<(&'a GpuBatch, &'a BatchKey, &'a BatchPlan)> {
    let key = planned.keys.get(index)?;
    Some((runner.batch(key)?, key, planned.plan.batches.get(index)?))
}
