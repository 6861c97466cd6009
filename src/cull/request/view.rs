//! Views, and their planes in a set's space.
//!
//! This file is long because the tests of the planes are at its end.

mod source;

use super::LodEye;
use crate::cull::layout::{Chunk, PlanePairs, ROUNDING, ViewOrder, ViewPlanes};
use glam::{Affine3A, DMat3, DVec3, DVec4, Mat4, Vec3, Vec4, Vec4Swizzles};

/// A plane that keeps everything.
const KEEP: Vec4 = Vec4::new(0.0, 0.0, 0.0, f32::MAX);
/// A plane that keeps nothing.
const DROP: Vec4 = Vec4::new(0.0, 0.0, 0.0, -f32::MAX);

/// What one camera, shadow cascade, cube face or spot light sees: six world-space planes and a
/// light's reach.
///
/// A plane is `(normal, distance)`; its normal has length one and points inwards. The order is
/// left, right, top, bottom, near, far. A sphere is rejected if
/// `dot(normal, center) + distance + radius <= 0` for any plane that the view tests. The choice of
/// tested planes is the same as in Bevy's CPU culling:
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
    eye: Vec4,
    /// The near plane of a view without a point of view, whether it is tested or not, and the
    /// distance of the far plane behind it.
    depth: Option<(Vec4, f32)>,
    lod_eye: Option<LodEye>,
    /// Direction towards the viewer; zero if the view sorts nothing far first.
    toward: Vec3,
}

impl CullView {
    /// A view that keeps everything.
    pub const EVERYTHING: Self = Self {
        planes: [KEEP; 6],
        reach: Vec4::new(0.0, 0.0, 0.0, -1.0),
        eye: Vec4::ZERO,
        depth: None,
        lod_eye: None,
        toward: Vec3::ZERO,
    };

    /// What a view keeps that keeps nothing, in any space.
    pub(in crate::cull) fn nothing() -> ViewPlanes {
        ViewPlanes::of_planes([DROP; 6], Self::EVERYTHING.reach)
    }

    /// A view from its six world-space half spaces. All of them are tested.
    #[must_use]
    pub fn from_planes(planes: [Vec4; 6]) -> Self {
        Self {
            planes,
            ..Self::EVERYTHING
        }
    }

    /// A view from the matrix that takes the world to the clip space of a reverse-z projection
    /// (finite or infinite, perspective or orthographic). Source: Gribb and Hartmann, "Fast
    /// Extraction of Viewing Frustum Planes from the World-View-Projection Matrix".
    #[must_use]
    pub fn from_clip_from_world(clip_from_world: &Mat4) -> Self {
        let rows = clip_from_world.transpose();
        let (x, y, z, w) = (rows.x_axis, rows.y_axis, rows.z_axis, rows.w_axis);
        // Reverse z: near is z <= w, far is z >= 0. An infinite far plane has no normal and keeps
        // everything.
        let planes = [w + x, w - x, w - y, w + y, w - z, z].map(normalized_plane);
        let is_parallel = w.xyz() == Vec3::ZERO;
        let toward = if is_parallel { z.xyz() } else { -w.xyz() };
        Self::from_planes(planes).with_eye().sorted_toward(toward)
    }

    /// Declares the direction towards the viewer, along which survivors are sorted
    /// ([`Order::FarFirst`](crate::cull::Order::FarFirst)): the z axis of the view's space, in the
    /// world. Its length does not matter. Views without it, such as shadow views, keep the order of
    /// the set. [`Self::from_clip_from_world`] includes this.
    #[must_use]
    pub fn sorted_toward(mut self, toward: Vec3) -> Self {
        self.toward = toward;
        self
    }

    /// Declares that the planes belong to a camera or a light whose eye is the point at which its
    /// four sides meet. Only such a view can tell which triangles face away from it.
    /// [`Self::from_clip_from_world`] includes this.
    #[must_use]
    pub fn with_eye(mut self) -> Self {
        self.eye = eye_of(self.planes);
        self.depth = depth_of(self.planes);
        self
    }

    /// Sets the eye from the matrix through which the content is seen, independently of the planes;
    /// see [`Self::with_eye`].
    #[cfg(feature = "bevy")]
    #[must_use]
    pub(crate) fn seen_through(mut self, clip_from_world: &Mat4) -> Self {
        let seen = Self::from_clip_from_world(clip_from_world);
        (self.eye, self.depth) = (seen.eye, seen.depth);
        self
    }

