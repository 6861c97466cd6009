//! Room for sets that a compute pass writes.

use super::{known::SetOnGpu, target::UploadTarget};
use crate::{
    cull::{Channels, CullError, Residency, WrittenRegion, WrittenSize},
    instance::InstanceSet,
};

/// Makes room for what the GPU writes. Returns the buffers if they are not the previous frame's, or
/// if the app does not have them (`is_unknown`).
pub(super) fn reserve_written(
    target: &mut UploadTarget<'_>,
    known: &mut SetOnGpu,
    set: &InstanceSet,
    is_unknown: bool,
) -> Result<Option<Vec<WrittenRegion>>, CullError> {
    let (Some(settings), Some(capacity)) = (set.written(), set.written_capacity()) else {
        return Ok(None);
    };
    let channels = Channels {
        scale: settings.scales,
        data_words: settings.data_size / 4,
        previous: set.keeps_previous(),
    };
    if known.lineage != set.lineage() {
        // Another set in its place is hidden until it is written, even if it has the same shape.
        target.culler.store_mut().remove_set(known.id);
    }
    let residency = target.culler.store_mut().reserve_written(
        target.gpu,
        known.id,
        WrittenSize {
            capacity,
            active: set.len() as u32,
            channels,
            classify: settings.classify,
            noted: settings.noted_writes,
        },
    )?;
    known.forget();
    known.lineage = set.lineage();
    let is_new = residency == Residency::Moved || is_unknown;
    Ok(is_new.then(|| target.culler.store().written_regions(known.id)))
}
