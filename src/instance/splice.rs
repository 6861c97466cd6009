//! Replacing a run of instances by fewer or more others: `Vec::splice` for sets.

use std::ops::{Bound, RangeBounds};

use super::channels::Channels;
use super::{InstanceError, InstanceSet, InstanceTransform};

impl InstanceSet {
    /// Replaces the instances in `range` by these, as [`Vec::splice`] does. Returns the old ones as
    /// a set, with their scales and data. What follows moves up or down; new instances have the tag
    /// 0, and no other data.
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
        range: impl RangeBounds<u32>,
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
        range: impl RangeBounds<u32>,
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
        Ok(Self {
            channels,
            ..Self::default()
        })
    }
}

/// Start and end of a range within `len`.
pub(super) fn ends(
    range: &impl RangeBounds<u32>,
    len: usize,
) -> Result<(usize, usize), InstanceError> {
    let start = match range.start_bound() {
        Bound::Included(start) => *start as usize,
        Bound::Excluded(start) => (*start as usize).saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(end) => (*end as usize).saturating_add(1),
        Bound::Excluded(end) => *end as usize,
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

    use super::*;
    use crate::instance::SetChanges;

    #[test]
    fn what_a_range_may_be_is_what_a_vec_allows() {
        let mut set = InstanceSet::from_transforms([Vec3::ZERO; 4]).unwrap();
        let mut refuse = |range: (Bound<u32>, Bound<u32>), start, end| {
            let error = set.splice(range, [Vec3::X]).unwrap_err();
            let len = 4;
            assert_eq!(error, InstanceError::RangeOutOfBounds { start, end, len });
        };
        use Bound::{Excluded, Included, Unbounded};
        refuse((Included(3), Excluded(2)), 3, 2);
        refuse((Included(5), Unbounded), 5, 4);
        refuse((Unbounded, Included(4)), 0, 5);
        refuse((Excluded(u32::MAX), Included(u32::MAX)), 1 << 32, 1 << 32);
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
            let range = range.start as u32..range.end as u32;
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
        let rest = 6 * granule..8 * granule - 1;
        assert_eq!(
            changed(6 * granule + 3..6 * granule + 4, 0),
            (vec![rest.clone()], vec![6 * granule + 3..rest.end]),
            "other instances are known exactly"
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
            [8 * granule - 2..8 * granule],
            "not beyond the greatest length that the set ever had"
        );
    }
}
