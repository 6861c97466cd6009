//! Reading back what the passes wrote, with a wait: for tests, also the one at the start, and
//! verification, not for frames.

use super::Culler;
#[cfg(feature = "testing")]
use crate::cull::{BatchData, layout::Totals, plan::Plan, run::inspect::read_batch};
use crate::cull::{
    CullError, CullFrame, DrawPart, SetId,
    gpu::{Gpu, readback::read_buffer},
    layout::{DrawCommand, args_offset},
};

impl Culler {
    /// The tables of the current frame.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn plan(&self) -> &Plan {
        self.planner.whole_plan()
    }

    /// Reads everything that the stages wrote for a batch, and waits for it. On the `Cpu` tier,
    /// words and prefixes are empty.
    ///
    /// # Errors
    /// [`CullError::Readback`].
    #[cfg(feature = "testing")]
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
        self.read_shape(gpu, set, part, 0)
    }

    /// As [`Self::read_part`], by the command of a [shape](Culler::shape_source) of the request.
    ///
    /// # Errors
    /// [`CullError::Readback`].
    pub(crate) fn read_shape(
        &self,
        gpu: Gpu<'_>,
        set: SetId,
        part: &DrawPart,
        shape: usize,
    ) -> Result<Vec<u32>, CullError> {
        let (command, indexed) = self.read_command(gpu, part, shape)?;
        let (batch, ..) = self.batch(part.batch).ok_or_else(gone)?;
        let (first, len) = (command.first_survivor(indexed), command.instance_count);
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

    /// The command of a [shape](Culler::shape_source) of a draw, and whether it has indices; waits.
    ///
    /// # Errors
    /// [`CullError::Readback`], also if the request has fewer shapes.
    pub fn read_command(
        &self,
        gpu: Gpu<'_>,
        part: &DrawPart,
        shape: usize,
    ) -> Result<(DrawCommand, bool), CullError> {
        let (batch, _, plan) = self.batch(part.batch).ok_or_else(gone)?;
        let command = plan.command_of(part.row, shape).ok_or_else(gone)?;
        let draws: Vec<DrawCommand> = read_buffer(gpu, batch.args(), args_offset(command), 1)?;
        Ok((draws[0], plan.is_indexed(command)))
    }

    /// The sums of a batch of the frame, one of a view's [late](Culler::late_batches) ones, too;
    /// waits.
    ///
    /// # Errors
    /// [`CullError::Readback`].
    #[cfg(feature = "testing")]
    pub fn read_totals(&self, gpu: Gpu<'_>, batch: usize) -> Result<Totals, CullError> {
        let (batch, ..) = self.batch(batch).ok_or_else(gone)?;
        let totals: Vec<Totals> = read_buffer(gpu, batch.args(), 0, 1)?;
        Ok(totals[0])
    }
}

fn gone() -> CullError {
    CullError::Readback("the draw is not in the frame".into())
}
