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

    /// Uploads ranges of instances, ranges of scales if the set has them, and the data of ranges of
    /// instances if it has data.
    pub fn upload(
        &mut self,
        known: &SetOnGpu,
        set: &InstanceSet,
        [instances, scales, data]: [&[Range<usize>]; 3],
    ) -> Result<(), CullError> {
        let (store, queue) = (self.culler.store_mut(), self.gpu.queue);
        let instances = rows(set.packed(), 1, instances);
        store.upload_parts(queue, known.id, instances)?;
        let scales = rows(set.scale_floats(), set.scale_kind().floats(), scales);
        store.upload_scale_parts(queue, known.id, scales)?;
        let data = rows(set.data_words(), set.data_size() / 4, data);
        store.upload_data_parts(queue, known.id, data)
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

/// What ranges of instances have of a channel with this many numbers per instance.
fn rows<'a, T>(
    channel: &'a [T],
    numbers: usize,
    ranges: &'a [Range<usize>],
) -> impl Iterator<Item = (usize, &'a [T])> + Clone {
    let row = move |range: &Range<usize>| {
        let row = range.start * numbers..range.end * numbers;
        (range.start, &channel[row])
    };
    ranges.iter().map(row)
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
