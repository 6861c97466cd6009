//! Uploads from the CPU, and the bounds that depend on them.

use super::{
    InstanceStore,
    bounds::{job_of, merged},
    region::SetId,
    residents::{ResidentSets, Set},
};
use crate::{
    cull::{CullError, gpu::Gpu, layout::BoundJob, refusal::Missing},
    instance::PackedInstance,
};
use core::ops::Range;
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
        self.upload_parts(queue, id, [(first, data)].into_iter())
    }

    /// Writes parts of a set's instances, each from the given index on. Many small parts cost
    /// little more than one.
    ///
    /// # Errors
    /// Same as [`Self::upload`].
    pub fn upload_parts<'a>(
        &mut self,
        queue: &Queue,
        id: SetId,
        parts: impl Iterator<Item = (usize, &'a [PackedInstance])> + Clone,
    ) -> Result<(), CullError> {
        let ranges = parts
            .clone()
            .map(|(first, data)| first..first.saturating_add(data.len()));
        let set = checked(&self.sets, id, ranges.clone())?;
        self.pages.prove(queue, &set.regions)?;
        let sizes = parts.clone().map(|(_, data)| size_of_val(data) as u64);
        self.uploaded += sizes.sum::<u64>();
        self.work.writes += self.pages.write_instances(queue, &set.regions, parts);
        self.stale.extend(ranges.map(|range| (id, range)));
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
        self.upload_scale_parts(queue, id, [(first, data)].into_iter())
    }

    /// Writes parts of a set's scales, each from the given instance on.
    ///
    /// # Errors
    /// Same as [`Self::upload_scales`].
    pub fn upload_scale_parts<'a>(
        &mut self,
        queue: &Queue,
        id: SetId,
        parts: impl Iterator<Item = (usize, &'a [f32])> + Clone,
    ) -> Result<(), CullError> {
        let set = self.sets.get(id).ok_or(CullError::UnknownSet(id.0))?;
        let (kind, floats) = (set.channels.scale, set.channels.scale.floats());
        let mut data = parts.clone().map(|(_, data)| data);
        if let Some(odd) = data.find(|data| !is_rows_of(data.len(), floats)) {
            return Err(CullError::ScaleNumbers {
                numbers: odd.len(),
                per_instance: floats,
            });
        }
        let len = |data: &[f32]| data.len().checked_div(floats).unwrap_or(0);
        let ranges = parts
            .clone()
            .map(|(first, data)| first..first.saturating_add(len(data)));
        let set = checked(&self.sets, id, ranges.clone())?;
        self.pages.prove(queue, &set.regions)?;
        let sizes = parts.clone().map(|(_, data)| size_of_val(data) as u64);
        self.uploaded += sizes.sum::<u64>();
        self.work.writes += (self.pages).write_scales(queue, &set.regions, kind, parts);
        self.stale.extend(ranges.map(|range| (id, range)));
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
        self.upload_data_parts(queue, id, [(first, data)].into_iter())
    }

    /// Writes parts of a set's data, each from the given instance on.
    ///
    /// # Errors
    /// Same as [`Self::upload_data`].
    pub fn upload_data_parts<'a>(
        &mut self,
        queue: &Queue,
        id: SetId,
        parts: impl Iterator<Item = (usize, &'a [u32])> + Clone,
    ) -> Result<(), CullError> {
        let set = self.sets.get(id).ok_or(CullError::UnknownSet(id.0))?;
        let words = set.channels.data_words as usize;
        let mut data = parts.clone().map(|(_, data)| data);
        if let Some(odd) = data.find(|data| !is_rows_of(data.len(), words)) {
            return Err(CullError::DataWords {
                words: odd.len(),
                per_instance: words,
            });
        }
        let len = |data: &[u32]| data.len().checked_div(words).unwrap_or(0);
        let ranges = parts
            .clone()
            .map(|(first, data)| first..first.saturating_add(len(data)));
        let set = checked(&self.sets, id, ranges)?;
        self.pages.prove(queue, &set.regions)?;
        let sizes = parts.clone().map(|(_, data)| size_of_val(data) as u64);
        self.uploaded += sizes.sum::<u64>();
        self.work.writes += (self.pages).write_data(queue, &set.regions, words, parts);
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
        let (mut is_refused, mut done) = (false, 0);
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
                    let changed = from - before..to - before;
                    let job = job_of(region, changed, used, set.channels.scale);
                    jobs.entry(region.page).or_default().push(job);
                }
                before += used;
            }
        }
        for (page, jobs) in jobs {
            if let Some(page) = self.page_buffers(page) {
                let buffers = [page.instances, page.scales, page.bounds];
                let jobs = merged(jobs);
                done += jobs.len() as u64;
                let made = builder.run(gpu, buffers, &jobs);
                is_refused |= made.is_err();
                self.refusals.note_error(made, Missing::Bounds);
            }
        }
        self.work.bound_jobs += done;
        if is_refused {
            // Without bounds, new blocks are never kept: try again in the next frame.
            self.stale = stale;
        }
    }
}

/// Whether `len` numbers are whole rows of `row` numbers; none if rows are empty.
fn is_rows_of(len: usize, row: usize) -> bool {
    len.checked_rem(row).unwrap_or(len) == 0
}

/// The set, if it is resident and holds the instances that an upload writes.
pub(super) fn checked(
    sets: &ResidentSets,
    id: SetId,
    mut ranges: impl Iterator<Item = Range<usize>>,
) -> Result<&Set, CullError> {
    let set = sets.get(id).ok_or(CullError::UnknownSet(id.0))?;
    let len = set.len as usize;
    match ranges.find(|range| range.end > len) {
        None => Ok(set),
        Some(range) => Err(CullError::UploadOutOfRange {
            first: range.start,
            end: range.end,
            len,
        }),
    }
}
