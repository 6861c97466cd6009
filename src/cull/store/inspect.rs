//! Reading sets back, with a wait: for tests and verification.

use super::{
    InstanceStore,
    region::{Run, SetId, runs},
};
use crate::{
    cull::{
        CullError,
        gpu::{Gpu, readback::read_buffer},
        layout::{BLOCK, Bound},
    },
    instance::PackedInstance,
};

impl InstanceStore {
    /// Reads the active instances of a set and their scales, which have
    /// [`ScaleKind::floats`](crate::instance::ScaleKind::floats) numbers each; waits.
    ///
    /// # Errors
    /// [`CullError::UnknownSet`], [`CullError::Readback`].
    pub fn read_instances(
        &self,
        gpu: Gpu<'_>,
        id: SetId,
    ) -> Result<(Vec<PackedInstance>, Vec<f32>), CullError> {
        let set = self.sets.get(id).ok_or(CullError::UnknownSet(id.0))?;
        let (mut instances, mut scales) = (Vec::new(), Vec::new());
        for Run { region, at, part } in runs(&set.regions, 0..set.len as usize) {
            let Some(page) = self.pages.page(region.page) else {
                continue;
            };
            let offset = at as u64;
            let read: Vec<PackedInstance> =
                read_buffer(gpu, &page.instances, offset * 16, part.len())?;
            instances.extend(read);
            let floats = set.channels.scale.floats();
            if let Some(buffer) = page.scales.as_ref().filter(|_| floats > 0) {
                let at = offset * 4 * floats as u64;
                let read: Vec<f32> = read_buffer(gpu, buffer, at, part.len() * floats)?;
                scales.extend(read);
            }
        }
        Ok((instances, scales))
    }

    /// Reads the bounds of a set's blocks back, in the order of the set; waits.
    ///
    /// # Errors
    /// [`CullError::UnknownSet`], [`CullError::Readback`].
    pub fn read_bounds(&self, gpu: Gpu<'_>, id: SetId) -> Result<Vec<Bound>, CullError> {
        let set = self.sets.get(id).ok_or(CullError::UnknownSet(id.0))?;
        let mut bounds = Vec::new();
        for Run { region, part, .. } in runs(&set.regions, 0..set.len as usize) {
            if let Some(page) = self.pages.page(region.page) {
                let offset = u64::from(region.first_bound) * size_of::<Bound>() as u64;
                let blocks = part.len().div_ceil(BLOCK as usize);
                let read: Vec<Bound> = read_buffer(gpu, &page.bounds, offset, blocks)?;
                bounds.extend(read);
            }
        }
        Ok(bounds)
    }
}
