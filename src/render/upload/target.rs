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

    /// Uploads a range of instances.
    pub fn upload_instances(
        &mut self,
        known: &SetOnGpu,
        set: &InstanceSet,
        range: Range<usize>,
    ) -> Result<(), CullError> {
        self.culler
            .store_mut()
            .upload(self.gpu.queue, known.id, range.start, &set.packed()[range])
    }

    /// Uploads a range of scales, if the set has them.
    pub fn upload_scales(
        &mut self,
        known: &SetOnGpu,
        set: &InstanceSet,
        range: Range<usize>,
    ) -> Result<(), CullError> {
        let floats = set.scale_kind().floats();
        let numbers = &set.scale_floats()[range.start * floats..range.end * floats];
        self.culler
            .store_mut()
            .upload_scales(self.gpu.queue, known.id, range.start, numbers)
    }

    /// Uploads the data of a range of instances, if the set has data.
    pub fn upload_data(
        &mut self,
        known: &SetOnGpu,
        set: &InstanceSet,
        range: Range<usize>,
    ) -> Result<(), CullError> {
        let words = set.data_size() / 4;
        let data = &set.data_words()[range.start * words..range.end * words];
        self.culler
            .store_mut()
            .upload_data(self.gpu.queue, known.id, range.start, data)
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
