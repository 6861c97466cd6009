//! Edits of the whole set: its channels, and the order of its instances.

use bytemuck::Pod;
use glam::Vec3;

use super::changes::ChangeLog;
use super::channels::Channels;
use super::data::Data;
use super::scales::Scales;
use super::set::Lineage;
use super::{InstanceError, InstanceOrder, InstanceSet};

impl InstanceSet {
    /// Gives every instance a scale, in index order, and replaces existing ones. On an error, the
    /// set is gone: [`set_scales`](Self::set_scales) leaves it as it was.
    ///
    /// # Errors
    ///
    /// [`InstanceError::ChannelLength`] unless there is one scale per instance;
    /// [`InstanceError::InvalidScale`].
    pub fn with_scales(mut self, scales: Vec<f32>) -> Result<Self, InstanceError> {
        self.set_scales(scales)?;
        Ok(self)
    }

    /// Gives every instance a scale per axis, in index order, and replaces existing ones. On an
    /// error, the set is gone: [`set_non_uniform_scales`](Self::set_non_uniform_scales) leaves it
    /// as it was.
    ///
    /// # Errors
    ///
    /// Same as [`with_scales`](Self::with_scales).
    pub fn with_non_uniform_scales(mut self, scales: Vec<Vec3>) -> Result<Self, InstanceError> {
        self.set_non_uniform_scales(scales)?;
        Ok(self)
    }

    /// Gives every instance a tag, in index order, and replaces all data. The material decides what
    /// a tag means, as with Bevy's `MeshTag`. On an error, the set is gone:
    /// [`set_tags`](Self::set_tags) leaves it as it was.
    ///
    /// # Errors
    ///
    /// [`InstanceError::ChannelLength`] unless there is one tag per instance.
    pub fn with_tags(self, tags: Vec<u32>) -> Result<Self, InstanceError> {
        self.with_data(tags)
    }

    /// Gives every instance data of 4, 8, 12 or 16 bytes, in index order, and replaces what was
    /// there. Vertex and fragment shaders of materials read it as `vec4<u32>`, followed by zeros.
    /// The first 4 bytes are the instance's [`tag`](Self::tag). On an error, the set is gone:
    /// [`set_all_data`](Self::set_all_data) leaves it as it was.
    ///
    /// # Errors
    ///
    /// [`InstanceError::DataSize`] for a `T` of another size; [`InstanceError::ChannelLength`]
    /// unless there is one value per instance.
    ///
    /// ```
    /// use bevy_gpu_culling::instance::InstanceSet;
    /// use glam::Vec3;
    ///
    /// // Of each fish: the phase of its stroke, and its length.
    /// let fish = InstanceSet::from_transforms([Vec3::ZERO, Vec3::X])?
    ///     .with_data(vec![[0.25f32, 1.5], [0.75, 1.1]])?;
    /// assert_eq!(fish.data(1), Some([0.75f32, 1.1]));
    /// # Ok::<(), bevy_gpu_culling::instance::InstanceError>(())
    /// ```
    pub fn with_data<T: Pod>(mut self, data: Vec<T>) -> Result<Self, InstanceError> {
        self.set_all_data(data)?;
        Ok(self)
    }

    /// Same as [`with_scales`](Self::with_scales), in place. If the set has scales already, only
    /// these are uploaded.
    ///
    /// # Errors
    ///
    /// Same as [`with_scales`](Self::with_scales); then nothing changes.
    pub fn set_scales(&mut self, scales: Vec<f32>) -> Result<(), InstanceError> {
        self.replace_scales(Scales::Uniform(scales))
    }

    /// Same as [`with_non_uniform_scales`](Self::with_non_uniform_scales), in place. If the set has
    /// scales per axis already, only these are uploaded.
    ///
    /// # Errors
    ///
    /// Same as [`with_scales`](Self::with_scales); then nothing changes.
    pub fn set_non_uniform_scales(&mut self, scales: Vec<Vec3>) -> Result<(), InstanceError> {
        self.replace_scales(Scales::NonUniform(scales))
    }

    /// Same as [`with_tags`](Self::with_tags), in place. If the set has tags and no other data,
    /// only these are uploaded.
    ///
    /// # Errors
    ///
    /// Same as [`with_tags`](Self::with_tags); then nothing changes.
    pub fn set_tags(&mut self, tags: Vec<u32>) -> Result<(), InstanceError> {
        self.set_all_data(tags)
    }

    /// Same as [`with_data`](Self::with_data), in place. If the set has data of this size already,
    /// only the data is uploaded. [`set_data`](Self::set_data) replaces the data of one instance.
    ///
    /// # Errors
    ///
    /// Same as [`with_data`](Self::with_data); then nothing changes.
    pub fn set_all_data<T: Pod>(&mut self, data: Vec<T>) -> Result<(), InstanceError> {
        self.check_not_written()?;
        let before = self.shape();
        self.channels.set_data(Data::of(data)?)?;
        let (all, revision) = (0..self.len(), self.log.begin());
        if self.shape() == before {
            self.log.data.mark(all, revision);
        } else {
            self.log.mark_everything();
        }
        Ok(())
    }

    fn replace_scales(&mut self, scales: Scales) -> Result<(), InstanceError> {
        self.check_not_written()?;
        let before = self.shape();
        self.channels.set_scales(scales)?;
        let (all, revision) = (0..self.len(), self.log.begin());
        if self.shape() == before {
            self.log.scales.mark(all, revision);
        } else {
            self.log.mark_everything();
        }
        Ok(())
    }

