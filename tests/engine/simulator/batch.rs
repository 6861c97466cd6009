//! The kernels of the product's compactions at every subgroup size, against the CPU twins.

use super::{
    kernels,
    machine::{
        dispatch::{Buffers, Dispatch},
        lower::lower,
        program::Program,
        schedule::{OneAtATime, Random, RoundRobin, Scheduler},
    },
    scene::{Scene, Settings, words},
};
use crate::common::rng;
use bevy_gpu_culling::cull::{
    Compaction, CullingTier,
    layout::{Bound, BoundJob},
    policy::OVERRIDES,
};
use bytemuck::cast_slice;
use std::{cell::RefCell, collections::HashMap, rc::Rc};

/// The sizes that the tier `Subgroup` supports.
pub const SIZES: [u32; 6] = [4, 8, 16, 32, 64, 128];

const PRODUCTS: [Compaction; 3] = [
    Compaction::VoteScanCompact,
    Compaction::Classify,
    Compaction::LookBack,
];

thread_local! {
    /// Programs by text and entry point: most batches run the same ones.
    static PROGRAMS: RefCell<HashMap<String, Rc<Program>>> = RefCell::default();
}

fn lowered(name: &str, text: String, entry: &str) -> Rc<Program> {
    PROGRAMS.with_borrow_mut(|programs| {
        let made = || match lower(&text, entry, OVERRIDES) {
            Ok(program) => Rc::new(program),
            Err(error) => panic!("{name}: {error}"),
        };
        programs
            .entry(format!("{entry} {text}"))
            .or_insert_with(made)
            .clone()
    })
}

/// A pass, lowered.
pub struct Pass {
    pub name: &'static str,
    program: Rc<Program>,
    workgroups: (u32, u32),
}

/// The passes over a batch, if subgroups have `size` lanes. `edit` changes the WGSL of a pass.
pub fn passes(
    scene: &Scene,
    compaction: Compaction,
    (tier, size): (CullingTier, u32),
    edit: impl Fn(&str, String) -> String,
) -> Vec<Pass> {
    let runs = compaction.runs(tier, size == 32, &scene.plan);
    let passes = runs.into_iter().map(|run| {
        let text = edit(run.name, run.source);
        Pass {
            name: run.name,
            program: lowered(run.name, text, run.entry),
            workgroups: run.workgroups,
        }
    });
    passes.collect()
}

/// Runs a frame. Returns the number of turns.
pub fn frame(
    passes: &[Pass],
    size: u32,
    buffers: &mut Buffers,
    scheduler: &mut dyn Scheduler,
) -> Result<u64, String> {
    let mut turns = 0;
    for pass in passes {
        let (x, y) = pass.workgroups;
        let dispatch = Dispatch {
            workgroups: [x, y, 1],
            subgroup_size: size,
        };
        let run = pass.program.run(dispatch, buffers, scheduler);
        turns += run.map_err(|error| format!("{}: {error}", pass.name))?;
    }
    Ok(turns)
}

/// Two frames of a batch in the same buffers, as a device has them.
fn check(settings: Settings, compaction: Compaction, on: (CullingTier, u32)) -> Result<(), String> {
    let scene = Scene::random(settings);
    let passes = passes(&scene, compaction, on, |_, text| text);
    let mut buffers = scene.buffers();
    frame(&passes, on.1, &mut buffers, &mut RoundRobin::default())?;
    scene.check(&buffers)?;
    // Survivors of the first frame must not be taken for those of the second.
    if let Some(survivors) = buffers.get_mut(&10) {
        survivors.fill(u32::MAX);
    }
    let mut random = Random::new(rng(settings.seed), 3);
    frame(&passes, on.1, &mut buffers, &mut random)?;
    scene.check(&buffers)
}

