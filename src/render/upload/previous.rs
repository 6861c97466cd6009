//! Sets that keep the previous frame's instances, for motion vectors. Their changes are never
//! divided among frames, so that the motion is one frame's.

use super::{
    known::SetOnGpu,
    target::{UploadTarget, channels},
};
use crate::{
    cull::{CullError, Residency},
    instance::{InstanceSet, SetChanges},
};
use core::ops::Range;

/// Uploads everything that changed since `known`, and has the engine keep the instances that moved
/// as they were.
pub(super) fn upload_with_previous(
    target: &mut UploadTarget<'_>,
    known: &mut SetOnGpu,
    set: &InstanceSet,
) -> Result<(), CullError> {
    let mut moved = core::mem::take(&mut known.moved);
    if known.lineage == set.lineage() && known.revision == set.revision() {
        if set.keeps_previous() && !moved.is_empty() {
            target.keep_previous(known, moved)?;
        }
        return Ok(());
    }
    let since = if known.lineage == set.lineage() {
        known.revision
    } else {
        0
    };
    let mut changes = set.changes_since(since);
    let keeps_previous = channels(set).previous;
    let known_before = if since == 0 { 0 } else { known.len };
    let without_motion = without_motion(&changes, known_before, set.len());
    if target.reserve(known, set, set.len())? == Residency::Moved {
        changes = SetChanges::Everything;
        // The engine has moved the previous instances along.
        moved.clear();
    }
    if keeps_previous {
        target.keep_previous(known, moved)?;
    }
    let all = core::slice::from_ref(&(0..set.len())).to_vec();
    let (instances, scales, data) = match changes {
        SetChanges::Nothing => Default::default(),
        SetChanges::Everything => (all.clone(), all.clone(), all),
        SetChanges::Ranges(ranges) => (ranges.instances, ranges.scales, ranges.data),
    };
    if keeps_previous {
        known.moved = instances.iter().chain(&scales).cloned().collect();
        for range in without_motion {
            let first = range.start;
            let kind = set.scale_kind();
            let numbers = range.start * kind.floats()..range.end * kind.floats();
            let scales = (kind, &set.scale_floats()[numbers]);
            let data = (&set.packed()[range], scales);
            target
                .culler
                .store_mut()
                .upload_previous(target.gpu.queue, known.id, first, data)?;
        }
    }
    target.upload_instances(known, set, &instances)?;
    target.upload_scales(known, set, &scales)?;
    target.upload_data(known, set, &data)?;
    known.lineage = set.lineage();
    known.revision = set.revision();
    known.len = set.len();
    known.arrived = known.len;
    Ok(())
}

/// Instances that the previous frame, with `before` instances, did not have, or not on their way to
/// at their places. They have no motion.
fn without_motion(changes: &SetChanges, before: usize, len: usize) -> Vec<Range<usize>> {
    match changes {
        SetChanges::Nothing => Vec::new(),
        SetChanges::Everything => core::slice::from_ref(&(0..len)).to_vec(),
        SetChanges::Ranges(ranges) => {
            let grown = before.min(len)..len;
            let renumbered = ranges.renumbered.iter().cloned();
            let teleported = ranges.teleported.iter().cloned();
            (renumbered.chain(teleported).chain([grown]))
                .filter(|range| !range.is_empty())
                .collect()
        }
    }
}
