//! The planes of a view in pairs: three dot products instead of six.

use crate::cull::layout::PlanePairs;
use glam::{DVec3, DVec4, Vec4};

/// Largest deviation of a plane's normal from its paired form; about one f32 rounding of a unit
/// vector.
const MAX_OFF: f64 = 4e-7;

impl PlanePairs {
    /// The pairs of six planes with normals of length one or zero: left, right, top, bottom, near,
    /// far. Cameras, cascades, cube faces and spot lights have such pairs, also in sets that are
    /// scaled evenly. `is_paired` is 0 if the planes do not form pairs (an off-axis view, a
    /// stretched set).
    ///
    /// Let `m` be half the sum and `h` half the difference of two planes that face each other. A
    /// sphere is inside both planes if `|h| < m + radius`. In a frustum, `m` depends only on the
    /// depth.
    #[must_use]
    pub fn of_planes(planes: [Vec4; 6]) -> Self {
        let [left, right, top, bottom, near, far] = planes.map(|plane| plane.as_dvec4());
        let (x, across_x) = halves(left, right);
        let (y, across_y) = halves(top, bottom);
        let depth = depth_of([near, -far, across_x, across_y]);
        let (slope_x, offset_x) = along(across_x, depth);
        let (slope_y, offset_y) = along(across_y, depth);
        let off = [
            (across_x, slope_x),
            (across_y, slope_y),
            (near, f64::from(has_normal(near))),
            (far, -f64::from(has_normal(far))),
        ]
        .map(|(plane, slope)| (plane.truncate() - slope * depth.truncate()).length());
        let is_paired = off.into_iter().all(|off| off <= MAX_OFF)
            && has_normal(left) == has_normal(right)
            && has_normal(top) == has_normal(bottom);
        // The distance of a plane without a normal decides alone: it keeps everything or nothing.
        let low = if has_normal(near) { depth.w } else { 0.0 } - near.w;
        let high = if has_normal(far) { depth.w } else { 0.0 } + far.w;
        Self {
            x: x.as_vec4(),
            y: y.as_vec4(),
            depth: depth.as_vec4(),
            slopes: DVec4::new(slope_x, offset_x, slope_y, offset_y).as_vec4(),
            low: low as f32,
            high: high as f32,
            is_paired: u32::from(is_paired),
            pad: 0,
        }
    }
}

/// Half the difference and half the sum of two planes.
fn halves(a: DVec4, b: DVec4) -> (DVec4, DVec4) {
    ((a - b) * 0.5, (a + b) * 0.5)
}

fn has_normal(plane: DVec4) -> bool {
    plane.truncate() != DVec3::ZERO
}

/// The first plane that has a normal, scaled so that the normal has length one.
fn depth_of(planes: [DVec4; 4]) -> DVec4 {
    let long_enough = |plane: &DVec4| plane.truncate().length() > 1e-3;
    let plane = planes.into_iter().find(long_enough);
    plane.map_or(DVec4::ZERO, |plane| plane / plane.truncate().length())
}

