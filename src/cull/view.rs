//! Views, and what they become in a set's own space.

use crate::cull::layout::Row;
use glam::{Affine3A, Mat3A, Mat4, Vec3, Vec4, Vec4Swizzles};

/// A plane that keeps everything.
const KEEP: Vec4 = Vec4::new(0.0, 0.0, 0.0, f32::MAX);
/// A plane that keeps nothing.
const DROP: Vec4 = Vec4::new(0.0, 0.0, 0.0, -f32::MAX);

/// What one camera, shadow cascade, cube face or spot light sees: six world-space planes and a light's reach.
///
/// Planes are `(normal, distance)` with the normal inwards and of length one, in the order left, right, top,
/// bottom, near, far. A sphere is culled when `dot(normal, centre) + distance + radius <= 0` for any plane that
/// the view tests. Which planes are tested follows Bevy's own CPU culling:
///
/// | view | near | far | range |
/// | --- | --- | --- | --- |
/// | camera | tested | not tested | - |
/// | directional cascade | not tested (a caster may lie before it) | tested | - |
/// | cube face, spot light | tested | tested | the light's range |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CullView {
    planes: [Vec4; 6],
    reach: Vec4,
}

impl CullView {
    /// A view that keeps everything.
    pub const EVERYTHING: Self = Self {
        planes: [KEEP; 6],
        reach: Vec4::new(0.0, 0.0, 0.0, -1.0),
    };

    /// A view from its six world-space half spaces, all tested.
    #[must_use]
    pub fn from_planes(planes: [Vec4; 6]) -> Self {
        Self {
            planes,
            ..Self::EVERYTHING
        }
    }

    /// A view from the matrix that takes the world to the clip space of a reverse-z projection (finite or
    /// infinite, perspective or orthographic). Source: Gribb and Hartmann, "Fast Extraction of Viewing Frustum
    /// Planes from the World-View-Projection Matrix".
    #[must_use]
    pub fn from_clip_from_world(clip_from_world: &Mat4) -> Self {
        let rows = clip_from_world.transpose();
        let (x, y, z, w) = (rows.x_axis, rows.y_axis, rows.z_axis, rows.w_axis);
        // Reverse z: near is z <= w, far is z >= 0 (an infinite far plane has no normal: it keeps everything).
        Self::from_planes([w + x, w - x, w - y, w + y, w - z, z].map(normalized_plane))
    }

    /// Does not test the near plane.
    #[must_use]
    pub fn without_near(mut self) -> Self {
        self.planes[4] = KEEP;
        self
    }

    /// Does not test the far plane.
    #[must_use]
    pub fn without_far(mut self) -> Self {
        self.planes[5] = KEEP;
        self
    }

    /// Keeps only what a light at `centre` with `range` (world units) can reach.
    #[must_use]
    pub fn within(mut self, centre: Vec3, range: f32) -> Self {
        self.reach = centre.extend(range.max(0.0));
        self
    }

    /// The world-space planes: left, right, top, bottom, near, far.
    #[must_use]
    pub fn planes(&self) -> &[Vec4; 6] {
        &self.planes
    }

    /// The view in the space of a set: one transform of six planes instead of one of every instance. Distances
    /// are then in the set's units, so a mesh's radius needs no scaling, and a set that is stretched
    /// unevenly is tested exactly (its spheres are ellipsoids in the world).
    #[must_use]
    pub fn to_row(&self, world_from_local: &Affine3A) -> Row {
        let [left, right, top, bottom, near, far] = self.planes.map(|plane| {
            let normal: Vec3 =
                (world_from_local.matrix3.transpose() * glam::Vec3A::from(plane.xyz())).into();
            let distance = plane.xyz().dot(world_from_local.translation.into()) + plane.w;
            normalized_plane(normal.extend(distance))
        });
        Row {
            left,
            right,
            top,
            bottom,
            near,
            far,
            reach: self.reach,
        }
    }
}

/// A plane with a normal of length one. One without a normal keeps all or nothing, by the sign of its distance.
fn normalized_plane(plane: Vec4) -> Vec4 {
    let length = plane.xyz().length();
    if length > 1e-20 {
        plane / length
    } else if plane.w >= 0.0 {
        KEEP
    } else {
        DROP
    }
}

/// The greatest stretch of a matrix: its largest singular value, from above (the Frobenius norm's bound is
/// too loose, so the length of the longest column when the columns are orthogonal, else the norm).
#[must_use]
pub(crate) fn greatest_stretch(matrix: &Mat3A) -> f32 {
    let (x, y, z) = (matrix.x_axis, matrix.y_axis, matrix.z_axis);
    let longest = x
        .length_squared()
        .max(y.length_squared())
        .max(z.length_squared());
    let skew = x.dot(y).abs() + y.dot(z).abs() + z.dot(x).abs();
    // Gershgorin: the largest eigenvalue of MᵀM is at most its largest diagonal entry plus the row's others.
    (longest + skew).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::Quat;

    fn distance(plane: Vec4, point: Vec3) -> f32 {
        plane.dot(point.extend(1.0))
    }

    fn camera() -> CullView {
        let projection = Mat4::perspective_infinite_reverse_rh(1.0, 1.5, 0.1);
        let view = Mat4::look_at_rh(Vec3::new(1.0, 2.0, 3.0), Vec3::ZERO, Vec3::Y);
        CullView::from_clip_from_world(&(projection * view))
    }

    #[test]
    fn planes_of_a_camera_face_inwards() {
        for plane in camera().planes() {
            assert!(distance(*plane, Vec3::ZERO) > 0.0, "{plane}");
        }
    }

    #[test]
    fn an_infinite_far_plane_keeps_everything() {
        assert_eq!(camera().planes()[5], KEEP);
    }

    #[test]
    fn a_row_measures_the_same_side_in_the_sets_space() {
        let view = camera();
        let to_world = Affine3A::from_scale_rotation_translation(
            Vec3::new(2.0, 0.5, 3.0),
            Quat::from_rotation_y(0.7),
            Vec3::new(-1.0, 4.0, 0.3),
        );
        let row = view.to_row(&to_world);
        for (world, local) in view.planes().iter().zip(row.planes()).take(5) {
            assert!((local.xyz().length() - 1.0).abs() < 1e-6);
            for point in [Vec3::ZERO, Vec3::ONE, Vec3::new(-3.0, 2.0, 9.0)] {
                let a = distance(*world, to_world.transform_point3(point));
                let b = distance(local, point);
                assert!(a * b > 0.0, "{a} {b}");
            }
        }
    }

    #[test]
    fn a_flattened_set_has_planes_without_nan() {
        let row = camera().to_row(&Affine3A::from_scale(Vec3::ZERO));
        for plane in row.planes() {
            assert!(plane.is_finite());
        }
    }

    #[test]
    fn the_greatest_stretch_is_a_bound() {
        let matrix = Mat3A::from_quat(Quat::from_rotation_x(0.4))
            * Mat3A::from_diagonal(Vec3::new(1.0, 3.0, 2.0));
        assert!((greatest_stretch(&matrix) - 3.0).abs() < 1e-5);
        let sheared = matrix * Mat3A::from_quat(Quat::from_rotation_z(0.9));
        let stretch = greatest_stretch(&sheared);
        assert!((3.0..4.0).contains(&stretch), "{stretch}");
    }
}
