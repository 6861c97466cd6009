//! Uploads from the CPU, and the bounds that depend on them.

use super::{
    InstanceStore,
    region::SetId,
    residents::{ResidentSets, Set},
};
use crate::{
    cull::{
        CullError,
        gpu::Gpu,
        layout::{BLOCK, BoundJob},
    },
    instance::PackedInstance,
};
use hashbrown::HashMap;
use wgpu::Queue;

impl InstanceStore {
    /// Writes instances from `first` on.
    ///
    /// # Errors
    /// [`CullError::UnknownSet`], [`CullError::UploadOutOfRange`].
    pub fn upload(
        &mut self,
        queue: &Queue,
        id: SetId,
        first: usize,
        data: &[PackedInstance],
    ) -> Result<(), CullError> {
        let set = checked(&self.sets, id, first, data.len())?;
        self.pages.prove(queue, &set.regions)?;
        self.pages.write_instances(queue, &set.regions, first, data);
        self.stale.push((id, first..first + data.len()));
        self.uploaded += size_of_val(data) as u64;
        Ok(())
    }

    /// Writes scales from instance `first` on: [`ScaleKind::floats`](crate::instance::ScaleKind)
    /// numbers per instance, of the kind that was reserved.
    ///
    /// # Errors
    /// [`CullError::ScaleNumbers`]; otherwise same as [`Self::upload`].
    pub fn upload_scales(
        &mut self,
        queue: &Queue,
        id: SetId,
        first: usize,
        data: &[f32],
    ) -> Result<(), CullError> {
        let set = self.sets.get(id).ok_or(CullError::UnknownSet(id.0))?;
        let kind = set.channels.scale;
        let len = data.len().checked_div(kind.floats()).unwrap_or(0);
        if len * kind.floats() != data.len() {
            return Err(CullError::ScaleNumbers {
                numbers: data.len(),
                per_instance: kind.floats(),
            });
        }
        let set = checked(&self.sets, id, first, len)?;
        self.pages.prove(queue, &set.regions)?;
        (self.pages).write_scales(queue, &set.regions, first, (kind, data));
        self.stale.push((id, first..first + len));
        self.uploaded += size_of_val(data) as u64;
        Ok(())
    }

    /// Writes data from instance `first` on: as many words per instance as were reserved.
    ///
    /// # Errors
    /// [`CullError::DataWords`]; otherwise same as [`Self::upload`].
    pub fn upload_data(
        &mut self,
        queue: &Queue,
        id: SetId,
        first: usize,
        data: &[u32],
    ) -> Result<(), CullError> {
        let set = self.sets.get(id).ok_or(CullError::UnknownSet(id.0))?;
        let words = set.channels.data_words as usize;
        let len = data.len().checked_div(words).unwrap_or(0);
        if len * words != data.len() {
            return Err(CullError::DataWords {
                words: data.len(),
                per_instance: words,
            });
        }
        let set = checked(&self.sets, id, first, len)?;
        self.pages.prove(queue, &set.regions)?;
        (self.pages).write_data(queue, &set.regions, first, (words, data));
        self.uploaded += size_of_val(data) as u64;
        Ok(())
    }

    /// Ends the uploads before a frame: computes the bounds of blocks whose instances changed.
    pub(in crate::cull) fn end_uploads(&mut self, gpu: Gpu<'_>) {
        self.update_bounds(gpu);
        self.pages.belt.end_frame();
    }

    fn update_bounds(&mut self, gpu: Gpu<'_>) {
        if self.stale.is_empty() {
            return;
        }
        let stale = core::mem::take(&mut self.stale);
        let mut is_refused = false;
        let Some(builder) = &self.bounds else { return };
        let mut jobs: HashMap<usize, Vec<BoundJob>> = HashMap::new();
        for (id, range) in stale.iter().cloned() {
            let Some(set) = self.sets.get(id) else {
                continue;
            };
            let mut before = 0;
            for region in &set.regions {
                let used = (set.len - before).min(region.capacity);
                let from = (range.start as u32).max(before);
                let to = (range.end as u32).min(before + used);
                if from < to {
                    let first_block = (region.first + from - before) / BLOCK;
                    jobs.entry(region.page).or_default().push(BoundJob {
                        first_block,
                        block_count: (region.first + to - before).div_ceil(BLOCK) - first_block,
                        end: region.first + used,
                        scale_floats: set.channels.scale.floats() as u32,
                    });
                }
                before += used;
            }
        }
        for (page, jobs) in jobs {
            if let Some(page) = self.page_buffers(page) {
                let buffers = [page.instances, page.scales, page.bounds];
                let made = builder.run(gpu, buffers, &jobs);
                is_refused |= made.is_err();
                self.refusals.note(made);
            }
        }
        if is_refused {
            // Without bounds, new blocks are never kept: try again in the next frame.
            self.stale = stale;
        }
    }
}

/// The set, if it is resident and holds the instances that an upload writes.
pub(super) fn checked(
    sets: &ResidentSets,
    id: SetId,
    first: usize,
    len: usize,
) -> Result<&Set, CullError> {
    let set = sets.get(id).ok_or(CullError::UnknownSet(id.0))?;
    let end = first.saturating_add(len);
    if end > set.len as usize {
        return Err(CullError::UploadOutOfRange {
            first,
            end,
            len: set.len as usize,
        });
    }
    Ok(set)
}
