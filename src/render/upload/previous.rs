//! Sets that keep where their instances were: their motion is that of whole frames, so they come at once.

use super::{KnownSet, channels};
use crate::{
    cull::{CullError, Culler, Gpu, Residency},
    instance::{InstanceSet, SetChanges},
};
use core::ops::Range;

/// Uploads all that changed since `known`, of a set that keeps where its instances were, and moves what it has of them.
pub(super) fn upload_with_previous(
    culler: &mut Culler,
    gpu: Gpu<'_>,
    known: &mut KnownSet,
    set: &InstanceSet,
) -> Result<(), CullError> {
    let mut moved = core::mem::take(&mut known.moved);
    if known.lineage == set.lineage() && known.revision == set.revision() {
        if set.keeps_previous() && !moved.is_empty() {
            culler.store_mut().keep_previous(gpu, known.id, moved)?;
        }
        return Ok(());
    }
    let since = if known.lineage == set.lineage() {
        known.revision
    } else {
        0
    };
    let mut changes = set.changes_since(since);
    let channels = channels(set);
    let nowhere = nowhere_before(&changes, if since == 0 { 0 } else { known.len }, set.len());
    if culler
        .store_mut()
        .reserve_set(gpu.device, known.id, set.len() as u32, channels)?
        == Residency::Moved
    {
        changes = SetChanges::Everything;
        // It brought along where it was.
        moved.clear();
    }
    if channels.previous {
        culler.store_mut().keep_previous(gpu, known.id, moved)?;
    }
    let all = core::slice::from_ref(&(0..set.len())).to_vec();
    let (instances, scales, tags) = match changes {
        SetChanges::Nothing => Default::default(),
        SetChanges::Everything => (all.clone(), all.clone(), all),
        SetChanges::Ranges(ranges) => (ranges.instances, ranges.scales, ranges.tags),
    };
    if channels.previous {
        known.moved = instances.iter().chain(&scales).cloned().collect();
        for range in nowhere {
            let data = (
                &set.packed()[range.clone()],
                set.scales().map(|scales| &scales[range.clone()]),
            );
            culler
                .store_mut()
                .upload_previous(gpu.queue, known.id, range.start, data)?;
        }
    }
    for range in instances {
        culler
            .store_mut()
            .upload(gpu.queue, known.id, range.start, &set.packed()[range])?;
    }
    for (range, values) in scales
        .into_iter()
        .filter_map(|range| Some((range.clone(), &set.scales()?[range])))
    {
        culler
            .store_mut()
            .upload_scales(gpu.queue, known.id, range.start, values)?;
    }
    for (range, values) in tags
        .into_iter()
        .filter_map(|range| Some((range.clone(), &set.tags()?[range])))
    {
        culler
            .store_mut()
            .upload_tags(gpu.queue, known.id, range.start, values)?;
    }
    known.lineage = set.lineage();
    known.revision = set.revision();
    known.len = set.len();
    known.arrived = known.len;
    Ok(())
}

/// Instances that were nowhere in the frame before, when the set had `before` of them: they have no motion.
fn nowhere_before(changes: &SetChanges, before: usize, len: usize) -> Vec<Range<usize>> {
    match changes {
        SetChanges::Nothing => Vec::new(),
        SetChanges::Everything => core::slice::from_ref(&(0..len)).to_vec(),
        SetChanges::Ranges(ranges) => {
            let grown = before.min(len)..len;
            let renumbered = ranges.renumbered.iter().cloned();
            renumbered
                .chain([grown])
                .filter(|range| !range.is_empty())
                .collect()
        }
    }
}
