//! Decoupled look-back under schedulers that let workgroups starve.
//!
//! A workgroup that looks back waits for others. WGSL promises no progress of them. So the kernel
//! waits for a limited number of looks, and then counts what is missing itself. Here it ends, with
//! the right survivors, whatever the scheduler does.

use super::{
    batch::{Pass, SIZES, frame, passes},
    machine::schedule::{Frozen, Occupancy, OneAtATime, Random, RoundRobin, Scheduler},
    scene::{Scene, Settings},
};
use crate::common::rng;
use bevy_gpu_culling::cull::{Compaction, CullingTier};

/// Some strips of one block each, of several sets.
const STRIPS: Settings = Settings {
    seed: 7,
    lengths: &[2100, 40, 1500],
    views: 2,
    near_first: false,
    few_counts: 2048,
    fine_words: 1 << 18,
    room: 100,
};

fn look_back(scene: &Scene, size: u32) -> Vec<Pass> {
    edited(scene, size, |text| text)
}

fn edited(scene: &Scene, size: u32, edit: impl Fn(String) -> String) -> Vec<Pass> {
    let on = (CullingTier::Subgroup, size);
    passes(scene, Compaction::LookBack, on, |_, text| edit(text))
}

/// A frame from empty statuses. Returns the number of turns.
fn run(
    scene: &Scene,
    passes: &[Pass],
    size: u32,
    scheduler: &mut dyn Scheduler,
) -> Result<u64, String> {
    let mut buffers = scene.buffers();
    let turns = frame(passes, size, &mut buffers, scheduler)?;
    scene.check(&buffers)?;
    Ok(turns)
}

#[test]
fn it_gives_the_twins_survivors_under_fair_schedulers() {
    for near_first in [false, true] {
        let scene = Scene::random(Settings {
            near_first,
            ..STRIPS
        });
        for size in SIZES {
            let passes = look_back(&scene, size);
            run(&scene, &passes, size, &mut RoundRobin::default()).unwrap();
            for seed in 0..8 {
                let resident = [1, 2, 3, usize::MAX][seed as usize % 4];
                let mut random = Random::new(rng(seed), resident);
                run(&scene, &passes, size, &mut random)
                    .unwrap_or_else(|error| panic!("seed {seed}, size {size}: {error}"));
            }
        }
    }
}

/// A strip belongs to the workgroup that runs first, not to the one of its number. So workgroups
/// that start in reverse order wait for nobody who has not started.
#[test]
fn it_ends_if_few_workgroups_run_at_a_time_and_start_in_reverse_order() {
    let scene = Scene::random(STRIPS);
    for size in SIZES {
        let passes = look_back(&scene, size);
        for places in 1..=5 {
            let mut occupancy = Occupancy { places, turns: 0 };
            run(&scene, &passes, size, &mut occupancy)
                .unwrap_or_else(|error| panic!("{places} places, size {size}: {error}"));
        }
    }
}

/// All workgroups have some turns. Then those run alone that wait for all others.
#[test]
fn it_ends_if_those_that_wait_run_alone() {
    for few_counts in [2048, 3] {
        let scene = Scene::random(Settings {
            few_counts,
            ..STRIPS
        });
        for size in [8, 32, 128] {
            let passes = look_back(&scene, size);
            for turns in (0..40).step_by(3).chain([60, 90, 200, 500]) {
                for highest_first in [true, false] {
                    let mut unfair = OneAtATime::new(turns, highest_first);
                    run(&scene, &passes, size, &mut unfair).unwrap_or_else(|error| {
                        panic!("{turns} turns, {highest_first}, size {size}: {error}")
                    });
                }
            }
        }
    }
}

/// More strips than a look has lanes, of which only the first ones know their prefixes.
#[test]
fn it_looks_back_over_more_strips_than_a_look_has_lanes() {
    let scene = Scene::random(Settings {
        seed: 60,
        lengths: &[1030, 1500],
        views: 19,
        ..STRIPS
    });
    assert!(scene.plan.batch.strip_count > 64);
    let from = "let lanes = min(size, 32u);";
    let broken = |text: String| {
        assert!(text.contains(from));
        text.replace(from, "let lanes = size;")
    };
    let mut is_seen = false;
    for size in [8, 32, 64, 128] {
        let (passes, broken) = (look_back(&scene, size), edited(&scene, size, broken));
        for turns in [10, 20, 40, 80] {
            for first in [0, 20] {
                let mut unfair = OneAtATime::new(turns, true);
                unfair.first = first;
                run(&scene, &passes, size, &mut unfair)
                    .unwrap_or_else(|error| panic!("{turns} turns, size {size}: {error}"));
                is_seen |= run(&scene, &broken, size, &mut unfair).is_err();
            }
        }
    }
    assert!(is_seen, "a ballot of more than 32 lanes was not missed");
}

