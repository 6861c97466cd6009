//! Replacing a run of instances by fewer or more others: `Vec::splice` for sets.

use std::ops::{Bound, RangeBounds};

use super::channels::Channels;
use super::{InstanceError, InstanceSet, InstanceTransform};

impl InstanceSet {
    /// Replaces the instances in `range` by these, as [`Vec::splice`] does. Returns the old ones as
    /// a set, with their scales and tags. What follows moves up or down; new instances have the tag
    /// 0.
    ///
    /// All new instances are checked first: if one is refused, nothing changes. If the number of
    /// instances stays the same, only the replaced ones count as [changed](Self::changes_since);
    /// otherwise everything from the start of `range` on.
    ///
    /// The [`bounds`](Self::bounds) grow. They never shrink here unless the set is empty
    /// afterwards.
    ///
    /// # Errors
    ///
    /// [`InstanceError::RangeOutOfBounds`]; otherwise same as
    /// [`from_transforms`](Self::from_transforms), with the index that the instance would have got.
    ///
    /// ```
    /// use bevy_gpu_culling::instance::InstanceSet;
    /// use glam::Vec3;
    ///
    /// let mut set = InstanceSet::from_transforms([Vec3::ZERO, Vec3::X, Vec3::Y])?;
    /// let removed = set.splice(1..2, [Vec3::Z, -Vec3::Z])?;
    /// assert_eq!((set.len(), removed.len()), (4, 1));
    /// assert_eq!(set.get(3).map(|last| last.translation), Some(Vec3::Y));
    /// # Ok::<(), bevy_gpu_culling::instance::InstanceError>(())
    /// ```
    pub fn splice<T: Into<InstanceTransform>>(
        &mut self,
        range: impl RangeBounds<usize>,
        transforms: impl IntoIterator<Item = T>,
    ) -> Result<Self, InstanceError> {
        self.splice_tagged(
            range,
            transforms.into_iter().map(|transform| (transform, 0)),
        )
    }

    /// Same as [`splice`](Self::splice), with a tag per new instance.
    ///
    /// # Errors
    ///
    /// Same as [`splice`](Self::splice).
    pub fn splice_tagged<T: Into<InstanceTransform>>(
        &mut self,
        range: impl RangeBounds<usize>,
        instances: impl IntoIterator<Item = (T, u32)>,
    ) -> Result<Self, InstanceError> {
        self.check_not_written()?;
        let before = self.len();
        let (start, end) = ends(&range, before)?;
        let new = Channels::collect_tagged(instances, start, before - end)?;
        let (removed, added) = (end - start, new.len());
        if removed == 0 && added == 0 {
            return Ok(Self::default());
        }
        let shape = self.shape();
        let channels = self.channels.splice(start..end, new);
        let revision = self.log.begin();
        if self.shape() == shape {
            let to = if removed == added {
                start + added
            } else {
                self.len()
            };
            self.mark_channels(start..to, revision);
            self.log.mark_renumbered(start..to, before);
        } else {
            self.log.mark_everything();
        }
        let mut gone = Self::default();
        gone.channels = channels;
        Ok(gone)
    }
}

