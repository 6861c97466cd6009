//! The span of a sphere holds all of its points and is tight, in every kind of view.

use super::views::{KINDS, Kind, directions, project, random_point, random_view};
use crate::common::rng;
use bevy_gpu_culling::cull::{
    layout::Projection,
    reference::{Span, footprint, is_between_diagonals, span},
};
use glam::dcamera::rh::proj::directx;
use glam::{DMat4, DVec2, DVec3, DVec4, UVec2, Vec2, Vec4};
use rand::RngExt;

const SIZE: UVec2 = UVec2::new(1920, 1080);

/// Least and greatest of everything that is drawn of a sphere.
#[derive(Debug)]
struct Drawn {
    /// Pixels and depth.
    min: DVec3,
    greatest: DVec3,
    /// x + y and x - y, in pixels.
    min_diagonals: DVec2,
    greatest_diagonals: DVec2,
}

fn drawn(clip: &DMat4, center: DVec3, radius: f64, points: u32) -> Drawn {
    let mut drawn = Drawn {
        min: DVec3::INFINITY,
        greatest: DVec3::NEG_INFINITY,
        min_diagonals: DVec2::INFINITY,
        greatest_diagonals: DVec2::NEG_INFINITY,
    };
    for direction in directions(points) {
        let (at, w) = project(clip, SIZE, center + direction * radius);
        assert!(w > 0.0, "a point of a bounded sphere is behind the eye");
        let diagonals = DVec2::new(at.x + at.y, at.x - at.y);
        drawn.min = drawn.min.min(at);
        drawn.greatest = drawn.greatest.max(at);
        drawn.min_diagonals = drawn.min_diagonals.min(diagonals);
        drawn.greatest_diagonals = drawn.greatest_diagonals.max(diagonals);
    }
    drawn
}

/// Least and greatest x + y and x - y of a span.
fn diagonals(bounds: &Span) -> [DVec2; 2] {
    [0, 1].map(|end| Vec2::new(bounds.sum[end], bounds.difference[end]).as_dvec2())
}

fn sphere_of(center: DVec3, radius: f64) -> (Vec4, DVec3, f64) {
    let sphere = center.extend(radius).as_vec4();
    (sphere, sphere.truncate().as_dvec3(), f64::from(sphere.w))
}

/// How far a sphere goes towards the eye's plane: 1 touches it.
fn flatness(clip: &DMat4, center: DVec3, radius: f64) -> f64 {
    let w = clip.row(3);
    radius * w.truncate().length() / w.dot(center.extend(1.0))
}

fn assert_holds(bounds: &Span, drawn: &Drawn, what: &str) {
    let (min, greatest) = (drawn.min, drawn.greatest);
    let [low, high] = diagonals(bounds);
    let is_inside =
        low.cmple(drawn.min_diagonals).all() && high.cmpge(drawn.greatest_diagonals).all();
    assert!(is_inside, "{what}: {bounds:?} does not contain {drawn:?}");
    let is_inside = bounds.low.as_dvec2().cmple(min.truncate()).all()
        && bounds.high.as_dvec2().cmpge(greatest.truncate()).all()
        && f64::from(bounds.nearest) >= greatest.z;
    assert!(
        is_inside,
        "{what}: {bounds:?} does not contain {min} to {greatest}"
    );
}

#[test]
fn every_point_of_a_sphere_is_in_its_span() {
    let mut rng = rng(501);
    for kind in KINDS {
        let mut bounded = 0;
        for _ in 0..400 {
            let (clip, _) = random_view(&mut rng, kind, SIZE);
            let projection = Projection::new(clip, SIZE, 1, false);
            for _ in 0..5 {
                let depth = 10f64.powf(rng.random_range(-1.0..3.0));
                let center = random_point(&mut rng, &clip, depth);
                let radius = depth * 10f64.powf(rng.random_range(-4.0..0.5));
                let (sphere, center, radius) = sphere_of(center, radius);
                let found = span(&projection, sphere);
                let flat = flatness(&clip, center, radius);
                if found.is_bounded {
                    let drawn = drawn(&clip, center, radius, 200);
                    assert_holds(&found, &drawn, &format!("{kind:?} {sphere}"));
                    bounded += 1;
                } else {
                    let is_near = !(0.0..0.99).contains(&flat);
                    assert!(is_near, "{kind:?}: {sphere} is unbounded, {flat}");
                }
            }
        }
        assert!(bounded > 500, "{kind:?}: only {bounded}");
    }
}

