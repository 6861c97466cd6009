//! The twin of the depth test against brute force: nothing that may be seen is hidden.

use super::{
    cases::{Case, SIZE},
    picture::Picture,
};
use crate::common::rng;
use bevy_gpu_culling::cull::{
    layout::{COVERS_NO_SAMPLE, DepthPyramid, HIDDEN, Projection, PyramidLevel, VISIBLE},
    reference::{self, occlusion_of},
};
use glam::dcamera::rh::proj::directx;
use glam::{DMat4, DVec2, DVec3, UVec2, Vec4, Vec4Swizzles};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Makes a case of this number, with this number of samples per pixel.
type Make = fn(&mut ChaCha8Rng, usize, u32) -> Case;

/// Wrong answers of `answer` about random cases, and shares of right ones: of the spheres that are
/// hidden in truth, the part that is found.
fn wrong_answers(
    seed: u64,
    (make, samples): (Make, u32),
    cases: usize,
    answer: impl Fn(&Case, Vec4) -> u32,
) -> (Vec<String>, f64) {
    let mut rng = rng(seed);
    let mut errors = Vec::new();
    let (mut found, mut hidden) = (0u32, 0u32);
    for number in 0..cases {
        let case = make(&mut rng, number, samples);
        for sphere in &case.spheres {
            let result = answer(&case, *sphere);
            // Vertices may snap by up to a sixteenth of a pixel, and a jittered view moves.
            let max = if case.is_jittered { 1.0 } else { 0.0 } + 1.0 / 16.0 - 1e-3;
            let shift = [(); 2].map(|()| match rng.random_range(0..3) {
                0 => 0.0,
                1 => max,
                _ => -max,
            });
            errors.extend(case.error(*sphere, result, DVec2::from(shift)));
            if case.error(*sphere, COVERS_NO_SAMPLE, DVec2::ZERO).is_some()
                && case.error(*sphere, HIDDEN, DVec2::ZERO).is_none()
                && !case.is_jittered
            {
                hidden += 1;
                found += u32::from(result == HIDDEN);
            }
        }
    }
    (errors, f64::from(found) / f64::from(hidden))
}

#[test]
fn nothing_that_may_be_seen_is_hidden() {
    for (samples, cases) in [(1, 120), (2, 40), (4, 120), (8, 40)] {
        let share = |make: Make, has_diagonals: bool| {
            let (errors, share) = wrong_answers(701, (make, samples), cases, |case, sphere| {
                let mut projection = case.projection();
                projection.has_diagonals &= u32::from(has_diagonals);
                occlusion_of(&case.texels, &case.shape, &projection, sphere)
            });
            let first = errors.first();
            assert!(first.is_none(), "{} errors: {first:?}", errors.len());
            share
        };
        // Footprints are octagons of coarse texels, so some are missed.
        let found = share(Case::random, true);
        assert!(found > 0.5, "only {found} of the hidden spheres are found");
        // Without diagonals they are rectangles.
        let found = [false, true].map(|has_diagonals| share(Case::sieve, has_diagonals));
        // Of eight holes per pixel, nearly every sphere touches one.
        let more = if samples == 8 { 0.0 } else { 0.02 };
        assert!(found[1] > found[0] + more, "{samples}: {found:?}");
    }
}

/// A wall with a hole of one pixel, wherever it is, hides nothing that the hole shows: also at the
/// borders of texels of each level.
#[test]
fn a_hole_of_one_pixel_shows_what_is_behind_it() {
    let clip = directx::orthographic(0.0, 45.0, 0.0, 31.0, 100.0, 0.0);
    let spheres = [
        Vec4::new(22.5, 15.5, -60.0, 1.0),
        Vec4::new(16.0, 16.0, -60.0, 0.6),
        Vec4::new(31.9, 8.1, -60.0, 6.0),
        Vec4::new(44.5, 0.5, -60.0, 0.4),
        Vec4::new(22.0, 15.0, -60.0, 30.0),
    ];
    let (mut shown, mut hidden) = (0, 0);
    for hole in (0..SIZE.y).flat_map(|y| (0..SIZE.x).map(move |x| UVec2::new(x, y))) {
        let len = (SIZE.x * SIZE.y) as usize;
        let picture = Picture {
            size: SIZE,
            samples: 1,
            depths: vec![0.8; len],
        };
        let mut case = Case::new(clip, false, picture, spheres.to_vec());
        let at = case.picture.at(hole, 0);
        case.picture.depths[at] = 0.0;
        case.texels = reference::pyramid(&case.picture.depths, SIZE.x, &case.shape);
        for sphere in spheres {
            let found = occlusion_of(&case.texels, &case.shape, &case.projection(), sphere);
            assert_eq!(
                case.error(sphere, found, DVec2::ZERO),
                None,
                "{hole} {sphere}"
            );
            *(if found == VISIBLE {
                &mut shown
            } else {
                &mut hidden
            }) += 1;
        }
    }
    assert!(shown > 1000 && hidden > 3000, "{shown} {hidden}");
}

