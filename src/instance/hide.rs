//! Hiding single instances without removing them.

use super::{InstanceError, InstanceSet};

impl InstanceSet {
    /// Hides an instance: no view draws it until [`show`](Self::show). It keeps its index, its
    /// place and its data; [`set`](Self::set) may move it meanwhile. Hiding a hidden instance is
    /// not an edit.
    ///
    /// On the GPU only the instance's granule of 4 KiB changes. On the CPU a hidden instance takes
    /// 4 to 8 bytes more, and 200 bytes if it is the only one of 1,024. In
    /// [`packed`](Self::packed) its first coordinate is NaN.
    ///
    /// # Errors
    ///
    /// [`InstanceError::IndexOutOfRange`].
    ///
    /// ```
    /// use bevy_gpu_culling::instance::InstanceSet;
    /// use glam::Vec3;
    ///
    /// let mut set = InstanceSet::from_transforms([Vec3::ZERO, Vec3::X])?;
    /// set.hide(1)?;
    /// assert!(set.is_hidden(1));
    /// assert_eq!(set.get(1).map(|hidden| hidden.translation), Some(Vec3::X));
    /// set.show(1)?;
    /// # Ok::<(), bevy_gpu_culling::instance::InstanceError>(())
    /// ```
    pub fn hide(&mut self, index: u32) -> Result<(), InstanceError> {
        let at = self.check_index(index)?;
        if self.channels.hide(at) {
            let revision = self.log.begin();
            self.log.instances.mark(at..at + 1, revision);
        }
        Ok(())
    }

    /// Shows a hidden instance again. Showing a visible instance is not an edit.
    ///
    /// In a set that [keeps the previous frame's instances](Self::keep_previous), it has no motion
    /// in that frame.
    ///
    /// # Errors
    ///
    /// [`InstanceError::IndexOutOfRange`].
    pub fn show(&mut self, index: u32) -> Result<(), InstanceError> {
        let at = self.check_index(index)?;
        let len = self.len();
        if self.channels.show(at) {
            let revision = self.log.begin();
            self.log.instances.mark(at..at + 1, revision);
            // In the previous frame it was nowhere.
            self.log.mark_teleported(at..at + 1, len);
        }
        Ok(())
    }

    /// Whether an instance is [hidden](Self::hide); false beyond the end.
    #[must_use]
    pub fn is_hidden(&self, index: u32) -> bool {
        self.channels.hidden.x(index as usize).is_some()
    }

    /// The indices of all [hidden](Self::hide) instances, in increasing order.
    pub fn hidden(&self) -> impl Iterator<Item = u32> + '_ {
        self.channels.hidden.indices()
    }
}
