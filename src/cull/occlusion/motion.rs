//! Cuts: whether a view still sees what it saw in the frame before.
//!
//! After a cut, the frame before says little of what hides the rest, so more is drawn early
//! (`shaders/occlusion/recall.wesl`). It is a guess, which changes the speed alone.

use glam::{DMat4, DVec3, DVec4, Mat4, Vec4Swizzles};
use hashbrown::HashMap;

/// How the views of a frame have moved, by [`OcclusionView::key`](super::OcclusionView::key).
pub(in crate::cull) type Motions = HashMap<u64, Motion>;

/// A view whose eye moves this many times as far as in the frame before has jumped.
const JUMP: f64 = 4.0;

/// What was in the middle of the picture is seen still if it is in this part of its width.
const INNER: f64 = 2.0 / 3.0;

/// Cosine of the angle by which an orthographic view may turn about what it sees.
const TURN: f64 = 0.8;

/// How a view has moved since the frame before. The default has seen nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::cull) struct Motion {
    now: DMat4,
    before: Option<DMat4>,
    /// How far the eye has moved.
    step: f64,
    /// Whether the eye has moved much farther than before.
    jumps: bool,
}

impl Motion {
    /// The motion of a view that draws by `clip_from_world`, after `last`.
    pub fn new(clip_from_world: &Mat4, last: Option<&Self>) -> Self {
        let now = clip_from_world.as_dmat4();
        let before = last.map(|last| last.now);
        let eyes = before.and_then(|before| Some((eye_of(&now)?, eye_of(&before)?)));
        let step = eyes.map_or(0.0, |(now, before)| now.distance(before));
        Self {
            now,
            before,
            step,
            jumps: step > JUMP * last.map_or(0.0, |last| last.step),
        }
    }

    /// Whether the view sees something else than in the frame before, of instances of this width in
    /// the world. `near` is the width from which on they are drawn early in any case, as a share of
    /// half the picture's height.
    ///
    /// A camera has turned away if what was ahead is in the outer third of the picture, or outside.
    /// It has jumped away if the same is true of the point at which an instance was `near` wide.
    pub fn is_cut(&self, near: f32, width: f32) -> bool {
        let Some(before) = &self.before else {
            return true;
        };
        let ahead = before.row(3).xyz();
        match [ahead, self.now.row(3).xyz()].map(|ahead| ahead == DVec3::ZERO) {
            [true, true] => self.slides(before),
            [false, false] => {
                let turns = !self.has_inside(ahead.extend(0.0));
                turns || self.jumps && self.leaves(before, f64::from(width / near))
            }
            // Another kind of view.
            _ => true,
        }
    }

    /// Whether [`Self::is_cut`] for instances of some width.
    pub fn may_be_cut(&self) -> bool {
        self.jumps || self.is_cut(1.0, 0.0)
    }

    /// Whether a point of the world is in the inner part of the picture.
    fn has_inside(&self, point: DVec4) -> bool {
        let clip = self.now * point;
        let border = clip.w * INNER;
        clip.x.abs() <= border && clip.y.abs() <= border
    }

    /// Whether the point at which half the picture was `high` units high is seen no more.
    fn leaves(&self, before: &DMat4, high: f64) -> bool {
        let ahead = before.row(3).xyz();
        let away = high * before.row(1).xyz().length() / ahead.length();
        let point = eye_of(before).map(|eye| eye + ahead.normalize() * away);
        point.is_some_and(|point| point.is_finite() && !self.has_inside(point.extend(1.0)))
    }

    /// Whether the middle of an orthographic view has left the picture, or the view has turned
    /// about it.
    fn slides(&self, before: &DMat4) -> bool {
        let middle = before.inverse() * DVec4::new(0.0, 0.0, 0.5, 1.0);
        let depth = (self.now * middle).z;
        let [now, before] = [&self.now, before].map(|matrix| matrix.row(2).xyz());
        let is_same = now.dot(before) >= TURN * now.length() * before.length();
        !(is_same && (0.0..=1.0).contains(&depth) && self.has_inside(middle))
    }
}

