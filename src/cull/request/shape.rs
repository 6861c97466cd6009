//! What a request draws, and its bounds.

use glam::{Vec3, Vec3A};

/// A sphere around a mesh, in the mesh's space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundingSphere {
    /// Center, in the mesh's units.
    pub center: Vec3,
    /// Radius, in the mesh's units.
    pub radius: f32,
}

impl BoundingSphere {
    /// The sphere around an axis-aligned box.
    #[must_use]
    pub fn around_box(center: Vec3, half_extents: Vec3) -> Self {
        Self {
            center,
            radius: half_extents.length(),
        }
    }

    /// A small sphere around points: at most a few percent larger than the smallest one. Points
    /// that are not finite are left out. `None` if there are no others.
    ///
    /// The center follows from the points that are the farthest in 13 directions and their
    /// opposites: T. Larsson, "Fast and Tight Fitting Bounding Spheres", SIGRAD 2008. It moves
    /// toward the farthest of these points, by less each time: M. Bădoiu and K. L. Clarkson,
    /// "Smaller Core-Sets for Balls", SODA 2003. The center of the points' box is taken instead if
    /// that is better, and the origin if that is nearly as good, because a sphere around the origin
    /// needs no rotation per instance.
    #[must_use]
    pub fn around_points(points: impl Iterator<Item = Vec3> + Clone) -> Option<Self> {
        let points = points.filter(|point| point.is_finite()).map(Vec3A::from);
        let extremes = extreme_points(points.clone())?;
        let [left, right, bottom, top, back, front, ..] = extremes;
        let (min, max) = (
            Vec3A::new(left.x, bottom.y, back.z),
            Vec3A::new(right.x, top.y, front.z),
        );
        let box_center = 0.5 * min + 0.5 * max;
        let centers = [
            Vec3A::ZERO,
            box_center,
            center_of_few(&extremes, box_center),
        ];
        let mut squares = [0f32; 3];
        for point in points {
            for (square, center) in squares.iter_mut().zip(centers) {
                *square = square.max(point.distance_squared(center));
            }
        }
        let [origin, of_box, of_few] = squares.map(f32::sqrt);
        let (center, radius) = match of_few < of_box {
            true => (centers[2], of_few),
            false => (centers[1], of_box),
        };
        let (center, radius) = match origin <= radius * MAX_GROWTH_AT_ORIGIN {
            true => (Vec3A::ZERO, origin),
            false => (center, radius),
        };
        // Vertices on the sphere stay inside, whatever rounding does to them.
        let rounded = (radius + center.abs().max_element()) * 1e-6;
        let sphere = Self {
            center: center.into(),
            radius: radius + rounded,
        };
        sphere.radius.is_finite().then_some(sphere)
    }

    /// A sphere with the same center, and a larger radius.
    #[must_use]
    pub fn grown(mut self, by: f32) -> Self {
        self.radius += by;
        self
    }

    /// Whether another sphere is inside this one.
    #[must_use]
    pub fn surrounds(&self, other: &Self) -> bool {
        other.center.distance(self.center) + other.radius <= self.radius
    }

    /// A sphere with the same center, around both.
    #[cfg(feature = "bevy")]
    #[must_use]
    pub(crate) fn enlarged_around(mut self, other: Self) -> Self {
        let away = other.center.distance(self.center);
        self.radius = self.radius.max(away + other.radius);
        self
    }
}

/// A sphere around the origin may be larger by this factor.
const MAX_GROWTH_AT_ORIGIN: f32 = 1.02;

/// Axes, diagonals of faces, and diagonals of a cube.
const DIRECTIONS: [Vec3A; 13] = [
    Vec3A::X,
    Vec3A::Y,
    Vec3A::Z,
    Vec3A::new(1.0, 1.0, 0.0),
    Vec3A::new(1.0, -1.0, 0.0),
    Vec3A::new(1.0, 0.0, 1.0),
    Vec3A::new(1.0, 0.0, -1.0),
    Vec3A::new(0.0, 1.0, 1.0),
    Vec3A::new(0.0, 1.0, -1.0),
    Vec3A::new(1.0, 1.0, 1.0),
    Vec3A::new(1.0, 1.0, -1.0),
    Vec3A::new(1.0, -1.0, 1.0),
    Vec3A::new(1.0, -1.0, -1.0),
];

/// The least and the greatest point along each direction.
fn extreme_points(points: impl Iterator<Item = Vec3A>) -> Option<[Vec3A; 26]> {
    let mut lengths = [f32::NEG_INFINITY; 26];
    let mut found = [Vec3A::NAN; 26];
    for point in points {
        for (k, direction) in DIRECTIONS.iter().enumerate() {
            let length = point.dot(*direction);
            for (at, length) in [(2 * k, -length), (2 * k + 1, length)] {
                if length > lengths[at] {
                    (lengths[at], found[at]) = (length, point);
                }
            }
        }
    }
    found.iter().all(|point| point.is_finite()).then_some(found)
}

