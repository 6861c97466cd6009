//! Random views with depth in them, and what may be seen there by brute force.

use super::{
    picture::Picture,
    views::{KINDS, project, random_point, random_view},
};
use bevy_gpu_culling::cull::{
    layout::{COVERS_NO_SAMPLE, DepthPyramid, Projection, VISIBLE},
    reference,
};
use glam::{DMat4, DVec2, UVec2, Vec4, Vec4Swizzles};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Small, so that every pixel of every sphere can be looked at.
pub const SIZE: UVec2 = UVec2::new(45, 31);

/// A view with depth in it, and spheres.
pub struct Case {
    pub clip: DMat4,
    pub is_jittered: bool,
    pub picture: Picture,
    pub shape: DepthPyramid,
    pub texels: Vec<f32>,
    pub spheres: Vec<Vec4>,
}

impl Case {
    /// Walls that stand at the depth of some sphere: exactly, a little nearer, a little farther, or
    /// in the middle of nowhere.
    pub fn random(rng: &mut ChaCha8Rng, kind: usize, samples: u32) -> Self {
        let (clip, _) = random_view(rng, KINDS[kind % KINDS.len()], SIZE);
        let projection = Projection::new(clip, SIZE, samples, false);
        let mut spheres: Vec<Vec4> = Vec::new();
        for _ in 0..40 {
            let depth = 10f64.powf(rng.random_range(0.0..2.0));
            let center = random_point(rng, &clip, depth);
            let radius = depth * 10f64.powf(rng.random_range(-3.5..-0.3));
            spheres.push(center.extend(radius).as_vec4());
        }
        let picture = Picture::walls(rng, SIZE, samples, |rng| {
            let sphere = spheres[rng.random_range(0..spheres.len())];
            let depth = reference::span(&projection, sphere).nearest;
            let factor = match rng.random_range(0..6) {
                0 => 1.0,
                1 => 1.0 + 1e-5,
                2 => 1.0 - 1e-5,
                3 => 1.2,
                _ => rng.random_range(0.0..3.0),
            };
            // Fails for a depth that is not a number.
            if depth > 0.0 {
                (depth * factor).min(1.0)
            } else {
                0.5
            }
        });
        Self::new(clip, rng.random(), picture, spheres)
    }

    /// A wall in front of all spheres, with holes of one sample: one in eight. Spheres are up to
    /// eight pixels wide, so that most touch few samples.
    pub fn sieve(rng: &mut ChaCha8Rng, kind: usize, samples: u32) -> Self {
        let (clip, _) = random_view(rng, KINDS[kind % KINDS.len()], SIZE);
        let mut spheres = Vec::new();
        for _ in 0..40 {
            let depth = 10f64.powf(rng.random_range(0.0..2.0));
            let center = random_point(rng, &clip, depth);
            let radius = depth * 10f64.powf(rng.random_range(-2.5..-1.0));
            spheres.push(center.extend(radius).as_vec4());
        }
        let mut picture = Picture::noise(rng, SIZE, samples);
        for depth in &mut picture.depths {
            *depth = if *depth < 0.125 { 0.0 } else { 1.0 };
        }
        Self::new(clip, rng.random(), picture, spheres)
    }

    /// Walls, or every other time a sieve.
    pub fn any(rng: &mut ChaCha8Rng, number: usize, samples: u32) -> Self {
        match number % 2 {
            0 => Self::random(rng, number / 2, samples),
            _ => Self::sieve(rng, number / 2, samples),
        }
    }

    pub fn new(clip: DMat4, is_jittered: bool, picture: Picture, spheres: Vec<Vec4>) -> Self {
        let shape = DepthPyramid::new(UVec2::ZERO, SIZE, picture.samples);
        let texels = reference::pyramid(&picture.depths, SIZE.x, &shape);
        Self {
            clip,
            is_jittered,
            picture,
            shape,
            texels,
            spheres,
        }
    }

    pub fn projection(&self) -> Projection {
        Projection::new(self.clip, SIZE, self.picture.samples, self.is_jittered)
    }

    /// What is wrong if a sphere is said to be `found`: a sample at which it may be seen.
    pub fn error(&self, sphere: Vec4, found: u32, shift: DVec2) -> Option<String> {
        if found == VISIBLE {
            return None;
        }
        for y in 0..SIZE.y {
            for x in 0..SIZE.x {
                let pixel = UVec2::new(x, y);
                for (sample, place) in places(self.picture.samples).iter().enumerate() {
                    let at = pixel.as_dvec2() + *place + shift;
                    let Some(depth) = nearest_at(&self.clip, at, sphere) else {
                        continue;
                    };
                    let wall = self.picture.depths[self.picture.at(pixel, sample as u32)];
                    // What is drawn before the near plane is cut off.
                    if found == COVERS_NO_SAMPLE || depth >= f64::from(wall) {
                        return Some(format!("{pixel} {sample}: {depth} at the depth {wall}"));
                    }
                }
            }
        }
        None
    }
}

/// The standard places of samples in a pixel.
fn places(samples: u32) -> Vec<DVec2> {
    let sixteenths: &[[i32; 2]] = match samples {
        1 => &[[8, 8]],
        2 => &[[12, 12], [4, 4]],
        4 => &[[6, 2], [14, 6], [2, 10], [10, 14]],
        8 => &[
            [9, 5],
            [7, 11],
            [13, 9],
            [5, 3],
            [3, 13],
            [1, 7],
            [11, 15],
            [15, 1],
        ],
        _ => panic!("{samples}"),
    };
    sixteenths
        .iter()
        .map(|[x, y]| DVec2::new(f64::from(*x), f64::from(*y)) / 16.0)
        .collect()
}

/// The nearest depth at which the ray through a place of the viewport meets a sphere.
fn nearest_at(clip: &DMat4, at: DVec2, sphere: Vec4) -> Option<f64> {
    let half = SIZE.as_dvec2() * 0.5;
    let w = clip.row(3);
    // Two planes that contain the ray: (n, k) with n.p + k = 0.
    let one = (clip.row(0) + w) * half.x - w * at.x;
    let two = (w - clip.row(1)) * half.y - w * at.y;
    let (n, o) = (one.truncate(), two.truncate());
    let along = n.cross(o);
    let point = (-one.w * o.cross(along) - two.w * along.cross(n)) / along.length_squared();
    let along = along.normalize();
    let (center, radius) = (sphere.xyz().as_dvec3(), f64::from(sphere.w));
    let middle = (center - point).dot(along);
    let apart = (point + along * middle - center).length_squared();
    if apart > radius * radius {
        return None;
    }
    let reach = (radius * radius - apart).sqrt();
    let depth = |distance: f64| {
        let (at, w) = project(clip, SIZE, point + along * distance);
        (w > 0.0).then_some(at.z)
    };
    let depths = [middle - reach, middle + reach]
        .into_iter()
        .filter_map(depth);
    depths.reduce(f64::max)
}
