//! How long a ray takes to find its instance: `cargo test --test rays -- --nocapture` prints it.
//!
//! A separate program: no other test may take the CPU meanwhile.
#![cfg(feature = "study")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may panic")]

use bevy_gpu_culling::instance::{InstanceRay, InstanceSet, RayIndex};
use glam::Vec3;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::time::{Duration, Instant};

const COUNT: usize = 1_000_000;
/// Rays into sorted sets; a fiftieth of them into sets in random order, which take long.
const RAYS: usize = 2_000;
/// The target for the mean ray in a sorted set of a million.
const MAX: Duration = Duration::from_micros(200);

/// Spheres of radius 0.5 in a cube, uniform. `room` is the side of each one's share of it.
fn cube(rng: &mut ChaCha8Rng, room: f32) -> InstanceSet {
    let half = 0.5 * room * (COUNT as f32).cbrt();
    let places = (0..COUNT)
        .map(|_| Vec3::from_array(core::array::from_fn(|_| rng.random_range(-half..half))));
    InstanceSet::from_transforms(places.collect::<Vec<_>>()).unwrap()
}

/// Times of the first update, of an update after an edit, and of a mean ray; and the share of rays
/// that met something.
fn measure(set: &mut InstanceSet, rays: usize, rng: &mut ChaCha8Rng) -> ([Duration; 3], f32) {
    let mut index = RayIndex::default();
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
fn a_ray_finds_one_of_a_million_in_time() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for (name, room) in [("dense", 1.5), ("sparse", 4.0), ("very sparse", 16.0)] {
        let random = cube(&mut rng, room);
        for (order, mut set) in [("sorted", random.clone().sorted()), ("random", random)] {
            let rays = if order == "random" { RAYS / 50 } else { RAYS };
            let ([first, edit, ray], met) = measure(&mut set, rays, &mut rng);
            println!("{name}, {order}: index {first:?}, edit {edit:?}, ray {ray:?}, met {met}");
            assert!(met > 0.05);
            assert!(order == "random" || ray < MAX, "{name}: {ray:?} per ray");
        }
    }
}
