//! Which instance a ray hits first, found on the CPU.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use glam::Vec3;

use super::spatial_index::{FANOUT, SpatialIndex, bounds_of, nodes, sphere_of};
use super::{InstanceBounds, InstanceSet};

/// A ray in the space of a set. Distances along it are multiples of `direction`, which may have any
/// length but 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InstanceRay {
    /// Where the ray starts.
    pub origin: Vec3,
    /// Where it goes.
    pub direction: Vec3,
}

impl InstanceBounds {
    /// The distance at which a ray enters the box, which reaches `reach` times the scale further on
    /// each side; 0 if the ray starts inside.
    fn entered_by(&self, ray: &Slabs, reach: f32) -> Option<f32> {
        let reach = Vec3::splat(reach * self.max_scale);
        let to_min = (self.min - reach - ray.origin) * ray.per_unit;
        let to_max = (self.max + reach - ray.origin) * ray.per_unit;
        let enter = to_min.min(to_max).max_element().max(0.0);
        let leave = to_min.max(to_max).min_element();
        (self.min.x <= self.max.x && enter <= leave).then_some(enter)
    }
}

/// A ray for tests against boxes.
struct Slabs {
    origin: Vec3,
    /// The distance per unit along each axis.
    per_unit: Vec3,
}

impl Slabs {
    fn new(ray: InstanceRay) -> Self {
        // Without zeros, because 0 times infinity is not a number.
        let long = |x: f32| if x.abs() < 1e-30 { 1e-30 } else { x };
        let [x, y, z] = ray.direction.to_array().map(long);
        Self {
            origin: ray.origin,
            per_unit: Vec3::new(x, y, z).recip(),
        }
    }
}

/// What the search looks at next, nearest first.
struct Entry {
    enter: f32,
    /// 0 for an instance, or 1 plus the level of a node.
    height: usize,
    index: usize,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    /// The heap gives the greatest first: the nearest, and of equals the lowest index.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.enter.total_cmp(&self.enter))
            .then(other.height.cmp(&self.height))
            .then(other.index.cmp(&self.index))
    }
}

impl SpatialIndex {
    /// Whether a ray enters the box around a set's instances before `limit`. `sphere` is as in
    /// [`nearest`](Self::nearest). This needs no index, and is true for all that `nearest` finds.
    #[must_use]
    pub fn enters(set: &InstanceSet, ray: InstanceRay, sphere: (Vec3, f32), limit: f32) -> bool {
        let Some(bounds) = bounds_of(set) else {
            return false;
        };
        let enter = bounds.entered_by(&Slabs::new(ray), reach(sphere));
        enter.is_some_and(|enter| enter < limit)
    }

    /// The instance that a ray hits first, and at which distance.
    ///
    /// `sphere` is the center and radius of a sphere around the mesh, in the mesh's units. For each
    /// instance whose sphere the ray enters before `limit` and before the best hit, nearest first,
    /// `exact` is called with the instance's index and the distance to its sphere. It returns the
    /// distance to the mesh, or `None` if the ray misses that.
    ///
    /// The index must follow the set: call [`update`](Self::update) before. Hidden instances are
    /// not hit. Nothing is hit in a [released](InstanceSet::is_released) set and in one that the
    /// GPU writes.
    pub fn nearest(
        &self,
        set: &InstanceSet,
        ray: InstanceRay,
        sphere: (Vec3, f32),
        limit: f32,
        mut exact: impl FnMut(u32, f32) -> Option<f32>,
    ) -> Option<(u32, f32)> {
        let slabs = Slabs::new(ray);
        let reach = reach(sphere);
        let mut queue = BinaryHeap::new();
        let (mut best, mut limit) = (None, limit);
        let top = self.levels.len();
        let look = |queue: &mut BinaryHeap<Entry>, height: usize, range, limit| {
            for (index, node) in nodes(&self.levels[height - 1], range) {
                if let Some(enter) = node.entered_by(&slabs, reach)
                    && enter < limit
                {
                    queue.push(Entry {
                        enter,
                        height,
                        index,
                    });
                }
            }
        };
        if top > 0 {
            look(&mut queue, top, 0..FANOUT, limit);
        }
        while let Some(entry) = queue.pop().filter(|entry| entry.enter < limit) {
            let children = entry.index * FANOUT..(entry.index + 1) * FANOUT;
            match entry.height {
                0 => {
                    let index = entry.index as u32;
                    if let Some(distance) = exact(index, entry.enter)
                        && distance < limit
                    {
                        (best, limit) = (Some((index, distance)), distance);
                    }
                }
                1 => {
                    let end = children.end.min(set.packed().len());
                    for index in children.start..end {
                        if let Some(enter) = entered(set, index, ray, sphere)
                            && enter < limit
                        {
                            queue.push(Entry {
                                enter,
                                height: 0,
                                index,
                            });
                        }
                    }
                }
                height => look(&mut queue, height - 1, children, limit),
            }
        }
        best
    }
}

/// How far an instance of scale 1 with this sphere reaches from its origin.
fn reach((center, radius): (Vec3, f32)) -> f32 {
    center.length() + radius
}

/// The distance at which a ray enters the sphere of an instance; 0 if it starts inside.
fn entered(set: &InstanceSet, index: usize, ray: InstanceRay, sphere: (Vec3, f32)) -> Option<f32> {
    /// Rounding must not lose a hit.
    const SLACK: f32 = 1.0001;
    let (center, radius) = sphere_of(set, index, sphere);
    let to_center = center - ray.origin;
    let radius = radius * SLACK;
    let length_squared = ray.direction.length_squared();
    let middle = to_center.dot(ray.direction) / length_squared;
    let apart = to_center - ray.direction * middle;
    let half_squared = (radius * radius - apart.length_squared()) / length_squared;
    // False for NaN: hidden instances.
    if half_squared >= 0.0 {
        let half = half_squared.sqrt();
        (middle + half >= 0.0).then_some((middle - half).max(0.0))
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