#[test]
fn a_span_is_as_narrow_as_the_sphere() {
    let mut rng = rng(502);
    for kind in KINDS {
        let (mut compared, mut with_diagonals) = (0, 0);
        for _ in 0..60 {
            let (clip, _) = random_view(&mut rng, kind, SIZE);
            let projection = Projection::new(clip, SIZE, 1, false);
            let depth = rng.random_range(5.0..100.0);
            let center = random_point(&mut rng, &clip, depth);
            let (sphere, center, radius) = sphere_of(center, depth * rng.random_range(0.02..0.3));
            let found = span(&projection, sphere);
            if !found.is_bounded || flatness(&clip, center, radius) > 0.7 {
                continue;
            }
            let drawn = drawn(&clip, center, radius, 10_000);
            let (min, greatest) = (drawn.min, drawn.greatest);
            let [first, last] = diagonals(&found);
            let slack = 1e-3 * (drawn.greatest_diagonals - drawn.min_diagonals);
            let is_tight = projection.has_diagonals == 0
                || (drawn.min_diagonals - slack).cmple(first).all()
                    && (drawn.greatest_diagonals + slack).cmpge(last).all();
            assert!(is_tight, "{kind:?}: {found:?} is wider than {drawn:?}");
            with_diagonals += projection.has_diagonals;
            let slack = 1e-3 * (greatest - min) + DVec3::new(0.0, 0.0, 1e-6);
            let (low, high) = (found.low.as_dvec2(), found.high.as_dvec2());
            let is_tight = (min - slack).truncate().cmple(low).all()
                && (greatest + slack).truncate().cmpge(high).all()
                && f64::from(found.nearest) <= greatest.z.max(0.0) + slack.z;
            assert!(
                is_tight,
                "{kind:?}: {found:?} is wider than {min} to {greatest}"
            );
            compared += 1;
        }
        assert!(compared > 20, "{kind:?}: only {compared}");
        assert!(with_diagonals > 5, "{kind:?}: only {with_diagonals}");
    }
}

#[test]
fn known_spans() {
    let close = |a: f32, b: f32| (a - b).abs() <= 2e-4 * b.abs().max(1.0);
    // 100 pixels per unit, and depth 1 at z = 0, 0 at z = -10.
    let side = DVec4::new(-9.6, 9.6, -5.4, 5.4);
    let clip = directx::orthographic(side.x, side.y, side.z, side.w, 10.0, 0.0);
    let projection = Projection::new(clip, SIZE, 1, false);
    let found = span(&projection, Vec4::new(-6.4, 0.0, -4.0, 0.5));
    assert!(
        close(found.low.x, 270.0) && close(found.high.x, 370.0),
        "{found:?}"
    );
    assert!(
        close(found.low.y, 490.0) && close(found.high.y, 590.0),
        "{found:?}"
    );
    assert!(close(found.nearest, 0.65), "{found:?}");
    // The center is at 320 + 540 and 320 - 540, and a diagonal pixel is 1 / sqrt(2) wide.
    let diagonal = 50.0 * core::f32::consts::SQRT_2;
    assert!(
        close(found.sum.x, 860.0 - diagonal) && close(found.sum.y, 860.0 + diagonal),
        "{found:?}"
    );
    assert!(
        close(found.difference.x, -220.0 - diagonal)
            && close(found.difference.y, -220.0 + diagonal),
        "{found:?}"
    );
    // y is down.
    let upper = span(&projection, Vec4::new(0.0, 4.0, -4.0, 0.5));
    assert!(close(upper.low.y, 90.0), "{upper:?}");
    // niagara's depth of a sphere: near / (distance - radius).
    let clip = directx::perspective_infinite_reverse(1.0, 16.0 / 9.0, 0.1);
    let projection = Projection::new(clip, SIZE, 1, false);
    let found = span(&projection, Vec4::new(0.0, 0.0, -10.0, 2.0));
    assert!((found.nearest - 0.1 / 8.0).abs() < 1e-6, "{found:?}");
}

/// A sphere that touches the eye's plane, is around the eye, behind it, or no sphere at all.
#[test]
fn what_has_no_span_is_unbounded() {
    let clip = directx::perspective_infinite_reverse(1.0, 1.0, 0.1);
    let projection = Projection::new(clip, SIZE, 1, false);
    let is_bounded = |x: f32, z: f32, r: f32| span(&projection, Vec4::new(x, 0.0, z, r)).is_bounded;
    assert!(is_bounded(0.0, -1.0, 0.9));
    for (x, z, r) in [
        (0.0, 0.0, 1.0),
        (0.0, 0.0, 0.0),
        (0.0, -1.0, 1.0),
        (0.0, -1.0, 1.0 + 1e-7),
        (0.0, -1.0, 2.0),
        (5.0, -1.0, 1.0),
        (0.0, 1.0, 0.5),
        (0.0, 1.0, 2.0),
        (0.0, -1.0, f32::NAN),
        (0.0, -1.0, f32::INFINITY),
        (0.0, -1.0, -1.0),
        (0.0, -1.0, f32::MIN),
        (f32::NAN, -1.0, 0.1),
        (f32::INFINITY, -1.0, 0.1),
        (0.0, f32::NEG_INFINITY, 0.1),
        (0.0, f32::NAN, 0.1),
        (f32::MAX, -1.0, 0.1),
        (0.0, -1.0, f32::MAX),
    ] {
        assert!(!is_bounded(x, z, r), "{x} {z} {r}");
    }
    let size = UVec2::new(64, 64);
    let nan = DMat4::from_cols_array(&[f64::NAN; 16]);
    for (clip, size) in [
        (nan, size),
        (DMat4::ZERO, size),
        (clip * f64::INFINITY, size),
        (clip, UVec2::ZERO),
        (clip, UVec2::new(64, 0)),
        (DMat4::from_scale(DVec3::new(1e20, 1.0, 1.0)) * clip, size),
    ] {
        assert_eq!(Projection::new(clip, size, 1, false), Projection::default());
    }
    let found = span(&Projection::default(), Vec4::new(0.0, 0.0, -1.0, 0.1));
    assert!(!found.is_bounded);
}