/// `plane` as a linear function of the depth: slope and offset.
fn along(plane: DVec4, depth: DVec4) -> (f64, f64) {
    let slope = plane.truncate().dot(depth.truncate());
    (slope, plane.w - slope * depth.w)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cull::CullView;
    use glam::camera::rh::proj::directx;
    use glam::{Affine3A, EulerRot, Mat4, Quat, Vec3};

    /// Distance of a sphere to the nearest border, computed from the pairs.
    fn min(pairs: &PlanePairs, sphere: Vec4) -> f32 {
        let p = sphere.truncate().extend(1.0);
        let depth = pairs.depth.dot(p);
        let side = |h: Vec4, slope: f32, offset: f32| slope * depth + offset - h.dot(p).abs();
        let x = side(pairs.x, pairs.slopes.x, pairs.slopes.y);
        let y = side(pairs.y, pairs.slopes.z, pairs.slopes.w);
        x.min(y).min(depth - pairs.low).min(pairs.high - depth) + sphere.w
    }

    fn noise(i: u32, k: u32) -> f32 {
        ((i * 12 + k) as f32 * 78.233).sin() * 43_758.547 % 1.0
    }

    fn views(i: u32) -> Vec<CullView> {
        let eye = Vec3::new(noise(i, 0), noise(i, 1), noise(i, 2)) * 50.0;
        let turn = Quat::from_euler(
            EulerRot::XYZ,
            noise(i, 3) * 3.0,
            noise(i, 4) * 3.0,
            noise(i, 5),
        );
        let from_world = Mat4::from_rotation_translation(turn, eye).inverse();
        let perspective = directx::perspective_infinite_reverse(1.0 + noise(i, 6) * 0.8, 1.6, 0.1);
        let finite = directx::perspective(1.57, 1.0, 40.0, 0.1);
        let flat = directx::orthographic(-9.0, 9.0, -7.0, 7.0, 80.0, -20.0);
        let camera = CullView::from_clip_from_world(&(perspective * from_world));
        let cube = CullView::from_clip_from_world(&(finite * from_world));
        let cascade = CullView::from_clip_from_world(&(flat * from_world));
        vec![
            camera,
            camera.without_near(),
            cube,
            cube.without_far(),
            cascade,
            cascade.without_near(),
            cascade.without_near().without_far(),
        ]
    }

    fn nearest(planes: [Vec4; 6], sphere: Vec4) -> f32 {
        let p = sphere.truncate().extend(1.0);
        let distances = planes.map(|plane| plane.dot(p) + sphere.w);
        distances.into_iter().fold(f32::INFINITY, f32::min)
    }

    #[test]
    fn pairs_measure_the_same_distance_as_planes() {
        let (mut paired, mut all) = (0, 0);
        for i in 0..400 {
            let to_world = Affine3A::from_scale_rotation_translation(
                Vec3::splat(1.0 + 0.9 * noise(i, 7)),
                Quat::from_rotation_y(noise(i, 8) * 3.0),
                Vec3::new(noise(i, 9), noise(i, 10), noise(i, 11)) * 20.0,
            );
            for view in views(i) {
                let row = view.planes_in(&to_world);
                all += 1;
                paired += row.pairs.is_paired;
                if row.pairs.is_paired == 0 {
                    continue;
                }
                for k in 0..20 {
                    let at = |n| noise(i + 1000 * k, n) * 60.0;
                    let sphere = Vec4::new(at(0), at(1), at(2), 0.3);
                    let (a, b) = (nearest(row.planes(), sphere), min(&row.pairs, sphere));
                    let slack = 2e-6 * (sphere.truncate().length() + a.abs() + 100.0);
                    assert!((a - b).abs() <= slack, "{a} {b} {view:?}");
                }
            }
        }
        assert!(paired * 100 >= all * 98, "{paired} of {all}");
    }

    #[test]
    fn views_off_their_axis_and_stretched_sets_have_no_pairs() {
        let aside = directx::frustum(-0.1, 0.3, -0.1, 0.1, 100.0, 0.1);
        let view = CullView::from_clip_from_world(&aside);
        assert_eq!(view.planes_in(&Affine3A::IDENTITY).pairs.is_paired, 0);
        let [camera, ..] = views(3)[..] else { panic!() };
        let stretched = Affine3A::from_scale(Vec3::new(1.0, 3.0, 0.5));
        assert_eq!(camera.planes_in(&stretched).pairs.is_paired, 0);
        let keep = Vec4::new(0.0, 0.0, 0.0, f32::MAX);
        let mut planes = *camera.planes();
        planes[0] = keep;
        assert_eq!(PlanePairs::of_planes(planes).is_paired, 0, "only one side");
        // Its half sum depends only on the depth, but is lost in the plane that keeps everything.
        let [.., near, _] = planes;
        let one_side = [keep, near, keep, keep, near, keep];
        assert_eq!(PlanePairs::of_planes(one_side).is_paired, 0, "{one_side:?}");
    }

    #[test]
    fn pairs_of_everything_keep_what_is_a_number_and_those_of_nothing_keep_nothing() {
        let all = PlanePairs::of_planes(*CullView::EVERYTHING.planes());
        assert_eq!(all.is_paired, 1);
        assert!(min(&all, Vec4::new(1e9, -1e9, 3.0, 0.0)) > 0.0);
        assert!(min(&all, Vec4::new(f32::NAN, 0.0, 0.0, 0.0)).is_nan());
        for drop in 0..6 {
            let mut planes = *CullView::EVERYTHING.planes();
            planes[drop] = Vec4::new(0.0, 0.0, 0.0, -f32::MAX);
            let none = PlanePairs::of_planes(planes);
            assert!(
                min(&none, Vec4::new(1.0, 2.0, 3.0, 4.0)) <= 0.0,
                "{drop}: {none:?}"
            );
        }
    }
}
