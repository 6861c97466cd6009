//! Sets whose instances have ids.

use super::ids::Ids;
use super::{InstanceId, InstanceSet, SetVersion};

impl InstanceSet {
    /// Gives each instance, now and later, an [`InstanceId`] that names it through all edits:
    /// [`splice`](Self::splice), [`swap_remove`](Self::swap_remove), [`sorted`](Self::sorted) and
    /// so on. Takes 16 bytes per instance on the CPU, and nothing on the GPU.
    ///
    /// A clone has the same ids for the same instances; what either adds later has ids that the
    /// other does not know. A [released](Self::is_released) set and a set that the GPU writes have
    /// none.
    ///
    /// ```
    /// use bevy_gpu_culling::instance::InstanceSet;
    /// use glam::Vec3;
    ///
    /// let mut set = InstanceSet::from_transforms([Vec3::ZERO, Vec3::X, Vec3::Y])?.with_ids();
    /// let last = set.id_of(2).expect("the set has three instances, with ids");
    /// set.remove(0)?;
    /// assert_eq!(set.index_of(last), Some(1));
    /// set.remove(1)?;
    /// assert_eq!(set.index_of(last), None);
    /// # Ok::<(), bevy_gpu_culling::instance::InstanceError>(())
    /// ```
    #[must_use]
    pub fn with_ids(mut self) -> Self {
        self.enable_ids();
        self
    }

    /// Same as [`with_ids`](Self::with_ids), in place. This is not an edit.
    pub fn enable_ids(&mut self) {
        if self.channels.ids.is_none() && self.check_not_written().is_ok() {
            let mut ids = Ids::default();
            ids.extend(self.len());
            self.channels.ids = Some(ids);
        }
    }

    /// The id of an instance. `None` beyond the end, and in a set without
    /// [ids](Self::with_ids).
    #[must_use]
    pub fn id_of(&self, index: u32) -> Option<InstanceId> {
        self.channels.ids.as_ref()?.id(index as usize)
    }

    /// The index that the instance with this id has now. `None` if it was removed, and in a set
    /// without [ids](Self::with_ids).
    #[must_use]
    pub fn index_of(&self, id: InstanceId) -> Option<u32> {
        self.channels.ids.as_ref()?.index(id)
    }

    /// The index that the instance has now that had `index` when the set had this
    /// [`version`](Self::version). `None` if another instance may be there by now, if there is no
    /// such instance any more, and for a version of another set, such as one that was replaced.
    ///
    /// An instance that an edit gave another index is not found: for that, use
    /// [ids](Self::with_ids).
    ///
    /// ```
    /// use bevy_gpu_culling::instance::InstanceSet;
    /// use glam::Vec3;
    ///
    /// let mut set = InstanceSet::from_transforms([Vec3::ZERO, Vec3::X, Vec3::Y])?;
    /// let seen = set.version();
    /// set.set(1, Vec3::Z)?;
    /// set.swap_remove(0)?;
    /// assert_eq!(set.index_since(1, seen), Some(1));
    /// // Instance 2 is there now.
    /// assert_eq!(set.index_since(0, seen), None);
    /// assert_eq!(set.index_since(2, seen), None);
    /// # Ok::<(), bevy_gpu_culling::instance::InstanceError>(())
    /// ```
    #[must_use]
    pub fn index_since(&self, index: u32, version: SetVersion) -> Option<u32> {
        let at = index as usize;
        let is_here = version.lineage == self.lineage() && at < self.len();
        (is_here && !self.log.may_be_another(at, version.revision)).then_some(index)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use crate::instance::InstanceSet;
    use crate::instance::test_sets::{at, line};

    #[test]
    fn what_a_set_and_its_clone_add_has_different_ids() {
        let mut set = line(2).with_ids();
        let mut clone = set.clone();
        assert_eq!(set.id_of(1), clone.id_of(1));
        let [one, two] = [&mut set, &mut clone].map(|set| {
            let index = set.push(at(7.0)).unwrap();
            set.id_of(index).unwrap()
        });
        assert_ne!(one, two);
        assert_eq!((set.index_of(two), clone.index_of(one)), (None, None));
        // Also in slots that were free before the clone.
        let mut set = line(2).with_ids();
        set.pop();
        let mut clone = set.clone();
        set.push(at(7.0)).unwrap();
        clone.push(at(8.0)).unwrap();
        assert_ne!(set.id_of(1), clone.id_of(1));
        // And of other sets.
        assert_ne!(line(1).with_ids().id_of(0), line(1).with_ids().id_of(0));
    }

    #[test]
    fn a_released_set_that_is_filled_again_has_new_ids() {
        let mut set = line(3).with_ids();
        let old = set.id_of(1).unwrap();
        drop(set.release());
        assert_eq!((set.id_of(1), set.index_of(old)), (None, None));
        set.clear();
        set.extend([at(1.0), at(2.0)]).unwrap();
        assert!(set.id_of(1).is_some());
        assert_eq!(set.index_of(old), None);
    }

    #[test]
    fn an_index_is_resolved_if_the_same_instance_is_still_there() {
        let mut set = line(1000);
        let seen = set.version();
        assert_eq!(set.index_since(4, seen), Some(4));
        set.set(4, at(-1.0)).unwrap();
        set.hide(5).unwrap();
        set.show(5).unwrap();
        set.swap_remove(3).unwrap();
        assert_eq!(set.index_since(3, seen), None, "the last one is there");
        assert_eq!(set.index_since(999, seen), None, "it moved");
        assert_eq!(set.index_since(4, seen), Some(4), "it moved in space");
        assert_eq!(set.index_since(5, seen), Some(5));
        set.push(at(0.0)).unwrap();
        assert_eq!(set.index_since(999, seen), None, "it is a new one");
        assert_eq!(set.clone().index_since(4, seen), None, "another set");
        let later = set.version();
        set.sort();
        assert_eq!(set.index_since(4, later), None, "all have moved");
        assert_eq!(InstanceSet::new().index_since(0, seen), None);
        let version = set.version();
        assert_eq!(set.index_since(999, version), Some(999));
        assert_eq!(set.index_since(1000, version), None);
    }
}
