//! Compares every compaction with the twin, on every tier that supports it, with every encoding,
//! with random scenes and edge cases.

mod ballots;
mod broken;
mod check;
#[path = "../../benches/common/encoding.rs"]
mod encoding;
mod encodings;
mod small_sets;
mod thresholds;

use crate::common::{Scene, gpu, random_scene, random_set, random_view, rng, run, triangles_of};
use bevy_gpu_culling::cull::{
    Compaction, Compactor, CompactorOptions, CullError, CullFrame, CullRequest, CullView, Culler,
    CullerOptions, CullingTier, Order, Stage, Tuning,
};
use bevy_gpu_culling::instance::ScaleKind;
use check::{GPU_TIERS, check, rungs, with};
use glam::Vec4;
use rand::RngExt;

/// Sizes around every boundary: a word, a subgroup, a workgroup, a block and a tile of the scan.
const EDGES: [usize; 20] = [
    0, 1, 2, 31, 32, 33, 63, 64, 127, 128, 129, 255, 257, 1023, 1024, 1025, 2047, 2049, 65_536,
    262_145,
];

#[test]
fn random_scenes_equal_the_twin_in_every_compaction() {
    let gpu = gpu();
    let mut rng = rng(0x1ad);
    let mut cullers: Vec<_> = rungs()
        .enumerate()
        .map(|(k, (compaction, tier))| {
            Culler::new(gpu.device, with(compaction, tier, k % 2 == 0))
                .unwrap()
                .0
        })
        .collect();
    for case in 0..70 {
        let lengths: Vec<usize> = match EDGES.get(case) {
            Some(len) => vec![*len],
            None => (0..rng.random_range(1..=3))
                .map(|_| 10f32.powf(rng.random_range(0.0..4.5)) as usize)
                .collect(),
        };
        let mut scene = random_scene(&mut rng, &lengths);
        if case % 2 == 1 {
            for set in &mut scene.sets {
                *set = core::mem::take(set).sorted();
            }
        }
        if lengths[0] > 100_000 {
            scene.frame.requests[0].views.truncate(2);
        }
        for culler in &mut cullers {
            run(culler, gpu, &scene);
            check(culler, gpu, &scene).unwrap_or_else(|error| {
                panic!(
                    "case {case}, sets of {lengths:?}, {} on {}: {error}",
                    culler.compaction(),
                    culler.tier()
                )
            });
        }
    }
}

fn one_view(set: bevy_gpu_culling::instance::InstanceSet, views: Vec<CullView>) -> Scene {
    let request = CullRequest {
        order: Order::Set,
        views: (0..views.len() as u32).collect(),
        ..triangles_of(0)
    };
    Scene {
        sets: vec![set],
        frame: CullFrame {
            views,
            requests: vec![request],
            ..CullFrame::default()
        },
    }
}

#[test]
fn all_and_none_survive_at_every_edge() {
    let gpu = gpu();
    let none = CullView::from_planes([Vec4::new(1.0, 0.0, 0.0, -1e9); 6]);
    for (compaction, tier) in rungs() {
        let (mut culler, _) = Culler::new(gpu.device, with(compaction, tier, true)).unwrap();
        for len in EDGES.into_iter().filter(|len| *len < 10_000) {
            let set = random_set(&mut rng(len as u64), len, ScaleKind::One);
            let scene = one_view(set, vec![CullView::EVERYTHING, none, CullView::EVERYTHING]);
            run(&mut culler, gpu, &scene);
            for (view, expected) in [len, 0, len].into_iter().enumerate() {
                let mut ids = culler.read_survivors(gpu, &scene.frame, 0, view).unwrap();
                ids.sort_unstable();
                assert!(
                    ids.into_iter().eq(0..expected as u32),
                    "{compaction} on {tier}, {len}, view {view}"
                );
            }
        }
    }
}

#[test]
fn a_set_of_many_pages_and_batches_equals_the_twin() {
    let gpu = gpu();
    let mut rng = rng(8);
    for (compaction, tier) in rungs() {
        let (mut culler, _) = Culler::new(gpu.device, with(compaction, tier, true)).unwrap();
        culler.limit_pages(4096, 10, 3);
        let mut scene = random_scene(&mut rng, &[20_000, 300, 9000]);
        // At least one view per set.
        let views = 0..scene.frame.views.len() as u32;
        for request in &mut scene.frame.requests {
            request.views = views.clone().collect();
        }
        run(&mut culler, gpu, &scene);
        assert!(culler.plan().batches.len() > 5);
        check(&culler, gpu, &scene).unwrap();
    }
}

