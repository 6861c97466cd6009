//! Foliage: small separate pieces of a mesh, such as leaves, which levels of detail thin out and
//! widen (Cook et al. 2007).
//!
//! 1. A mesh falls into components, which share no corner. Many small ones are leaves.
//! 2. Leaves are ordered so that each beginning of the list is spread evenly. A level keeps such a
//!    beginning: its leaves are in all finer levels, too, and none has to be chosen again.
//! 3. The kept leaves are scaled about their middles until they have the area of all leaves.

use super::{
    MeshData, POSITION, VertexAttribute,
    cut::reorder,
    data::positions,
    surface::{Box3, Surface, area, area_of, triangles},
};
use glam::Vec3;
use std::ops::Range;

/// Fewer leaves are no aggregate: their average would be visible as chance.
const MIN_LEAVES: usize = 32;
/// Largest area of a leaf over the median of all components.
const MAX_OF_MEDIAN: f64 = 8.0;
/// Largest area of a leaf over the mesh's.
const MAX_OF_MESH: f64 = 1.0 / 16.0;
/// Largest scale of a kept leaf. Levels with a share of 1/4096 still keep the area.
const MAX_GROWTH: f32 = 64.0;
/// Halvings of the range of scales, down to the precision of `f32`.
const HALVINGS: u32 = 28;
/// Which bits of a leaf's rank are turned, so that a level keeps leaves from the middles of runs of
/// neighbors. From their starts, the foliage would move to one side.
const FROM_MIDDLES: u32 = 0x5555_5555;

/// The leaves of a mesh.
pub(super) struct Foliage {
    /// The vertices, leaf after leaf.
    attributes: Vec<VertexAttribute>,
    points: Vec<Vec3>,
    indices: Vec<u32>,
    /// In the order in which they are kept.
    leaves: Vec<Leaf>,
    /// Number of leaves of the last level.
    kept: usize,
    around: Box3,
    area: f64,
}

/// A component of the mesh.
struct Leaf {
    vertices: Range<usize>,
    indices: Range<usize>,
    around: Box3,
    area: f64,
}

impl Foliage {
    /// Takes the leaves out of some triangles of a mesh, and returns the indices of the others,
    /// too. `None` if there are too few leaves.
    pub fn split(mesh: &MeshData, indices: &[u32]) -> Option<(Self, Vec<u32>)> {
        let points = positions(&mesh.attributes)?;
        let components = components(&points, indices);
        let areas = components.iter().map(|one| f64::from(area(&points, one)));
        let areas: Vec<f64> = areas.collect();
        let mut sorted = areas.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let median = *sorted.get(sorted.len() / 2)?;
        let all: f64 = sorted.iter().sum();
        let max = (median * MAX_OF_MEDIAN).min(all * MAX_OF_MESH);
        let (mut leaves, mut rest) = (Vec::new(), Vec::new());
        for (component, area) in components.into_iter().zip(areas) {
            if area <= max {
                let corners = component.iter().map(|at| points[*at as usize]);
                leaves.push((Box3::around(corners).middle(), component));
            } else {
                rest.extend(component);
            }
        }
        if leaves.len() < MIN_LEAVES {
            return None;
        }
        sort_by_place(&mut leaves);
        let mut ranked: Vec<_> = (0u32..).zip(leaves).collect();
        // Ranks whose last bits are equal are evenly spread, and so are the leaves with them.
        ranked.sort_unstable_by_key(|(rank, _)| (rank ^ FROM_MIDDLES).reverse_bits());
        let ordered = ranked.into_iter().map(|(_, (_, component))| component);
        let foliage = Self::of(mesh, ordered)?;
        // Without an area, nothing says how wide leaves must be.
        (foliage.area > 0.0 && foliage.area.is_finite()).then_some((foliage, rest))
    }

