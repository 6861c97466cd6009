#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::instance::{
    InstanceTransform,
    test_sets::{random, random_set},
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const SPHERE: (Vec3, f32) = (Vec3::new(0.3, 0.0, -0.2), 0.5);

/// The nearest sphere, by looking at all.
fn brute_force(set: &InstanceSet, ray: InstanceRay, limit: f32) -> Option<(u32, f32)> {
    let all = (0..set.len()).filter_map(|at| Some((at as u32, entered(set, at, ray, SPHERE)?)));
    let before = all.filter(|(_, enter)| *enter < limit);
    before.min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)))
}

#[test]
fn rays_meet_what_looking_at_all_finds() {
    let mut rng = ChaCha8Rng::seed_from_u64(20);
    let mut hits = 0;
    for len in [0, 1, 31, 32, 33, 1024, 1025, 5000, 40_000] {
        let scaled = len % 2 == 0;
        let mut set = random_set(&mut rng, len, scaled);
        if len > 1000 {
            set = set.sorted();
        }
        let mut index = SpatialIndex::default();
        for step in 0..40 {
            index.update(&set);
            let mut ray = InstanceRay {
                origin: random(&mut rng, 30.0),
                direction: random(&mut rng, 1.0),
            };
            if step % 4 == 0 {
                // Along an axis, in the plane of an instance.
                ray.direction = [Vec3::X, Vec3::NEG_Y, Vec3::Z * 0.1][step / 4 % 3];
                ray.origin = set.get(0).map_or(Vec3::ZERO, |first| first.translation);
                ray.origin -= ray.direction * 50.0;
            }
            let limit = if step % 3 == 0 { 25.0 } else { f32::INFINITY };
            let mut last = 0.0;
            let found = index.nearest(&set, ray, SPHERE, limit, |at, enter| {
                assert!(enter >= last, "nearest first");
                last = enter;
                assert_eq!(entered(&set, at as usize, ray, SPHERE), Some(enter));
                Some(enter)
            });
            assert_eq!(
                found,
                brute_force(&set, ray, limit),
                "{len} instances, {ray:?}"
            );
            assert!(found.is_none() || SpatialIndex::enters(&set, ray, SPHERE, limit));
            let away = InstanceRay {
                origin: Vec3::X * 100.0,
                direction: Vec3::X,
            };
            assert!(!SpatialIndex::enters(&set, away, SPHERE, f32::INFINITY));
            hits += usize::from(found.is_some());
            edit(&mut set, &mut rng, step);
        }
    }
    assert!(hits > 60, "{hits}");
}

fn edit(set: &mut InstanceSet, rng: &mut ChaCha8Rng, step: usize) {
    let len = set.len() as u32;
    if len == 0 {
        return;
    }
    let at = rng.random_range(0..len);
    match step % 8 {
        0 => set.set(at, random(rng, 40.0)).unwrap(),
        1 => drop(set.push(random(rng, 40.0)).unwrap()),
        2 => drop(set.swap_remove(at).unwrap()),
        3 => set.hide(at).unwrap(),
        4 => set
            .hidden()
            .collect::<Vec<_>>()
            .iter()
            .for_each(|at| set.show(*at).unwrap()),
        5 => set.truncate(set.len() - set.len() / 20),
        6 => set
            .extend((0..set.len() / 10).map(|_| random(rng, 30.0)))
            .unwrap(),
        _ => set
            .set(
                at,
                InstanceTransform::from(random(rng, 20.0)).with_scale(4.0),
            )
            .unwrap(),
    }
}

#[test]
fn what_misses_the_mesh_does_not_end_the_search() {
    let set = InstanceSet::from_transforms((0..100).map(|i| Vec3::Z * i as f32 * 3.0)).unwrap();
    let mut index = SpatialIndex::default();
    index.update(&set);
    let ray = InstanceRay {
        origin: Vec3::NEG_Z,
        direction: Vec3::Z * 2.0,
    };
    let mut asked = 0;
    // Only every tenth instance has something in the way of the ray.
    let found = index.nearest(&set, ray, (Vec3::ZERO, 1.0), f32::INFINITY, |at, enter| {
        asked += 1;
        (at % 10 == 9).then_some(enter + 0.5)
    });
    let (at, distance) = found.unwrap();
    assert_eq!((at, asked), (9, 10));
    assert!(
        (distance - 14.0).abs() < 0.01,
        "{distance}: 27 units, 2 per unit of distance"
    );
}

#[test]
fn an_index_of_a_set_that_is_not_here_is_empty() {
    let line = |len| InstanceSet::from_transforms((0..len).map(|i| Vec3::X * i as f32)).unwrap();
    let ray = InstanceRay {
        origin: Vec3::Z * 9.0,
        direction: Vec3::NEG_Z,
    };
    let meets = |index: &SpatialIndex, set: &InstanceSet| {
        let hit = index.nearest(set, ray, SPHERE, f32::INFINITY, |_, enter| Some(enter));
        hit.map(|(at, _)| at)
    };
    type Edit = fn(&mut InstanceSet);
    let edits: [Edit; 4] = [
        |set| set.set(0, Vec3::X).unwrap(),
        |set| set.hide(99).unwrap(),
        |set| assert_eq!(set.swap_remove(5), Ok(Some(1999))),
        |_| (),
    ];
    for edit in edits {
        for len in [100, 40, 0] {
            let (mut set, mut index) = (line(2000), SpatialIndex::default());
            index.update(&set);
            edit(&mut set);
            drop(set.release());
            set.truncate(len);
            index.update(&set);
            assert_eq!(meets(&index, &set), None);
            assert!(index.levels.is_empty(), "it keeps no memory");
            set.clear();
            set.extend([Vec3::ZERO, Vec3::X]).unwrap();
            index.update(&set);
            assert_eq!(meets(&index, &set), Some(0), "filled again");
        }
    }
    let around = crate::instance::GpuWritten::within(Vec3::ZERO, Vec3::ONE);
    let written = InstanceSet::gpu_written(100, around).unwrap();
    let mut index = SpatialIndex::default();
    index.update(&line(100));
    index.update(&written);
    assert_eq!(meets(&index, &written), None);
}