/// Radii and distances at the ends of what a float holds.
#[test]
fn extreme_spheres_are_never_hidden_by_mistake() {
    let infinite = directx::perspective_infinite_reverse(1.0, 1.5, 0.1);
    let flat = directx::orthographic(-5.0, 5.0, -5.0, 5.0, 100.0, 0.0);
    for clip in [infinite, flat] {
        for unit in [1e-30, 1e-12, 1.0, 1e12, 1e30] {
            let clip = clip * DMat4::from_scale(DVec3::splat(1.0 / unit));
            let mut spheres = Vec::new();
            let mut hidden = 0;
            for place in [1e-30, 1e-6, 0.3, 5.0, 1e6, 1e30] {
                for radius in [0.0, 1e-30, 1e-6, 0.3, 5.0, 1e6, 1e30] {
                    let at = DVec3::new(0.01, -0.02, -1.0) * place * unit;
                    spheres.push(at.extend(radius * unit).as_vec4());
                }
            }
            for depth in [0.0, 1e-7, 0.02, 0.95, 1.0] {
                let len = (SIZE.x * SIZE.y) as usize;
                let picture = Picture {
                    size: SIZE,
                    samples: 1,
                    depths: vec![depth; len],
                };
                let case = Case::new(clip, false, picture, spheres.clone());
                for sphere in spheres.iter().filter(|sphere| sphere.is_finite()) {
                    let projection = case.projection();
                    let found = occlusion_of(&case.texels, &case.shape, &projection, *sphere);
                    hidden += u32::from(found == HIDDEN);
                    let error = case.error(*sphere, found, DVec2::ZERO);
                    assert_eq!(error, None, "{sphere} at the depth {depth}, unit {unit}");
                }
            }
            assert!(hidden > 1, "only {hidden} are hidden, unit {unit}");
        }
    }
}

/// Mistakes of the host show as spheres that are hidden but may be seen.
#[test]
fn a_broken_projection_or_shape_is_seen() {
    type Break = fn(&Case) -> (Projection, DepthPyramid);
    let cases: [(&str, u32, Break); 8] = [
        ("no slack", 1, |case| {
            let mut projection = case.projection();
            projection.samples = Vec4::splat(0.5);
            (projection, case.shape)
        }),
        ("one sample for four", 4, |case| {
            let projection = Projection::new(case.clip, SIZE, 1, case.is_jittered);
            (projection, case.shape)
        }),
        ("no jitter", 1, |case| {
            (Projection::new(case.clip, SIZE, 1, false), case.shape)
        }),
        ("y is up", 1, |case| {
            let mut projection = case.projection();
            projection.y = projection.w * SIZE.y as f32 - projection.y;
            projection.gram_y = Projection::new(case.clip, SIZE, 1, false).gram_y;
            (projection, case.shape)
        }),
        ("no slack along the diagonals", 1, |case| {
            let mut projection = case.projection();
            projection.diagonal_samples = Vec4::new(1.0, 1.0, 0.0, 0.0);
            (projection, case.shape)
        }),
        ("diagonals without the radius", 1, |case| {
            let mut projection = case.projection();
            let (sum, w) = (projection.x + projection.y, projection.w);
            projection.gram_sum.z = sum.length_squared().max(w.length_squared()) * 1e6;
            (projection, case.shape)
        }),
        ("the diagonals of one sample for four", 4, |case| {
            let mut projection = case.projection();
            let one = Projection::new(case.clip, SIZE, 1, case.is_jittered);
            projection.diagonal_samples = one.diagonal_samples;
            (projection, case.shape)
        }),
        ("depth without the radius", 1, |case| {
            let mut projection = case.projection();
            let (z, w) = (projection.z.xyz(), projection.w.xyz());
            projection.gram_z.z = (z - w).length_squared().max(w.length_squared()) * 1e6;
            (projection, case.shape)
        }),
    ];
    for (what, samples, broken) in cases {
        let (errors, _) = wrong_answers(702, (Case::any, samples), 120, |case, sphere| {
            let (projection, shape) = broken(case);
            occlusion_of(&case.texels, &shape, &projection, sphere)
        });
        assert!(!errors.is_empty(), "{what} was not seen");
    }
    // Sizes that are rounded down: the last column and row of a level are missing, and the texel
    // before answers for them.
    let (errors, _) = wrong_answers(703, (Case::random, 1), 600, |case, sphere| {
        let mut shape = case.shape;
        let mut texels = Vec::new();
        for (number, level) in case.shape.levels().iter().enumerate() {
            let down = |side: u32| (side >> number).max(1);
            let [width, height] = [SIZE.x, SIZE.y].map(down);
            let first = texels.len() as u32;
            for y in 0..height {
                let row = (level.first + y * level.width) as usize;
                texels.extend_from_slice(&case.texels[row..row + width as usize]);
            }
            let pad = 0;
            shape.levels[number] = PyramidLevel {
                first,
                width,
                height,
                pad,
            };
        }
        texels.extend([1.0; 64]);
        occlusion_of(&texels, &shape, &case.projection(), sphere)
    });
    assert!(
        !errors.is_empty(),
        "sizes that are rounded down were not seen"
    );
}