    /// The leaves with these indices into a mesh.
    fn of(mesh: &MeshData, leaves: impl Iterator<Item = Vec<u32>>) -> Option<Self> {
        let mut places = vec![u32::MAX; mesh.vertex_count as usize];
        let (mut count, mut indices, mut ranges) = (0u32, Vec::new(), Vec::new());
        for leaf in leaves {
            let (first, start) = (count as usize, indices.len());
            for at in leaf {
                let place = &mut places[at as usize];
                if *place == u32::MAX {
                    *place = count;
                    count += 1;
                }
                indices.push(*place);
            }
            ranges.push((first..count as usize, start..indices.len()));
        }
        let attributes = mesh.attributes.iter();
        let attributes: Vec<_> = attributes
            .map(|attribute| reorder(attribute, &places, count as usize))
            .collect();
        let points = positions(&attributes)?;
        let leaf = |(vertices, corners): (Range<usize>, Range<usize>)| Leaf {
            around: Box3::around(points[vertices.clone()].iter().copied()),
            area: f64::from(area(&points, &indices[corners.clone()])),
            vertices,
            indices: corners,
        };
        let leaves: Vec<_> = ranges.into_iter().map(leaf).collect();
        Some(Self {
            kept: leaves.len(),
            around: Box3::around(points.iter().copied()),
            area: leaves.iter().map(|leaf| leaf.area).sum(),
            attributes,
            points,
            indices,
            leaves,
        })
    }

    /// Number of triangles of the last level.
    pub fn triangles(&self) -> usize {
        let kept = self.leaves[..self.kept].last();
        kept.map_or(0, |leaf| leaf.indices.end / 3)
    }

    /// The next level, with at most `target` triangles or one leaf, and its error
    /// ([`SimplifiedMesh::error`](super::SimplifiedMesh::error)).
    pub fn thinned(&mut self, target: usize) -> (MeshData, f32) {
        let fits = |leaf: &Leaf| leaf.indices.end <= target * 3;
        self.kept = self.leaves[..self.kept].partition_point(fits).max(1);
        let (kept, dropped) = self.leaves.split_at(self.kept);
        let growth = self.growth(kept);
        let points = kept.iter().flat_map(|leaf| self.widened(leaf, growth));
        let points: Vec<Vec3> = points.collect();
        let indices = &self.indices[..self.triangles() * 3];

        let surface = Surface::new(&points, indices);
        let middles = dropped.iter().map(|leaf| leaf.around.middle());
        let gaps = surface.squared_distances(middles);
        let gap = mean(gaps.zip(dropped.iter().map(|leaf| leaf.area)));
        let before = triangles(&self.points, indices);
        let moved = before.zip(triangles(&points, indices));
        let moved = mean(moved.map(|(from, to)| (squared_move(&from, &to), area_of(from).into())));

        let attributes = self.attributes.iter().map(|attribute| {
            let bytes: &[u8] = if attribute.id == POSITION {
                bytemuck::cast_slice(&points)
            } else {
                &attribute.bytes[..points.len() * attribute.stride as usize]
            };
            VertexAttribute {
                id: attribute.id,
                format: attribute.format,
                stride: attribute.stride,
                bytes: bytes.to_vec(),
            }
        });
        let level = MeshData {
            vertex_count: points.len() as u32,
            attributes: attributes.collect(),
            indices: Some(indices.to_vec()),
        };
        (level, gap.max(moved).sqrt() as f32)
    }

    /// By what kept leaves are scaled, as far as they have room, to have the area of all leaves.
    fn growth(&self, kept: &[Leaf]) -> f32 {
        let area: f64 = kept.iter().map(|leaf| leaf.area).sum();
        let even = (self.area / area).sqrt() as f32;
        let even = even.clamp(1.0, MAX_GROWTH);
        let has_room = |leaf: &Leaf| self.room(leaf).min_element() >= even;
        if kept.iter().all(has_room) {
            return even;
        }
        // Along some axes, leaves have no room to grow by as much. So they grow more along others.
        let area_of_leaf = |leaf: &Leaf, growth: f32| {
            let scale = self.room(leaf).min(Vec3::splat(growth));
            let triangles = triangles(&self.points, &self.indices[leaf.indices.clone()]);
            let areas = triangles.map(|corners| area_of(corners.map(|corner| corner * scale)));
            areas.map(f64::from).sum::<f64>()
        };
        let (mut min, mut max) = (even, MAX_GROWTH);
        for _ in 0..HALVINGS {
            let middle = min.midpoint(max);
            let area: f64 = kept.iter().map(|leaf| area_of_leaf(leaf, middle)).sum();
            if area < self.area {
                min = middle;
            } else {
                max = middle;
            }
        }
        max
    }

    /// The scale of a leaf at which it is as large as the box around all leaves, along each axis.
    fn room(&self, leaf: &Leaf) -> Vec3 {
        let (all, own) = (self.around.size(), leaf.around.size());
        Vec3::from_array([0, 1, 2].map(|axis| {
            if own[axis] > 0.0 {
                (all[axis] / own[axis]).max(1.0)
            } else {
                f32::INFINITY
            }
        }))
    }