/// The point from which a matrix sees; `None` if it is orthographic.
fn eye_of(clip_from_world: &DMat4) -> Option<DVec3> {
    let [x, y, w] = [0, 1, 3].map(|row| clip_from_world.row(row));
    let (yw, wx, xy) = (
        y.xyz().cross(w.xyz()),
        w.xyz().cross(x.xyz()),
        x.xyz().cross(y.xyz()),
    );
    let eye = -(yw * x.w + wx * y.w + xy * w.w) / x.xyz().dot(yw);
    eye.is_finite().then_some(eye)
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::Vec3;
    use glam::camera::rh::proj::directx;

    /// Instances of two units, which are near if they are a fourth of the picture's height high: at
    /// 4 * cot(0.5) = 7.3 units.
    const NEAR: (f32, f32) = (0.5, 2.0);

    fn lens() -> Mat4 {
        directx::perspective_infinite_reverse(1.0, 1.0, 0.1)
    }

    fn flat() -> Mat4 {
        directx::orthographic(-10.0, 10.0, -10.0, 10.0, 100.0, 0.0)
    }

    /// Whether each of these frames is cut.
    fn cuts(frames: impl IntoIterator<Item = Mat4>) -> Vec<bool> {
        let mut last = None;
        let frame = |clip: Mat4| {
            let motion = Motion::new(&clip, last.as_ref());
            last = Some(motion);
            motion.is_cut(NEAR.0, NEAR.1)
        };
        frames.into_iter().map(frame).collect()
    }

    fn at(eye: Vec3) -> Mat4 {
        Mat4::from_translation(-eye)
    }

    #[test]
    fn a_camera_that_turns_by_a_third_of_its_field_is_cut() {
        let turned = |angles: [f32; 2]| cuts(angles.map(|a| lens() * Mat4::from_rotation_y(a)));
        assert_eq!(turned([0.0, 0.3]), [true, false], "the first frame is one");
        assert_eq!(turned([0.0, 0.4]), [true, true]);
        assert_eq!(turned([0.0, 3.0]), [true, true]);
        assert_eq!(turned([0.4, 0.4]), [true, false]);
    }

    #[test]
    fn a_camera_that_jumps_is_cut_and_one_that_flies_is_not() {
        let path = |steps: &[Vec3]| {
            // Far from the origin: a matrix is rounded there.
            let mut eye = Vec3::new(300.0, 20.0, -700.0);
            cuts(steps.iter().map(|step| {
                eye += *step;
                lens() * at(eye)
            }))
        };
        let (aside, ahead) = (Vec3::X, Vec3::NEG_Z);
        let [none, walk] = [Vec3::ZERO, aside * 0.05];
        // The inner third of the picture at 7.3 units is 2.7 units wide to each side.
        assert_eq!(path(&[none, none, aside * 2.5]), [true, false, false]);
        assert_eq!(path(&[none, none, aside * 2.8]), [true, false, true]);
        assert_eq!(path(&[none, none, ahead * 7.0]), [true, false, false]);
        assert_eq!(path(&[none, none, ahead * 7.5]), [true, false, true]);
        let walks = path(&[walk, walk, walk, aside * 60.0, walk, walk]);
        assert_eq!(walks, [true, false, false, true, false, false]);
        // As fast as this in every frame: what it sees changes, but is no other place.
        let flies = path(&[none, aside * 9.0, aside * 9.0, aside * 10.0]);
        assert_eq!(flies, [true, true, false, false]);
        // Small instances are near at smaller distances only.
        let mut motion = Motion::new(&(lens() * at(Vec3::ZERO)), None);
        motion = Motion::new(&(lens() * at(Vec3::X)), Some(&motion));
        assert!(motion.is_cut(0.5, 0.2) && !motion.is_cut(0.5, 2.0));
        assert!(!motion.is_cut(0.0, 0.2), "nothing is near");
    }

    #[test]
    fn an_orthographic_view_is_cut_if_its_middle_leaves() {
        let moved = |by: Vec3| cuts([flat(), flat() * at(by)])[1];
        assert!(!moved(Vec3::ZERO) && !moved(Vec3::new(6.0, -6.0, 0.0)));
        assert!(moved(Vec3::X * 7.0) && moved(Vec3::Y * -7.0));
        // Behind it, and beyond.
        assert!(!moved(Vec3::Z * -49.0) && moved(Vec3::Z * -51.0) && moved(Vec3::Z * 51.0));
        let middle = at(Vec3::Z * -50.0);
        let turned = |angle: f32| {
            let turn = middle.inverse() * Mat4::from_rotation_y(angle) * middle;
            cuts([flat(), flat() * turn])[1]
        };
        assert!(!turned(0.5) && turned(0.7) && turned(3.0));
    }

    #[test]
    fn another_kind_of_view_is_cut() {
        assert_eq!(cuts([flat(), lens(), flat()]), [true; 3]);
        assert_eq!(cuts([Mat4::ZERO, lens(), lens()]), [true, true, false]);
    }
}
