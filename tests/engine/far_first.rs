//! The far-first sort on every tier: against its twin, on edges, and broken on purpose.

use crate::common::{
    self, Scene, compare, gpu, options, random_scene, random_set, rng, run, triangles_of,
};
use bevy_gpu_culling::{
    cull::{
        Compaction, CullFrame, CullRequest, CullView, Culler, CullingTier, Order, SetId, Stage,
        layout::{FAR_FIRST_TILE, FarFirstJob},
        reference,
    },
    instance::{InstanceSet, ScaleKind},
};
use glam::camera::rh::{proj::directx, view};
use glam::{Affine3A, Vec3};
use proptest::prelude::*;
use rand::RngExt;

const GPU_TIERS: [CullingTier; 2] = [CullingTier::Subgroup, CullingTier::Workgroup];

/// Sizes around a digit's values, a turn of a workgroup, a tile and two, and a scan of tiles.
const EDGES: [usize; 17] = [
    0,
    1,
    2,
    31,
    32,
    33,
    255,
    256,
    257,
    FAR_FIRST_TILE as usize - 1,
    FAR_FIRST_TILE as usize,
    FAR_FIRST_TILE as usize + 1,
    2 * FAR_FIRST_TILE as usize,
    2 * FAR_FIRST_TILE as usize + 1,
    9 * FAR_FIRST_TILE as usize + 77,
    100_000,
    262_145,
];

fn request(key: u64, views: &[u32]) -> CullRequest {
    CullRequest {
        key,
        order: Order::FarFirst,
        views: views.to_vec(),
        ..triangles_of(key)
    }
}

/// A view that keeps everything and looks along the z axis of the set, towards smaller z.
fn everything() -> CullView {
    CullView::EVERYTHING.sorted_toward(Vec3::Z)
}

fn one_set(set: InstanceSet) -> Scene {
    Scene {
        sets: vec![set],
        frame: CullFrame {
            views: vec![everything()],
            requests: vec![request(0, &[0])],
            ..CullFrame::default()
        },
    }
}

fn along_z(depths: impl Iterator<Item = f32>) -> InstanceSet {
    InstanceSet::from_transforms(depths.map(|z| Vec3::new(0.0, 0.0, z))).unwrap()
}

/// The survivors of the first request's first view, after a frame on `tier`.
fn survivors(tier: CullingTier, scene: &Scene) -> Vec<u32> {
    let gpu = gpu();
    let (mut culler, _) = Culler::new(gpu.device, options(tier, true)).unwrap();
    run(&mut culler, gpu, scene);
    if tier != CullingTier::Cpu {
        compare(&culler, gpu, scene).unwrap();
    }
    culler.read_survivors(gpu, &scene.frame, 0, 0).unwrap()
}

/// The ids of a set sorted by the host's own stable sort of one coordinate.
fn by_z(set: &InstanceSet) -> Vec<u32> {
    let mut ids: Vec<_> = (0..set.len() as u32).collect();
    let z = |id: &u32| set.packed()[*id as usize].position[2];
    ids.sort_by(|a, b| z(a).partial_cmp(&z(b)).unwrap());
    ids
}

#[test]
fn survivors_are_sorted_at_every_edge() {
    for tier in CullingTier::ALL {
        for len in EDGES {
            let set = random_set(&mut rng(len as u64), len, ScaleKind::One);
            let scene = one_set(set);
            let expected = by_z(&scene.sets[0]);
            assert_eq!(survivors(tier, &scene), expected, "{tier}, {len}");
        }
    }
}

#[test]
fn equal_sorted_and_reversed_depths_are_sorted() {
    let len = 3 * FAR_FIRST_TILE + 5;
    let all = 0..len;
    for tier in CullingTier::ALL {
        let equal = one_set(along_z(all.clone().map(|_| 7.5)));
        assert!(survivors(tier, &equal).into_iter().eq(all.clone()));
        let sorted = one_set(along_z(all.clone().map(|i| i as f32)));
        assert!(survivors(tier, &sorted).into_iter().eq(all.clone()));
        let reversed = one_set(along_z(all.clone().map(|i| -(i as f32))));
        assert!(survivors(tier, &reversed).into_iter().eq(all.clone().rev()));
        // Few depths: ties stay in set order.
        let few = one_set(along_z(all.clone().map(|i| (i % 3) as f32)));
        assert_eq!(survivors(tier, &few), by_z(&few.sets[0]));
    }
}

