//! The bounding box of a set.

use glam::Vec3;

use super::PackedInstance;
use super::scales::Scales;
use crate::parallel;

/// The bounding box of the positions of a set's instances, in the set's local space, and their
/// largest scale.
///
/// It does not include the mesh. For the box of what is drawn, extend it on each side by the mesh's
/// bounding radius times [`max_scale`](Self::max_scale).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "bevy",
    derive(bevy::reflect::Reflect),
    reflect(Clone, Debug, PartialEq)
)]
pub struct InstanceBounds {
    /// The lowest x, y and z of all positions.
    pub min: Vec3,
    /// The highest x, y and z of all positions.
    pub max: Vec3,
    /// The largest scale of any axis; 1 in a set without scales.
    pub max_scale: f32,
}

impl Default for InstanceBounds {
    /// The bounds of no instance.
    fn default() -> Self {
        Self::EMPTY
    }
}

impl InstanceBounds {
    /// The bounds of no instance.
    pub(super) const EMPTY: Self = Self {
        min: Vec3::INFINITY,
        max: Vec3::NEG_INFINITY,
        max_scale: 0.0,
    };

    /// The center of the box.
    #[must_use]
    pub fn center(&self) -> Vec3 {
        // Halve before adding: the sum of two large numbers overflows.
        self.min * 0.5 + self.max * 0.5
    }

    /// Half the size of the box.
    #[must_use]
    pub fn half_extents(&self) -> Vec3 {
        self.max * 0.5 - self.min * 0.5
    }

    /// The bounds of one instance.
    pub(super) fn of(position: Vec3, scale: Vec3) -> Self {
        Self {
            min: position,
            max: position,
            max_scale: scale.max_element(),
        }
    }

    /// The bounds of both.
    pub(super) fn union(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            max_scale: self.max_scale.max(other.max_scale),
        }
    }

    /// The bounds of all instances that are not hidden; `None` if there are none.
    pub(super) fn measure(instances: &[PackedInstance], scales: &Scales) -> Option<Self> {
        let empty = (Vec3::INFINITY, Vec3::NEG_INFINITY);
        let (min, max) = parallel::reduce(
            instances,
            |part| {
                let visible = part.iter().filter(|instance| !instance.is_hidden());
                visible.fold(empty, |(min, max), instance| {
                    (min.min(instance.position()), max.max(instance.position()))
                })
            },
            |a, b| (a.0.min(b.0), a.1.max(b.1)),
        )?;
        if min.x > max.x {
            return None;
        }
        Some(Self {
            min,
            max,
            max_scale: scales.largest(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn center_and_half_extents_survive_huge_boxes() {
        let bounds = InstanceBounds {
            min: Vec3::splat(-f32::MAX),
            max: Vec3::splat(f32::MAX),
            max_scale: 1.0,
        };
        assert_eq!(bounds.center(), Vec3::ZERO);
        assert_eq!(bounds.half_extents(), Vec3::splat(f32::MAX));
    }
}
