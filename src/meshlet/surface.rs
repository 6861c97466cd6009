//! Surfaces of triangles: how far they lie apart, and their areas.

use glam::Vec3;

/// Most triangles in a leaf of the tree.
const LEAF: usize = 4;

/// A surface, with a tree of boxes around its triangles.
pub(super) struct Surface {
    /// In the order of the tree.
    triangles: Vec<[Vec3; 3]>,
    /// Boxes of a balanced binary tree: node k has the children `2 k + 1` and `2 k + 2`. A node
    /// halves its run of triangles, until a run has at most [`LEAF`].
    boxes: Vec<Box3>,
    vertices: Vec<Vec3>,
}

/// A box with sides along the axes.
#[derive(Clone, Copy)]
pub(super) struct Box3 {
    pub min: Vec3,
    pub max: Vec3,
}

impl Box3 {
    const EMPTY: Self = Self {
        min: Vec3::INFINITY,
        max: Vec3::NEG_INFINITY,
    };

    pub fn around(points: impl Iterator<Item = Vec3>) -> Self {
        points.fold(Self::EMPTY, Self::with)
    }

    pub fn middle(&self) -> Vec3 {
        self.min.midpoint(self.max)
    }

    pub fn size(&self) -> Vec3 {
        self.max - self.min
    }

    fn with(self, point: Vec3) -> Self {
        Self {
            min: self.min.min(point),
            max: self.max.max(point),
        }
    }

    /// The square of a point's distance from the box.
    fn squared_distance(&self, point: Vec3) -> f32 {
        point.distance_squared(point.clamp(self.min, self.max))
    }
}

impl Surface {
    /// The triangles of these indices.
    pub fn new(points: &[Vec3], indices: &[u32]) -> Self {
        let mut used = indices.to_vec();
        used.sort_unstable();
        used.dedup();
        let mut surface = Self {
            triangles: triangles(points, indices).collect(),
            boxes: Vec::new(),
            vertices: used.iter().map(|at| points[*at as usize]).collect(),
        };
        surface.sort(0, 0, surface.triangles.len());
        surface
    }

    /// Sorts a node's run of triangles, so that each child has the triangles on one side.
    fn sort(&mut self, node: usize, first: usize, end: usize) {
        let run = &mut self.triangles[first..end];
        let around = Box3::around(run.iter().flatten().copied());
        if self.boxes.len() <= node {
            self.boxes.resize(node + 1, Box3::EMPTY);
        }
        self.boxes[node] = around;
        if run.len() > LEAF {
            let axis = (around.max - around.min).max_position();
            let at = |triangle: &[Vec3; 3]| triangle.iter().map(|corner| corner[axis]).sum::<f32>();
            let half = run.len() / 2;
            run.select_nth_unstable_by(half, |a, b| at(a).total_cmp(&at(b)));
            self.sort(2 * node + 1, first, first + half);
            self.sort(2 * node + 2, first + half, end);
        }
    }

    /// The square of a point's distance from the nearest triangle, and that triangle. The search
    /// ends early at a triangle that is nearer than `enough` (squared). It begins with the triangle
    /// `guess`.
    fn nearest(&self, point: Vec3, guess: usize, enough: f32) -> (f32, usize) {
        let mut nearest = (squared_distance(point, &self.triangles[guess]), guess);
        // Nodes to visit, each with its run and the square of its distance.
        let mut open = [(0, 0, 0, 0.0f32); MAX_OPEN];
        open[0].2 = self.triangles.len();
        let mut count = 1;
        while count > 0 && nearest.0 > enough {
            count -= 1;
            let (node, first, end, away) = open[count];
            if away >= nearest.0 {
                continue;
            }
            if end - first <= LEAF {
                for at in first..end {
                    let found = squared_distance(point, &self.triangles[at]);
                    if found < nearest.0 {
                        nearest = (found, at);
                    }
                }
                continue;
            }
            let middle = first + (end - first) / 2;
            let child = |node: usize, first, end| {
                let away = self.boxes[node].squared_distance(point);
                (node, first, end, away)
            };
            let mut children = [
                child(2 * node + 1, first, middle),
                child(2 * node + 2, middle, end),
            ];
            // The nearer one is visited first.
            if children[0].3 < children[1].3 {
                children.swap(0, 1);
            }
            open[count..count + 2].copy_from_slice(&children);
            count += 2;
        }
        nearest
    }

