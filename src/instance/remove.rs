//! Edits that take single instances in and out, named as on [`Vec`].

use std::ops::RangeBounds;

use super::{InstanceError, InstanceSet, InstanceTransform};

impl InstanceSet {
    /// Puts an instance before the one at `index`, or at the end if `index` is the length. The ones
    /// behind move up by one, so all of them are uploaded again: [`push`](Self::push) is cheaper.
    ///
    /// # Errors
    ///
    /// [`InstanceError::RangeOutOfBounds`]; otherwise same as [`push`](Self::push).
    pub fn insert(
        &mut self,
        index: u32,
        transform: impl Into<InstanceTransform>,
    ) -> Result<(), InstanceError> {
        self.splice(index..index, [transform.into()])?;
        Ok(())
    }

    /// Removes an instance and returns it. The ones behind move down by one, so all of them are
    /// uploaded again: [`swap_remove`](Self::swap_remove) is cheaper.
    ///
    /// # Errors
    ///
    /// [`InstanceError::IndexOutOfRange`].
    pub fn remove(&mut self, index: u32) -> Result<InstanceTransform, InstanceError> {
        let at = self.check_index(index)?;
        let removed = self.decoded(at);
        self.remove_range(index..=index)?;
        Ok(removed)
    }

    /// Removes an instance and puts the last one in its place. Returns the index that the moved
    /// instance had; `None` if the removed instance was the last.
    ///
    /// # Errors
    ///
    /// [`InstanceError::IndexOutOfRange`].
    ///
    /// ```
    /// use bevy_gpu_culling::instance::InstanceSet;
    /// use glam::Vec3;
    ///
    /// let mut set = InstanceSet::from_transforms([Vec3::ZERO, Vec3::X, Vec3::Y])?;
    /// assert_eq!(set.swap_remove(0)?, Some(2));
    /// assert_eq!(set.get(0).map(|moved| moved.translation), Some(Vec3::Y));
    /// assert_eq!(set.swap_remove(1)?, None);
    /// # Ok::<(), bevy_gpu_culling::instance::InstanceError>(())
    /// ```
    pub fn swap_remove(&mut self, index: u32) -> Result<Option<u32>, InstanceError> {
        let at = self.check_index(index)?;
        let before = self.len();
        let last = before - 1;
        let revision = self.log.begin();
        self.channels.swap_remove(at);
        let moved = at..(at + 1).min(last);
        self.mark_channels(moved.clone(), revision);
        self.log.mark_renumbered(moved, before);
        Ok((at < last).then_some(last as u32))
    }

    /// Removes the last instance and returns it; `None` if the set is empty, and in a set that
    /// cannot be edited ([released](Self::is_released), written by the GPU).
    pub fn pop(&mut self) -> Option<InstanceTransform> {
        let last = self.len().checked_sub(1)? as u32;
        let popped = self.get(last)?;
        self.swap_remove(last).ok()?;
        Some(popped)
    }

    /// Removes the instances in `range`. The ones behind move down.
    ///
    /// # Errors
    ///
    /// [`InstanceError::RangeOutOfBounds`].
    pub fn remove_range(&mut self, range: impl RangeBounds<u32>) -> Result<(), InstanceError> {
        self.splice(range, core::iter::empty::<InstanceTransform>())?;
        Ok(())
    }

    /// Keeps the instances for which `keep`, called with index and transform, returns true, in
    /// their order. Everything from the first removed instance on is uploaded again. If one is
    /// removed, the [`bounds`](Self::bounds) become tight.
    ///
    /// # Errors
    ///
    /// [`InstanceError::Released`] or [`InstanceError::GpuWritten`] if the instances are not here.
    ///
    /// ```
    /// use bevy_gpu_culling::instance::InstanceSet;
    /// use glam::Vec3;
    ///
    /// let mut set = InstanceSet::from_transforms((0..10).map(|i| Vec3::X * i as f32))?;
    /// set.retain(|_, instance| instance.translation.x < 4.0)?;
    /// assert_eq!(set.len(), 4);
    /// # Ok::<(), bevy_gpu_culling::instance::InstanceError>(())
    /// ```
    pub fn retain(
        &mut self,
        mut keep: impl FnMut(u32, InstanceTransform) -> bool,
    ) -> Result<(), InstanceError> {
        self.check_not_written()?;
        let before = self.len();
        let kept = (0..before).map(|at| keep(at as u32, self.decoded(at)));
        let kept: Vec<bool> = kept.collect();
        let Some(first) = kept.iter().position(|kept| !kept) else {
            return Ok(());
        };
        self.channels.retain(&kept);
        let revision = self.log.begin();
        let moved = first..self.len();
        self.mark_channels(moved.clone(), revision);
        self.log.mark_renumbered(moved, before);
        Ok(())
    }
}
