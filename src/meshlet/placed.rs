//! The bounds of a meshlet whose mesh is moved, rotated, stretched or mirrored.

use super::{Meshlet, NormalCone};
use glam::{Affine3A, DMat3, DVec3};

/// What `f32` may add to the radius of a moved sphere, relative to it.
const ROUNDING: f32 = 1e-5;

impl Meshlet {
    /// The meshlet of the mesh that `transform` makes of it: a sphere around its vertices there,
    /// and a cone of the directions that its triangles face there, by their winding. `stretch` is
    /// the largest stretch of the transform, or more.
    #[must_use]
    pub fn placed(&self, transform: &Affine3A, stretch: f32) -> Self {
        let center = transform.transform_point3(self.center);
        let slack = center.length() + self.radius * stretch;
        Self {
            center,
            radius: self.radius * stretch + slack * ROUNDING,
            cone: placed_cone(self.cone, transform),
            ..*self
        }
    }
}

/// A cone around the normals of triangles that `transform` moves.
///
/// Their normals are multiplied by the matrix of cofactors `C`. Let `u` be the cone's axis. A
/// normal is `cos t u + sin t w` with `w` across `u` and `t` at most the cone's half angle. Along
/// `C u`, its product is at least `cos t |C u| - sin t p`, and across at most `sin t q`.
fn placed_cone(cone: NormalCone, transform: &Affine3A) -> NormalCone {
    let axis = cone.axis().as_dvec3();
    let length = axis.length();
    // Normals beyond this angle would be visible from an eye for which the cone rejects.
    let sine = f64::from(cone.cutoff()) / length;
    if cone.cutoff() >= 1.0 || !(0.0..1.0).contains(&sine) {
        return NormalCone::NONE;
    }
    let matrix = transform.matrix3;
    let [x, y, z] = [matrix.x_axis, matrix.y_axis, matrix.z_axis].map(|axis| axis.as_dvec3());
    let cofactors = DMat3::from_cols(y.cross(z), z.cross(x), x.cross(y));
    let axis = axis / length;
    let moved = cofactors * axis;
    let Some(direction) = moved.try_normalize() else {
        return NormalCone::NONE;
    };
    let back = cofactors.transpose() * direction;
    let p = (back - axis * back.dot(axis)).length();
    let q = greatest_across(&cofactors, axis);
    let tangent = sine / (1.0 - sine * sine).sqrt();
    let along = moved.length() - tangent * p;
    if along <= 0.0 {
        return NormalCone::NONE;
    }
    NormalCone::of_angle(direction, (tangent * q / along).atan())
}