#[test]
fn special_numbers_are_sorted_alike_and_hidden_ones_are_left_out() {
    let depths = [
        0.0,
        -0.0,
        f32::MAX,
        f32::MIN,
        1.0,
        -1.0,
        f32::MIN_POSITIVE,
        -f32::MIN_POSITIVE,
        1e-45,
        1e-12,
        -1e-12,
        1e-13,
        1e30,
        2e30,
    ];
    for tier in CullingTier::ALL {
        let mut scene = one_set(along_z(depths.into_iter()));
        // What is below 2^-40 counts as zero, what is above 2^100 as 2^100.
        let expected = [3, 5, 10, 0, 1, 6, 7, 8, 11, 9, 4, 12, 2, 13];
        assert_eq!(survivors(tier, &scene), expected, "{tier}");
        let gpu = gpu();
        let (mut culler, _) = Culler::new(gpu.device, options(tier, true)).unwrap();
        common::upload(&mut culler, gpu, &scene);
        let mut broken = scene.sets[0].packed().to_vec();
        broken[4].position[2] = f32::NAN;
        broken[5].position[0] = f32::INFINITY;
        let store = culler.store_mut();
        store.upload(gpu.queue, SetId(0), 0, &broken).unwrap();
        scene.sets.clear();
        run(&mut culler, gpu, &scene);
        let ids = culler.read_survivors(gpu, &scene.frame, 0, 0).unwrap();
        assert_eq!(ids, [3, 10, 0, 1, 6, 7, 8, 11, 9, 12, 2, 13], "{tier}");
    }
}

/// Rows of many sizes in one batch, some of which are not sorted; and sets of several pages.
#[test]
fn rows_views_sets_and_pages_are_sorted_alone() {
    let gpu = gpu();
    for tier in GPU_TIERS {
        for (seed, lengths, page) in [
            (1, &[5000, 0, 1, 2, 3000, 70, 40_000][..], 1 << 20),
            (2, &[9000, 2048, 2049], 4096),
            (3, &[100; 300], 1 << 20),
        ] {
            let mut scene = random_scene(&mut rng(seed), lengths);
            let views = (0..scene.frame.views.len() as u32).collect::<Vec<_>>();
            for (index, request) in scene.frame.requests.iter_mut().enumerate() {
                request.views.clone_from(&views);
                if index % 4 != 3 {
                    request.order = Order::FarFirst;
                }
            }
            let (mut culler, _) = Culler::new(gpu.device, options(tier, true)).unwrap();
            culler.limit_pages(page, 1 << 20, 100);
            run(&mut culler, gpu, &scene);
            compare(&culler, gpu, &scene).unwrap();
            assert!(culler.stages().any(|stage| stage == Stage::FarFirst));
        }
    }
}

#[test]
fn every_ordered_compaction_is_sorted() {
    let gpu = gpu();
    for &compaction in Compaction::ALL {
        for tier in GPU_TIERS {
            if compaction.check(tier, gpu.device.features()).is_err() || !compaction.is_ordered() {
                continue;
            }
            let options = bevy_gpu_culling::cull::CullerOptions {
                compaction,
                ..options(tier, true)
            };
            let (mut culler, _) = Culler::new(gpu.device, options).unwrap();
            let scene = one_set(random_set(&mut rng(9), 10_000, ScaleKind::One));
            run(&mut culler, gpu, &scene);
            let ids = culler.read_survivors(gpu, &scene.frame, 0, 0).unwrap();
            assert_eq!(ids, by_z(&scene.sets[0]), "{compaction}, {tier}");
        }
    }
}

