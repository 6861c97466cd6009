//! The draws of the meshlets that a frame kept.

use super::{batch::MeshletBatch, culler::MeshletCuller, layout::result_offset};
use crate::cull::{Culler, DrawPart, DrawSource, IndirectDraws, Version, layout::DrawCommand};
use wgpu::Buffer;

/// The two draws of a part; one of them draws nothing.
pub struct MeshletDraw<'a> {
    /// Draws survivors whole if their meshlets did not fit: an indexed command, with the culler's
    /// survivors bound.
    pub whole: IndirectDraws<'a>,
    /// Draws meshlets: indexed commands, with [`MeshletCuller::survivors`] bound in place of the
    /// survivors.
    pub meshlets: IndirectDraws<'a>,
}

impl MeshletCuller {
    /// The draws of a part of the culler's plan; `None` if the culler's draw is used.
    #[must_use]
    pub fn draw<'a>(&'a self, culler: &'a Culler, part: &DrawPart) -> Option<MeshletDraw<'a>> {
        let index = *self.lookup.get(&(part.batch, part.row))?;
        let batch = self.batch(part.batch)?;
        let row = batch.row_table.get(index as usize)?;
        let offset = |draw: u32| u64::from(draw) * size_of::<DrawCommand>() as u64;
        let Some(DrawSource::Indirect(args)) = culler.draw_source(part) else {
            return None;
        };
        let draws = batch.draws();
        Some(MeshletDraw {
            // Unlike the culler's commands, meshlet commands have no draw count of 1 in front of
            // them.
            whole: IndirectDraws::one(draws, offset(row.first_draw), args.buffer),
            meshlets: IndirectDraws {
                buffer: draws,
                offset: offset(row.first_draw + 1),
                count: (batch.results(), result_offset(index)),
                max: row.meshlet_count,
            },
        })
    }

    /// The ids that the meshlet draws of a batch bind in place of the culler's survivors, and a
    /// version that changes when the buffer is replaced.
    #[must_use]
    pub fn survivors(&self, batch: usize) -> Option<(&Buffer, Version)> {
        let batch = self.batch(batch)?;
        Some((batch.survivors(), batch.version))
    }

    pub(super) fn batch(&self, index: usize) -> Option<&MeshletBatch> {
        let (_, key) = self.keys.iter().find(|(batch, _)| *batch == index)?;
        self.batches.get(key)
    }
}
