//! Random views of sets, in 64 bits.

use glam::dcamera::rh::proj::directx;
use glam::{DAffine3, DMat4, DQuat, DVec3, DVec4, EulerRot, UVec2};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// A kind of projection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Infinite,
    Finite,
    OffCenter,
    Oblique,
    Orthographic,
}

pub const KINDS: [Kind; 5] = [
    Kind::Infinite,
    Kind::Finite,
    Kind::OffCenter,
    Kind::Oblique,
    Kind::Orthographic,
];

pub fn random_vec(rng: &mut ChaCha8Rng, size: f64) -> DVec3 {
    DVec3::from([(); 3].map(|()| rng.random_range(-size..=size)))
}

pub fn random_rotation(rng: &mut ChaCha8Rng) -> DQuat {
    let turn = random_vec(rng, core::f64::consts::PI);
    DQuat::from_euler(EulerRot::XYZ, turn.x, turn.y, turn.z)
}

/// The matrix of a camera: clip space from its own space.
pub fn random_clip(rng: &mut ChaCha8Rng, kind: Kind, size: UVec2) -> DMat4 {
    let aspect = f64::from(size.x) / f64::from(size.y);
    let angle = rng.random_range(0.05..2.4);
    let near = 10f64.powf(rng.random_range(-2.0..0.5));
    let infinite = directx::perspective_infinite_reverse(angle, aspect, near);
    let with_row = |row: usize, value: DVec4| {
        let mut rows = [0, 1, 2, 3].map(|k| infinite.row(k));
        rows[row] = value;
        DMat4::from_cols_array_2d(&rows.map(|row| row.to_array())).transpose()
    };
    match kind {
        Kind::Infinite => infinite,
        Kind::Finite => {
            let far = near * 10f64.powf(rng.random_range(1.0..5.0));
            directx::perspective(angle, aspect, far, near)
        }
        Kind::OffCenter => {
            let aside = infinite.row(3) * rng.random_range(-1.5..1.5);
            with_row(0, infinite.row(0) + aside)
        }
        // The near plane leans, as in a mirror.
        Kind::Oblique => {
            let lean = random_vec(rng, 0.01 * near).extend(0.0);
            with_row(2, infinite.row(2) + lean)
        }
        Kind::Orthographic => {
            let [left, bottom] = [(); 2].map(|()| rng.random_range(-60.0..-1.0));
            let [right, top] = [(); 2].map(|()| rng.random_range(1.0..60.0));
            directx::orthographic(left, right, bottom, top, 300.0, -20.0)
        }
    }
}

/// A set in the world: turned and moved, often mirrored or stretched.
pub fn random_set(rng: &mut ChaCha8Rng) -> DAffine3 {
    let mut scale = DVec3::splat(1.0);
    if rng.random() {
        scale = DVec3::from([(); 3].map(|()| rng.random_range(0.2..3.0)));
    }
    if rng.random() {
        scale.x = -scale.x;
    }
    let (turn, place) = (random_rotation(rng), random_vec(rng, 20.0));
    DAffine3::from_scale_rotation_translation(scale, turn, place)
}

/// A random view of a random set, and a point of the set's space in front of the eye.
pub fn random_view(rng: &mut ChaCha8Rng, kind: Kind, size: UVec2) -> (DMat4, DAffine3) {
    let clip = random_clip(rng, kind, size);
    let (turn, eye) = (random_rotation(rng), random_vec(rng, 50.0));
    let world_from_view = DAffine3::from_rotation_translation(turn, eye);
    let view_from_set = world_from_view.inverse() * random_set(rng);
    (clip * DMat4::from(view_from_set), view_from_set)
}

/// A point of the set's space that is usually in the view: `depth` in front of the eye.
pub fn random_point(rng: &mut ChaCha8Rng, clip: &DMat4, depth: f64) -> DVec3 {
    let at = [(); 2].map(|()| rng.random_range(-1.2..1.2));
    // The point of the ray at this place of the picture whose w or distance is `depth`.
    let inverse = clip.inverse();
    let unproject = |z: f64| {
        let point = inverse * DVec4::new(at[0], at[1], z, 1.0);
        point.truncate() / point.w
    };
    let (near, far) = (unproject(1.0), unproject(0.5));
    let ray = (far - near).normalize_or_zero();
    near + ray * depth
}

/// Points on the unit sphere, evenly spread.
pub fn directions(count: u32) -> impl Iterator<Item = DVec3> {
    let golden = core::f64::consts::PI * (3.0 - 5f64.sqrt());
    (0..count).map(move |k| {
        let z = 1.0 - 2.0 * (f64::from(k) + 0.5) / f64::from(count);
        let (sin, cos) = (golden * f64::from(k)).sin_cos();
        let r = (1.0 - z * z).sqrt();
        DVec3::new(r * cos, r * sin, z)
    })
}

/// A point in pixels and depth, and its w.
pub fn project(clip: &DMat4, size: UVec2, point: DVec3) -> (DVec3, f64) {
    let at = *clip * point.extend(1.0);
    let half = size.as_dvec2() * 0.5;
    let (x, y) = ((at.x / at.w + 1.0) * half.x, (1.0 - at.y / at.w) * half.y);
    (DVec3::new(x, y, at.z / at.w), at.w)
}
