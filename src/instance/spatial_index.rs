//! An index of a set's instances in space, on the CPU: rays and regions find instances by it.

use std::ops::Range;

use glam::Vec3;

use super::{InstanceBounds, InstanceSet, SetChanges};
use crate::parallel;

/// Number of instances in a leaf, and of nodes in a node above.
pub(super) const FANOUT: usize = 32;

/// Boxes around runs of instances, by which [rays](Self::nearest) and
/// [regions](Self::in_region) find instances: the positions of 32 instances in
/// a box, 32 boxes in the next box, and so on.
///
/// Making it for a million instances takes some milliseconds, following an edit only what changed.
/// It takes one byte per instance. Queries are fast if neighbors in the set are neighbors in space:
/// see [`InstanceSet::sorted`].
///
/// ```
/// use bevy_gpu_culling::instance::{InstanceRay, InstanceSet, SpatialIndex};
/// use glam::Vec3;
///
/// let set = InstanceSet::from_transforms((0..1000).map(|i| Vec3::X * i as f32 * 4.0))?;
/// let mut index = SpatialIndex::default();
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
pub struct SpatialIndex {
    lineage: u64,
    revision: u64,
    /// The bounds of runs of visible instances, the leaves first. The last level has at most
    /// [`FANOUT`] nodes.
    pub(super) levels: Vec<Vec<InstanceBounds>>,
}

impl SpatialIndex {
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
            self.levels[level].resize(nodes, InstanceBounds::EMPTY);
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
            *node = union_of(children.iter().copied());
        }
    }
}

fn union_of(all: impl Iterator<Item = InstanceBounds>) -> InstanceBounds {
    all.fold(InstanceBounds::EMPTY, InstanceBounds::union)
}

/// The bounds of the visible instances of a leaf.
fn leaf_of(set: &InstanceSet, leaf: usize) -> InstanceBounds {
    let range = leaf * FANOUT..((leaf + 1) * FANOUT).min(set.packed().len());
    let instances = set.packed()[range.clone()].iter().zip(range);
    let visible = instances.filter(|(instance, _)| !instance.is_hidden());
    union_of(
        visible
            .map(|(instance, at)| InstanceBounds::of(instance.position(), set.channels.scale(at))),
    )
}

/// The bounds of a set's instances; `None` if none is on the CPU.
pub(super) fn bounds_of(set: &InstanceSet) -> Option<InstanceBounds> {
    set.bounds().filter(|_| !set.packed().is_empty())
}

/// The sphere of an instance, in the set's space, of a sphere around the mesh.
pub(super) fn sphere_of(
    set: &InstanceSet,
    index: usize,
    (center, radius): (Vec3, f32),
) -> (Vec3, f32) {
    let instance = &set.packed()[index];
    let scale = set.channels.scale(index);
    let offset = match center == Vec3::ZERO {
        true => Vec3::ZERO,
        false => instance.rotation() * (center * scale),
    };
    (instance.position() + offset, radius * scale.max_element())
}

/// The nodes in a range of indices, as far as they exist.
pub(super) fn nodes(
    level: &[InstanceBounds],
    range: Range<usize>,
) -> impl Iterator<Item = (usize, &InstanceBounds)> {
    let range = range.start..range.end.min(level.len());
    range.clone().zip(&level[range])
}
