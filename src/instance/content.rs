//! What is saved of a set, in any format.

use super::channels::Channels;
use super::{InstanceError, InstanceFileError, InstanceSet, PackedInstance};
use std::borrow::Cow;

/// What is saved of a set. Every format goes through [`Self::of`] and [`Self::into_set`].
///
/// This is the one place that translates what a set keeps in another form than its file: an
/// instance whose packed form is not the instance itself (such as a position that is NaN on
/// purpose) must be unpacked in `of`, and packed again in `into_set`.
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename = "InstanceSet", deny_unknown_fields)
)]
pub(super) struct Content<'a> {
    /// Finite positions, and rotations as [`InstanceSet::packed`] has them.
    pub instances: Cow<'a, [PackedInstance]>,
    /// One per instance, if the set has the channel.
    pub scales: Option<Cow<'a, [f32]>>,
    /// One per instance, if the set has the channel.
    pub tags: Option<Cow<'a, [u32]>>,
    /// [`InstanceSet::keeps_previous`].
    pub keep_previous: bool,
}

impl<'a> Content<'a> {
    /// What is saved of a set whose data is on the CPU.
    pub fn of(set: &'a InstanceSet) -> Result<Self, InstanceFileError> {
        match set.check_not_written() {
            Ok(()) => {}
            Err(InstanceError::GpuWritten) => return Err(InstanceFileError::GpuWritten),
            Err(_) => return Err(InstanceFileError::Released),
        }
        Ok(Self {
            instances: Cow::Borrowed(set.packed()),
            scales: set.scales().map(Cow::Borrowed),
            tags: set.tags().map(Cow::Borrowed),
            keep_previous: set.keeps_previous(),
        })
    }

    /// The set, if its values are allowed.
    pub fn into_set(self) -> Result<InstanceSet, InstanceError> {
        let mut channels = Channels::from_packed(self.instances.into_owned())?;
        if let Some(scales) = self.scales {
            channels.set_scales(scales.into_owned())?;
        }
        if let Some(tags) = self.tags {
            channels.set_tags(tags.into_owned())?;
        }
        let mut set = InstanceSet::default();
        set.channels = channels;
        set.previous = self.keep_previous;
        Ok(set)
    }
}

#[cfg(feature = "serde")]
mod serde_impls {
    use super::Content;
    use crate::instance::InstanceSet;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

    /// A released set, or one that the GPU writes, is an error.
    impl Serialize for InstanceSet {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let content = Content::of(self).map_err(ser::Error::custom)?;
            content.serialize(serializer)
        }
    }

    /// All values are checked; the first problem is an error that names the index.
    impl<'de> Deserialize<'de> for InstanceSet {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let content = Content::deserialize(deserializer)?;
            content.into_set().map_err(de::Error::custom)
        }
    }
}