/// Sets in tiny and in huge units have the spans of the same set in ordinary units.
#[test]
fn spans_do_not_depend_on_the_unit() {
    let mut rng = rng(503);
    for kind in [Kind::Infinite, Kind::Orthographic, Kind::Oblique] {
        for exponent in -100..=100 {
            let scale = f64::from(exponent).exp2();
            let (clip, _) = random_view(&mut rng, kind, SIZE);
            let center = random_point(&mut rng, &clip, 20.0);
            let (sphere, ..) = sphere_of(center, 1.0);
            let expected = span(&Projection::new(clip, SIZE, 1, false), sphere);
            let larger = clip * DMat4::from_scale(DVec3::splat(1.0 / scale));
            let found = span(
                &Projection::new(larger, SIZE, 1, false),
                sphere * scale as f32,
            );
            assert_eq!(found, expected, "{kind:?} 2^{exponent}");
        }
    }
}

/// A projection of a whole matrix times a number is the same projection.
#[test]
fn a_projection_is_homogeneous() {
    let mut rng = rng(504);
    let (clip, _) = random_view(&mut rng, Kind::Infinite, SIZE);
    let sphere = random_point(&mut rng, &clip, 20.0).extend(1.0).as_vec4();
    let expected = span(&Projection::new(clip, SIZE, 1, false), sphere);
    for scale in [1e-20, 0.25, 3.0, 1e20] {
        let found = span(&Projection::new(clip * scale, SIZE, 1, false), sphere);
        let apart = (found.low - expected.low)
            .abs()
            .max((found.high - expected.high).abs());
        assert!(
            apart.max_element() < 1e-2 && found.is_bounded,
            "{found:?} {expected:?}"
        );
    }
}

#[test]
fn a_widened_projection_widens_spheres() {
    let mut rng = rng(505);
    let (clip, _) = random_view(&mut rng, Kind::Infinite, SIZE);
    let projection = Projection::new(clip, SIZE, 1, false);
    let point = random_point(&mut rng, &clip, 20.0);
    let wide = span(&projection.widened(0.5), point.extend(0.5).as_vec4());
    assert_holds(&wide, &drawn(&clip, point, 1.0, 200), "widened");
}

/// The samples of a pixel by brute force: a pixel belongs to the footprint of a span if it is
/// between the borders, with a little slack, and not if it is farther than the slack.
#[test]
fn a_footprint_has_the_pixels_whose_samples_are_reached() {
    let size = UVec2::new(100, 60);
    let clip = directx::perspective_infinite_reverse(1.0, 1.0, 0.1);
    // The places of samples along x: Vulkan's standard locations, in 16ths.
    let places: [(u32, &[u32]); 5] = [
        (1, &[8]),
        (2, &[4, 12]),
        (4, &[2, 6, 10, 14]),
        (8, &[1, 3, 5, 7, 9, 11, 13, 15]),
        (16, &[0, 16]),
    ];
    let mut rng = rng(506);
    for (samples, places) in places {
        for is_jittered in [false, true] {
            let slack = 1.0 / 16.0 + 100.0 / 1_048_576.0 + f64::from(u8::from(is_jittered));
            let projection = Projection::new(clip, size, samples, is_jittered);
            for _ in 0..2000 {
                let low = rng.random_range(-3.0..103.0f32);
                let high = low + 10f32.powf(rng.random_range(-2.0..2.0));
                let bounds = Span {
                    low: Vec2::new(low, 10.0),
                    high: Vec2::new(high, 20.0),
                    nearest: 0.5,
                    is_bounded: true,
                    ..Span::UNKNOWN
                };
                let (low, high) = (f64::from(low), f64::from(high));
                let reached = |slack: f64| {
                    let is_reached = |x: &u32| {
                        places.iter().any(|place| {
                            let at = f64::from(*x) + f64::from(*place) / 16.0;
                            at >= low - slack && at <= high + slack
                        })
                    };
                    let all: Vec<u32> = (0..size.x).filter(is_reached).collect();
                    all
                };
                let place = footprint(&projection, size.x, size.y, &bounds);
                let must = reached(slack - 1e-5);
                let first = place.first.x << place.level;
                let end = (place.last.x + 1) << place.level;
                for x in &must {
                    assert!(place.covers && (first..end).contains(x), "{x}: {place:?}");
                }
                // Between two samples, the footprint is wider than what is reached.
                let widest = reached(slack + 1.0);
                assert!(
                    !place.covers || !widest.is_empty(),
                    "{low} {high} {place:?}"
                );
                if samples == 1 {
                    let may = reached(slack + 1e-5);
                    assert_eq!(
                        place.covers,
                        !must.is_empty() || !may.is_empty(),
                        "{low} {high}"
                    );
                }
            }
        }
    }
}

