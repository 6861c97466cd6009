//! Tags and other data of instances, whose meaning the material decides.

use bytemuck::Pod;

use super::data;
use super::{InstanceError, InstanceSet, InstanceTransform};

impl InstanceSet {
    /// The tag of an instance: the first 4 bytes of its data; 0 in a set without. `None` beyond the
    /// end, and in a [released](Self::is_released) set.
    #[must_use]
    pub fn tag(&self, index: u32) -> Option<u32> {
        let at = self.check_index(index).ok()?;
        Some(self.channels.tag(at))
    }

    /// The data of an instance, or its first bytes if `T` is smaller. What the set has no room for
    /// is 0. `None` beyond the end, in a [released](Self::is_released) set, and for a `T` whose
    /// size is not 4, 8, 12 or 16 bytes.
    #[must_use]
    pub fn data<T: Pod>(&self, index: u32) -> Option<T> {
        let at = self.check_index(index).ok()?;
        let words = data::words_of(size_of::<T>()).ok()?;
        let all = self.channels.data.get(at);
        Some(bytemuck::pod_read_unaligned(bytemuck::cast_slice(
            &all[..words],
        )))
    }

    /// The tag channel, one value per instance; `None` in a set without tags, and in one with more
    /// data per instance ([`data_words`](Self::data_words)).
    #[must_use]
    pub fn tags(&self) -> Option<&[u32]> {
        (self.channels.data.words() == 1).then(|| self.data_words())
    }

    /// The data of all instances as the shaders read it: [`data_size`](Self::data_size) / 4 words
    /// per instance.
    #[must_use]
    pub fn data_words(&self) -> &[u32] {
        self.channels.data.values()
    }

    /// Size of an instance's data in bytes: 4 with tags, 8, 12 or 16 with more; 0 without. Known in
    /// a [released](Self::is_released) set and in a set that the GPU writes, too.
    #[must_use]
    pub fn data_size(&self) -> usize {
        4 * self.shape().1
    }

    /// Whether instances have tags, alone or as the first 4 bytes of more data, also in a
    /// [released](Self::is_released) set and in a set that the GPU writes.
    #[must_use]
    pub fn has_tags(&self) -> bool {
        self.data_size() > 0
    }

    /// Adds an instance with data at the end and returns its index, as [`push`](Self::push) and
    /// [`set_data`](Self::set_data) would.
    ///
    /// # Errors
    ///
    /// Those of both. The set then stays as it was.
    ///
    /// ```
    /// use bevy_gpu_culling::instance::InstanceSet;
    /// use glam::Vec3;
    ///
    /// let mut set = InstanceSet::new();
    /// let unit = set.push_with_data(Vec3::X, [7u32, 8, 9])?;
    /// set.extend_with_data([(Vec3::Y, [1u32, 2, 3]), (Vec3::Z, [4, 5, 6])])?;
    /// set.set_position(unit, Vec3::NEG_X)?;
    /// assert_eq!(set.data(unit), Some([7u32, 8, 9]));
    /// assert_eq!(set.data_words()[3..], [1, 2, 3, 4, 5, 6]);
    /// # Ok::<(), bevy_gpu_culling::instance::InstanceError>(())
    /// ```
    pub fn push_with_data<T: Pod>(
        &mut self,
        transform: impl Into<InstanceTransform>,
        value: T,
    ) -> Result<u32, InstanceError> {
        data::words_of(size_of::<T>())?;
        let index = self.push(transform)?;
        self.set_data(index, value)?;
        Ok(index)
    }

    /// Adds instances with data at the end: all of them, or none if one is refused. The new
    /// instances are collected first, so this needs memory for them twice.
    ///
    /// # Errors
    ///
    /// Same as [`extend`](Self::extend), and [`InstanceError::DataSize`].
    pub fn extend_with_data<P: Into<InstanceTransform>, T: Pod>(
        &mut self,
        instances: impl IntoIterator<Item = (P, T)>,
    ) -> Result<(), InstanceError> {
        data::words_of(size_of::<T>())?;
        let (places, values): (Vec<_>, Vec<_>) = instances.into_iter().unzip();
        let first = self.len() as u32;
        self.extend(places)?;
        self.set_data_range(first, &values)
    }

    /// Replaces the tag of an instance; other data stays. Setting the tag that it already has is
    /// not an edit.
    ///
    /// # Errors
    ///
    /// [`InstanceError::IndexOutOfRange`].
    pub fn set_tag(&mut self, index: u32, tag: u32) -> Result<(), InstanceError> {
        self.set_data(index, tag)
    }

