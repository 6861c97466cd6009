//! Edits of many instances at once that keep their places in the set.

use std::ops::{Range, RangeBounds};

use super::channels::Channels;
use super::splice::ends;
use super::{InstanceError, InstanceSet, InstanceTransform, PackedInstance, ScaleKind};

impl InstanceSet {
    /// Replaces position, rotation and scale of the instances from `first` on. They keep their data
    /// and their ids, and hidden ones stay hidden.
    ///
    /// All are checked first: if one is refused, nothing changes. The [`bounds`](Self::bounds)
    /// grow; they never shrink here.
    ///
    /// # Errors
    ///
    /// [`InstanceError::RangeOutOfBounds`] if there are more transforms than instances behind
    /// `first`; otherwise same as [`set`](Self::set).
    pub fn set_range<T: Into<InstanceTransform>>(
        &mut self,
        first: u32,
        transforms: impl IntoIterator<Item = T>,
    ) -> Result<(), InstanceError> {
        self.check_not_written()?;
        let first = first as usize;
        let new = Channels::collect(transforms, first)?;
        let Some(range) = self.range_from(first, new.len())? else {
            return Ok(());
        };
        let shape = self.shape();
        let revision = self.log.begin();
        self.channels.set_range(first, new);
        self.log.instances.mark(range.clone(), revision);
        if self.shape() != shape {
            self.log.mark_everything();
        } else if self.channels.scales.kind() != ScaleKind::One {
            self.log.scales.mark(range, revision);
        }
        Ok(())
    }

    /// Replaces position and rotation of the instances from `first` on, without conversion. They
    /// keep their scales, their data and their ids, and hidden ones stay hidden.
    ///
    /// All are checked first, on all cores: if one is refused, nothing changes. The
    /// [`bounds`](Self::bounds) grow; they never shrink here.
    ///
    /// # Errors
    ///
    /// [`InstanceError::RangeOutOfBounds`] if there are more than instances behind `first`;
    /// otherwise same as [`from_packed`](Self::from_packed), with the index in this set.
    ///
    /// ```
    /// use bevy_gpu_culling::instance::{InstanceSet, PackedInstance};
    /// use glam::{Quat, Vec3};
    ///
    /// let mut set = InstanceSet::from_transforms([Vec3::ZERO; 4])?;
    /// let moved = [1.0, 2.0].map(|x| PackedInstance::new(Vec3::X * x, Quat::IDENTITY));
    /// set.set_packed_range(2, &moved)?;
    /// assert_eq!(set.packed()[2..], moved);
    /// # Ok::<(), bevy_gpu_culling::instance::InstanceError>(())
    /// ```
    pub fn set_packed_range(
        &mut self,
        first: u32,
        instances: &[PackedInstance],
    ) -> Result<(), InstanceError> {
        self.check_not_written()?;
        let first = first as usize;
        let Some(range) = self.range_from(first, instances.len())? else {
            return Ok(());
        };
        let mut new = Channels::from_packed(instances.to_vec(), first)?;
        if let Some(bounds) = &mut new.bounds {
            let largest = || self.channels.scales.largest();
            bounds.max_scale = (self.channels.bounds).map_or_else(largest, |known| known.max_scale);
        }
        let revision = self.log.begin();
        self.channels.set_packed_range(first, new);
        self.log.instances.mark(range, revision);
        Ok(())
    }

    /// Adds packed instances at the end, without conversion: all of them, or none if one is
    /// refused. Their scale is 1.
    ///
    /// # Errors
    ///
    /// Same as [`from_packed`](Self::from_packed), with the index that the instance would have got
    /// in this set.
    pub fn extend_packed(&mut self, instances: Vec<PackedInstance>) -> Result<(), InstanceError> {
        self.check_not_written()?;
        let tail = Channels::from_packed(instances, self.len())?;
        self.append(tail);
        Ok(())
    }

    /// Hides the instances in `range`, as [`hide`](Self::hide) does one.
    ///
    /// # Errors
    ///
    /// [`InstanceError::RangeOutOfBounds`].
    pub fn hide_range(&mut self, range: impl RangeBounds<u32>) -> Result<(), InstanceError> {
        self.check_not_written()?;
        let (start, end) = ends(&range, self.len())?;
        for index in start..end {
            self.hide(index as u32)?;
        }
        Ok(())
    }

    /// Shows the instances in `range`, as [`show`](Self::show) does one.
    ///
    /// # Errors
    ///
    /// [`InstanceError::RangeOutOfBounds`].
    pub fn show_range(&mut self, range: impl RangeBounds<u32>) -> Result<(), InstanceError> {
        self.check_not_written()?;
        let (start, end) = ends(&range, self.len())?;
        let hidden: Vec<u32> = self.channels.hidden.within(start..end).collect();
        for index in hidden {
            self.show(index)?;
        }
        Ok(())
    }

