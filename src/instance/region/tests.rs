#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::instance::test_sets::{random, random_set};
use glam::camera::rh::{proj::directx::perspective_infinite_reverse, view::look_at_mat4};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn random_region(rng: &mut ChaCha8Rng) -> InstanceRegion {
    let center = random(rng, 22.0);
    let size = rng.random_range(0.0f32..1.0).powi(3) * 25.0;
    match rng.random_range(0..4) {
        0 => InstanceRegion::Box {
            min: center - Vec3::new(size, 0.3 * size, size),
            max: center + Vec3::new(0.5 * size, size, size),
        },
        1 => InstanceRegion::Sphere {
            center,
            radius: size,
        },
        2 => InstanceRegion::Planes(
            (0..4)
                .map(|_| {
                    let normal = random(rng, 3.0);
                    normal.extend(size - normal.dot(center))
                })
                .collect(),
        ),
        _ => {
            let lens = perspective_infinite_reverse(1.0, 1.5, 0.1);
            let view = look_at_mat4(center, random(rng, 10.0), Vec3::Y);
            let corner = Vec2::new(rng.random_range(-1.0..0.9), rng.random_range(-1.0..0.9));
            InstanceRegion::seen(lens * view, corner, corner + 0.4)
        }
    }
}

/// The instances whose spheres touch the region, by looking at all.
fn brute_force(set: &InstanceSet, region: &InstanceRegion, sphere: (Vec3, f32)) -> Vec<u32> {
    let region = region.normalized();
    let touches = |at: &u32| {
        let Some(instance) = set.get(*at) else {
            return false;
        };
        let packed = &set.packed()[*at as usize];
        let center = instance.translation + packed.rotation() * (sphere.0 * instance.scale);
        !set.is_hidden(*at) && region.touches(center, sphere.1 * instance.scale.max_element())
    };
    (0..set.len() as u32).filter(touches).collect()
}

fn found(
    index: &SpatialIndex,
    set: &InstanceSet,
    region: &InstanceRegion,
    sphere: (Vec3, f32),
) -> Vec<u32> {
    let mut all = Vec::new();
    index.in_region(set, region, sphere, |at| all.push(at));
    all
}

#[test]
fn regions_have_what_looking_at_all_finds() {
    let mut rng = ChaCha8Rng::seed_from_u64(48);
    let mut some = 0;
    for len in [0, 1, 31, 32, 33, 1024, 1025, 5000, 40_000] {
        let mut set = random_set(&mut rng, len, len % 2 == 0);
        if len > 1000 {
            set = set.sorted();
        }
        let mut index = SpatialIndex::default();
        for step in 0..60u32 {
            index.update(&set);
            let region = random_region(&mut rng);
            for sphere in [(Vec3::ZERO, 0.0), (Vec3::new(0.3, 0.9, -0.2), 0.5)] {
                let expected = brute_force(&set, &region, sphere);
                let ours = found(&index, &set, &region, sphere);
                assert!(ours.is_empty() || SpatialIndex::reaches(&set, &region, sphere));
                // What lies on the border by a bit may be on either side: rounding differs for what
                // is not looked at one by one.
                let differ = ours.len().abs_diff(expected.len());
                assert!(
                    differ == 0 && ours == expected,
                    "{len}, {region:?}, {sphere:?}: {differ}"
                );
                some += usize::from(!ours.is_empty());
            }
            if len > 0 {
                let at = step * 7 % set.len() as u32;
                match step % 4 {
                    0 => set.set(at, random(&mut rng, 30.0)).unwrap(),
                    1 => set.hide(at).unwrap(),
                    2 => drop(set.push(random(&mut rng, 30.0)).unwrap()),
                    _ => drop(set.swap_remove(at).unwrap()),
                }
            }
        }
    }
    assert!(some > 300, "{some} of 1080 regions have instances");
    let everything = InstanceRegion::Planes(Vec::new());
    let set = random_set(&mut rng, 3000, true);
    let mut index = SpatialIndex::default();
    index.update(&set);
    assert_eq!(
        found(&index, &set, &everything, (Vec3::ZERO, 1.0)).len(),
        3000
    );
    let away = InstanceRegion::Box {
        min: Vec3::splat(100.0),
        max: Vec3::splat(101.0),
    };
    assert!(!SpatialIndex::reaches(&set, &away, (Vec3::ZERO, 1.0)));
    let nothing = InstanceRegion::Box {
        min: Vec3::splat(1.0),
        max: Vec3::splat(-1.0),
    };
    let less = InstanceRegion::Sphere {
        center: Vec3::ZERO,
        radius: -9.0,
    };
    assert_eq!(found(&index, &set, &less, (Vec3::ZERO, 1.0)), [0; 0]);
    assert_eq!(found(&index, &set, &nothing, (Vec3::ZERO, 1.0)), [0; 0]);
}

#[test]
fn a_rectangle_of_the_picture_has_what_projects_into_it() {
    let lens = perspective_infinite_reverse(0.9, 1.6, 0.1);
    let view = look_at_mat4(Vec3::new(3.0, 2.0, 30.0), Vec3::ZERO, Vec3::Y);
    let clip_from_world = lens * view;
    let (min, max) = (Vec2::new(-0.5, -0.2), Vec2::new(0.1, 0.7));
    let region = InstanceRegion::seen(clip_from_world, min, max);
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let set = random_set(&mut rng, 2000, false);
    let mut index = SpatialIndex::default();
    index.update(&set);
    let expected = (0..2000).filter(|at| {
        let clip = clip_from_world * set.get(*at).unwrap().translation.extend(1.0);
        let place = Vec2::new(clip.x, clip.y) / clip.w;
        clip.w > 0.0 && place.cmpge(min).all() && place.cmple(max).all()
    });
    let expected: Vec<u32> = expected.collect();
    assert!((50..1000).contains(&expected.len()), "{}", expected.len());
    assert_eq!(found(&index, &set, &region, (Vec3::ZERO, 0.0)), expected);
}

#[test]
fn sets_that_are_not_here_have_nothing() {
    let around = crate::instance::GpuWritten::within(Vec3::ZERO, Vec3::ONE);
    let set = InstanceSet::gpu_written(100, around).unwrap();
    let mut index = SpatialIndex::default();
    index.update(&set);
    let region = InstanceRegion::Planes(Vec::new());
    assert_eq!(found(&index, &set, &region, (Vec3::ZERO, 1.0)), [0; 0]);
}
