//! How long a ray takes to find its instance, and a box its instances:
//! `cargo test --test rays -- --nocapture` prints it.
//!
//! A separate program: no other test may take the CPU meanwhile.
#![cfg(feature = "study")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may panic")]

use bevy_gpu_culling::instance::{InstanceRay, InstanceRegion, InstanceSet, SpatialIndex};
use glam::Vec3;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::time::{Duration, Instant};

const COUNT: usize = 1_000_000;
/// Rays into sorted sets; a fiftieth of them into sets in random order, which take long.
const RAYS: usize = 2_000;
/// The target for the mean ray in a sorted set of a million.
const MAX: Duration = Duration::from_micros(200);

/// Instances among which boxes look, boxes, and a bound for a mean one. Alone, it
/// takes 9 us.
const MANY: usize = 10_000_000;
const BOXES: usize = 10_000;
const MAX_BOX: Duration = Duration::from_micros(40);

/// Spheres of radius 0.5 in a cube, uniform. `room` is the side of each one's share of it.
fn cube(rng: &mut ChaCha8Rng, count: usize, room: f32) -> InstanceSet {
    let half = 0.5 * room * (count as f32).cbrt();
    let places = (0..count)
        .map(|_| Vec3::from_array(core::array::from_fn(|_| rng.random_range(-half..half))));
    InstanceSet::from_transforms(places.collect::<Vec<_>>()).unwrap()
}

/// Times of the first update, of an update after an edit, and of a mean ray; and the share of rays
/// that met something.
fn measure(set: &mut InstanceSet, rays: usize, rng: &mut ChaCha8Rng) -> ([Duration; 3], f32) {
    let mut index = SpatialIndex::default();
    let begin = Instant::now();
    index.update(set);
    let first = begin.elapsed();
    set.set(COUNT as u32 / 2, Vec3::ZERO).unwrap();
    let begin = Instant::now();
    index.update(set);
    let edit = begin.elapsed();
    let bounds = set.bounds().unwrap();
    let size = bounds.half_extents().x;
    let mut random =
        |size: f32| Vec3::from_array(core::array::from_fn(|_| rng.random_range(-size..size)));
    // From around the cube, and from within.
    let rays = (0..rays).map(|ray| {
        let origin = random(if ray % 2 == 0 { 2.0 * size } else { size });
        let direction = (random(size) - origin).normalize();
        InstanceRay { origin, direction }
    });
    let rays: Vec<_> = rays.collect();
    let begin = Instant::now();
    let hits = rays.iter().filter(|ray| {
        let sphere = (Vec3::ZERO, 0.5);
        let hit = index.nearest(set, **ray, sphere, f32::INFINITY, |_, enter| Some(enter));
        hit.is_some()
    });
    let met = hits.count() as f32 / rays.len() as f32;
    ([first, edit, begin.elapsed() / rays.len() as u32], met)
}

#[test]
fn rays_and_boxes_find_instances_in_time() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for (name, room) in [("dense", 1.5), ("sparse", 4.0), ("very sparse", 16.0)] {
        let random = cube(&mut rng, COUNT, room);
        for (order, mut set) in [("sorted", random.clone().sorted()), ("random", random)] {
            let rays = if order == "random" { RAYS / 50 } else { RAYS };
            let ([first, edit, ray], met) = measure(&mut set, rays, &mut rng);
            println!("{name}, {order}: index {first:?}, edit {edit:?}, ray {ray:?}, met {met}");
            assert!(met > 0.05);
            assert!(order == "random" || ray < MAX, "{name}: {ray:?} per ray");
        }
    }
    let set = cube(&mut rng, MANY, 1.5).sorted();
    let mut index = SpatialIndex::default();
    index.update(&set);
    for side in [1.0, 3.0, 10.0] {
        let (each, found) = measure_boxes((&set, &index), &mut rng, side);
        println!(
            "boxes of side {side} among {MANY}: {each:?} each, {found} instances found in one"
        );
        assert!(
            side > 3.0 || each < MAX_BOX,
            "{each:?} per box of side {side}"
        );
    }
}

/// The mean time of a box, and the mean number of instances in it.
fn measure_boxes(
    (set, index): (&InstanceSet, &SpatialIndex),
    rng: &mut ChaCha8Rng,
    side: f32,
) -> (Duration, f32) {
    let half = set.bounds().unwrap().half_extents().x;
    let boxes = (0..BOXES).map(|_| {
        let min = Vec3::from_array(core::array::from_fn(|_| rng.random_range(-half..half)));
        let max = min + side;
        InstanceRegion::Box { min, max }
    });
    let boxes: Vec<_> = boxes.collect();
    let mut found = 0u64;
    let begin = Instant::now();
    for region in &boxes {
        index.in_region(set, region, (Vec3::ZERO, 0.0), |_| found += 1);
    }
    (begin.elapsed() / BOXES as u32, found as f32 / BOXES as f32)
}