/// Each workgroup in turn, and so each strip, stops after a turn, for good. All others end.
#[test]
fn it_ends_if_one_workgroup_stops_anywhere_and_never_runs_again() {
    let scene = Scene::random(Settings {
        lengths: &[1500, 40],
        ..STRIPS
    });
    let size = 32;
    let passes = look_back(&scene, size);
    let strips = scene.plan.batch.strip_count;
    let mut frozen = 0;
    for workgroup in 0..strips {
        // Every other turn: half of the time is enough.
        for turns in (u64::from(workgroup % 2)..).step_by(2) {
            let mut scheduler = Frozen {
                workgroup,
                turns,
                thaws: true,
                was_frozen: false,
                next: 0,
            };
            run(&scene, &passes, size, &mut scheduler)
                .unwrap_or_else(|error| panic!("workgroup {workgroup}, {turns} turns: {error}"));
            if !scheduler.was_frozen {
                break;
            }
            frozen += 1;
        }
    }
    assert!(frozen > 10 * strips, "{frozen} of {strips} strips");
}

/// Without the fallback, the same schedulers show a kernel that fails. A fair one does not.
#[test]
fn without_the_fallback_it_fails() {
    let scene = Scene::random(STRIPS);
    let waits = |text: String| {
        let from = "next_step = at - 1u;";
        assert!(text.contains(from));
        // It looks again, as plain decoupled look-back does, and never gives up.
        let text = text.replace(from, "next_step = LOOK_AGAIN;");
        let turns = "turns > 0u; turns -= 1u";
        assert!(text.contains(turns));
        text.replace(turns, "turns > 0u; turns -= 0u")
    };
    let passes = edited(&scene, 32, waits);
    run(&scene, &passes, 32, &mut RoundRobin::default()).unwrap();
    run(
        &scene,
        &passes,
        32,
        &mut Occupancy {
            places: 2,
            turns: 0,
        },
    )
    .unwrap();
    let mut frozen = Frozen {
        workgroup: 0,
        turns: 3,
        thaws: true,
        was_frozen: false,
        next: 0,
    };
    let error = run(&scene, &passes, 32, &mut frozen).unwrap_err();
    assert!(error.contains("without an end"), "{error}");
    let mut unfair = OneAtATime::new(3, true);
    let error = run(&scene, &passes, 32, &mut unfair).unwrap_err();
    assert!(error.contains("without an end"), "{error}");
}

/// Strips by the number of the workgroup, as without tickets: then a start in reverse order waits
/// for workgroups that have no place.
#[test]
fn without_tickets_a_start_in_reverse_order_needs_the_fallback() {
    let scene = Scene::random(STRIPS);
    let by_number = |text: String| {
        let from = "taken_strip = atomicAdd(&look_back.taken, 1u);";
        assert!(text.contains(from));
        let text = text.replace(from, "taken_strip = workgroup.x;");
        let from = "@builtin(num_workgroups) workgroups: vec3<u32>,";
        text.replace(
            from,
            &format!("@builtin(workgroup_id) workgroup: vec3<u32>, {from}"),
        )
    };
    let reversed = || Occupancy {
        places: 2,
        turns: 0,
    };
    // The fallback alone is enough to end.
    let passes = edited(&scene, 32, by_number);
    let counted = run(&scene, &passes, 32, &mut reversed()).unwrap();
    let taken = run(&scene, &look_back(&scene, 32), 32, &mut reversed()).unwrap();
    assert!(counted > taken, "{counted} turns, with tickets {taken}");
    let waits = |text: String| {
        let text = by_number(text).replace("next_step = at - 1u;", "next_step = LOOK_AGAIN;");
        text.replace("turns > 0u; turns -= 1u", "turns > 0u; turns -= 0u")
    };
    let passes = edited(&scene, 32, waits);
    let error = run(&scene, &passes, 32, &mut reversed()).unwrap_err();
    assert!(error.contains("without an end"), "{error}");
}

/// A frame leaves the statuses as the next frame needs them, whatever the order was.
#[test]
fn frames_follow_each_other() {
    let scene = Scene::random(STRIPS);
    for size in [4, 64] {
        let passes = look_back(&scene, size);
        let mut buffers = scene.buffers();
        for number in 0..6u64 {
            let mut random = Random::new(rng(number), 4);
            let mut unfair = OneAtATime::new(5 * number, true);
            let scheduler: &mut dyn Scheduler = match number % 2 {
                0 => &mut random,
                _ => &mut unfair,
            };
            if let Some(survivors) = buffers.get_mut(&10) {
                survivors.fill(u32::MAX);
            }
            frame(&passes, size, &mut buffers, scheduler).unwrap();
            scene.check(&buffers).unwrap();
        }
    }
}