/// How long the matrix makes a vector of length one across `axis` at most.
fn greatest_across(matrix: &DMat3, axis: DVec3) -> f64 {
    let (a, b) = axis.any_orthonormal_pair();
    let (a, b) = (*matrix * a, *matrix * b);
    // The larger singular value of a matrix of two columns.
    let (aa, ab, bb) = (a.dot(a), a.dot(b), b.dot(b));
    let half = (aa - bb) / 2.0;
    ((aa + bb) / 2.0 + half.hypot(ab)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::{Mat3A, Quat, Vec3};
    use proptest::prelude::*;

    fn point() -> impl Strategy<Value = Vec3> {
        prop::array::uniform3(-1.0f32..1.0).prop_map(Vec3::from)
    }

    fn transform() -> impl Strategy<Value = Affine3A> {
        let scales = prop_oneof![
            (0.1f32..4.0).prop_map(Vec3::splat),
            (-4.0f32..-0.1).prop_map(Vec3::splat),
            prop::array::uniform3(-3.0f32..3.0).prop_map(Vec3::from),
        ];
        // Scaled twice, so that some are sheared.
        (scales, point(), point(), point()).prop_map(|(scale, turn, shear, at)| {
            let turn = Quat::from_euler(glam::EulerRot::XYZ, turn.x * 3.0, turn.y, turn.z * 3.0);
            let shear = Mat3A::from_diagonal(Vec3::ONE + shear * 0.5);
            let matrix = Mat3A::from_diagonal(scale) * Mat3A::from_quat(turn) * shear;
            Affine3A {
                matrix3: matrix,
                translation: (at * 5.0).into(),
            }
        })
    }

    /// Triangles of a bumpy cap, flat if `bump` is small.
    fn triangles(corners: &[Vec3], bump: f32) -> Vec<[Vec3; 3]> {
        let flat = |point: &Vec3| Vec3::new(point.x, point.y, point.z * bump);
        let all: Vec<_> = corners.iter().map(flat).collect();
        let triangles = all.chunks_exact(3).map(|corners| {
            let [a, b, c] = [corners[0], corners[1], corners[2]];
            // All face up, more or less.
            if (b - a).cross(c - a).z < 0.0 {
                [a, c, b]
            } else {
                [a, b, c]
            }
        });
        triangles.collect()
    }

    fn normal([a, b, c]: [DVec3; 3]) -> DVec3 {
        (b - a).cross(c - a)
    }

    fn meshlet(triangles: &[[Vec3; 3]]) -> Meshlet {
        let points = triangles.iter().flatten();
        let normals = triangles
            .iter()
            .filter_map(|triangle| normal(triangle.map(|point| point.as_dvec3())).try_normalize());
        Meshlet {
            center: Vec3::ZERO,
            radius: points.map(|point| point.length()).fold(0.0, f32::max),
            cone: NormalCone::around(Vec3::Z, normals),
            first_index: 3,
            triangle_count: triangles.len() as u32,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]
        #[test]
        fn bounds_hold_behind_any_transform(
            corners in prop::collection::vec(point(), 9..30),
            bump in 0.0f32..0.4,
            transform in transform(),
            eyes in prop::collection::vec(point(), 40),
        ) {
            let triangles = triangles(&corners, bump);
            let whole = meshlet(&triangles);
            let stretch = crate::cull::layout::greatest_stretch(&transform.matrix3);
            let placed = whole.placed(&transform, stretch);
            prop_assert_eq!((placed.first_index, placed.triangle_count), (3, whole.triangle_count));
            for triangle in &triangles {
                let moved = triangle.map(|point| transform.transform_point3(point));
                for point in moved {
                    prop_assert!(point.distance(placed.center) <= placed.radius);
                }
            }
            let (axis, cutoff) = (placed.cone.axis(), placed.cone.cutoff());
            for eye in eyes {
                // Near eyes and far ones.
                let eye = placed.center + eye * 8.0 * placed.radius;
                let to_eye = eye - placed.center;
                if -axis.dot(to_eye) <= cutoff * to_eye.length() + placed.radius {
                    continue;
                }
                for triangle in &triangles {
                    let moved = triangle.map(|point| {
                        let [x, y, z] = [transform.matrix3.x_axis, transform.matrix3.y_axis, transform.matrix3.z_axis]
                            .map(|axis| axis.as_dvec3());
                        let point = point.as_dvec3();
                        x * point.x + y * point.y + z * point.z + transform.translation.as_dvec3()
                    });
                    let up = normal(moved);
                    let shown = up.dot(eye.as_dvec3() - moved[0]);
                    prop_assert!(shown <= 1e-6 * up.length(), "{} {}", shown, up);
                }
            }
        }
    }

    #[test]
    fn turns_and_mirrors_keep_a_cone_narrow() {
        let cone = NormalCone::around(Vec3::Z, [DVec3::Z, DVec3::new(0.5, 0.0, 1.0).normalize()]);
        let meshlet = Meshlet {
            center: Vec3::ZERO,
            radius: 1.0,
            cone,
            first_index: 0,
            triangle_count: 1,
        };
        let turn = Quat::from_rotation_x(0.8);
        for scale in [Vec3::splat(3.0), Vec3::new(-2.0, 2.0, 2.0)] {
            let transform = Affine3A::from_scale_rotation_translation(scale, turn, Vec3::X);
            let placed = meshlet.placed(&transform, scale.abs().max_element());
            let facing = turn * Vec3::Z * scale.x.signum();
            assert!(placed.cone.axis().dot(facing) > 0.99, "{placed:?}");
            assert!(placed.cone.cutoff() < cone.cutoff() + 0.04, "{placed:?}");
        }
        let flat = Affine3A::from_scale(Vec3::new(1.0, 1.0, 0.0));
        assert!(meshlet.placed(&flat, 1.0).cone.cutoff() < 1.0);
        let line = Affine3A::from_scale(Vec3::X);
        assert_eq!(meshlet.placed(&line, 1.0).cone, NormalCone::NONE);
    }
}
