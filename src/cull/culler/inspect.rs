//! Reading back what the passes wrote, with a wait: for tests and verification, not for frames.

use super::Culler;
use crate::cull::{
    BatchData, CullError, CullFrame, DrawPart, SetId,
    gpu::{Gpu, readback::read_buffer},
    layout::{DrawCommand, args_offset},
    plan::Plan,
    run::readback::read_batch,
};

impl Culler {
    /// The tables of the current frame.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        self.planner.plan()
    }

    /// Reads everything that the stages wrote for a batch, and waits for it. On the `Cpu` tier,
    /// words and prefixes are empty.
    ///
    /// # Errors
    /// [`CullError::Readback`].
    pub fn read_batch(&self, gpu: Gpu<'_>, batch: usize) -> Result<BatchData, CullError> {
        let missing = || CullError::Readback(format!("batch {batch} is not in the frame"));
        let plan = self.plan().batches.get(batch).ok_or_else(missing)?;
        let key = self.planner.keys().get(batch).ok_or_else(missing)?;
        let buffers = self.runner.batch(key).ok_or_else(missing)?;
        read_batch(gpu, buffers, plan, self.runner.pipelines())
    }

    /// The survivors of request `request` in its `view`-th view, as indices into the set, in order;
    /// waits.
    ///
    /// # Errors
    /// [`CullError::Readback`].
    pub fn read_survivors(
        &self,
        gpu: Gpu<'_>,
        frame: &CullFrame,
        request: usize,
        view: usize,
    ) -> Result<Vec<u32>, CullError> {
        let Some(set) = frame.requests.get(request).map(|request| request.set) else {
            return Ok(Vec::new());
        };
        let mut ids = Vec::new();
        for part in self.draw_parts(request, view) {
            ids.append(&mut self.read_part(gpu, set, part)?);
        }
        Ok(ids)
    }

    /// The survivors of one draw of `set`, as indices into the set, in order; waits.
    ///
    /// # Errors
    /// [`CullError::Readback`].
    pub fn read_part(
        &self,
        gpu: Gpu<'_>,
        set: SetId,
        part: &DrawPart,
    ) -> Result<Vec<u32>, CullError> {
        let gone = || CullError::Readback("the batch is gone".into());
        let (batch, _, plan) = self.batch(part.batch).ok_or_else(gone)?;
        let draws: Vec<DrawCommand> = read_buffer(gpu, batch.args(), args_offset(part.row), 1)?;
        let indexed = plan.chunk_views[part.row as usize].is_indexed();
        let (first, len) = (draws[0].first_survivor(indexed), draws[0].instance_count);
        let offset = u64::from(first) * 4;
        let page_ids: Vec<u32> = read_buffer(gpu, batch.survivors(), offset, len as usize)?;
        let regions = self.store.set_regions(set);
        let before: u32 = regions[..part.region]
            .iter()
            .map(|region| region.capacity)
            .sum();
        let first = regions[part.region].first;
        Ok(page_ids.into_iter().map(|id| id - first + before).collect())
    }
}