#[test]
fn other_orders_and_views_without_a_viewer_pay_nothing() {
    let gpu = gpu();
    let set = random_set(&mut rng(4), 5000, ScaleKind::One);
    for (order, view) in [
        (Order::Set, everything()),
        (Order::NearFirst, everything()),
        (Order::FarFirst, CullView::EVERYTHING),
    ] {
        let (mut culler, _) =
            Culler::new(gpu.device, options(CullingTier::Workgroup, true)).unwrap();
        let mut scene = one_set(set.clone());
        scene.frame.requests[0].order = order;
        scene.frame.views[0] = view;
        run(&mut culler, gpu, &scene);
        assert!(culler.stages().all(|stage| stage != Stage::FarFirst));
        let ids = culler.read_survivors(gpu, &scene.frame, 0, 0).unwrap();
        assert!(order == Order::NearFirst || ids.is_sorted());
        let mut labels = culler.memory().into_keys();
        assert!(!labels.any(|label| label.contains("far-first")));
    }
}

/// An arena that is too small loses survivors before they are sorted.
#[test]
fn a_small_arena_is_sorted_as_far_as_it_reaches() {
    let gpu = gpu();
    let device = gpu.device;
    let options = bevy_gpu_culling::cull::CullerOptions {
        survivor_capacity: 1000,
        ..options(CullingTier::Workgroup, true)
    };
    let (mut culler, _) = Culler::new(device, options).unwrap();
    let scene = one_set(random_set(&mut rng(3), 5000, ScaleKind::One));
    run(&mut culler, gpu, &scene);
    compare(&culler, gpu, &scene).unwrap();
    device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    run(&mut culler, gpu, &scene);
    let ids = culler.read_survivors(gpu, &scene.frame, 0, 0).unwrap();
    assert_eq!(ids, by_z(&scene.sets[0]), "grown");
}

