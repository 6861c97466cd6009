//! What is saved of a set, in any format.

use super::channels::Channels;
use super::data::Data;
use super::scales::Scales;
use super::{InstanceError, InstanceFileError, InstanceSet, PackedInstance};
use glam::Vec3;
use std::borrow::Cow;

/// What is saved of a set. Every format goes through [`Self::of`] and [`Self::into_set`].
///
/// This is the one place that translates what a set keeps in another form than its file: a hidden
/// instance has its place here, not a NaN.
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
    /// One per instance, if scales differ between axes; there are no `scales` then.
    #[cfg_attr(feature = "serde", serde(default))]
    pub non_uniform_scales: Option<Cow<'a, [Vec3]>>,
    /// One per instance, if the set has tags and no other data.
    pub tags: Option<Cow<'a, [u32]>>,
    /// With more data: words per instance, and the words of all instances. There are no `tags`
    /// then.
    #[cfg_attr(feature = "serde", serde(default))]
    pub data: Option<(u32, Cow<'a, [u32]>)>,
    /// Indices of hidden instances.
    #[cfg_attr(feature = "serde", serde(default))]
    pub hidden: Vec<u32>,
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
            instances: set.channels.shown(),
            scales: set.scales().map(Cow::Borrowed),
            non_uniform_scales: set.non_uniform_scales().map(Cow::Borrowed),
            tags: set.tags().map(Cow::Borrowed),
            data: (set.channels.data.words() > 1).then(|| {
                let words = set.channels.data.words() as u32;
                (words, Cow::Borrowed(set.data_words()))
            }),
            hidden: set.hidden().collect(),
            keep_previous: set.keeps_previous(),
        })
    }

    /// The set, if its values are allowed.
    pub fn into_set(self) -> Result<InstanceSet, InstanceError> {
        for (channel, is_twice) in [
            (
                "scale",
                self.scales.is_some() && self.non_uniform_scales.is_some(),
            ),
            ("data", self.tags.is_some() && self.data.is_some()),
        ] {
            if is_twice {
                return Err(InstanceError::ChannelTwice { channel });
            }
        }
        let mut channels = Channels::from_packed(self.instances.into_owned(), 0)?;
        if let Some(scales) = self.scales {
            channels.set_scales(Scales::Uniform(scales.into_owned()))?;
        }
        if let Some(scales) = self.non_uniform_scales {
            channels.set_scales(Scales::NonUniform(scales.into_owned()))?;
        }
        if let Some(tags) = self.tags {
            channels.set_data(Data::of(tags.into_owned())?)?;
        }
        if let Some((words, data)) = self.data {
            let len = channels.len();
            channels.set_data(Data::checked(words as usize, data.into_owned(), len)?)?;
        }
        let mut set = InstanceSet {
            channels,
            ..InstanceSet::default()
        };
        for index in self.hidden {
            let at = set.check_index(index)?;
            set.channels.hide(at);
        }
        set.channels.measure();
        set.keeps_previous = self.keep_previous;
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

#[cfg(all(test, feature = "serde"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use crate::instance::{InstanceSet, InstanceTransform, test_sets::line};
    use glam::{Quat, Vec3};
    use serde_json::{Value, from_value, json, to_value};

    fn set() -> InstanceSet {
        let turned = |i: u32| {
            let at = InstanceTransform::from(Vec3::new(0.1, -1e-7, 3e9) * i as f32);
            at.with_rotation(Quat::from_rotation_z(i as f32))
        };
        InstanceSet::from_transforms((0..20).map(turned)).unwrap()
    }

    #[test]
    fn a_set_comes_back_from_text() {
        let tags = (0..20).map(|i| i << 27).collect();
        let stretched = (0..20).map(|i| Vec3::new(1.0, i as f32, 0.5)).collect();
        let stretched = set().with_non_uniform_scales(stretched).unwrap();
        let full = set().with_scales(vec![0.3; 20]).unwrap();
        let mut full = full.with_tags(tags).unwrap().keep_previous(true);
        full.hide(7).unwrap();
        let wide = set()
            .with_data((0..20).map(|i| [i, 7u32]).collect())
            .unwrap();
        for set in [set(), full, stretched, wide, InstanceSet::new()] {
            let text = serde_json::to_string(&set).unwrap();
            let again: InstanceSet = serde_json::from_str(&text).unwrap();
            assert!(again.iter().eq(set.iter()) && again.hidden().eq(set.hidden()));
            assert_eq!(again.scales(), set.scales());
            assert_eq!(again.data_size(), set.data_size());
            assert_eq!(again.data_words(), set.data_words());
            assert_eq!(again.non_uniform_scales(), set.non_uniform_scales());
            let mut tight = set.clone();
            tight.tighten_bounds();
            assert_eq!(again.bounds(), tight.bounds());
            assert_eq!(again.keeps_previous(), set.keeps_previous());
            // A format without names, too.
            #[cfg(feature = "meshlets")]
            {
                let bytes = postcard::to_extend(&set, Vec::new()).unwrap();
                let again: InstanceSet = postcard::from_bytes(&bytes).unwrap();
                assert!(again.iter().eq(set.iter()) && again.hidden().eq(set.hidden()));
                assert_eq!(again.scales(), set.scales());
                assert_eq!(again.data_words(), set.data_words());
            }
        }
    }

    #[test]
    fn a_set_is_checked_on_the_way_in() {
        let refused = |change: fn(&mut Value)| {
            let mut value = to_value(set().with_scales(vec![1.0; 20]).unwrap()).unwrap();
            change(&mut value);
            let read = from_value::<InstanceSet>(value);
            read.err()
                .map(|error| error.to_string())
                .unwrap_or_default()
        };
        let odd = refused(|set| set["data"] = json!([5, [0]]));
        assert!(odd.contains("20 bytes"), "{odd}");
        let short = refused(|set| set["data"] = json!([2, [1, 2]]));
        assert!(short.contains("data channel has 1 values"), "{short}");
        let ragged = refused(|set| set["data"] = json!([2, vec![7; 41]]));
        assert!(ragged.contains("data channel has 21 values"), "{ragged}");
        let twice = refused(|set| {
            set["data"] = json!([2, vec![7; 40]]);
            set["tags"] = json!(vec![7; 20]);
        });
        assert!(twice.contains("data channel is given twice"), "{twice}");
        let twice = refused(|set| set["non_uniform_scales"] = json!([[1.0, 1.0, 2.0]]));
        assert!(twice.contains("scale channel is given twice"), "{twice}");
        let huge = refused(|set| set["instances"][3]["position"][0] = json!(1e300));
        assert!(
            huge.contains("instance 3") && huge.contains("inf"),
            "{huge}"
        );
        let zeroed = refused(|set| set["instances"][4]["rotation"] = json!(0));
        assert!(zeroed.contains("instance 4: rotation"), "{zeroed}");
        let negative = refused(|set| set["scales"][5] = json!(-1.0));
        assert!(negative.contains("instance 5: scale -1"), "{negative}");
        let short = refused(|set| set["tags"] = json!([1, 2]));
        assert!(short.contains("2 values for 20 instances"), "{short}");
        let missing = refused(|set| set["hidden"] = json!([3, 20]));
        assert!(missing.contains("no instance 20"), "{missing}");
        let misspelled = refused(|set| set["tag"] = json!([]));
        assert!(misspelled.contains("tag"), "{misspelled}");
    }

    #[test]
    fn a_set_without_its_data_is_not_written() {
        let mut released = line(2);
        drop(released.release());
        let error = serde_json::to_string(&released).unwrap_err().to_string();
        assert!(error.contains("MAIN_WORLD"), "{error}");
    }

    #[test]
    fn a_transform_may_leave_out_what_is_the_identity() {
        let transform: InstanceTransform =
            from_value(json!({ "translation": [1.0, 2.0, 3.0] })).unwrap();
        assert_eq!(transform, Vec3::new(1.0, 2.0, 3.0).into());
        let transform = transform
            .with_rotation(Quat::from_rotation_x(0.3))
            .with_scale(2.5);
        let again: InstanceTransform = from_value(to_value(transform).unwrap()).unwrap();
        assert_eq!(again, transform);
        assert!(from_value::<InstanceTransform>(json!({ "position": [0, 0, 0] })).is_err());
    }
}