    /// The same instances in the order of a Morton curve.
    ///
    /// Culling skips whole runs of instances at once, which pays off if neighbors in the set are
    /// neighbors in space. The curve has 2²¹ cells along the longest side of the set's bounding
    /// box; instances in one cell keep their order. Scales and data follow, hidden instances stay
    /// hidden, and ids keep naming their instances.
    ///
    /// Instances get other indices. Add tags and data that are in the old order before. To find an
    /// instance afterwards, use [`with_ids`](Self::with_ids) or
    /// [`sorted_with_order`](Self::sorted_with_order).
    ///
    /// The result is another set with a new lineage and revision. Sorting runs on all cores and
    /// temporarily takes 40 bytes per instance in addition to the set itself. A set that is
    /// [released](Self::is_released) or that the GPU writes is returned unchanged.
    #[must_use]
    pub fn sorted(self) -> Self {
        self.sorted_with_order().0
    }

    /// Same as [`sorted`](Self::sorted), with the way from old indices to new ones and back. The
    /// order is valid until instances are inserted or removed; [`with_ids`](Self::with_ids) gives
    /// names that last.
    #[must_use]
    pub fn sorted_with_order(mut self) -> (Self, InstanceOrder) {
        if self.check_not_written().is_err() {
            return (self, InstanceOrder::default());
        }
        let order = self.sort();
        (self.lineage, self.log) = (Lineage::default(), ChangeLog::default());
        (self, order)
    }

    /// Same as [`sorted_with_order`](Self::sorted_with_order), in place: an edit of this set. All
    /// of it is uploaded again. The order is empty if nothing was sorted.
    pub fn sort(&mut self) -> InstanceOrder {
        if self.check_not_written().is_err() || self.is_empty() {
            return InstanceOrder::default();
        }
        let Channels {
            mut instances,
            scales,
            data,
            mut hidden,
            mut ids,
            ..
        } = core::mem::take(&mut self.channels);
        let hidden = hidden.show_all(&mut instances);
        let order = InstanceOrder::along_curve(&instances);
        if let Some(ids) = &mut ids {
            ids.reorder(order.as_slice());
        }
        self.channels = Channels {
            instances: order.gather(&instances),
            scales: order.gather_scales(&scales),
            data: order.gather_data(&data),
            ids,
            ..Channels::default()
        };
        self.channels.measure();
        for old in hidden {
            let at = order.sorted(old) as usize;
            self.channels.hide(at);
        }
        self.log.begin();
        self.log.mark_everything();
        order
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::instance::test_sets::{at, line};
    use crate::instance::{ScaleKind, SetChanges};

    #[test]
    fn channels_are_replaced_in_place_and_an_error_changes_nothing() {
        let mut set = line(600).with_tags(vec![1; 600]).unwrap();
        let seen = set.revision();
        set.set_scales(vec![2.0; 600]).unwrap();
        assert_eq!(set.changes_since(seen), SetChanges::Everything);

        let seen = set.revision();
        set.set_scales(vec![3.0; 600]).unwrap();
        set.set_tags(vec![2; 600]).unwrap();
        let SetChanges::Ranges(changed) = set.changes_since(seen) else {
            panic!("no channel came or went");
        };
        assert!(changed.instances.is_empty());
        assert!(matches!(&changed.scales[..], [all] if *all == (0..600)));
        assert!(matches!(&changed.data[..], [all] if *all == (0..600)));
        assert_eq!(
            (set.bounds().unwrap().max_scale, set.tag(7)),
            (3.0, Some(2))
        );

        let seen = set.revision();
        set.set_scales(vec![1.0; 2]).unwrap_err();
        set.set_scales([vec![1.0; 599], vec![f32::NAN]].concat())
            .unwrap_err();
        set.set_non_uniform_scales(vec![Vec3::NEG_ONE; 600])
            .unwrap_err();
        set.set_tags(vec![5]).unwrap_err();
        set.set_all_data(vec![[0u8; 3]; 600]).unwrap_err();
        assert_eq!((set.revision(), set.len()), (seen, 600));
        assert_eq!((set.scales(), set.tag(7)), (Some(&[3.0; 600][..]), Some(2)));

        set.set_non_uniform_scales(vec![Vec3::new(1.0, 2.0, 3.0); 600])
            .unwrap();
        set.set_all_data(vec![[1u32, 2]; 600]).unwrap();
        let shape = (ScaleKind::NonUniform, 8);
        assert_eq!((set.scale_kind(), set.data_size()), shape);
    }

    #[test]
    fn sorting_in_place_is_an_edit_of_the_same_set() {
        let mut set = InstanceSet::from_transforms([at(9.0), at(1.0), at(5.0)]).unwrap();
        set.enable_ids();
        set.set_keep_previous(true);
        set.hide(0).unwrap();
        let (version, last) = (set.version(), set.id_of(0));
        let order = set.sort();
        assert_eq!(order.as_slice(), [1, 2, 0]);
        assert!(set.hidden().eq([2]) && set.keeps_previous());
        assert_eq!(last.and_then(|id| set.index_of(id)), Some(2));
        assert_eq!(set.changes_since(version.revision), SetChanges::Everything);
        assert_eq!(set.version().lineage, version.lineage);
        drop(set.release());
        assert!(set.sort().is_empty() && set.len() == 3);
    }
}