    /// The eye in homogeneous world coordinates of length one: a point, or if `w` = 0, the
    /// direction towards an eye at infinity (orthographic views). Its sign matches the winding on
    /// the screen: a triangle with normal `n` (counter-clockwise) through a point `p` shows its
    /// front if `dot(n, eye.xyz - eye.w * p)` is above 0, even in a view that mirrors. Zero if the
    /// view has no eye.
    #[must_use]
    pub fn eye(&self) -> Vec4 {
        self.eye
    }

    /// [`Self::eye`] in the space of a set. A set that mirrors flips the sign, as it flips the
    /// winding of its triangles.
    #[must_use]
    pub fn eye_in(&self, world_from_local: &Affine3A) -> Vec4 {
        let matrix = world_from_local.matrix3.as_dmat3();
        let (x, y, z) = (matrix.x_axis, matrix.y_axis, matrix.z_axis);
        // The adjugate: the inverse times the determinant. A flattened set has one too.
        let adjugate = DMat3::from_cols(y.cross(z), z.cross(x), x.cross(y)).transpose();
        let eye = self.eye.as_dvec4();
        let offset = world_from_local.translation.as_dvec3() * eye.w;
        let local = adjugate * (eye.truncate() - offset);
        unit(local.extend(eye.w * matrix.determinant()))
    }

    /// The same view with the near plane at which the rasterizer clips: `z <= w` of clip space. The
    /// near plane of Bevy's frusta is `w + z >= 0`, which with reverse z lies behind the camera; an
    /// orthographic camera would keep everything behind it.
    #[cfg(feature = "bevy")]
    #[must_use]
    pub(crate) fn with_near_of(mut self, clip_from_world: &Mat4) -> Self {
        self.planes[4] = Self::from_clip_from_world(clip_from_world).planes[4];
        self
    }

    /// The order of a set's instances in this view: near ones first, by rings of distance from the
    /// eye. The rings begin at twice `radius`, the radius of the set's mesh in the set's units, and
    /// reach 2^16 times as far: from there, instances cover no pixel. Set order if the view has no
    /// eye ([`Self::with_eye`]).
    #[must_use]
    pub fn order_in(&self, world_from_local: &Affine3A, radius: f32) -> ViewOrder {
        let mut chunk = Chunk::default();
        chunk.place(world_from_local);
        let mut order = self.eye_source().order_in(&chunk);
        if order.eye == Vec4::ZERO {
            return ViewOrder::default();
        }
        order.begin_at(radius);
        order
    }

    /// The same view with levels of detail as `eye` sees them. Without this, a view draws full
    /// meshes.
    #[must_use]
    pub fn with_lods_of(mut self, eye: LodEye) -> Self {
        self.lod_eye = Some(eye);
        self
    }

    /// The point that the levels of detail of the view are measured from.
    #[must_use]
    pub(crate) fn lod_eye(&self) -> Option<LodEye> {
        self.lod_eye
    }

    /// The far-first order of a set's instances in this view; set order if the view has no
    /// direction towards the viewer ([`Self::sorted_toward`]), or if all of the set has one depth.
    #[must_use]
    pub fn far_first_in(&self, world_from_local: &Affine3A) -> ViewOrder {
        ViewOrder::far_first(world_from_local.matrix3.transpose() * self.toward)
    }

    /// The same view, in the same order, without any test.
    #[cfg(feature = "bevy")]
    #[must_use]
    pub(crate) fn keeping_everything(self) -> Self {
        Self {
            eye: self.eye,
            depth: self.depth,
            lod_eye: self.lod_eye,
            toward: self.toward,
            ..Self::EVERYTHING
        }
    }

    /// The same view without a test of the near plane.
    #[must_use]
    pub fn without_near(mut self) -> Self {
        self.planes[4] = KEEP;
        self
    }

    /// The same view without a test of the far plane.
    #[must_use]
    pub fn without_far(mut self) -> Self {
        self.planes[5] = KEEP;
        self
    }

    /// The same view, limited to what a light at `center` with `range` (world units) can reach.
    #[must_use]
    pub fn within(mut self, center: Vec3, range: f32) -> Self {
        self.reach = center.extend(range.max(0.0));
        self
    }

    /// The world-space planes: left, right, top, bottom, near, far.
    #[must_use]
    pub fn planes(&self) -> &[Vec4; 6] {
        &self.planes
    }

