//! Writes to the pages: instances and channels of sets that the CPU uploads.

use super::Pages;
use crate::{
    cull::{
        CullError,
        gpu::guard::guarded,
        store::region::{Region, Run, runs, split},
    },
    instance::{PackedInstance, ScaleKind},
};
use wgpu::Queue;

impl Pages {
    /// Checks that the buffers of regions exist before anything is written to them.
    ///
    /// # Errors
    /// [`CullError::Gpu`], on a lost device.
    pub fn prove(&mut self, queue: &Queue, regions: &[Region]) -> Result<(), CullError> {
        for region in regions {
            let Some(Some(page)) = self.slots.get_mut(region.page) else {
                continue;
            };
            if page.is_proven {
                continue;
            }
            guarded(self.belt.device(), "gpu_culling instances", || {
                let channels = [page.scales.as_ref(), page.data.as_ref()];
                let always = [&page.instances, &page.bounds];
                for buffer in always.into_iter().chain(channels.into_iter().flatten()) {
                    queue.write_buffer(buffer, 0, &[]);
                }
            })?;
            page.is_proven = true;
        }
        Ok(())
    }

    pub fn write_instances(
        &mut self,
        queue: &Queue,
        regions: &[Region],
        first: usize,
        data: &[PackedInstance],
    ) {
        for (region, at, part) in split(regions, first, data) {
            let Some(Some(page)) = self.slots.get_mut(region.page) else {
                continue;
            };
            self.belt.write(queue, &page.instances, at, part);
            if let Some(cpu) = &mut page.cpu {
                store(
                    &mut cpu.instances,
                    page.capacity,
                    at,
                    part,
                    PackedInstance::default(),
                );
            }
        }
    }

    /// Writes scales of a kind from instance `first` on.
    pub fn write_scales(
        &mut self,
        queue: &Queue,
        regions: &[Region],
        first: usize,
        (kind, data): (ScaleKind, &[f32]),
    ) {
        for (region, at, numbers) in split_rows(regions, first, (kind.floats(), data)) {
            let at = at * kind.floats();
            let Some(Some(page)) = self.slots.get_mut(region.page) else {
                continue;
            };
            if let Some(buffer) = &page.scales {
                self.belt.write(queue, buffer, at, numbers);
            }
            if let Some(cpu) = &mut page.cpu {
                let capacity = page.capacity * kind.floats() as u32;
                store(&mut cpu.scales, capacity, at, numbers, 1.0);
            }
        }
    }

    /// Writes data of `words` words per instance from instance `first` on.
    pub fn write_data(
        &mut self,
        queue: &Queue,
        regions: &[Region],
        first: usize,
        (words, data): (usize, &[u32]),
    ) {
        for (region, at, part) in split_rows(regions, first, (words, data)) {
            if let Some(Some(page)) = self.slots.get_mut(region.page)
                && let Some(buffer) = &page.data
            {
                self.belt.write(queue, buffer, at * words, part);
            }
        }
    }

    /// Writes the previous frame's instances.
    pub fn write_previous(
        &mut self,
        queue: &Queue,
        regions: &[Region],
        first: usize,
        (instances, (kind, scales)): (&[PackedInstance], (ScaleKind, &[f32])),
    ) {
        for (region, at, part) in split(regions, first, instances) {
            if let Some(Some(page)) = self.slots.get(region.page) {
                let at = at + region.capacity as usize;
                self.belt.write(queue, &page.instances, at, part);
            }
        }
        for (region, at, numbers) in split_rows(regions, first, (kind.floats(), scales)) {
            if let Some(Some(page)) = self.slots.get(region.page)
                && let Some(buffer) = &page.scales
            {
                let at = (at + region.capacity as usize) * kind.floats();
                self.belt.write(queue, buffer, at, numbers);
            }
        }
    }
}

/// [`split`] for `row` values per instance.
fn split_rows<'a, T>(
    regions: &'a [Region],
    first: usize,
    (row, data): (usize, &'a [T]),
) -> impl Iterator<Item = (&'a Region, usize, &'a [T])> {
    let len = data.len().checked_div(row).unwrap_or(0);
    runs(regions, first..first + len).map(move |Run { region, at, part }| {
        let values = (part.start - first) * row..(part.end - first) * row;
        (region, at, &data[values])
    })
}

fn store<T: Copy>(copy: &mut Vec<T>, capacity: u32, at: usize, data: &[T], empty: T) {
    copy.resize(capacity as usize, empty);
    copy[at..at + data.len()].copy_from_slice(data);
}
