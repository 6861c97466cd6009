//! The room of a set that the GPU writes.

use super::region::Channels;
use crate::cull::{gpu::version::Version, layout::BoundJob};
use core::{num::NonZeroU64, ops::Range};
use wgpu::{BindGroup, BindingResource, Buffer, BufferBinding};

/// What is known about a set that the GPU writes.
pub(super) struct WrittenRoom {
    /// Number of instances that the GPU may write.
    pub(super) capacity: u32,
    /// Whether the bounds of its blocks are computed each frame; otherwise every instance is
    /// tested.
    pub(super) is_classified: bool,
    /// The instances whose blocks have outdated bounds, if writes are noted.
    pub(super) noted: Option<NotedWrites>,
    /// Number of active instances in the previous frame. Instances beyond it had no place then.
    pub(super) previous_len: u32,
    /// Whether a view of the frame tests the set.
    pub(super) is_tested: bool,
    pub(super) bounds: Option<BoundsBindings>,
}

/// Maximum number of ranges that are kept separately.
const MAX_RANGES: usize = 1024;

/// Instances of a set that were written, and whose blocks have outdated bounds.
#[derive(Debug, Default)]
pub(super) struct NotedWrites(Vec<Range<u32>>);

impl NotedWrites {
    /// Notes a range.
    pub(super) fn add(&mut self, range: Range<u32>) {
        if range.is_empty() {
            return;
        }
        if self.0.len() == MAX_RANGES {
            let start = self.0.iter().map(|range| range.start).min();
            let end = self.0.iter().map(|range| range.end).max();
            let all = start.zip(end).map(|(start, end)| start..end);
            self.0.clear();
            self.0.extend(all);
        }
        self.0.push(range);
    }

    /// The ranges, which are then forgotten.
    pub(super) fn take(&mut self) -> Vec<Range<u32>> {
        core::mem::take(&mut self.0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The computation of a written set's bounds: one job and bind group per region.
pub(super) struct BoundsBindings {
    /// Version of the pages that the bind groups were made for.
    pub(super) pages: Version,
    pub(super) jobs: Vec<(BoundJob, BindGroup)>,
}

/// The size of a set that the GPU writes, and its channels.
#[derive(Clone, Copy, Debug)]
pub struct WrittenSize {
    /// Number of instances that the GPU may write.
    pub capacity: u32,
    /// Number of active instances: the first ones are tested, the others are ignored.
    pub active: u32,
    /// Optional channels.
    pub channels: Channels,
    /// Whether the bounds of its blocks are computed in each frame that reads them; otherwise every
    /// instance is tested.
    pub classify: bool,
    /// Whether only the bounds of blocks are computed whose instances
    /// [`InstanceStore::note_written`](crate::cull::InstanceStore::note_written) names; otherwise
    /// all of them.
    pub noted: bool,
}

/// A part of a set that the GPU writes: whole buffers, written from their start.
#[derive(Clone, Debug)]
pub struct WrittenRegion {
    /// The instances, 16 bytes each.
    pub instances: Buffer,
    /// Scales, if the set has them: [`scale_floats`](Self::scale_floats) `f32`s each.
    pub scales: Option<Buffer>,
    /// Numbers per scale: 1, or 3 for a scale per axis of the mesh; 0 without scales.
    pub scale_floats: u32,
    /// Data, if the set has it: [`data_words`](Self::data_words) `u32`s each.
    pub data: Option<Buffer>,
    /// Words of data per instance, of which the first is the tag; 0 without data.
    pub data_words: u32,
    /// Index of the first instance in the set.
    pub first: u32,
    /// Number of instances that the GPU may write.
    pub capacity: u32,
}

impl WrittenRegion {
    /// The instances that the GPU may write, for a bind group: 16 bytes each.
    #[must_use]
    pub fn instances_binding(&self) -> BindingResource<'_> {
        self.binding(&self.instances, 16)
    }

    /// The scales, for a bind group: 4 bytes each, or 12 (`array<f32>` in WGSL) for a scale per
    /// axis of the mesh.
    #[must_use]
    pub fn scales_binding(&self) -> Option<BindingResource<'_>> {
        let stride = 4 * u64::from(self.scale_floats);
        (self.scales.as_ref()).map(|buffer| self.binding(buffer, stride))
    }

    /// The data, for a bind group: [`data_words`](Self::data_words) words each (`array<u32>` in
    /// WGSL).
    #[must_use]
    pub fn data_binding(&self) -> Option<BindingResource<'_>> {
        let stride = 4 * u64::from(self.data_words);
        (self.data.as_ref()).map(|buffer| self.binding(buffer, stride))
    }

    fn binding<'a>(&self, buffer: &'a Buffer, stride: u64) -> BindingResource<'a> {
        BindingResource::Buffer(BufferBinding {
            buffer,
            offset: 0,
            size: NonZeroU64::new(u64::from(self.capacity) * stride),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_ranges_become_one_around_them() {
        let mut noted = NotedWrites::default();
        noted.add(5..5);
        assert!(noted.is_empty());
        for at in 0..2 * MAX_RANGES as u32 {
            noted.add(at * 10..at * 10 + 3);
        }
        let ranges = noted.take();
        assert!(noted.is_empty() && ranges.len() <= MAX_RANGES);
        let has = |at: u32| ranges.iter().any(|range| range.contains(&at));
        assert!((0..2 * MAX_RANGES as u32).all(|at| has(at * 10 + 2)));
    }
}
