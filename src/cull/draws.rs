//! What the frame's draws are made of: commands, and the buffers that their vertex stage reads.

use crate::cull::{
    Culler, CullingTier, DrawPart,
    culler::BatchKey,
    layout::{DRAW_COUNT_OFFSET, DrawArgs, args_offset},
};
use wgpu::Buffer;

/// Commands that the GPU wrote, 20 bytes each ([`DrawArgs`]), and the word that says how many of them to draw.
///
/// A device with `MULTI_DRAW_INDIRECT_COUNT` reads the word; another draws [`most`](Self::most) commands, of which those
/// beyond the count draw nothing. Both ways draw the same.
#[derive(Clone, Copy, Debug)]
pub struct IndirectDraws<'a> {
    /// The argument buffer.
    pub buffer: &'a Buffer,
    /// Byte offset of the first command.
    pub offset: u64,
    /// Buffer and byte offset of the count.
    pub count: (&'a Buffer, u64),
    /// The most commands that the count can ask for.
    pub most: u32,
}

impl<'a> IndirectDraws<'a> {
    /// The one command at `offset` of `buffer`. `args` starts with [`Totals`](crate::cull::layout::Totals), whose draw
    /// count is 1.
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
    Direct(DrawArgs),
}

impl Culler {
    /// The draws of request `request` and its `view`-th view (both as indices into the frame).
    #[must_use]
    pub fn draw_parts(&self, request: usize, view: usize) -> &[DrawPart] {
        self.plan.parts(request, view)
    }

    /// The command of a draw.
    #[must_use]
    pub fn draw_source(&self, part: &DrawPart) -> Option<DrawSource<'_>> {
        let batch = self.batches.get(self.keys.get(part.batch)?)?;
        Some(if self.tier == CullingTier::Cpu {
            DrawSource::Direct(*batch.cpu_args.get(part.row as usize)?)
        } else {
            let args = batch.args();
            DrawSource::Indirect(IndirectDraws::one(args, args_offset(part.row), args))
        })
    }

    /// Key of the batch, and a number that changes when the buffers of [`Self::batch_buffers`] do.
    #[must_use]
    pub fn batch_version(&self, batch: usize) -> Option<(BatchKey, [u64; 2])> {
        let key = *self.keys.get(batch)?;
        Some((
            key,
            [self.batches.get(&key)?.generation, self.pages.generation],
        ))
    }

    /// What the vertex stage of a batch's draws reads: survivors, instances, scales, tags (the last two are of
    /// no meaning where no set of the page has the channel).
    #[must_use]
    pub fn batch_buffers(&self, batch: usize) -> Option<[&Buffer; 4]> {
        let key = self.keys.get(batch)?;
        let page = self.pages.page(key.0)?;
        let survivors = self.batches.get(key)?.survivors();
        Some([
            survivors,
            &page.instances,
            page.scales.as_ref().unwrap_or(&self.no_channel),
            page.tags.as_ref().unwrap_or(&self.no_channel),
        ])
    }
}
