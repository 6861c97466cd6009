//! Whole buffers of a batch, read back with a wait: for tests and verification.

use super::batch::GpuBatch;
use crate::cull::{
    CullError,
    compaction::Resource,
    gpu::{Gpu, readback::read_buffer},
    layout::{ChunkView, DrawCommand, MAX_TILES, Rank, Totals, args_offset},
    pipelines::Pipelines,
    plan::BatchPlan,
};

/// Everything that the stages wrote for one batch, read back with a wait: for tests and
/// verification. Buffers that the compaction does not have are empty.
#[derive(Clone, Debug, Default)]
pub struct BatchData {
    /// Visibility words.
    pub words: Vec<u32>,
    /// The rows that the GPU filled; empty if they have their own planes.
    pub rows: Vec<ChunkView>,
    /// Number of survivors per block and row.
    pub counts: Vec<u32>,
    /// The ranks, with a closing one. Their first words are written if
    /// [`Batch::is_near_first`](crate::cull::layout::Batch::is_near_first) is set, their places if
    /// [`Batch::is_scanned`](crate::cull::layout::Batch::is_scanned) is set.
    pub ranks: Vec<Rank>,
    /// Totals of the tiles of the scan, if
    /// [`Batch::is_scanned`](crate::cull::layout::Batch::is_scanned) is set.
    pub tiles: Vec<u32>,
    /// The arena: survivor ids, counted from the start of the page. The commands say which range
    /// belongs to which row. What lies between the regions of an unordered compaction is undefined.
    pub survivors: Vec<u32>,
    /// Totals.
    pub totals: Totals,
    /// One indirect command per row, then the sibling commands.
    pub draws: Vec<DrawCommand>,
}

/// Reads everything of one batch; without pipelines (the `Cpu` tier) only the arena, the totals and
/// the commands.
pub(crate) fn read_batch(
    gpu: Gpu<'_>,
    batch: &GpuBatch,
    plan: &BatchPlan,
    pipelines: Option<&Pipelines>,
) -> Result<BatchData, CullError> {
    let totals: Vec<Totals> = read_buffer(gpu, batch.args(), 0, 1)?;
    let totals = totals[0];
    let scratch = |slot: Resource| match batch.scratch(slot) {
        Some(buffer)
            if pipelines
                .is_some_and(|pipelines| pipelines.scratch().any(|other| other == slot)) =>
        {
            read_buffer(gpu, buffer, 0, slot.scratch_bytes(plan) as usize / 4)
        }
        _ => Ok(Vec::new()),
    };
    let mut tiles = scratch(Resource::Ranks)?;
    let ranks = tiles.split_off(tiles.len().min(MAX_TILES as usize));
    if plan.batch.is_scanned == 0 {
        tiles.clear();
    }
    tiles.truncate(plan.tile_count() as usize);
    let stored = totals.needed.min(batch.survivor_capacity()) as usize;
    Ok(BatchData {
        words: scratch(Resource::Words)?,
        rows: match batch.filled_rows() {
            Some(rows) => read_buffer(gpu, rows, 0, plan.chunk_views.len())?,
            None => Vec::new(),
        },
        counts: scratch(Resource::Counts)?,
        ranks: bytemuck::cast_slice(&ranks).to_vec(),
        tiles,
        survivors: read_buffer(gpu, batch.survivors(), 0, stored)?,
        totals,
        draws: read_buffer(
            gpu,
            batch.args(),
            args_offset(0),
            plan.command_count() as usize,
        )?,
    })
}