/// A footprint has at most four columns and four rows, at the finest level at which that is so.
#[test]
fn a_footprint_is_at_the_finest_level_that_does() {
    let projection = Projection {
        samples: Vec4::new(0.5, 0.5, 0.5, 0.5),
        ..Projection::default()
    };
    for first in 0..70u32 {
        for last in first..70u32 {
            let bounds = Span {
                low: Vec2::new(first as f32 + 0.5, 3.5),
                high: Vec2::new(last as f32 + 0.5, 4.5),
                nearest: 0.5,
                is_bounded: true,
                ..Span::UNKNOWN
            };
            let place = footprint(&projection, 70, 70, &bounds);
            let fits = |level: u32| {
                (last >> level) - (first >> level) <= 3 && (4u32 >> level) - (3u32 >> level) <= 3
            };
            let finest = (0..32).find(|level| fits(*level)).unwrap();
            assert_eq!(place.level, finest, "{first}..={last}");
            assert_eq!(place.first, UVec2::new(first, 3) >> finest);
            assert_eq!(place.last, UVec2::new(last, 4) >> finest);
        }
    }
}

/// Of a sphere three pixels wide, the corners of four by four pixels are beyond its diagonals, and
/// all pixels whose sample it reaches are between them.
#[test]
fn corners_of_a_footprint_are_beyond_the_diagonals() {
    let size = UVec2::new(8, 8);
    let clip = directx::orthographic(0.0, 8.0, 8.0, 0.0, 10.0, 0.0);
    for samples in [1, 4] {
        let projection = Projection::new(clip, size, samples, false);
        let bounds = span(&projection, Vec4::new(4.0, 4.0, -5.0, 1.5));
        let place = footprint(&projection, 8, 8, &bounds);
        let reached =
            |x, y| is_between_diagonals(&projection, &bounds, UVec2::new(x, y), place.level);
        let (first, last) = (place.first, place.last);
        for y in first.y..=last.y {
            for x in first.x..=last.x {
                let is_corner = [first.x, last.x].contains(&x) && [first.y, last.y].contains(&y);
                let is_beyond = is_corner && last.x - first.x == 3;
                assert_eq!(reached(x, y), !is_beyond, "{samples}: {x} {y} of {place:?}");
            }
        }
    }
    // Two axes that are nearly the same: their difference says nothing.
    let flat = clip
        * DMat4::from_cols_array(&[
            1.0, 1.0, 0.0, 0.0, 0.01, -0.01, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0,
        ]);
    assert_eq!(Projection::new(flat, size, 1, false).has_diagonals, 0);
}

#[test]
fn a_span_beside_the_viewport_covers_nothing() {
    let clip = directx::perspective_infinite_reverse(1.0, 1.0, 0.1);
    let projection = Projection::new(clip, UVec2::new(64, 32), 1, false);
    let place = |low: Vec2, high: Vec2| {
        let bounds = Span {
            low,
            high,
            nearest: 0.5,
            is_bounded: true,
            ..Span::UNKNOWN
        };
        footprint(&projection, 64, 32, &bounds)
    };
    for (low, high) in [
        (Vec2::new(-9.0, 5.0), Vec2::new(-1.0, 9.0)),
        (Vec2::new(64.2, 5.0), Vec2::new(80.0, 9.0)),
        (Vec2::new(5.0, -1e30), Vec2::new(9.0, -1e20)),
        (Vec2::new(5.0, 32.2), Vec2::new(9.0, 1e30)),
        (Vec2::new(5.6, 5.6), Vec2::new(6.4, 6.4)),
    ] {
        assert!(!place(low, high).covers, "{low} {high}");
    }
    let all = place(Vec2::splat(-1e30), Vec2::splat(1e30));
    assert!(all.covers);
    assert_eq!(
        (all.first, all.last, all.level),
        (UVec2::ZERO, UVec2::new(3, 1), 4)
    );
}