    /// The largest distance of a point from the nearest triangle.
    fn farthest(&self, points: impl Iterator<Item = Vec3>) -> f32 {
        let start = (0.0f32, 0);
        // Neighbors in the list often have the same nearest triangle. A point that is nearer than
        // the farthest so far need not be measured to the end.
        let (farthest, _) = points.fold(start, |(farthest, guess), point| {
            let (found, nearest) = self.nearest(point, guess, farthest);
            (farthest.max(found), nearest)
        });
        farthest.sqrt()
    }

    /// The squares of points' distances from the nearest triangles. The surface has some.
    pub fn squared_distances(
        &self,
        points: impl Iterator<Item = Vec3>,
    ) -> impl Iterator<Item = f32> {
        let mut guess = 0;
        points.map(move |point| {
            let (found, nearest) = self.nearest(point, guess, 0.0);
            guess = nearest;
            found
        })
    }

    /// How far a coarser surface lies from this one: the largest distance of one of this surface's
    /// vertices from the coarser surface, or of a corner, a middle of an edge or the middle of one
    /// of its triangles from this surface.
    pub fn distance(&self, coarse: &Self) -> f32 {
        let samples = coarse.triangles.iter().flat_map(samples);
        let of_coarse = self.farthest(samples);
        coarse
            .farthest(self.vertices.iter().copied())
            .max(of_coarse)
    }
}

/// Maximum number of nodes that wait for their visit. A tree of `2^32` triangles has fewer than 32
/// levels; each adds one node, and the last one two.
const MAX_OPEN: usize = 40;

/// Corners and middles of a triangle.
fn samples([a, b, c]: &[Vec3; 3]) -> [Vec3; 7] {
    [
        *a,
        *b,
        *c,
        (a + b + c) / 3.0,
        (a + b) / 2.0,
        (b + c) / 2.0,
        (c + a) / 2.0,
    ]
}

/// The corners of each triangle.
pub(super) fn triangles(points: &[Vec3], indices: &[u32]) -> impl Iterator<Item = [Vec3; 3]> {
    let corners = |triangle: &[u32]| [0, 1, 2].map(|corner| points[triangle[corner] as usize]);
    indices.chunks_exact(3).map(corners)
}

/// Sum of the triangles' areas.
pub(super) fn area(points: &[Vec3], indices: &[u32]) -> f32 {
    triangles(points, indices).map(area_of).sum()
}

pub(super) fn area_of([a, b, c]: [Vec3; 3]) -> f32 {
    0.5 * (b - a).cross(c - a).length()
}

/// The points, scaled about the surface's center so that it has this area. A level that lost area
/// covers fewer pixels: seen from all sides, a convex surface covers a quarter of its area
/// (Cauchy). Thin things would vanish.
pub(super) fn with_area(wanted: f32, points: &[Vec3], indices: &[u32]) -> Vec<Vec3> {
    let found = area(points, indices);
    let scale = (wanted / found.max(f32::MIN_POSITIVE))
        .sqrt()
        .clamp(1.0, 2.0);
    let weighted =
        triangles(points, indices).map(|[a, b, c]| (a + b + c) / 3.0 * area_of([a, b, c]));
    let center = weighted.sum::<Vec3>() / found.max(f32::MIN_POSITIVE);
    let grow = |point: &Vec3| center + (*point - center) * scale;
    points.iter().map(grow).collect()
}