    /// The view in the space of a set: this transforms six planes instead of every instance.
    /// Distances are then in the set's units, so a mesh's radius needs no scaling, and a set that
    /// is stretched unevenly is tested exactly (its spheres are ellipsoids in the world).
    ///
    /// Planes and the light's range are widened by what 32-bit arithmetic loses of positions that
    /// are as large as the set's translation, so that rounding rejects nothing that is visible.
    #[must_use]
    pub fn planes_in(&self, world_from_local: &Affine3A) -> ViewPlanes {
        let translation = Vec3::from(world_from_local.translation);
        let rounded = translation.abs().element_sum() * ROUNDING;
        let planes = self.planes.map(|plane| {
            let normal: Vec3 =
                (world_from_local.matrix3.transpose() * glam::Vec3A::from(plane.xyz())).into();
            let distance = plane.xyz().dot(translation) + plane.w;
            normalized_plane(normal.extend(distance + rounded))
        });
        let widened = if self.reach.w < 0.0 { 0.0 } else { rounded };
        ViewPlanes {
            pairs: PlanePairs::of_planes(planes),
            ..ViewPlanes::of_planes(planes, self.reach + Vec4::W * widened)
        }
    }
}

/// Shift of a float's bits that leaves 32 steps per doubling (`shaders/cull/order.wesl`).
const STEP_BITS: u32 = 18;

/// The near plane and the range of planes whose sides are parallel.
fn depth_of([left, right, top, bottom, near, far]: [Vec4; 6]) -> Option<(Vec4, f32)> {
    let are_opposite = |a: Vec4, b: Vec4| a.xyz().dot(b.xyz()) < -0.999_999;
    let range = near.w + far.w;
    let is_parallel = are_opposite(left, right) && are_opposite(top, bottom);
    (is_parallel && are_opposite(near, far) && range > 0.0).then_some((near, range))
}

impl ViewOrder {
    /// Begins the rings of a point of view at twice `radius`.
    pub(crate) fn begin_at(&mut self, radius: f32) {
        if self.eye.w != 0.0 {
            self.first_step = Self::step_at(radius);
        }
    }

    /// The step at which the rings around a point of view begin: at twice `radius`.
    pub(crate) fn step_at(radius: f32) -> i32 {
        let nearest = (2.0 * radius).clamp(f32::MIN_POSITIVE, f32::MAX);
        (nearest.to_bits() >> STEP_BITS) as i32
    }
}

/// The point at which the left, right and top planes meet, in homogeneous coordinates. Its sign
/// follows the order of the planes, which a mirroring projection changes.
fn eye_of([left, right, top, ..]: [Vec4; 6]) -> Vec4 {
    let [a, b, c] = [left, right, top].map(|plane| plane.as_dvec4());
    let minor =
        |pick: fn(DVec4) -> DVec3| DMat3::from_cols(pick(a), pick(b), pick(c)).determinant();
    unit(DVec4::new(
        minor(|p| DVec3::new(p.y, p.z, p.w)),
        -minor(|p| DVec3::new(p.x, p.z, p.w)),
        minor(|p| DVec3::new(p.x, p.y, p.w)),
        -minor(|p| DVec3::new(p.x, p.y, p.z)),
    ))
}

/// The vector at length one; zero if it has no direction.
fn unit(value: DVec4) -> Vec4 {
    value.try_normalize().unwrap_or(DVec4::ZERO).as_vec4()
}

/// The plane with a normal of length one. A plane without a normal keeps all or nothing, by the
/// sign of its distance.
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

#[cfg(test)]
mod tests {
    use super::*;
    use glam::Quat;
    use glam::camera::rh::{proj::directx, view};

    fn distance(plane: Vec4, point: Vec3) -> f32 {
        plane.dot(point.extend(1.0))
    }

    fn camera() -> CullView {
        let projection = directx::perspective_infinite_reverse(1.0, 1.5, 0.1);
        let view = view::look_at_mat4(Vec3::new(1.0, 2.0, 3.0), Vec3::ZERO, Vec3::Y);
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
        let row = view.planes_in(&to_world);
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
        let row = camera().planes_in(&Affine3A::from_scale(Vec3::ZERO));
        for plane in row.planes() {
            assert!(plane.is_finite());
        }
    }

