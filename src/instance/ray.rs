//! Which instance a ray meets first, found on the CPU.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use glam::Vec3;

use super::{InstanceSet, PackedInstance, SetChanges};
use crate::parallel;

/// Number of instances in a leaf, and of nodes in a node above.
const FANOUT: usize = 32;

/// A ray in the space of a set. Distances along it are multiples of `direction`, which may have any
/// length but 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InstanceRay {
    /// Where the ray starts.
    pub origin: Vec3,
    /// Where it goes.
    pub direction: Vec3,
}

/// Boxes around runs of instances, by which rays find instances: the positions of 32 instances in
/// a box, 32 boxes in the next box, and so on.
///
/// Making it for a million instances takes some milliseconds, following an edit only what changed.
/// It takes one byte per instance. Rays are fast if neighbors in the set are neighbors in space:
/// see [`InstanceSet::sorted`].
///
/// ```
/// use bevy_gpu_culling::instance::{InstanceRay, InstanceSet, RayIndex};
/// use glam::Vec3;
///
/// let set = InstanceSet::from_transforms((0..1000).map(|i| Vec3::X * i as f32 * 4.0))?;
/// let mut index = RayIndex::default();
/// index.update(&set);
/// let ray = InstanceRay {
///     origin: Vec3::new(40.0, 0.0, 10.0),
///     direction: Vec3::NEG_Z,
/// };
/// // The mesh fits into a sphere of radius 1; the sphere is exact enough here.
/// let hit = index.nearest(&set, ray, (Vec3::ZERO, 1.0), f32::INFINITY, |_, enter| Some(enter));
/// assert_eq!(hit.map(|(instance, _)| instance), Some(10));
/// # Ok::<(), bevy_gpu_culling::instance::InstanceError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct RayIndex {
    lineage: u64,
    revision: u64,
    /// The leaves first. The last level has at most [`FANOUT`] nodes.
    levels: Vec<Vec<Node>>,
}

/// A box around positions, and the largest scale of any axis; empty if `min` is above `max`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Node {
    min: Vec3,
    max: Vec3,
    scale: f32,
}

impl Default for Node {
    fn default() -> Self {
        Self {
            min: Vec3::INFINITY,
            max: Vec3::NEG_INFINITY,
            scale: 0.0,
        }
    }
}

impl Node {
    /// The box around the visible ones of these instances.
    fn around(instances: &[PackedInstance], scales: impl Iterator<Item = f32>) -> Self {
        let mut node = Self::default();
        for (instance, scale) in instances.iter().zip(scales) {
            if !instance.is_hidden() {
                node = node.union(Self {
                    min: instance.position(),
                    max: instance.position(),
                    scale,
                });
            }
        }
        node
    }