/// Keys have the order of the depths of the meshes' centers, as exact numbers.
#[test]
fn keys_follow_the_depth_of_the_meshs_center() {
    let mut rng = rng(21);
    for kind in [ScaleKind::One, ScaleKind::Uniform, ScaleKind::NonUniform] {
        let set = random_set(&mut rng, 2000, kind);
        let scales = set.scale_floats();
        let eye = Vec3::new(30.0, -20.0, 90.0);
        let clip = directx::perspective_infinite_reverse(1.0, 1.0, 0.1);
        let from_world = view::look_at_mat4(eye, Vec3::ZERO, Vec3::Y);
        let view = CullView::from_clip_from_world(&(clip * from_world));
        let center = Vec3::new(0.7, -1.3, 2.0);
        let world = Affine3A::from_scale_rotation_translation(
            Vec3::new(1.2, 0.8, 2.0),
            glam::Quat::from_rotation_x(0.3),
            Vec3::new(4.0, 5.0, -6.0),
        );
        let mut scene = one_set(set.clone());
        scene.frame.views[0] = view;
        scene.frame.requests[0].world_from_local = world;
        scene.frame.requests[0].sphere.center = center;
        let gpu = gpu();
        let (mut culler, _) = Culler::new(gpu.device, options(CullingTier::Cpu, true)).unwrap();
        run(&mut culler, gpu, &scene);
        let plan = &culler.plan().batches[0];
        let jobs = FarFirstJob::of_batch(&plan.chunks, &plan.chunk_views);
        let world = world.matrix3.as_dmat3();
        let toward = from_world.row(2).truncate().as_dvec3();
        let mut keyed: Vec<_> = (0..set.len())
            .map(|i| {
                let instance = &set.packed()[i];
                let scale = set.get(i as u32).unwrap().scale.as_dvec3();
                let turned = instance.rotation().as_dquat() * (center.as_dvec3() * scale);
                let depth = toward.dot(world * (instance.position().as_dvec3() + turned));
                let key = reference::depth_key(&jobs[0], set.packed(), scales, i as u32);
                (key, depth)
            })
            .collect();
        keyed.sort_by_key(|(key, _)| *key);
        // Centers are rounded to about 10 bits, times the scale and the stretch of the set. Two
        // instances are compared.
        let stretch = if set.has_scales() { 4.0 * 2.0 } else { 2.0 };
        let allowed = 2.0 * f64::from(center.length()) * stretch / 512.0;
        let mut highest = f64::MIN;
        for (_, depth) in keyed {
            assert!(depth > highest - allowed, "{depth} after {highest}");
            highest = highest.max(depth);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// The twin gives a permutation, with keys in order and ties in set order. Adding a constant to
    /// all places moves no instance past one that is clearly behind it.
    #[test]
    fn the_twin_sorts_stably(
        depths in prop::collection::vec(-100i32..100, 0..400),
        axis in (-1.0f32..1.0, -1.0f32..1.0, 0.1f32..1.0),
    ) {
        let set = along_z(depths.iter().map(|depth| *depth as f32 * 0.37));
        let toward = Vec3::new(axis.0, axis.1, axis.2);
        let view = CullView::EVERYTHING.sorted_toward(toward);
        let job = FarFirstJob {
            axis: view.far_first_in(&Affine3A::IDENTITY).eye.truncate(),
            is_indexed: 1,
            ..FarFirstJob::default()
        };
        let draw = bevy_gpu_culling::cull::layout::DrawCommand {
            instance_count: set.len() as u32,
            ..Default::default()
        };
        let mut ids: Vec<u32> = (0..set.len() as u32).collect();
        reference::far_first(&[job], &[draw], &mut ids, set.packed(), &[]);
        let keyed: Vec<_> = ids
            .iter()
            .map(|id| (reference::depth_key(&job, set.packed(), &[], *id), *id))
            .collect();
        prop_assert!(keyed.is_sorted_by(|a, b| a < b), "{keyed:?}");
        prop_assert_eq!(&ids, &by_z(&set));
        ids.sort_unstable();
        prop_assert!(ids.into_iter().eq(0..set.len() as u32));
    }
}

#[test]
fn random_scenes_equal_the_twin_on_all_tiers() {
    let gpu = gpu();
    let mut rng = rng(77);
    let mut cullers =
        CullingTier::ALL.map(|tier| Culler::new(gpu.device, options(tier, true)).unwrap().0);
    for _ in 0..20 {
        let lengths: Vec<_> = (0..rng.random_range(1..=4))
            .map(|_| 10f32.powf(rng.random_range(0.0..4.5)) as usize)
            .collect();
        let mut scene = random_scene(&mut rng, &lengths);
        for request in &mut scene.frame.requests {
            request.order = Order::FarFirst;
        }
        for culler in &mut cullers {
            run(culler, gpu, &scene);
            compare(culler, gpu, &scene).unwrap();
        }
    }
}

/// A device's square root may be rounded up or down.
#[test]
fn a_square_root_that_is_off_by_one_changes_no_key() {
    let gpu = gpu();
    let root = "sqrt(f32(rest))";
    for other in ["sqrt(f32(rest)) + 1.0", "max(1.0, sqrt(f32(rest))) - 1.0"] {
        let edit = |name: &str, source: String| {
            assert!(name != "far_first_keys" || source.contains(root));
            source.replace(root, other)
        };
        let options = options(CullingTier::Workgroup, true);
        let mut culler = Culler::with_sources(gpu.device, options, edit).unwrap();
        let mut scene = one_set(random_set(&mut rng(8), 20_000, ScaleKind::Uniform));
        scene.frame.requests[0].sphere.center = Vec3::new(1.0, 2.0, -1.5);
        run(&mut culler, gpu, &scene);
        compare(&culler, gpu, &scene).unwrap();
    }
}

/// The comparison detects every broken kernel, so it can fail.
#[test]
fn a_broken_sort_is_seen() {
    let gpu = gpu();
    let breaks: &[(&str, &str, &str)] = &[
        ("spans", "len > 1u", "len > 2u"),
        (
            "spans",
            "let first_of_row = end_key - len;",
            "let first_of_row = end_key;",
        ),
        (
            "spans",
            "let tile = end_tile - tiles_of(len);",
            "let tile = end_tile;",
        ),
        ("spans", "first_key += sums[", "first_key = sums["),
        ("spans", "first_tile += sums[", "first_tile = sums["),
        ("spans", "job.is_indexed != 0u", "job.is_indexed == 0u"),
        ("keys", "depth == 0.0", "depth <= 0.0"),
        ("keys", "0xffffffffu, (bits", "0x80000000u, (bits"),
        ("keys", "let b = x_head * y_tail;", "let b = x_head * 0.0;"),
        ("keys", "let c = x_tail * y_head;", "let c = x_tail * 0.0;"),
        ("keys", "CHUNK_OFF_CENTER) != 0u", "CHUNK_OFF_CENTER) == 5u"),
        ("keys", "CHUNK_HAS_SCALE) != 0u", "CHUNK_HAS_SCALE) == 5u"),
        (
            "keys",
            "CHUNK_NON_UNIFORM_SCALE) != 0u",
            "CHUNK_NON_UNIFORM_SCALE) == 5u",
        ),
        ("keys", "(value + 2048) >> 12u", "value >> 12u"),
        (
            "keys",
            "q = vec4<i32>(v.x, largest, v.yz);",
            "q = vec4<i32>(largest, v);",
        ),
        ("keys", "+ q.w * q.z", "- q.w * q.z"),
        ("keys", "max(0, SQUARES - (", "max(0, SQUARES - 90000 - ("),
        ("keys", "atomicStore(&digit_counts[thread], 0u);", ""),
        (
            "keys",
            "digit * tile.of_row + tile.in_row",
            "digit + tile.in_row * DIGITS",
        ),
        ("count", "(key >> round_of_sort.shift)", "key"),
        ("count", "min(len, first + FAR_FIRST_TILE)", "len"),
        (
            "scan",
            "counts[first + begin + k] = sum;",
            "counts[first + begin + k] = before;",
        ),
        ("scan", "sum += values[k];", ""),
        ("scan", "DIGITS + digit] = before;", "DIGITS + digit] = 1u;"),
        (
            "scatter",
            "select(span.first_key, span.first_survivor,",
            "select(span.first_key, span.first_key,",
        ),
        (
            "scatter",
            "let of_smaller = inclusive_sum(total, thread) - total;",
            "let of_smaller = 0u;",
        ),
        ("scatter", "select(count, 0u, is_alone)", "0u"),
        ("scatter", "& (bit - 1u)", "& (bit | (bit - 1u))"),
        ("scatter", "other < group", "other + 1u < group"),
        ("scatter", "atomicStore(&holders[slot], 0u);", ""),
        ("scatter", "places[thread] += held;", ""),
        (
            "scatter",
            "if (spans.entries[middle].first_tile <= tile)",
            "if (spans.entries[middle].first_tile < tile)",
        ),
    ];
    for &(kernel, from, to) in breaks {
        let broken = |name: &str, source: String| {
            if name.strip_prefix("far_first_") != Some(kernel) {
                return source;
            }
            assert!(source.contains(from), "{kernel}: {from} is gone");
            source.replace(from, to)
        };
        let options = options(CullingTier::Workgroup, true);
        let mut culler = Culler::with_sources(gpu.device, options, broken).unwrap();
        let caught = (0..20).any(|seed| {
            let mut rng = rng(seed);
            let mut lengths = vec![2, 9_000, 77, 3000];
            if seed > 0 {
                lengths.resize(300, 10);
            }
            let mut scene = random_scene(&mut rng, &lengths);
            for request in &mut scene.frame.requests {
                request.order = Order::FarFirst;
            }
            run(&mut culler, gpu, &scene);
            compare(&culler, gpu, &scene).is_err()
        });
        assert!(caught, "{kernel} with \"{to}\" for \"{from}\" passed");
    }
}
