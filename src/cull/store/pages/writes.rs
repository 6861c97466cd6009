//! Writes to the pages: instances and channels of sets that the CPU uploads.

use super::Pages;
use crate::{
    cull::{
        CullError,
        gpu::guard::guarded,
        store::{
            belt::Write,
            region::{Region, Run, runs, split},
        },
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

    /// Writes parts of a set's instances, each with the index of its first. Returns the number of
    /// writes of the queue.
    pub fn write_instances<'a>(
        &mut self,
        queue: &Queue,
        regions: &[Region],
        parts: impl Iterator<Item = (usize, &'a [PackedInstance])> + Clone,
    ) -> u64 {
        let parts = parts.flat_map(|(first, data)| split(regions, first, data));
        for (region, at, part) in parts.clone() {
            if let Some(Some(page)) = self.slots.get_mut(region.page)
                && let Some(cpu) = &mut page.cpu
            {
                let empty = PackedInstance::default();
                store(&mut cpu.instances, page.capacity, at, part, empty);
            }
        }
        let slots = &self.slots;
        let write = |(region, at, part): (&Region, usize, &'a [PackedInstance])| {
            let page = slots.get(region.page)?.as_ref()?;
            Some(Write::new(&page.instances, at, part))
        };
        let writes: Vec<_> = parts.filter_map(write).collect();
        self.belt.write_all(queue, &writes)
    }

    /// Writes scales of a kind, as [`Self::write_instances`] does.
    pub fn write_scales<'a>(
        &mut self,
        queue: &Queue,
        regions: &[Region],
        kind: ScaleKind,
        parts: impl Iterator<Item = (usize, &'a [f32])> + Clone,
    ) -> u64 {
        let floats = kind.floats();
        let parts = parts.flat_map(|(first, data)| split_rows(regions, first, (floats, data)));
        for (region, at, numbers) in parts.clone() {
            if let Some(Some(page)) = self.slots.get_mut(region.page)
                && let Some(cpu) = &mut page.cpu
            {
                let capacity = page.capacity * floats as u32;
                store(&mut cpu.scales, capacity, at * floats, numbers, 1.0);
            }
        }
        let slots = &self.slots;
        let write = |(region, at, numbers): (&Region, usize, &'a [f32])| {
            let buffer = slots.get(region.page)?.as_ref()?.scales.as_ref()?;
            Some(Write::new(buffer, at * floats, numbers))
        };
        let writes: Vec<_> = parts.filter_map(write).collect();
        self.belt.write_all(queue, &writes)
    }

    /// Writes data of `words` words per instance, as [`Self::write_instances`] does.
    pub fn write_data<'a>(
        &mut self,
        queue: &Queue,
        regions: &[Region],
        words: usize,
        parts: impl Iterator<Item = (usize, &'a [u32])>,
    ) -> u64 {
        let slots = &self.slots;
        let parts = parts.flat_map(|(first, data)| split_rows(regions, first, (words, data)));
        let write = |(region, at, part): (&Region, usize, &'a [u32])| {
            let buffer = slots.get(region.page)?.as_ref()?.data.as_ref()?;
            Some(Write::new(buffer, at * words, part))
        };
        let writes: Vec<_> = parts.filter_map(write).collect();
        self.belt.write_all(queue, &writes)
    }

    /// Writes the previous frame's instances.
    pub fn write_previous(
        &mut self,
        queue: &Queue,
        regions: &[Region],
        first: usize,
        (instances, (kind, scales)): (&[PackedInstance], (ScaleKind, &[f32])),
    ) {
        let mut writes = Vec::new();
        for (region, at, part) in split(regions, first, instances) {
            if let Some(Some(page)) = self.slots.get(region.page) {
                let at = at + region.capacity as usize;
                writes.push(Write::new(&page.instances, at, part));
            }
        }
        for (region, at, numbers) in split_rows(regions, first, (kind.floats(), scales)) {
            if let Some(Some(page)) = self.slots.get(region.page)
                && let Some(buffer) = &page.scales
            {
                let at = (at + region.capacity as usize) * kind.floats();
                writes.push(Write::new(buffer, at, numbers));
            }
        }
        self.belt.write_all(queue, &writes);
    }
}

/// [`split`] for `row` values per instance.
fn split_rows<'r, 'a, T>(
    regions: &'r [Region],
    first: usize,
    (row, data): (usize, &'a [T]),
) -> impl Iterator<Item = (&'r Region, usize, &'a [T])> + Clone + use<'r, 'a, T> {
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