    /// Positions of 4 million units, which the set's translation cancels: 32 bits round a distance
    /// to half a unit.
    #[test]
    fn rounding_rejects_no_visible_instance_of_a_set_with_large_positions() {
        let view = camera().within(Vec3::ZERO, 6.0);
        let (mut rejected, mut kept) = (0, 0);
        for turn in 0..60 {
            let turn = Quat::from_rotation_y(turn as f32 * 0.1);
            let far = Vec3::new(4e6, -3e6, 1e6);
            let world = Affine3A::from_rotation_translation(turn, -(turn * far));
            let planes = view.planes_in(&world);
            let sides = planes.planes();
            for step in 0..1000 {
                let spread = |k: f32| ((step as f32 + k) * 12.9898).sin() * 12.0;
                let at = far + Vec3::new(spread(0.0), spread(0.3), spread(0.7)).round();
                // What the GPU does in 32 bits, and the same in 64.
                let found = sides.iter().all(|side| distance(*side, at) > 0.0);
                let matrix = world.matrix3;
                let exact = matrix.x_axis.as_dvec3() * f64::from(at.x)
                    + matrix.y_axis.as_dvec3() * f64::from(at.y)
                    + matrix.z_axis.as_dvec3() * f64::from(at.z)
                    + world.translation.as_dvec3();
                let seen = |plane: &Vec4| plane.as_dvec4().dot(exact.extend(1.0)) > 0.0;
                let is_seen = view.planes().iter().all(seen);
                assert!(found || !is_seen, "{exact} is rejected");
                let away = (world.transform_point3(at) - planes.reach.xyz()).length();
                assert!(away <= planes.reach.w || exact.length() > 6.0, "{exact}");
                kept += usize::from(is_seen);
                rejected += usize::from(!found);
            }
        }
        assert!(kept > 1000 && rejected > 1000, "{kept} {rejected}");
    }

    #[test]
    fn the_eye_of_a_camera_is_where_it_stands_and_that_of_a_cascade_is_its_direction() {
        let eye = camera().eye();
        assert!(eye.w > 0.0, "{eye}");
        assert!(
            (eye.xyz() / eye.w).abs_diff_eq(Vec3::new(1.0, 2.0, 3.0), 1e-5),
            "{eye}"
        );
        let towards = Vec3::new(1.0, 2.0, 3.0).normalize();
        let clip = directx::orthographic(-4.0, 4.0, -3.0, 3.0, 50.0, 0.0);
        let view = view::look_at_mat4(towards * 20.0, Vec3::ZERO, Vec3::Y);
        let eye = CullView::from_clip_from_world(&(clip * view)).eye();
        assert!(eye.abs_diff_eq(towards.extend(0.0), 1e-5), "{eye}");
        assert_eq!(CullView::EVERYTHING.with_eye().eye(), Vec4::ZERO);
        assert_eq!(CullView::from_planes(*camera().planes()).eye(), Vec4::ZERO);
    }

    /// Compares with the winding on the screen, for projections and sets that mirror, stretch and
    /// shear.
    #[test]
    fn the_side_of_a_triangle_is_that_of_its_winding_on_the_screen() {
        let view = view::look_at_mat4(Vec3::new(3.0, 2.0, 9.0), Vec3::ZERO, Vec3::Y);
        let mirror = Mat4::from_scale(Vec3::new(-1.0, 1.0, 1.0));
        let projections = [
            directx::perspective_infinite_reverse(1.0, 1.5, 0.1),
            mirror * directx::perspective_infinite_reverse(1.3, 1.0, 0.1),
            directx::orthographic(-6.0, 6.0, -4.0, 4.0, 50.0, 0.0),
        ];
        let stretch = Vec3::new(2.0, 0.5, 1.5);
        let sets = [
            Vec3::ONE,
            stretch,
            stretch * Vec3::new(-1.0, 1.0, 1.0),
            -stretch,
        ]
        .map(|scale| {
            let placed = Affine3A::from_rotation_translation(Quat::from_rotation_z(0.4), Vec3::X);
            placed * Affine3A::from_scale(scale) * Affine3A::from_rotation_x(0.7)
        });
        let mut sides = [0, 0];
        for projection in projections {
            let clip = projection * view;
            let view = CullView::from_clip_from_world(&clip);
            for set in sets {
                let eye = view.eye_in(&set);
                for i in 0..200 {
                    let spread = |k: f32| ((i as f32 + k) * 12.9898).sin();
                    let point = |k: f32| Vec3::new(spread(k), spread(k + 0.3), spread(k + 0.7));
                    let [a, b, c] = [point(0.0), point(3.1), point(5.7)];
                    let [p, q, r] = [a, b, c].map(|p| {
                        let clip = clip * set.transform_point3(p).extend(1.0);
                        clip.xy() / clip.w
                    });
                    let area = (q - p).perp_dot(r - p);
                    let side = (b - a).cross(c - a).dot(eye.xyz() - eye.w * a);
                    assert_eq!(side > 0.0, area > 0.0, "{side} {area}");
                    sides[usize::from(area > 0.0)] += 1;
                }
            }
        }
        assert!(sides[0] > 500 && sides[1] > 500, "{sides:?}");
    }
}
