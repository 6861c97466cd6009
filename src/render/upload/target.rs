//! Where a frame's uploads go: the engine, on a device.

use super::known::KnownSet;
use crate::{
    cull::{Channels, CullError, Culler, Residency},
    instance::InstanceSet,
};
use core::ops::Range;

/// The engine, with the device and the queue that it uploads with.
pub(super) struct UploadTarget<'a> {
    pub culler: &'a mut Culler,
    pub device: &'a wgpu::Device,
    pub queue: &'a wgpu::Queue,
}

impl UploadTarget<'_> {
    /// Makes room for the first `len` instances of a set.
    pub fn reserve(
        &mut self,
        known: &KnownSet,
        set: &InstanceSet,
        len: usize,
    ) -> Result<Residency, CullError> {
        self.culler
            .reserve_set(self.device, known.id, len as u32, channels(set))
    }

    /// Has the instances that have arrived culled and drawn. There is room for them, so nothing
    /// moves.
    pub fn show_arrived(&mut self, known: &KnownSet, set: &InstanceSet) -> Result<(), CullError> {
        if self.culler.set_len(known.id) != Some(known.arrived as u32) {
            self.reserve(known, set, known.arrived)?;
        }
        Ok(())
    }

    /// Uploads a range of instances.
    pub fn upload_instances(
        &mut self,
        known: &KnownSet,
        set: &InstanceSet,
        range: Range<usize>,
    ) -> Result<(), CullError> {
        self.culler
            .upload(self.queue, known.id, range.start, &set.packed()[range])
    }

    /// Uploads a range of scales, if the set has them.
    pub fn upload_scales(
        &mut self,
        known: &KnownSet,
        set: &InstanceSet,
        range: Range<usize>,
    ) -> Result<(), CullError> {
        let Some(scales) = set.scales() else {
            return Ok(());
        };
        self.culler
            .upload_scales(self.queue, known.id, range.start, &scales[range])
    }

    /// Uploads a range of tags, if the set has them.
    pub fn upload_tags(
        &mut self,
        known: &KnownSet,
        set: &InstanceSet,
        range: Range<usize>,
    ) -> Result<(), CullError> {
        let Some(tags) = set.tags() else {
            return Ok(());
        };
        self.culler
            .upload_tags(self.queue, known.id, range.start, &tags[range])
    }

    /// Has the engine copy ranges to its instances of the previous frame.
    pub fn keep_previous(
        &mut self,
        known: &KnownSet,
        ranges: Vec<Range<usize>>,
    ) -> Result<(), CullError> {
        self.culler
            .keep_previous((self.device, self.queue), known.id, ranges)
    }
}

/// The channels of a set that is uploaded.
pub(super) fn channels(set: &InstanceSet) -> Channels {
    Channels {
        scale: set.has_scales(),
        tag: set.has_tags(),
        previous: set.keeps_previous(),
    }
}

/// Size of an instance with its channels, in bytes.
pub(super) fn instance_bytes(set: &InstanceSet) -> u64 {
    16 + 4 * u64::from(set.has_scales()) + 4 * u64::from(set.has_tags())
}