    /// Shows all [hidden](Self::hide) instances. Does nothing in a set whose instances are not on
    /// the CPU.
    pub fn show_all(&mut self) {
        // Only sets with instances on the CPU have hidden ones.
        let _ = self.show_range(..);
    }

    /// `count` indices from `first` on; `None` if there are none.
    fn range_from(
        &self,
        first: usize,
        count: usize,
    ) -> Result<Option<Range<usize>>, InstanceError> {
        let (range, len) = (first..first.saturating_add(count), self.len());
        if range.end > len {
            let Range { start, end } = range;
            return Err(InstanceError::RangeOutOfBounds { start, end, len });
        }
        Ok((!range.is_empty()).then_some(range))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::instance::test_sets::{at, line};
    use crate::instance::{PackedQuat, SetChanges};
    use glam::{Quat, Vec3};

    fn packed(x: f32) -> PackedInstance {
        PackedInstance::new(Vec3::X * x, Quat::from_rotation_y(0.5))
    }

    #[test]
    fn packed_instances_are_replaced_and_the_rest_of_them_stays() {
        let mut set = line(1000).with_scales(vec![0.5; 1000]).unwrap();
        set.set_tags((0..1000).collect()).unwrap();
        set.enable_ids();
        set.hide(301).unwrap();
        let (seen, id) = (set.revision(), set.id_of(301));
        set.set_packed_range(300, &[packed(-4.0), packed(2000.0)])
            .unwrap();
        assert_eq!(set.packed()[300], packed(-4.0));
        let moved = set.get(301).unwrap();
        assert_eq!((moved.translation.x, moved.scale.x), (2000.0, 0.5));
        assert!(set.is_hidden(301) && set.id_of(301) == id && set.tag(301) == Some(301));
        let bounds = set.bounds().unwrap();
        assert_eq!((bounds.min.x, bounds.max_scale), (-4.0, 0.5));
        let SetChanges::Ranges(changed) = set.changes_since(seen) else {
            panic!("no channel came or went");
        };
        assert!(matches!(&changed.instances[..], [range] if *range == (256..512)));
        assert!(changed.scales.is_empty() && changed.data.is_empty());
        assert!(changed.renumbered.is_empty());

        set.extend_packed(vec![packed(-9.0)]).unwrap();
        assert_eq!((set.len(), set.tag(1000)), (1001, Some(0)));
        assert_eq!(set.scales().unwrap()[999..], [0.5, 1.0]);
        assert!(set.id_of(1000).is_some() && set.bounds().unwrap().min.x == -9.0);
    }

    #[test]
    fn a_refused_packed_instance_leaves_the_set_as_it_was() {
        let mut set = line(4);
        let bad = PackedInstance {
            rotation: PackedQuat::from_bits(0),
            ..packed(0.0)
        };
        let index = |error| match error {
            InstanceError::RotationNotNormalized { index, .. } => index,
            other => panic!("{other}"),
        };
        let error = set.set_packed_range(2, &[packed(7.0), bad]).unwrap_err();
        assert_eq!(index(error), 3);
        let error = set.extend_packed(vec![packed(7.0), bad]).unwrap_err();
        assert_eq!(index(error), 5);
        let error = set.set_packed_range(3, &[packed(7.0); 2]).unwrap_err();
        let (start, end, len) = (3, 5, 4);
        assert_eq!(error, InstanceError::RangeOutOfBounds { start, end, len });
        set.set_packed_range(4, &[]).unwrap();
        set.extend_packed(Vec::new()).unwrap();
        assert_eq!((set.len(), set.revision()), (4, 1));
    }

    #[test]
    fn ranges_are_hidden_and_all_is_shown() {
        let mut set = line(5000);
        set.hide_range(10..3000).unwrap();
        assert!(set.hidden().eq(10..3000));
        set.show_range(..=1500).unwrap();
        assert!(set.hidden().eq(1501..3000));
        let error = set.hide_range(4000..5001).unwrap_err();
        assert!(matches!(error, InstanceError::RangeOutOfBounds { .. }));
        assert_eq!(set.hidden().count(), 1499);
        set.show_all();
        assert!(set.hidden().next().is_none());
        assert_eq!(set.get(2999), Some(at(2999.0)));
        let seen = set.revision();
        set.show_all();
        assert_eq!(set.revision(), seen, "nothing was hidden");
        drop(set.release());
        set.show_all();
        assert_eq!(set.hide_range(..).unwrap_err(), InstanceError::Released);
    }
}