    fn union(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            scale: self.scale.max(other.scale),
        }
    }

    /// The distance at which a ray enters the box, which reaches `reach` times the scale further on
    /// each side; 0 if the ray starts inside.
    fn entered_by(&self, ray: &Slabs, reach: f32) -> Option<f32> {
        let reach = Vec3::splat(reach * self.scale);
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

impl RayIndex {
    /// Follows the edits of a set, or starts over if it is another set. The index of a set whose
    /// instances are not on the CPU ([released](InstanceSet::is_released), or written by the GPU)
    /// is empty and takes no memory.
    pub fn update(&mut self, set: &InstanceSet) {
        if set.packed().is_empty() {
            *self = Self::default();
            return;
        }
        let changes = if self.lineage == set.lineage() {
            set.changes_since(self.revision)
        } else {
            SetChanges::Everything
        };
        (self.lineage, self.revision) = (set.lineage(), set.revision());
        match changes {
            SetChanges::Nothing => {}
            SetChanges::Everything => self.build(set),
            SetChanges::Ranges(changed) => {
                self.resize(set.packed().len());
                for range in changed.instances.iter().chain(&changed.scales) {
                    self.refit(set, range.start, range.end);
                }
            }
        }
    }

    fn build(&mut self, set: &InstanceSet) {
        let len = set.packed().len();
        self.resize(len);
        if let Some(leaves) = self.levels.first_mut() {
            *leaves = parallel::collect(leaves.len(), |leaf| leaf_of(set, leaf));
        }
        self.refit_above(0, len);
    }

    /// Makes room for `len` instances. What is left over from a longer set is only too large.
    fn resize(&mut self, len: usize) {
        let (mut nodes, mut level) = (len.div_ceil(FANOUT), 0);
        loop {
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            let is_new = self.levels[level].is_empty();
            self.levels[level].resize(nodes, Node::default());
            if is_new && level > 0 {
                self.refit_level(level, 0, nodes);
            }
            level += 1;
            if nodes <= FANOUT {
                break;
            }
            nodes = nodes.div_ceil(FANOUT);
        }
        self.levels.truncate(level);
    }

    /// Makes the boxes of these instances, and all boxes around them, tight.
    fn refit(&mut self, set: &InstanceSet, start: usize, end: usize) {
        if let Some(leaves) = self.levels.first_mut() {
            let range = start / FANOUT..end.div_ceil(FANOUT);
            for (leaf, node) in range.clone().zip(&mut leaves[range]) {
                *node = leaf_of(set, leaf);
            }
        }
        self.refit_above(start, end);
    }

    fn refit_above(&mut self, start: usize, end: usize) {
        let (mut start, mut end) = (start / FANOUT, end.div_ceil(FANOUT));
        for level in 1..self.levels.len() {
            (start, end) = (start / FANOUT, end.div_ceil(FANOUT));
            self.refit_level(level, start, end);
        }
    }

    fn refit_level(&mut self, level: usize, start: usize, end: usize) {
        let (below, above) = self.levels.split_at_mut(level);
        let below = &below[level - 1];
        for (at, node) in above[0][start..end].iter_mut().enumerate() {
            let first = (start + at) * FANOUT;
            let children = &below[first..(first + FANOUT).min(below.len())];
            *node = (children.iter().copied()).fold(Node::default(), Node::union);
        }
    }

    /// Whether a ray enters the box around a set's instances before `limit`. `sphere` is as in
    /// [`nearest`](Self::nearest). This needs no index, and is true for all that `nearest` finds.
    #[must_use]
    pub fn enters(set: &InstanceSet, ray: InstanceRay, sphere: (Vec3, f32), limit: f32) -> bool {
        let Some(bounds) = set.bounds().filter(|_| !set.packed().is_empty()) else {
            return false;
        };
        let node = Node {
            min: bounds.min,
            max: bounds.max,
            scale: bounds.max_scale,
        };
        let enter = node.entered_by(&Slabs::new(ray), reach(sphere));
        enter.is_some_and(|enter| enter < limit)
    }

    /// The instance that a ray meets first, and at which distance.
    ///
    /// `sphere` is the center and radius of a sphere around the mesh, in the mesh's units. For each
    /// instance whose sphere the ray enters before `limit` and before the best hit, nearest first,
    /// `exact` is called with the instance's index and the distance to its sphere. It returns the
    /// distance to the mesh, or `None` if the ray misses that.
    ///
    /// The index must follow the set: call [`update`](Self::update) before. Hidden instances are
    /// not met. Nothing is met in a [released](InstanceSet::is_released) set and in one that the
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

/// The box around the instances of a leaf.
fn leaf_of(set: &InstanceSet, leaf: usize) -> Node {
    let range = leaf * FANOUT..((leaf + 1) * FANOUT).min(set.packed().len());
    let scales = range.clone().map(|at| set.channels.scale(at).max_element());
    Node::around(&set.packed()[range], scales)
}

/// The nodes in a range of indices, as far as they exist.
fn nodes(level: &[Node], range: std::ops::Range<usize>) -> impl Iterator<Item = (usize, &Node)> {
    let range = range.start..range.end.min(level.len());
    range.clone().zip(&level[range])
}

/// The distance at which a ray enters the sphere of an instance; 0 if it starts inside.
fn entered(
    set: &InstanceSet,
    index: usize,
    ray: InstanceRay,
    (center, radius): (Vec3, f32),
) -> Option<f32> {
    /// Rounding must not lose a hit.
    const SLACK: f32 = 1.0001;
    let instance = &set.packed()[index];
    let scale = set.channels.scale(index);
    let offset = match center == Vec3::ZERO {
        true => Vec3::ZERO,
        false => instance.rotation() * (center * scale),
    };
    let to_center = instance.position() + offset - ray.origin;
    let radius = radius * scale.max_element() * SLACK;
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