#[test]
fn an_arena_that_is_too_small_is_clamped_reported_and_grown() {
    let gpu = gpu();
    let device = gpu.device;
    for (compaction, tier) in rungs() {
        let options = CullerOptions {
            survivor_capacity: 1000,
            ..with(compaction, tier, true)
        };
        let (mut culler, _) = Culler::new(device, options).unwrap();
        let set = random_set(&mut rng(3), 5000, ScaleKind::One);
        let scene = one_view(set, vec![CullView::EVERYTHING, CullView::EVERYTHING]);
        run(&mut culler, gpu, &scene);
        let data = culler.read_batch(gpu, 0).unwrap();
        let totals = data.totals;
        assert_eq!(
            (totals.survivors, totals.overflow),
            (10_000, 9000),
            "{compaction} on {tier}"
        );
        let counts: Vec<_> = data.draws.iter().map(|draw| draw.instance_count).collect();
        assert_eq!(counts, [1000, 0], "a draw never reads beyond the arena");
        device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
        assert_eq!(culler.take_counts(device).unwrap().overflow, 9000);
        run(&mut culler, gpu, &scene);
        let seen = check(&culler, gpu, &scene);
        assert_eq!(seen, Ok(10_000), "grown: {compaction} on {tier}");
    }
}

#[test]
fn auto_follows_its_tuning_from_frame_to_frame() {
    let gpu = gpu();
    let tuning = Tuning::new([
        (100, Compaction::NaiveAtomic),
        (3000, Compaction::HillisSteele),
        (10_000, Compaction::LookBack),
        (u64::MAX, Compaction::VoteScanCompact),
    ]);
    for tier in GPU_TIERS {
        let options = CullerOptions {
            tuning: Some(tuning.clone()),
            ..with(Compaction::Auto, tier, true)
        };
        let (mut culler, reason) = Culler::new(gpu.device, options).unwrap();
        assert_eq!(reason, None);
        for len in [50, 2000, 50, 9000, 2500, 20_000, 9000, 6000, 70] {
            let scene = one_view(
                random_set(&mut rng(len), len as usize, ScaleKind::One),
                vec![random_view(&mut rng(len))],
            );
            run(&mut culler, gpu, &scene);
            let expected = match tuning.pick(len) {
                Compaction::LookBack if tier == CullingTier::Workgroup => {
                    Compaction::VoteScanCompact
                }
                pick => pick,
            };
            assert_eq!(culler.compaction(), expected);
            check(&culler, gpu, &scene).unwrap();
        }
    }
    let (culler, _) =
        Culler::new(gpu.device, with(Compaction::Auto, CullingTier::Cpu, false)).unwrap();
    assert_eq!(culler.compaction(), Compaction::VoteScanCompact);
}

#[test]
fn what_the_tier_lacks_is_refused_by_name() {
    let device = gpu().device;
    for compaction in [Compaction::SubgroupAtomic, Compaction::BallotScan] {
        let error = Culler::new(device, with(compaction, CullingTier::Workgroup, false)).err();
        assert!(
            matches!(error, Some(CullError::CompactionUnsupported { .. })),
            "{error:?}"
        );
        assert!(Culler::new(device, with(compaction, CullingTier::Cpu, false)).is_ok());
    }
    let options = CompactorOptions {
        tier: CullingTier::Cpu,
        ..CompactorOptions::default()
    };
    assert!(matches!(
        Compactor::new(device, options),
        Err(CullError::TierUnsupported { .. })
    ));
}

#[test]
fn stages_that_a_compaction_lacks_are_not_recorded() {
    let stages = |compaction: Compaction| compaction.stages().collect::<Vec<_>>();
    assert_eq!(
        stages(Compaction::NaiveAtomic),
        [Stage::Compact, Stage::Args]
    );
    assert_eq!(
        stages(Compaction::BallotScan),
        [Stage::Vote, Stage::Compact, Stage::Args]
    );
    assert_eq!(
        stages(Compaction::VoteScanCompact),
        [Stage::Vote, Stage::Scan, Stage::Compact]
    );
    assert_eq!(
        stages(Compaction::Classify),
        [Stage::Classify, Stage::Vote, Stage::Scan, Stage::Compact]
    );
    assert_eq!(stages(Compaction::LookBack), [Stage::Compact]);
}

