//! What the meshlet stages read and wrote, read back with a wait: for tests.

use super::{
    culler::MeshletCuller,
    layout::{
        CELL_TILE, CELL_WORDS, GpuMeshlet, MeshletResult, MeshletRow, MeshletSizes, MeshletSpan,
        MeshletTotals,
    },
};
use crate::cull::{
    CullError, Culler, DrawPart, DrawSource, Gpu, IndirectDraws,
    gpu::readback::read_buffer,
    layout::{DrawCommand, args_offset},
};

/// Everything that the stages read and wrote for one batch, read back with a wait: for tests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeshletBatchData {
    /// Sizes.
    pub sizes: MeshletSizes,
    /// Rows.
    pub rows: Vec<MeshletRow>,
    /// Sums that `meshlet_expand` wrote.
    pub totals: MeshletTotals,
    /// What each row expands to.
    pub spans: Vec<MeshletSpan>,
    /// The bits of all cells.
    pub words: Vec<u32>,
    /// The prefixes of cells within tiles, and the closing entry.
    pub counts: Vec<u32>,
    /// The prefixes of tiles.
    pub partials: Vec<u32>,
    /// The ids, meshlet after meshlet.
    pub survivors: Vec<u32>,
    /// Commands.
    pub draws: Vec<DrawCommand>,
    /// Sums that `meshlet_args` wrote.
    pub result_totals: MeshletTotals,
    /// Results of the rows.
    pub results: Vec<MeshletResult>,
}

impl MeshletCuller {
    /// The meshlets of all meshes, as the GPU has them.
    #[must_use]
    pub fn meshlets(&self) -> Vec<GpuMeshlet> {
        self.tables.all()
    }

    /// Reads everything that the stages wrote for a batch of the culler, and waits: for tests.
    ///
    /// # Errors
    /// [`CullError::Readback`].
    pub fn read_batch(&self, gpu: Gpu<'_>, batch: usize) -> Result<MeshletBatchData, CullError> {
        let missing = || CullError::Readback(format!("batch {batch} has no meshlets"));
        let batch = self.batch(batch).ok_or_else(missing)?;
        let rows = batch.row_table.len();
        let [words, counts, partials] = batch.scratch();
        let head = size_of::<MeshletTotals>() as u64;
        let totals: Vec<MeshletTotals> = read_buffer(gpu, batch.spans(), 0, 1)?;
        let result_totals: Vec<MeshletTotals> = read_buffer(gpu, batch.results(), 0, 1)?;
        let cells = totals[0].cell_count as usize;
        let stored = result_totals[0]
            .needed_survivors
            .min(batch.capacities.survivors) as usize;
        let draws = batch.draw_count() as usize;
        Ok(MeshletBatchData {
            sizes: batch.sizes(),
            rows: batch.row_table.clone(),
            totals: totals[0],
            spans: read_buffer(gpu, batch.spans(), head, rows)?,
            words: read_buffer(gpu, words, 0, cells * CELL_WORDS as usize)?,
            counts: read_buffer(gpu, counts, 0, cells + 1)?,
            partials: read_buffer(gpu, partials, 0, cells / CELL_TILE as usize + 1)?,
            survivors: read_buffer(gpu, batch.survivors(), 0, stored)?,
            draws: read_buffer(gpu, batch.draws(), 0, draws)?,
            result_totals: result_totals[0],
            results: read_buffer(gpu, batch.results(), head, rows)?,
        })
    }

    /// Reads the commands and survivors of a batch of the culler, which the stages start from, and
    /// waits.
    ///
    /// # Errors
    /// [`CullError::Readback`].
    pub fn read_inputs(
        gpu: Gpu<'_>,
        culler: &Culler,
        batch: usize,
    ) -> Result<(Vec<DrawCommand>, Vec<u32>), CullError> {
        let missing = || CullError::Readback(format!("batch {batch} is not in the frame"));
        let part = DrawPart {
            batch,
            ..DrawPart::default()
        };
        let (Some(DrawSource::Indirect(IndirectDraws { buffer, .. })), Some([survivors, ..])) =
            (culler.draw_source(&part), culler.batch_buffers(batch))
        else {
            return Err(missing());
        };
        let rows = culler
            .batch_plan(batch)
            .map_or(0, |plan| plan.chunk_views.len());
        let draws = read_buffer(gpu, buffer, args_offset(0), rows)?;
        let len = survivors.size() as usize / 4;
        Ok((draws, read_buffer(gpu, survivors, 0, len)?))
    }
}
