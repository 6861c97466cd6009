//! Where a frame's uploads go: the engine, on a device.

use super::known::SetOnGpu;
use crate::{
    cull::{Channels, CullError, Culler, Gpu, Residency},
    instance::InstanceSet,
};
use core::ops::Range;

/// The engine, and the device that it uploads to.
pub(super) struct UploadTarget<'a> {
    pub culler: &'a mut Culler,
    pub gpu: Gpu<'a>,
}

impl UploadTarget<'_> {
    /// Makes room for the first `len` instances of a set.
    pub fn reserve(
        &mut self,
        known: &SetOnGpu,
        set: &InstanceSet,
        len: usize,
    ) -> Result<Residency, CullError> {
        self.culler
            .store_mut()
            .reserve_set(self.gpu.device, known.id, len as u32, channels(set))
    }

    /// Shows the instances that have arrived. There is room for them, so nothing moves.
    pub fn show_arrived(&mut self, known: &SetOnGpu, set: &InstanceSet) -> Result<(), CullError> {
        if self.culler.store().set_len(known.id) != Some(known.arrived as u32) {
            self.reserve(known, set, known.arrived)?;
        }
        Ok(())
    }

    /// Uploads ranges of instances.
    pub fn upload_instances(
        &mut self,
        known: &SetOnGpu,
        set: &InstanceSet,
        ranges: &[Range<usize>],
    ) -> Result<(), CullError> {
        let part = |range: &Range<usize>| (range.start, &set.packed()[range.clone()]);
        let (store, parts) = (self.culler.store_mut(), ranges.iter().map(part));
        store.upload_parts(self.gpu.queue, known.id, parts)
    }

    /// Uploads ranges of scales, if the set has them.
    pub fn upload_scales(
        &mut self,
        known: &SetOnGpu,
        set: &InstanceSet,
        ranges: &[Range<usize>],
    ) -> Result<(), CullError> {
        let (all, floats) = (set.scale_floats(), set.scale_kind().floats());
        let part =
            |range: &Range<usize>| (range.start, &all[range.start * floats..range.end * floats]);
        let (store, parts) = (self.culler.store_mut(), ranges.iter().map(part));
        store.upload_scale_parts(self.gpu.queue, known.id, parts)
    }

    /// Uploads the data of ranges of instances, if the set has data.
    pub fn upload_data(
        &mut self,
        known: &SetOnGpu,
        set: &InstanceSet,
        ranges: &[Range<usize>],
    ) -> Result<(), CullError> {
        let (all, words) = (set.data_words(), set.data_size() / 4);
        let part =
            |range: &Range<usize>| (range.start, &all[range.start * words..range.end * words]);
        let (store, parts) = (self.culler.store_mut(), ranges.iter().map(part));
        store.upload_data_parts(self.gpu.queue, known.id, parts)
    }

    /// Has the engine copy ranges to its instances of the previous frame.
    pub fn keep_previous(
        &mut self,
        known: &SetOnGpu,
        ranges: Vec<Range<usize>>,
    ) -> Result<(), CullError> {
        self.culler
            .store_mut()
            .keep_previous(self.gpu, known.id, ranges)
    }
}

/// The channels of a set that is uploaded.
pub(super) fn channels(set: &InstanceSet) -> Channels {
    Channels {
        scale: set.scale_kind(),
        data_words: set.data_size() as u32 / 4,
        previous: set.keeps_previous(),
    }
}

/// Size of an instance with its channels, in bytes.
pub(super) fn instance_bytes(set: &InstanceSet) -> u64 {
    (16 + 4 * set.scale_kind().floats() + set.data_size()) as u64
}