    /// The vertices of a leaf that grows, and that is pushed back into the box around all leaves.
    fn widened(&self, leaf: &Leaf, growth: f32) -> impl Iterator<Item = Vec3> {
        let scale = self.room(leaf).min(Vec3::splat(growth));
        let Box3 { min, max } = self.around;
        let middle = leaf.around.middle();
        let half = leaf.around.size() * 0.5 * scale;
        let up = (min - (middle - half)).max(Vec3::ZERO);
        let down = (max - (middle + half)).min(Vec3::ZERO);
        let points = self.points[leaf.vertices.clone()].iter();
        // Rounding may still put a vertex outside.
        points.map(move |point| (middle + (*point - middle) * scale + up + down).clamp(min, max))
    }
}

/// The mean of the squares of how far the points of a triangle move, if its corners move so.
fn squared_move(from: &[Vec3; 3], to: &[Vec3; 3]) -> f32 {
    let [a, b, c] = [0, 1, 2].map(|corner| to[corner] - from[corner]);
    let squares = a.length_squared() + b.length_squared() + c.length_squared();
    (squares + a.dot(b) + b.dot(c) + c.dot(a)) / 6.0
}

/// The mean of values with weights; 0 if nothing has a weight.
fn mean(values: impl Iterator<Item = (f32, f64)>) -> f64 {
    let values = values.filter(|(_, weight)| *weight > 0.0);
    let (sum, all) = values.fold((0.0, 0.0), |(sum, all), (value, weight)| {
        (sum + f64::from(value) * weight, all + weight)
    });
    if all > 0.0 { sum / all } else { 0.0 }
}

/// Orders leaves so that neighbors in the list are neighbors in space: one half of them lies on one
/// side of the other half, and each is ordered the same way.
fn sort_by_place(leaves: &mut [(Vec3, Vec<u32>)]) {
    if leaves.len() < 2 {
        return;
    }
    let axis = Box3::around(leaves.iter().map(|(middle, _)| *middle));
    let axis = axis.size().max_position();
    let half = leaves.len() / 2;
    // The first vertex makes each leaf unique, so the order is always the same.
    leaves.select_nth_unstable_by(half, |(a, of_a), (b, of_b)| {
        a[axis].total_cmp(&b[axis]).then(of_a.cmp(of_b))
    });
    let (one, other) = leaves.split_at_mut(half);
    sort_by_place(one);
    sort_by_place(other);
}

/// The indices of each component: triangles with a corner at the same place are in the same one.
fn components(points: &[Vec3], indices: &[u32]) -> Vec<Vec<u32>> {
    // -0 plus 0 is 0.
    let place = |at: u32| {
        (points[at as usize] + Vec3::ZERO)
            .to_array()
            .map(f32::to_bits)
    };
    let mut parents: Vec<u32> = (0..points.len() as u32).collect();
    let mut sorted = parents.clone();
    sorted.sort_unstable_by_key(|at| (place(*at), *at));
    for pair in sorted.windows(2) {
        if place(pair[0]) == place(pair[1]) {
            join(&mut parents, pair[0], pair[1]);
        }
    }
    for triangle in indices.chunks_exact(3) {
        join(&mut parents, triangle[0], triangle[1]);
        join(&mut parents, triangle[0], triangle[2]);
    }
    let mut numbers = vec![usize::MAX; points.len()];
    let mut components: Vec<Vec<u32>> = Vec::new();
    for triangle in indices.chunks_exact(3) {
        let number = &mut numbers[root(&mut parents, triangle[0]) as usize];
        if *number == usize::MAX {
            *number = components.len();
            components.push(Vec::new());
        }
        components[*number].extend(triangle);
    }
    components
}

/// Makes one tree of the trees of two vertices.
fn join(parents: &mut [u32], a: u32, b: u32) {
    let (a, b) = (root(parents, a), root(parents, b));
    parents[a.max(b) as usize] = a.min(b);
}

/// The root of a vertex's tree. The way to it becomes half as long.
fn root(parents: &mut [u32], mut at: u32) -> u32 {
    while parents[at as usize] != at {
        let parent = parents[at as usize];
        parents[at as usize] = parents[parent as usize];
        at = parents[at as usize];
    }
    at
}

#[cfg(test)]
mod tests;
