//! Which instances lie in a region, found on the CPU.

use glam::{Mat4, Vec2, Vec3, Vec4, Vec4Swizzles};

use super::spatial_index::{FANOUT, SpatialIndex, bounds_of, nodes, sphere_of};
use super::{InstanceBounds, InstanceSet};

/// A part of space. Functions that take one say whether it is in the space of a set or in the
/// world.
#[derive(Clone, Debug, PartialEq)]
pub enum InstanceRegion {
    /// A box along the axes.
    Box {
        /// Its lowest corner.
        min: Vec3,
        /// Its highest corner. Without volume if it is lower: then nothing is in the box.
        max: Vec3,
    },
    /// A ball.
    Sphere {
        /// Its center.
        center: Vec3,
        /// Its radius.
        radius: f32,
    },
    /// What lies on the inner side of all planes: a point `p` with `dot(plane, (p, 1)) >= 0`.
    /// Normals may have any length but 0.
    Planes(Vec<Vec4>),
}

impl InstanceRegion {
    /// What a camera sees in a rectangle of its picture: for a selection by a frame that the mouse
    /// draws. `min` and `max` are in normalized device coordinates, from -1 to 1; y points upwards.
    /// With these as corners, it is all that the camera sees. Depths are from 0 to 1, in either
    /// direction.
    #[must_use]
    pub fn seen(clip_from_world: Mat4, min: Vec2, max: Vec2) -> Self {
        let [x, y, z, w] = [0, 1, 2, 3].map(|row| clip_from_world.row(row));
        let planes = [
            x - w * min.x,
            w * max.x - x,
            y - w * min.y,
            w * max.y - y,
            z,
            w - z,
        ];
        // An infinite lens has no far plane.
        let planes = planes.into_iter().filter(|plane| plane.xyz() != Vec3::ZERO);
        Self::Planes(planes.collect())
    }

    /// The region with normals of length 1.
    fn normalized(&self) -> Self {
        let Self::Planes(planes) = self else {
            return self.clone();
        };
        let unit = planes.iter().map(|plane| *plane / plane.xyz().length());
        Self::Planes(unit.collect())
    }

    /// Whether a sphere touches the region. Near corners and edges of boxes and planes it may be
    /// outside by up to its radius, as in a frustum test.
    fn touches(&self, center: Vec3, radius: f32) -> bool {
        match self {
            Self::Box { min, max } => {
                let nearest = center.max(*min).min(*max);
                min.cmple(*max).all() && center.distance_squared(nearest) <= radius * radius
            }
            Self::Sphere {
                center: middle,
                radius: own,
            } => {
                let sum = own + radius;
                sum >= 0.0 && center.distance_squared(*middle) <= sum * sum
            }
            Self::Planes(planes) => planes
                .iter()
                .all(|plane| plane.xyz().dot(center) + plane.w >= -radius),
        }
    }

    /// Whether the region has no, some or all points of a box that is `reach` larger on each side.
    /// For "all", the box is `inner` larger.
    fn relation(&self, node: &InstanceBounds, reach: f32, inner: f32) -> Relation {
        let is_outside = match self {
            Self::Box { min, max } => {
                let (low, high) = (node.min - reach, node.max + reach);
                min.cmpgt(*max).any() || high.cmplt(*min).any() || low.cmpgt(*max).any()
            }
            Self::Sphere { center, radius } => {
                let nearest = center.max(node.min).min(node.max);
                let sum = radius + reach;
                sum < 0.0 || nearest.distance_squared(*center) > sum * sum
            }
            Self::Planes(planes) => planes
                .iter()
                .any(|plane| plane.xyz().dot(corner(node, plane.xyz())) + plane.w < -reach),
        };
        if is_outside {
            return Relation::Outside;
        }
        let is_inside = match self {
            Self::Box { min, max } => {
                (node.min - inner).cmpge(*min).all() && (node.max + inner).cmple(*max).all()
            }
            Self::Sphere { center, radius } => {
                let far = (node.max - center).abs().max((node.min - center).abs());
                far.length() + inner <= *radius
            }
            Self::Planes(planes) => planes
                .iter()
                .all(|plane| plane.xyz().dot(corner(node, -plane.xyz())) + plane.w >= inner),
        };
        match is_inside {
            true => Relation::Inside,
            false => Relation::Crosses,
        }
    }
}