    /// Replaces the data of an instance, or its first bytes if `T` is smaller. If the set has less
    /// room per instance, all of it is uploaded again, once. Setting what is there already is not
    /// an edit.
    ///
    /// # Errors
    ///
    /// [`InstanceError::IndexOutOfRange`]; [`InstanceError::DataSize`] for a `T` whose size is not
    /// 4, 8, 12 or 16 bytes.
    pub fn set_data<T: Pod>(&mut self, index: u32, value: T) -> Result<(), InstanceError> {
        self.check_index(index)?;
        self.set_data_range(index, &[value])
    }

    /// Replaces the data of the instances from `first` on, as [`set_data`](Self::set_data) does.
    ///
    /// # Errors
    ///
    /// [`InstanceError::RangeOutOfBounds`] if there are more values than instances behind `first`;
    /// [`InstanceError::DataSize`] for a `T` whose size is not 4, 8, 12 or 16 bytes.
    ///
    /// ```
    /// use bevy_gpu_culling::instance::InstanceSet;
    /// use glam::Vec3;
    ///
    /// // New instances have no data: the ones behind the old end get theirs here.
    /// let mut set = InstanceSet::from_transforms([Vec3::ZERO])?.with_data(vec![[1u32, 2]])?;
    /// set.extend([Vec3::X, Vec3::Y])?;
    /// set.set_data_range(1, &[[3u32, 4], [5, 6]])?;
    /// assert_eq!(set.data_words(), [1, 2, 3, 4, 5, 6]);
    /// # Ok::<(), bevy_gpu_culling::instance::InstanceError>(())
    /// ```
    pub fn set_data_range<T: Pod>(
        &mut self,
        first: u32,
        values: &[T],
    ) -> Result<(), InstanceError> {
        self.check_not_written()?;
        let words = data::words_of(size_of::<T>())?;
        let (start, len) = (first as usize, self.len());
        let end = start.saturating_add(values.len());
        if end > len {
            return Err(InstanceError::RangeOutOfBounds { start, end, len });
        }
        let is_wider = words > self.channels.data.words();
        let mut revision = None;
        for (at, value) in (start..).zip(values) {
            let new = data::words(*value)?;
            let new = &new[..words];
            if self.channels.data.get(at)[..words] == *new {
                continue;
            }
            let revision = *revision.get_or_insert_with(|| self.log.begin());
            self.channels.data.set(at, new, len);
            if !is_wider {
                self.log.data.mark(at..at + 1, revision);
            }
        }
        if is_wider && revision.is_some() {
            self.log.mark_everything();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::instance::{SetChanges, test_sets::line};

    #[test]
    fn data_is_read_and_written_in_parts() {
        let mut set = line(3).with_data(vec![[1u32, 10, 100]; 3]).unwrap();
        assert_eq!((set.data_size(), set.tags()), (12, None));
        assert_eq!((set.tag(2), set.data(2)), (Some(1), Some([1u32, 10])));
        assert_eq!(set.data(2), Some([1u32, 10, 100, 0]));
        assert_eq!((set.data::<u32>(3), set.data::<u16>(0)), (None, None));
        set.set_tag(0, 7).unwrap();
        set.set_data(1, [8u32, 80]).unwrap();
        assert_eq!(set.data_words(), [7, 10, 100, 8, 80, 100, 1, 10, 100]);
        let error = set.set_data(0, [0u32; 5]).unwrap_err();
        assert_eq!(error, InstanceError::DataSize { bytes: 20 });
        let error = set.set_data(3, 0u32).unwrap_err();
        assert_eq!(error, InstanceError::IndexOutOfRange { index: 3, len: 3 });
        let error = set.set_data_range(2, &[0u32; 2]).unwrap_err();
        let (start, end, len) = (2, 4, 3);
        assert_eq!(error, InstanceError::RangeOutOfBounds { start, end, len });
    }

    #[test]
    fn wider_data_is_uploaded_once_and_the_same_data_never() {
        let mut set = line(1000).with_tags(vec![5; 1000]).unwrap();
        let seen = set.revision();
        set.set_data_range(0, &[5u32; 1000]).unwrap();
        // The second word is 0 already.
        set.set_data(400, [5u32, 0]).unwrap();
        assert_eq!(set.changes_since(seen), SetChanges::Nothing);
        set.set_data(400, [5u32, 1]).unwrap();
        assert_eq!(set.changes_since(seen), SetChanges::Everything);
        let seen = set.revision();
        set.set_data_range(400, &[[5u32, 1], [5, 2]]).unwrap();
        assert_eq!(set.revision(), seen + 1);
        let SetChanges::Ranges(changed) = set.changes_since(seen) else {
            panic!("no channel came or went");
        };
        assert_eq!(changed.instances.len(), 0);
        assert!(matches!(&changed.data[..], [range] if *range == (256..512)));
    }
}