/// The center of a small sphere around a few points.
fn center_of_few(points: &[Vec3A], start: Vec3A) -> Vec3A {
    const STEPS: u16 = 200;
    let mut center = start;
    for step in 2..STEPS {
        let away = |point: &Vec3A| point.distance_squared(center);
        let farthest = points.iter().max_by(|a, b| away(a).total_cmp(&away(b)));
        center += farthest.map_or(Vec3A::ZERO, |point| (*point - center) / f32::from(step));
    }
    center
}

/// The part of a mesh that one draw call draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrawShape {
    /// A mesh with indices.
    Indexed {
        /// Number of indices of the mesh.
        index_count: u32,
        /// First index in the bound index buffer.
        first_index: u32,
        /// Value added to each index.
        base_vertex: i32,
    },
    /// A mesh without indices.
    NonIndexed {
        /// Number of vertices of the mesh.
        vertex_count: u32,
        /// First vertex in the bound vertex buffer.
        first_vertex: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn around(points: &[Vec3]) -> BoundingSphere {
        let none = BoundingSphere {
            center: Vec3::NAN,
            radius: f32::NAN,
        };
        BoundingSphere::around_points(points.iter().copied()).unwrap_or(none)
    }

    #[test]
    fn spheres_of_simple_shapes_are_the_smallest() {
        let tetrahedron = [
            Vec3::new(1.0, 1.0, 1.0),
            Vec3::new(1.0, -1.0, -1.0),
            Vec3::new(-1.0, 1.0, -1.0),
            Vec3::new(-1.0, -1.0, 1.0),
        ];
        let corner = Vec3::new(3.0, 1.0, -2.0);
        // An obtuse triangle: its smallest sphere is around the longest side.
        let flat = [Vec3::ZERO, Vec3::X * 10.0, Vec3::new(4.0, 1.0, 0.0)];
        // The box of a right triangle has another center.
        let right = [Vec3::ZERO, Vec3::X * 6.0, Vec3::Y * 8.0];
        let shifted = tetrahedron.map(|point| point + Vec3::splat(50.0));
        let cases: [(&[Vec3], f32); 6] = [
            (&[corner], 0.0),
            (&[corner, -corner], corner.length()),
            (&tetrahedron, 3f32.sqrt()),
            (&shifted, 3f32.sqrt()),
            (&flat, 5.0),
            (&right, 5.0),
        ];
        for (points, radius) in cases {
            let sphere = around(points);
            let range = radius..=radius * 1.01 + 1e-4;
            assert!(range.contains(&sphere.radius), "{points:?}: {sphere:?}");
        }
        assert_eq!(around(&tetrahedron).center, Vec3::ZERO);
    }

    #[test]
    fn random_points_are_inside_a_sphere_that_is_nearly_the_smallest() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for case in 0..300 {
            let stretch = Vec3::from_array([(); 3].map(|()| rng.random_range(0.01..10.0)));
            let away = Vec3::splat(if case % 2 == 0 { 0.0 } else { 40.0 });
            let mut at = || rng.random_range(-1.0f32..1.0);
            let points: Vec<_> = (0..1 + case)
                .map(|_| Vec3::new(at(), at(), at()) * stretch + away)
                .collect();
            let sphere = around(&points);
            let farthest = points.iter().map(|point| point.distance(sphere.center));
            let farthest = farthest.fold(0.0, f32::max);
            assert!(farthest <= sphere.radius, "{case}: {farthest} {sphere:?}");
            // A long run over all points is as good as the smallest.
            let all: Vec<_> = points.iter().copied().map(Vec3A::from).collect();
            let mut center = all[0];
            for step in 2..4000u16 {
                let away = |point: &&Vec3A| point.distance_squared(center);
                let far = all.iter().max_by(|a, b| away(a).total_cmp(&away(b)));
                center += (*far.unwrap_or(&center) - center) / f32::from(step);
            }
            let best = all.iter().map(|point| point.distance(center));
            let best = best.fold(0.0, f32::max);
            assert!(
                sphere.radius <= best * 1.04 + 1e-3,
                "{case}: {best} {sphere:?}"
            );
        }
    }

    #[test]
    fn points_that_are_not_finite_are_left_out() {
        let bad = [Vec3::NAN, Vec3::new(f32::INFINITY, 0.0, 0.0)];
        assert_eq!(BoundingSphere::around_points(bad.into_iter()), None);
        assert_eq!(BoundingSphere::around_points([].into_iter()), None);
        let huge = [Vec3::splat(f32::MAX), Vec3::splat(-f32::MAX)];
        assert_eq!(BoundingSphere::around_points(huge.into_iter()), None);
        let some = [Vec3::NAN, Vec3::X, -Vec3::X];
        assert!((around(&some).radius - 1.0).abs() < 1e-5);
    }
}