/// What decides which kernels run, and how they divide the work.
fn cases() -> Vec<Settings> {
    let mut cases = Vec::new();
    for seed in 1..=2 {
        for near_first in [false, true] {
            for few_counts in [0, 3, 2048] {
                let fine_words = if seed == 2 { 0 } else { 1 << 18 };
                cases.push(Settings {
                    seed: seed + 10 * u64::from(near_first) + 100 * u64::from(few_counts),
                    near_first,
                    few_counts,
                    fine_words,
                    room: if seed == 2 { 60 } else { 100 },
                    ..Settings::default()
                });
            }
        }
    }
    // One row per set: kernels that take a block per subgroup.
    for seed in 50..53 {
        cases.push(Settings {
            seed,
            views: 1,
            few_counts: 0,
            lengths: &[3000, 1, 1024, 1023, 40],
            ..Settings::default()
        });
    }
    // More rows than kernels take at once.
    cases.push(Settings {
        seed: 60,
        views: 19,
        lengths: &[1030],
        ..Settings::default()
    });
    cases
}

fn check_all(tier: CullingTier, sizes: &[u32]) {
    let mut errors = Vec::new();
    for settings in cases() {
        for compaction in PRODUCTS {
            if tier == CullingTier::Workgroup && compaction == Compaction::LookBack {
                continue;
            }
            for size in sizes {
                if let Err(error) = check(settings, compaction, (tier, *size)) {
                    errors.push(format!("{compaction}, size {size}, {settings:?}: {error}"));
                }
            }
        }
    }
    assert!(
        errors.is_empty(),
        "{} errors: {:#?}",
        errors.len(),
        &errors[..errors.len().min(12)]
    );
}

#[test]
fn the_tier_subgroup_gives_the_twins_survivors_at_every_size() {
    check_all(CullingTier::Subgroup, &SIZES);
}

/// Of kernels without subgroup operations, each invocation runs alone, so that a barrier that is
/// missing is seen.
#[test]
fn the_tier_workgroup_gives_the_twins_survivors_whatever_runs_together() {
    check_all(CullingTier::Workgroup, &[1, 128]);
}

#[test]
fn bounds_are_those_of_the_twin() {
    for seed in 1..8 {
        let scene = Scene::random(Settings {
            seed,
            ..Settings::default()
        });
        let program = lower(&kernels::text("bound", true), "bound", OVERRIDES).unwrap();
        for size in [1, 4, 128] {
            for chunk in &scene.plan.chunks {
                let first_bound = chunk.first_bound;
                let job = BoundJob {
                    first_instance: chunk.first_instance,
                    first_bound,
                    block_count: chunk.block_count,
                    end: chunk.first_instance + chunk.instance_count,
                    scale_floats: scene.scale_floats,
                    ..BoundJob::default()
                };
                let mut buffers = scene.buffers();
                buffers.insert(0, words(&[job]));
                let range = first_bound as usize..(first_bound + chunk.block_count) as usize;
                let len = size_of::<Bound>() / 4;
                let of_chunk = range.start * len..range.end * len;
                if let Some(bounds) = buffers.get_mut(&5) {
                    bounds[of_chunk.clone()].fill(0);
                }
                let dispatch = Dispatch {
                    workgroups: [chunk.block_count, 1, 1],
                    subgroup_size: size,
                };
                program
                    .run(dispatch, &mut buffers, &mut RoundRobin::default())
                    .unwrap();
                let found: &[Bound] = cast_slice(&buffers[&5][of_chunk]);
                assert_eq!(found, &scene.bounds[range], "seed {seed}, size {size}");
            }
        }
    }
}