/// Strips of one, two, four and eight blocks, with rows that end within a strip.
#[test]
fn strips_of_any_size_equal_the_twin() {
    let gpu = gpu();
    for (few_counts, blocks) in [(400, 1), (28, 2), (14, 4), (2, 8)] {
        let options = with(Compaction::LookBack, CullingTier::Subgroup, true);
        let (mut culler, _) = Culler::new(gpu.device, options).unwrap();
        culler.limit_pages(1 << 20, 1 << 20, few_counts);
        for (seed, len) in [(1, 29_000), (2, 29 * 1024), (3, 29 * 1024 + 1), (4, 30_700)] {
            let scene = one_view(
                random_set(
                    &mut rng(seed),
                    len,
                    [ScaleKind::Uniform, ScaleKind::One, ScaleKind::NonUniform][seed as usize % 3],
                ),
                vec![random_view(&mut rng(seed))],
            );
            for _ in 0..3 {
                run(&mut culler, gpu, &scene);
                assert_eq!(culler.plan().batches[0].batch.strip_blocks, blocks);
                check(&culler, gpu, &scene).unwrap();
            }
        }
    }
}

/// Some strips never publish their state. The strips after them must count the missing survivors
/// themselves.
#[test]
fn a_strip_that_waits_in_vain_counts_what_is_missing() {
    let gpu = gpu();
    // Odd strips publish neither their total nor their prefix.
    let silent = |source: String| {
        let total = "atomicStore(&look_back.statuses[half + strip], kind | total);";
        let prefix = "atomicStore(&look_back.statuses[half + strip], PREFIX | end);";
        assert!(source.contains(total) && source.contains(prefix));
        let if_even = |store: &str| format!("if (strip % 2u == 0u) {{ {store} }}");
        let source = source.replace(total, &if_even(total));
        source.replace(prefix, &if_even(prefix))
    };
    let survivors = |edit: &dyn Fn(&str, String) -> String| -> Result<u64, String> {
        let options = with(Compaction::LookBack, CullingTier::Subgroup, true);
        let mut culler = Culler::with_sources(gpu.device, options, edit).unwrap();
        let mut survivors = 0;
        for (seed, len) in [(1, 5000), (2, 70_000), (3, 2_200_000)] {
            let mut scene = random_scene(&mut rng(seed), &[len, 77, 3000]);
            // All views together would need nine million tests.
            scene.frame.views.truncate(4);
            scene.sets[0] = scene.sets[0].clone().sorted();
            run(&mut culler, gpu, &scene);
            survivors += check(&culler, gpu, &scene)?;
        }
        Ok(survivors)
    };
    let all = survivors(&|_, source| source).unwrap();
    assert!(all > 0);
    let is_look_back = |pass: &str| pass == "look_back";
    let silenced = |pass: &str, source: String| match is_look_back(pass) {
        true => silent(source),
        false => source,
    };
    assert_eq!(survivors(&silenced), Ok(all));
    let miscounted = |pass: &str, source: String| {
        if !is_look_back(pass) {
            return source;
        }
        let from = "total += subgroupAdd(countOneBits(word));";
        assert!(source.contains(from));
        silent(source).replace(from, "total += 1u;")
    };
    assert!(survivors(&miscounted).is_err());
}

/// Rows of several tiles of `order`, in every compaction that sorts blocks, and what the test sees
/// of broken rings.
#[test]
fn rows_of_many_tiles_are_near_first() {
    let gpu = gpu();
    let mut rng = rng(17);
    let set = random_set(&mut rng, 2_300_000, ScaleKind::One).sorted();
    let views: Vec<_> = (0..3).map(|_| random_view(&mut rng)).collect();
    let mut scene = one_view(set, views);
    scene.frame.requests[0].order = Order::NearFirst;
    let run_with = |compaction: Compaction, tier: CullingTier, from: &str, to: &str| {
        let mut sources = compaction.sources(tier).into_iter();
        assert!(
            sources.any(|(_, source)| source.contains(from)),
            "{from} is gone"
        );
        let edit = |_: &str, source: String| source.replace(from, to);
        let mut culler =
            Culler::with_sources(gpu.device, with(compaction, tier, true), edit).unwrap();
        run(&mut culler, gpu, &scene);
        assert!(culler.plan().batches[0].has_rings);
        check(&culler, gpu, &scene)
    };
    let sorting = rungs().filter(|(compaction, _)| compaction.sorts_blocks());
    for (compaction, tier) in sorting {
        let seen = run_with(compaction, tier, "", "");
        assert!(
            seen.is_ok_and(|survivors| survivors > 1000),
            "{compaction} on {tier}"
        );
    }
    for (from, to) in [
        ("t < tile.in_row", "t <= tile.in_row"),
        ("first + near.before", "first"),
        ("ring_ranks[thread - reach]", "ring_ranks[thread]"),
        ("tile.of_row == 1u", "tile.of_row > 1u"),
        ("let first = index - tile.in_row;", "let first = index;"),
    ] {
        let seen = run_with(
            Compaction::VoteScanCompact,
            CullingTier::Workgroup,
            from,
            to,
        );
        assert!(seen.is_err(), "\"{to}\" for \"{from}\" passed");
    }
}
