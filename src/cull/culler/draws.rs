//! The draws of a frame: commands, and the buffers that their vertex stage reads.

use super::Culler;
use crate::cull::{
    CullingTier, DrawPart,
    layout::{DRAW_COUNT_OFFSET, DrawCommand, args_offset},
    run::BatchVersion,
};
use wgpu::Buffer;

/// Commands that the GPU wrote, 20 bytes each ([`DrawCommand`]), and the word that holds their
/// number.
///
/// A device with `MULTI_DRAW_INDIRECT_COUNT` reads the word. Another device draws
/// [`most`](Self::most) commands, of which those beyond the number draw nothing. Both draw the
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
    pub most: u32,
}

impl<'a> IndirectDraws<'a> {
    /// The one command at `offset` of `buffer`. `args` starts with
    /// [`Totals`](crate::cull::layout::Totals), whose draw count is 1.
    #[must_use]
    pub const fn one(buffer: &'a Buffer, offset: u64, args: &'a Buffer) -> Self {
        Self {
            buffer,
            offset,
            count: (args, DRAW_COUNT_OFFSET),
            most: 1,
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
    /// The draws of request `request` in its `view`-th view (both are indices into the frame).
    #[must_use]
    pub fn draw_parts(&self, request: usize, view: usize) -> &[DrawPart] {
        self.planner.plan().parts(request, view)
    }

    /// The command of a draw.
    #[must_use]
    pub fn draw_source(&self, part: &DrawPart) -> Option<DrawSource<'_>> {
        let batch = self.runner.batch(self.planner.keys().get(part.batch)?)?;
        Some(if self.tier == CullingTier::Cpu {
            DrawSource::Direct(*batch.cpu_args.get(part.row as usize)?)
        } else {
            let args = batch.args();
            DrawSource::Indirect(IndirectDraws::one(args, args_offset(part.row), args))
        })
    }

    /// Version of the buffers that a batch's draws bind ([`Self::batch_buffers`]).
    #[must_use]
    pub fn batch_version(&self, batch: usize) -> Option<BatchVersion> {
        let key = *self.planner.keys().get(batch)?;
        Some(BatchVersion {
            key,
            batch: self.runner.batch(&key)?.version,
            pages: self.store.pages_version(),
        })
    }

    /// What the vertex stage of a batch's draws binds: survivors, instances, scales, tags. The last
    /// two are another buffer, which is never read, if no set of the page has the channel.
    #[must_use]
    pub fn batch_buffers(&self, batch: usize) -> Option<[&Buffer; 4]> {
        let key = self.planner.keys().get(batch)?;
        let [instances, scales, tags] = self.store.draw_buffers(key.page)?;
        let survivors = self.runner.batch(key)?.survivors();
        Some([survivors, instances, scales, tags])
    }
}