/// A kernel that is broken is seen, at a size that no adapter at hand has.
#[test]
fn a_broken_kernel_is_seen() {
    // Pass, size, text, replacement.
    let breaks = [
        // The third and the fourth word of a ballot are lost.
        (
            "vote",
            128,
            "lane & (max(words_each, 1u) - 1u)",
            "lane & 1u",
        ),
        (
            "vote",
            64,
            "(lane >> firstTrailingBit(max(words_each, 1u))) == k",
            "lane == k",
        ),
        ("vote", 8, "lane == (bit >> 5u)", "lane == 0u"),
        (
            "vote",
            16,
            "ballot.x << (bit & 31u)",
            "ballot.x << (bit & 15u)",
        ),
        ("scan", 128, "s < SCAN_THREADS / size", "s < 1u"),
        ("compact", 4, "s < BLOCK_THREADS / thread.size", "s < 1u"),
        ("compact", 64, "thread.index % 32u", "thread.lane"),
        (
            "vote_crossed",
            128,
            "let words_each = size >> 2u;",
            "let words_each = 8u;",
        ),
        (
            "look_back",
            128,
            "if (lane == size - 1u) {",
            "if (lane == 31u) {",
        ),
        (
            "look_back",
            64,
            "component(crossed, in_words / 32u)",
            "component(crossed, 1u)",
        ),
    ];
    for (name, size, from, to) in breaks {
        let compaction = match name {
            "vote_crossed" => Compaction::Classify,
            "look_back" => Compaction::LookBack,
            _ => Compaction::VoteScanCompact,
        };
        let seen = cases().into_iter().any(|settings| {
            let scene = Scene::random(settings);
            let on = (CullingTier::Subgroup, size);
            let passes = passes(&scene, compaction, on, |pass, text| match pass == name {
                true => {
                    assert!(text.contains(from), "{name} has no {from}");
                    text.replace(from, to)
                }
                false => text,
            });
            let mut buffers = scene.buffers();
            let run = frame(&passes, size, &mut buffers, &mut RoundRobin::default());
            run.is_err() || scene.check(&buffers).is_err()
        });
        assert!(
            seen,
            "{name} with \"{to}\" for \"{from}\" passed at size {size}"
        );
    }
}

/// Without subgroup operations, each invocation may run as far as it comes. A barrier that is
/// missing is then seen.
#[test]
fn a_missing_barrier_of_the_tier_workgroup_is_seen() {
    let barrier = "workgroupBarrier();";
    let scene = Scene::random(Settings {
        few_counts: 3,
        ..Settings::default()
    });
    let run = |pass: &str, before: &str| {
        let on = (CullingTier::Workgroup, 1);
        let passes = passes(&scene, Compaction::VoteScanCompact, on, |name, text| {
            if name != pass {
                return text;
            }
            let at = text.find(before).unwrap();
            let (head, tail) = text.split_at(at);
            assert!(tail.contains(barrier), "{name} has no barrier there");
            head.to_owned() + &tail.replacen(barrier, "", 1)
        });
        let mut buffers = scene.buffers();
        [true, false].map(|highest_first| {
            let mut alone = OneAtATime::new(0, highest_first);
            frame(&passes, on.1, &mut buffers, &mut alone)?;
            scene.check(&buffers)
        })
    };
    assert_eq!(run("none", ""), [Ok(()), Ok(())]);
    for (pass, before) in [
        ("vote", "bytes[thread] = byte;"),
        ("scan", "before = thread_sums[thread - reach];"),
        ("scan", "var inclusive = sum;"),
    ] {
        let seen = run(pass, before).iter().any(Result::is_err);
        assert!(seen, "{pass} without the barrier after {before}");
    }
}

/// The scenes are not empty: there is something to lose.
#[test]
fn the_cases_have_survivors_and_reach_every_kernel() {
    let mut reached = std::collections::BTreeSet::new();
    for settings in cases() {
        let scene = Scene::random(settings);
        assert!(scene.wanted.totals.survivors > 20, "{settings:?}");
        for compaction in PRODUCTS {
            for size in [32, 64] {
                let runs = compaction.runs(CullingTier::Subgroup, size == 32, &scene.plan);
                reached.extend(runs.into_iter().map(|run| run.name));
            }
        }
    }
    let wanted = [
        "classify",
        "compact",
        "look_back",
        "look_back_near_first",
        "order",
        "order_strips",
        "scan",
        "vote",
        "vote_block_per_subgroup",
        "vote_crossed",
        "vote_crossed_block_per_subgroup",
    ];
    for name in wanted {
        assert!(reached.contains(name), "{name} of {reached:?}");
    }
}
