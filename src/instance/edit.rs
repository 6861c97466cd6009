//! Edits of a set. Each edit first checks, then writes, then logs.

use std::ops::Range;

use glam::Vec3;

use super::channels::Channels;
use super::limits::next_index;
use super::{
    InstanceBounds, InstanceError, InstanceSet, InstanceTransform, PackedInstance, ScaleKind,
};

impl InstanceSet {
    /// Adds an instance at the end and returns its index.
    ///
    /// # Errors
    ///
    /// Whatever [`InstanceTransform`] does not allow, or [`InstanceError::TooMany`].
    pub fn push(&mut self, transform: impl Into<InstanceTransform>) -> Result<u32, InstanceError> {
        self.push_tagged(transform, 0)
    }

    /// Adds an instance with a tag at the end and returns its index.
    ///
    /// # Errors
    ///
    /// Same as [`push`](Self::push).
    pub fn push_tagged(
        &mut self,
        transform: impl Into<InstanceTransform>,
        tag: u32,
    ) -> Result<u32, InstanceError> {
        self.check_not_written()?;
        let before = self.len();
        let index = next_index(before)?;
        let (packed, scale) = transform.into().pack(index)?;
        let shape = self.shape();
        self.channels.push(packed, scale, tag);
        self.log_append(before, shape);
        Ok(index)
    }

    /// Adds instances at the end: all of them, or none if one is refused.
    ///
    /// They are packed into a separate array first, so this needs memory for them twice.
    ///
    /// # Errors
    ///
    /// Same as [`from_transforms`](Self::from_transforms), with the index that the instance would
    /// have got in this set.
    pub fn extend<T: Into<InstanceTransform>>(
        &mut self,
        transforms: impl IntoIterator<Item = T>,
    ) -> Result<(), InstanceError> {
        self.check_not_written()?;
        let before = self.len();
        let tail = Channels::collect(transforms, before)?;
        self.append(tail);
        Ok(())
    }

    /// Same as [`extend`](Self::extend), with a tag per instance.
    ///
    /// # Errors
    ///
    /// Same as [`extend`](Self::extend).
    pub fn extend_tagged<T: Into<InstanceTransform>>(
        &mut self,
        instances: impl IntoIterator<Item = (T, u32)>,
    ) -> Result<(), InstanceError> {
        self.check_not_written()?;
        let before = self.len();
        let tail = Channels::collect_tagged(instances, before, 0)?;
        self.append(tail);
        Ok(())
    }

    /// Replaces position, rotation and scale of an instance; it keeps its data, and stays
    /// [hidden](Self::hide) if it is. The [`bounds`](Self::bounds) grow; they never shrink here.
    ///
    /// # Errors
    ///
    /// [`InstanceError::IndexOutOfRange`], or whatever [`InstanceTransform`] does not allow.
    pub fn set(
        &mut self,
        index: u32,
        transform: impl Into<InstanceTransform>,
    ) -> Result<(), InstanceError> {
        let at = self.check_index(index)?;
        let (packed, scale) = transform.into().pack(index)?;
        self.place(at, packed, scale);
        Ok(())
    }

    /// Moves an instance. It keeps its rotation, scale and data, and stays [hidden](Self::hide) if
    /// it is.
    ///
    /// # Errors
    ///
    /// [`InstanceError::IndexOutOfRange`], or a position that [`InstanceTransform`] does not allow.
    pub fn set_position(&mut self, index: u32, position: Vec3) -> Result<(), InstanceError> {
        let at = self.check_index(index)?;
        let (moved, _) = InstanceTransform::from(position).pack(index)?;
        let rotation = self.channels.instances[at].rotation;
        let scale = self.channels.scale(at);
        self.place(at, PackedInstance { rotation, ..moved }, scale);
        Ok(())
    }

    /// Same as [`set`](Self::set), but the instance has no motion in this frame: for a respawn, or
    /// a jump. It makes a difference in sets that [keep the previous frame's
    /// instances](Self::keep_previous).
    ///
    /// # Errors
    ///
    /// Same as [`set`](Self::set).
    pub fn teleport(
        &mut self,
        index: u32,
        transform: impl Into<InstanceTransform>,
    ) -> Result<(), InstanceError> {
        self.set(index, transform)?;
        let at = index as usize;
        self.log.mark_teleported(at..at + 1, self.channels.len());
        Ok(())
    }