/// The corner of a node that lies furthest in a direction.
fn corner(node: &InstanceBounds, direction: Vec3) -> Vec3 {
    Vec3::select(direction.cmpge(Vec3::ZERO), node.max, node.min)
}

/// Where a node lies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Relation {
    Outside,
    Crosses,
    Inside,
}

impl SpatialIndex {
    /// Whether a region of the set's space touches the box around a set's instances. `sphere` is as
    /// in [`in_region`](Self::in_region). This needs no index, and is true for all that `in_region`
    /// finds something in.
    #[must_use]
    pub fn reaches(set: &InstanceSet, region: &InstanceRegion, sphere: (Vec3, f32)) -> bool {
        let Some(bounds) = bounds_of(set) else {
            return false;
        };
        let reach = (sphere.0.length() + sphere.1) * bounds.max_scale;
        region.normalized().relation(&bounds, reach, 0.0) != Relation::Outside
    }

    /// Calls `found` with the index of each instance whose sphere touches a region of the set's
    /// space, in the order of the set.
    ///
    /// `sphere` is the center and radius of a sphere around the mesh, in the mesh's units. With a
    /// radius of 0, instances are found whose point `sphere.0` lies in the region. Beside edges of
    /// a box that is turned, and of planes, spheres are found that only nearly touch it.
    ///
    /// The index must follow the set: call [`update`](Self::update) before. Hidden instances are
    /// not found, and neither is anything of a [released](InstanceSet::is_released) set or of one
    /// that the GPU writes.
    ///
    /// ```
    /// use bevy_gpu_culling::instance::{InstanceRegion, InstanceSet, SpatialIndex};
    /// use glam::Vec3;
    ///
    /// let set = InstanceSet::from_transforms((0..1000).map(|i| Vec3::X * i as f32 * 4.0))?;
    /// let mut index = SpatialIndex::default();
    /// index.update(&set);
    /// let region = InstanceRegion::Sphere { center: Vec3::X * 41.0, radius: 6.0 };
    /// let mut found = Vec::new();
    /// index.in_region(&set, &region, (Vec3::ZERO, 1.0), |instance| found.push(instance));
    /// assert_eq!(found, [9, 10, 11, 12]);
    /// # Ok::<(), bevy_gpu_culling::instance::InstanceError>(())
    /// ```
    pub fn in_region(
        &self,
        set: &InstanceSet,
        region: &InstanceRegion,
        sphere: (Vec3, f32),
        mut found: impl FnMut(u32),
    ) {
        let Some(top) = self.levels.len().checked_sub(1) else {
            return;
        };
        let region = region.normalized();
        let (center, radius) = sphere;
        let away = center.length();
        // Children of what is inside are not looked at. The last one is the next.
        let mut open: Vec<(usize, usize, Relation)> = Vec::new();
        let look = |open: &mut Vec<_>, level: usize, range: core::ops::Range<usize>, known| {
            let first = open.len();
            for (index, node) in nodes(&self.levels[level], range) {
                if node.min.x > node.max.x {
                    continue;
                }
                let inner = away * node.max_scale;
                let relation = match known {
                    Relation::Inside => known,
                    _ => region.relation(node, inner + radius * node.max_scale, inner),
                };
                if relation != Relation::Outside {
                    open.push((level, index, relation));
                }
            }
            open[first..].reverse();
        };
        look(&mut open, top, 0..FANOUT, Relation::Crosses);
        while let Some((level, index, relation)) = open.pop() {
            let children = index * FANOUT..(index + 1) * FANOUT;
            if level > 0 {
                look(&mut open, level - 1, children, relation);
                continue;
            }
            let end = children.end.min(set.packed().len());
            for instance in children.start..end {
                let packed = &set.packed()[instance];
                let is_found = !packed.is_hidden()
                    && (relation == Relation::Inside || {
                        let (center, radius) = sphere_of(set, instance, sphere);
                        region.touches(center, radius)
                    });
                if is_found {
                    found(instance as u32);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