/// The square of a point's distance from a triangle.
fn squared_distance(p: Vec3, [a, b, c]: &[Vec3; 3]) -> f32 {
    let (ab, bc, ca) = (b - a, c - b, a - c);
    let normal = ab.cross(-ca);
    let area = normal.length_squared();
    let is_flat = area <= FLAT * ab.length_squared() * ca.length_squared();
    let is_inside = |corner: &Vec3, edge: Vec3| edge.cross(p - corner).dot(normal) >= 0.0;
    if !is_flat && is_inside(a, ab) && is_inside(b, bc) && is_inside(c, ca) {
        let off = normal.dot(p - a);
        return off * off / area;
    }
    let to_edge = |corner: &Vec3, edge: Vec3| {
        let to_point = p - corner;
        let along = to_point.dot(edge) / edge.length_squared().max(f32::MIN_POSITIVE);
        (to_point - edge * along.clamp(0.0, 1.0)).length_squared()
    };
    to_edge(a, ab).min(to_edge(b, bc)).min(to_edge(c, ca))
}

/// The square of the sine of an angle below which a triangle counts as its edges, because rounding
/// decides where its normal points.
const FLAT: f32 = 1e-10;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};

    #[test]
    fn the_distance_from_a_triangle_is_that_from_its_nearest_point() {
        let triangle = [Vec3::ZERO, Vec3::X * 2.0, Vec3::Y * 2.0];
        for (point, expected) in [
            (Vec3::new(0.5, 0.5, 3.0), 9.0),
            (Vec3::new(-3.0, -4.0, 0.0), 25.0),
            (Vec3::new(3.0, -1.0, 0.0), 2.0),
            (Vec3::new(-1.0, 3.0, 0.0), 2.0),
            (Vec3::new(1.0, -2.0, 0.0), 4.0),
            (Vec3::new(-2.0, 1.0, 1.0), 5.0),
            (Vec3::new(2.0, 2.0, 0.0), 2.0),
            (Vec3::new(0.5, 0.5, 0.0), 0.0),
        ] {
            let found = squared_distance(point, &triangle);
            assert!((found - expected).abs() < 1e-5, "{point}: {found}");
        }
    }

    /// The same distance, from every triangle.
    fn farthest_by_brute_force(points: &[Vec3], triangles: &[[Vec3; 3]]) -> f32 {
        let nearest = |point: &Vec3| {
            let distances = triangles
                .iter()
                .map(|triangle| squared_distance(*point, triangle));
            distances.fold(f32::INFINITY, f32::min)
        };
        points.iter().map(nearest).fold(0.0, f32::max).sqrt()
    }

    /// Points in a cube. Some lie on a plane or at one place.
    fn some_points(count: core::ops::Range<usize>) -> impl Strategy<Value = Vec<Vec3>> {
        let coordinate = prop_oneof![3 => -10.0f32..10.0, 1 => Just(1.0f32)];
        let point = [coordinate.clone(), coordinate.clone(), coordinate];
        vec(point.prop_map(Vec3::from_array), count)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn the_tree_finds_what_brute_force_finds(
            full in some_points(3..80),
            coarse in some_points(3..20),
            corners in vec(any::<[u8; 3]>(), 1..200),
        ) {
            let indices = |points: &[Vec3], count| -> Vec<u32> {
                let corner = |at: &u8| u32::from(*at) % points.len() as u32;
                corners.iter().take(count).flatten().map(corner).collect()
            };
            let of_full = indices(&full, 200);
            let of_coarse = indices(&coarse, 20);
            let [a, b] = [(&full, &of_full), (&coarse, &of_coarse)]
                .map(|(points, indices)| Surface::new(points, indices));
            let sampled: Vec<_> = triangles(&coarse, &of_coarse).flat_map(|one| samples(&one)).collect();
            let used: Vec<_> = of_full.iter().map(|at| full[*at as usize]).collect();
            let list = |points: &[Vec3], indices: &[u32]| triangles(points, indices).collect::<Vec<_>>();
            let expected = farthest_by_brute_force(&used, &list(&coarse, &of_coarse))
                .max(farthest_by_brute_force(&sampled, &list(&full, &of_full)));
            let found = a.distance(&b);
            prop_assert!((found - expected).abs() <= 1e-5 * (1.0 + expected), "{found}, not {expected}");
        }
    }
}