    /// Replaces position, rotation and scale of an existing instance.
    fn place(&mut self, at: usize, packed: PackedInstance, scale: Vec3) {
        let is_same =
            |instance: &PackedInstance| bytemuck::bytes_of(instance) == bytemuck::bytes_of(&packed);
        if is_same(&self.channels.instances[at]) && self.channels.scale(at) == scale {
            return;
        }
        let revision = self.log.begin();
        self.channels.place(at, packed);
        self.channels
            .cover(InstanceBounds::of(packed.position(), scale));
        self.log.instances.mark(at..at + 1, revision);
        if self.channels.scale(at) != scale {
            let (len, before) = (self.len(), self.channels.scales.kind());
            self.channels.scales.set(at, scale, len);
            if self.channels.scales.kind() != before {
                self.log.mark_everything();
            } else {
                self.log.scales.mark(at..at + 1, revision);
            }
        }
    }

    /// Drops all instances from `len` on. Reads the remaining ones to make the
    /// [`bounds`](Self::bounds) tight (except in a [released](Self::is_released) set). The channels
    /// stay. In a set that the GPU writes, this reduces the number of live instances.
    pub fn truncate(&mut self, len: usize) {
        let before = self.len();
        if len < before {
            self.log.begin();
            self.log.mark_renumbered(before..before, before);
            match &mut self.written {
                Some(written) => written.live = len as u32,
                None => self.channels.truncate(len),
            }
        }
    }

    /// Drops all instances, and the scale and data channels with them. Keeps the memory of the
    /// packed instances. A [released](Self::is_released) set, also an empty one, can then be filled
    /// again; if it had ids, new instances get new ones.
    pub fn clear(&mut self) {
        let shape = self.shape();
        if self.written.is_some() {
            self.truncate(0);
        } else if !self.is_empty() || self.is_released() || shape != <(ScaleKind, usize)>::default()
        {
            self.log.begin();
            self.log.mark_renumbered(0..0, self.len());
            let mut instances = core::mem::take(&mut self.channels.instances);
            instances.clear();
            let ids = self.channels.has_ids().then(|| {
                let mut ids = self.channels.ids.take().unwrap_or_default();
                ids.truncate(0);
                ids
            });
            self.channels = Channels {
                instances,
                ids,
                ..Channels::default()
            };
            if shape != <(ScaleKind, usize)>::default() {
                self.log.mark_everything();
            }
        }
    }

    /// Reads all instances to make the [`bounds`](Self::bounds) tight again, after many calls of
    /// [`set`](Self::set).
    pub fn tighten_bounds(&mut self) {
        if self.written.is_some() {
            return;
        }
        let before = self.channels.bounds;
        self.channels.measure();
        if self.channels.bounds != before {
            self.log.begin();
        }
    }

    /// Which optional channels exist.
    pub(super) fn shape(&self) -> (ScaleKind, usize) {
        match &self.written {
            Some(written) => written.shape(),
            None => self.channels.shape(),
        }
    }

    pub(super) fn append(&mut self, tail: Channels) {
        if tail.len() == 0 {
            return;
        }
        let (before, shape) = (self.len(), self.shape());
        self.channels.append(tail);
        self.log_append(before, shape);
    }

    /// Logs what was added after the first `before` instances; `shape` is the shape before that.
    fn log_append(&mut self, before: usize, shape: (ScaleKind, usize)) {
        let added = before..self.len();
        let revision = self.log.begin();
        if self.shape() != shape {
            self.log.mark_everything();
            return;
        }
        self.log.mark_renumbered(added.clone(), before);
        self.mark_channels(added, revision);
    }

    /// Marks `range` as written in all channels.
    pub(super) fn mark_channels(&mut self, range: Range<usize>, revision: u64) {
        self.log.instances.mark(range.clone(), revision);
        if self.channels.scales.kind() != ScaleKind::One {
            self.log.scales.mark(range.clone(), revision);
        }
        if self.channels.data.words() > 0 {
            self.log.data.mark(range, revision);
        }
    }