/// Start and end of a range within `len`.
fn ends(range: &impl RangeBounds<usize>, len: usize) -> Result<(usize, usize), InstanceError> {
    let start = match range.start_bound() {
        Bound::Included(start) => *start,
        Bound::Excluded(start) => start.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(end) => end.saturating_add(1),
        Bound::Excluded(end) => *end,
        Bound::Unbounded => len,
    };
    if start <= end && end <= len {
        Ok((start, end))
    } else {
        Err(InstanceError::RangeOutOfBounds { start, end, len })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    #![allow(
        clippy::single_range_in_vec_init,
        reason = "lists of ranges that happen to have one"
    )]

    use glam::Vec3;
    use proptest::prelude::*;

    use super::*;
    use crate::instance::{PackedInstance, SetChanges};

    type Value = (f32, f32, u32);

    fn at((x, scale, _): Value) -> InstanceTransform {
        InstanceTransform::from(Vec3::new(x, 0.0, 0.0)).with_scale(scale)
    }

    fn values(set: &InstanceSet) -> Vec<Value> {
        let value = |(index, got): (u32, InstanceTransform)| {
            let tag = set.tag(index).unwrap();
            (got.translation.x, got.scale.x, tag)
        };
        (0u32..).zip(set.iter()).map(value).collect()
    }

    #[test]
    fn what_a_range_may_be_is_what_a_vec_allows() {
        let mut set = InstanceSet::from_transforms([Vec3::ZERO; 4]).unwrap();
        let mut refuse = |range: (Bound<usize>, Bound<usize>), start, end| {
            let error = set.splice(range, [Vec3::X]).unwrap_err();
            let len = 4;
            assert_eq!(error, InstanceError::RangeOutOfBounds { start, end, len });
        };
        use Bound::{Excluded, Included, Unbounded};
        refuse((Included(3), Excluded(2)), 3, 2);
        refuse((Included(5), Unbounded), 5, 4);
        refuse((Unbounded, Included(4)), 0, 5);
        refuse(
            (Excluded(usize::MAX), Included(usize::MAX)),
            usize::MAX,
            usize::MAX,
        );
        assert_eq!(set.revision(), 1);
        assert_eq!(set.splice(4..4, [Vec3::X]).unwrap().len(), 0);
        assert_eq!(set.splice(..=0, [Vec3::X; 0]).unwrap().len(), 1);
        assert_eq!(set.len(), 4);
        assert!(set.splice(2..2, [Vec3::X; 0]).unwrap().is_empty());
        assert_eq!(
            set.revision(),
            3,
            "replacing nothing by nothing is not an edit"
        );
    }

    #[test]
    fn a_refused_instance_leaves_the_set_as_it_was() {
        let mut set = InstanceSet::from_transforms([Vec3::ZERO; 4]).unwrap();
        let error = set.splice(1..3, [Vec3::X, Vec3::NAN, Vec3::Y]).unwrap_err();
        assert!(
            matches!(error, InstanceError::NonFinitePosition { index: 2, .. }),
            "{error}"
        );
        assert_eq!((set.len(), set.revision()), (4, 1));
        let limit = InstanceSet::MAX_LEN;
        let endless = std::iter::repeat_n(Vec3::ZERO, limit);
        let error = set.splice(1..3, endless).unwrap_err();
        assert_eq!(
            error,
            InstanceError::TooMany {
                len: limit + 2,
                limit
            }
        );
    }

    #[test]
    fn stamps_are_kept_minimal() {
        let granule = InstanceSet::CHANGE_GRANULE;
        let mut set = InstanceSet::from_transforms(vec![Vec3::ZERO; 8 * granule]).unwrap();
        let mut changed = |range: std::ops::Range<usize>, new: usize| {
            let seen = set.revision();
            set.splice(range, vec![Vec3::X; new]).unwrap();
            match set.changes_since(seen) {
                SetChanges::Ranges(ranges) => (ranges.instances, ranges.renumbered),
                other => panic!("{other:?}"),
            }
        };
        let one = vec![granule..2 * granule];
        assert_eq!(
            changed(granule..2 * granule, granule),
            (one.clone(), one),
            "the same number as before"
        );
        let rest = vec![6 * granule..8 * granule - 1];
        assert_eq!(
            changed(6 * granule + 3..6 * granule + 4, 0),
            (rest.clone(), rest)
        );
        let end = 8 * granule - 1;
        assert_eq!(
            changed(end - 1..end, 0),
            (vec![], vec![]),
            "the end only got shorter"
        );
        let (instances, renumbered) = changed(end - 1..end - 1, granule);
        assert_eq!(instances, [7 * granule..9 * granule - 2]);
        assert_eq!(
            renumbered,
            [7 * granule..8 * granule],
            "not beyond the greatest length that the set ever had"
        );
    }

    #[derive(Clone, Debug)]
    enum Edit {
        Splice {
            start: usize,
            len: usize,
            new: usize,
            scaled: bool,
            tag: u32,
        },
        Set {
            at: usize,
        },
        Push,
        Truncate(usize),
        Read,
    }

    fn edits() -> impl Strategy<Value = Edit> {
        let rarely = || prop::bool::weighted(0.1);
        let tags = prop_oneof![9 => Just(0u32), 1 => 1..4u32];
        prop_oneof![
            6 => (0..3000usize, 0..900usize, 0..900usize, rarely(), tags)
                .prop_map(|(start, len, new, scaled, tag)| Edit::Splice { start, len, new, scaled, tag }),
            2 => (0..3000usize).prop_map(|at| Edit::Set { at }),
            1 => Just(Edit::Push),
            1 => (0..3000usize).prop_map(Edit::Truncate),
            3 => Just(Edit::Read),
        ]
    }

    proptest! {
        /// Compares a set with a `Vec` of the same values. One reader copies only what changed.
        /// Another one tracks which instance is at which index: it must never mistake a new
        /// instance for a known one.
        #[test]
        fn a_set_is_spliced_as_a_vec_is(edits in prop::collection::vec(edits(), 1..40)) {
            let mut set = InstanceSet::new();
            let mut model: Vec<Value> = Vec::new();
            // Names of the instances: an instance that `set` moves keeps its name.
            let mut names: Vec<u32> = Vec::new();
            let (mut seen, mut copy, mut known): (u64, Vec<PackedInstance>, Vec<u32>) = Default::default();
            let mut next = 0u32;
            let mut name = || {
                next += 1;
                next
            };
            for edit in edits {
                match edit {
                    Edit::Splice { start, len, new, scaled, tag } => {
                        let start = start.min(model.len());
                        let range = start..(start + len).min(model.len());
                        let new: Vec<Value> = (0..new)
                            .map(|k| ((model.len() + k) as f32, if scaled { 2.0 } else { 1.0 }, tag))
                            .collect();
                        let instances = new.iter().map(|value| (at(*value), value.2));
                        let removed = set.splice_tagged(range.clone(), instances).unwrap();
                        names.splice(range.clone(), new.iter().map(|_| name()));
                        let expected: Vec<Value> = model.splice(range, new).collect();
                        prop_assert_eq!(values(&removed), expected);
                    }
                    Edit::Set { at: index } if index < model.len() => {
                        model[index] = (-(index as f32), 1.0, model[index].2);
                        set.set(index as u32, at(model[index])).unwrap();
                    }
                    Edit::Set { .. } => {}
                    Edit::Push => {
                        model.push((7.5, 1.0, 0));
                        names.push(name());
                        set.push(at((7.5, 1.0, 0))).unwrap();
                    }
                    Edit::Truncate(len) => {
                        model.truncate(len);
                        names.truncate(len);
                        set.truncate(len);
                    }
                    Edit::Read => {
                        match set.changes_since(seen) {
                            SetChanges::Nothing => {}
                            SetChanges::Everything => copy = set.packed().to_vec(),
                            SetChanges::Ranges(changed) => {
                                let before = copy.len();
                                copy.resize(set.len(), PackedInstance::default());
                                for range in changed.instances {
                                    copy[range.clone()].copy_from_slice(&set.packed()[range]);
                                }
                                for (index, (old, new)) in known.iter().zip(&names).enumerate().take(before) {
                                    let told = changed.renumbered.iter().any(|range| range.contains(&index));
                                    prop_assert!(old == new || told, "instance {} is a different one", index);
                                }
                            }
                        }
                        seen = set.revision();
                        known = names.clone();
                        prop_assert_eq!(&copy[..], set.packed());
                    }
                }
                prop_assert_eq!(set.len(), model.len());
                let bounds = set.bounds();
                for value in &model {
                    let inside = bounds.is_some_and(|b| b.min.x <= value.0 && value.0 <= b.max.x && value.1 <= b.max_scale);
                    prop_assert!(inside);
                }
                prop_assert_eq!(bounds.is_none(), model.is_empty());
            }
            prop_assert_eq!(values(&set), model);
        }
    }
}