    /// The index into the channels, if such an instance exists.
    pub(super) fn check_index(&self, index: u32) -> Result<usize, InstanceError> {
        self.check_not_written()?;
        let len = self.len();
        if (index as usize) < len {
            Ok(index as usize)
        } else {
            Err(InstanceError::IndexOutOfRange { index, len })
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::instance::test_sets::{at, line};
    use crate::instance::{ChangedRanges, SetChanges};

    #[test]
    fn channels_appear_with_the_first_value_that_needs_them() {
        let mut set = line(2);
        assert_eq!((set.scales(), set.tags()), (None, None));
        set.push_tagged(at(2.0), 0).unwrap();
        set.set(0, at(0.0).with_scale(1.0)).unwrap();
        set.set_tag(0, 0).unwrap();
        assert_eq!((set.scales(), set.tags()), (None, None));

        set.push(at(3.0).with_scale(0.0)).unwrap();
        assert_eq!(set.scales(), Some(&[1.0, 1.0, 1.0, 0.0][..]));
        assert_eq!(set.tags(), None);
        set.push_tagged(at(4.0), 9).unwrap();
        assert_eq!(set.scales(), Some(&[1.0, 1.0, 1.0, 0.0, 1.0][..]));
        assert_eq!(set.tags(), Some(&[0, 0, 0, 0, 9][..]));
        assert_eq!(
            (set.tag(3), set.tag(4), set.tag(5)),
            (Some(0), Some(9), None)
        );

        set.truncate(2);
        assert_eq!(
            (set.scales(), set.tags()),
            (Some(&[1.0, 1.0][..]), Some(&[0, 0][..]))
        );
        set.clear();
        assert_eq!((set.scales(), set.tags()), (None, None));

        let mut set = line(2);
        set.set(1, at(1.0).with_scale(2.0)).unwrap();
        assert_eq!(set.scales(), Some(&[1.0, 2.0][..]));
        set.set_tag(0, 5).unwrap();
        assert_eq!(set.tags(), Some(&[5, 0][..]));
    }

    #[test]
    fn extend_joins_channels_in_all_four_ways() {
        for (first, second) in [(1.0, 1.0), (2.0, 1.0), (1.0, 2.0), (2.0, 3.0)] {
            let mut set = InstanceSet::new();
            set.extend([at(0.0).with_scale(first); 2]).unwrap();
            set.extend([at(0.0).with_scale(second); 3]).unwrap();
            let got: Vec<f32> = set.iter().map(|t| t.scale.x).collect();
            assert_eq!(got, [first, first, second, second, second]);
            assert_eq!(set.scales().is_some(), (first, second) != (1.0, 1.0));
        }
    }

    #[test]
    fn every_entry_names_the_index_it_would_have_had() {
        let bad = at(f32::NAN);
        let index = |error| match error {
            InstanceError::NonFinitePosition { index, .. } => index,
            other => panic!("{other}"),
        };
        assert_eq!(
            index(InstanceSet::from_transforms([at(0.0), bad]).unwrap_err()),
            1
        );
        let mut set = line(4);
        assert_eq!(index(set.push(bad).unwrap_err()), 4);
        assert_eq!(index(set.push_tagged(bad, 1).unwrap_err()), 4);
        assert_eq!(index(set.extend([at(0.0), bad]).unwrap_err()), 5);
        assert_eq!(index(set.set(2, bad).unwrap_err()), 2);

        let missing = InstanceError::IndexOutOfRange { index: 4, len: 4 };
        assert_eq!(set.set(4, at(0.0)).unwrap_err(), missing);
        assert_eq!(set.set_tag(4, 0).unwrap_err(), missing);
        assert_eq!(set.revision(), 1, "a refused edit is not an edit");
    }

    #[test]
    fn extend_is_all_or_nothing() {
        let mut set = line(3);
        let before = set.clone();
        let bad = [at(50.0).with_scale(2.0), at(60.0), at(f32::NAN), at(70.0)];
        set.extend(bad).unwrap_err();
        assert_eq!(set.packed(), before.packed());
        assert_eq!((set.scales(), set.tags()), (None, None));
        assert_eq!(set.bounds(), before.bounds());
        assert_eq!(set.revision(), before.revision());
    }

    #[test]
    fn bounds_are_never_too_small() {
        let mut set = line(3);
        assert_eq!(set.bounds().unwrap().max, Vec3::X * 2.0);
        set.set(1, at(-5.0).with_scale(4.0)).unwrap();
        let wide = InstanceBounds {
            min: Vec3::X * -5.0,
            max: Vec3::X * 2.0,
            max_scale: 4.0,
        };
        assert_eq!(set.bounds(), Some(wide));
        set.set(1, at(0.5).with_scale(0.5)).unwrap();
        assert_eq!(set.bounds(), Some(wide), "grows only");
        let before = set.revision();
        set.tighten_bounds();
        let tight = InstanceBounds {
            min: Vec3::ZERO,
            max: Vec3::X * 2.0,
            max_scale: 1.0,
        };
        assert_eq!(set.bounds(), Some(tight));
        let only_bounds = SetChanges::Ranges(ChangedRanges::default());
        assert_eq!(set.changes_since(before), only_bounds);
        set.truncate(2);
        assert_eq!(set.bounds().unwrap().max, Vec3::X * 0.5);
        set.truncate(0);
        assert_eq!(set.bounds(), None);

        let all_small = line(2).with_scales(vec![0.25, 0.5]).unwrap();
        assert_eq!(all_small.bounds().unwrap().max_scale, 0.5);
    }
}
