//! Compares the stages on the GPU with their CPU twins, on every tier, with random scenes and edge
//! cases.

mod broken;

use crate::common::{
    self, Scene, compare, gpu, instance, options, random_scene, random_set, random_view, rng, run,
    run_resident, test_gpu, triangles_of,
};
use bevy_gpu_culling::cull::{
    CullError, CullFrame, CullRequest, CullView, Culler, CullerOptions, CullingTier, Gpu, Order,
    SetId,
};
use bevy_gpu_culling::instance::ScaleKind;
use glam::{Affine3A, Vec3, Vec4};
use rand::RngExt;
use std::collections::{HashMap, HashSet};

const GPU_TIERS: [CullingTier; 2] = [CullingTier::Subgroup, CullingTier::Workgroup];

/// Sizes around every boundary: a word, a block, the blocks of a workgroup of `compact` (4, or 16
/// if there are many blocks), and a tile of the scan.
const EDGES: [usize; 30] = [
    0, 1, 2, 31, 32, 33, 63, 64, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 2047, 2048, 2049,
    4095, 4096, 4097, 16_383, 16_384, 16_385, 65_536, 262_143, 262_144, 262_145,
];

#[test]
fn random_scenes_equal_the_twin() {
    let gpu = gpu();
    let mut rng = rng(0x0b5);
    let mut cullers: Vec<_> = GPU_TIERS
        .iter()
        .flat_map(|tier| {
            [true, false].map(|checks| Culler::new(gpu.device, options(*tier, checks)).unwrap().0)
        })
        .collect();
    // Two of them scan even if there are few counts.
    for culler in cullers.iter_mut().step_by(2) {
        culler.limit_pages(1 << 20, 1 << 20, 0);
    }
    // Two of them sort blocks; the others sort words, as small batches do.
    for culler in &mut cullers[2..] {
        culler.limit_fine_words(0);
    }
    let (mut tested, mut visible, mut borderline) = (0, 0, 0);
    for case in 0..200 {
        let lengths: Vec<usize> = match EDGES.get(case) {
            Some(len) => vec![*len],
            None => (0..rng.random_range(1..=3))
                .map(|_| 10f32.powf(rng.random_range(0.0..4.7)) as usize)
                .collect(),
        };
        // One case is a large set.
        let lengths = if case == 100 { vec![300_000] } else { lengths };
        let mut scene = random_scene(&mut rng, &lengths);
        if case % 3 == 0 {
            // With one view, each subgroup may take a block.
            scene.frame.views.truncate(1);
        }
        let mut survivors = Vec::new();
        for culler in &mut cullers {
            run(culler, gpu, &scene);
            let seen = compare(culler, gpu, &scene).unwrap_or_else(|error| {
                panic!(
                    "case {case}, sets of {lengths:?}, {}: {error}",
                    culler.tier()
                )
            });
            tested += seen.tested;
            visible += seen.visible;
            borderline += seen.borderline;
            survivors.push(seen.visible);
        }
        if case % 10 == 0 {
            cpu_tier_equals(gpu, &scene, &cullers[0]);
        }
    }
    println!(
        "{}: {tested} tests, {visible} visible, {borderline} within 1e-4 of a border differ",
        test_gpu().adapter.name
    );
    assert!(borderline * 1000 < tested, "{borderline} of {tested}");
    assert!(
        visible * 20 > tested && visible * 20 < tested * 19,
        "the scenes should be neither empty nor full"
    );
}

/// The tier `Cpu` keeps the same ids in the same order, except for borderline instances.
fn cpu_tier_equals(gpu: Gpu<'_>, scene: &Scene, other: &Culler) {
    let (mut cpu, _) = Culler::new(gpu.device, options(CullingTier::Cpu, false)).unwrap();
    run(&mut cpu, gpu, scene);
    for (request, used) in scene.frame.requests.iter().enumerate() {
        for view in 0..used.views.len() {
            let ids = |culler: &Culler| {
                culler
                    .read_survivors(gpu, &scene.frame, request, view)
                    .unwrap()
            };
            let (a, b) = (ids(&cpu), ids(other));
            let (in_a, in_b): (HashSet<u32>, HashSet<u32>) =
                (a.iter().copied().collect(), b.iter().copied().collect());
            if used.fade == 0.0 || used.coarser.is_none() {
                assert_eq!((in_a.len(), in_b.len()), (a.len(), b.len()), "no id twice");
            }
            // An instance that fades is in two levels.
            let count = |ids: &[u32]| {
                ids.iter().fold(HashMap::new(), |mut counts, id| {
                    *counts.entry(*id).or_insert(0) += 1;
                    counts
                })
            };
            let (of_a, of_b): (HashMap<u32, u32>, _) = (count(&a), count(&b));
            let max = of_a.values().chain(of_b.values()).max();
            assert!(max.is_none_or(|max| *max <= 2), "no id in three levels");
            let both = |ids: &[u32]| {
                let is_in_both = |id: &&u32| of_a.get(*id) == of_b.get(*id);
                ids.iter().filter(is_in_both).copied().collect::<Vec<_>>()
            };
            assert_eq!(both(&a), both(&b), "the same order");
            if used.order == Order::Set && used.coarser.is_none() {
                assert!(a.is_sorted());
            }
            let differ = in_a.symmetric_difference(&in_b).count();
            assert!(differ * 1000 <= a.len(), "{differ} of {} differ", a.len());
        }
    }
}

#[test]
fn a_set_of_many_pages_and_batches_equals_the_twin() {
    let gpu = gpu();
    let mut rng = rng(7);
    for tier in GPU_TIERS {
        for (page, counts) in [(1024, 1), (2048, 7), (4096, 10_000)] {
            let (mut culler, _) = Culler::new(gpu.device, options(tier, true)).unwrap();
            culler.limit_pages(page, counts, page / 1000);
            let scene = random_scene(&mut rng, &[page as usize * 3 + 1, page as usize, 5]);
            run(&mut culler, gpu, &scene);
            assert!(culler.store().set_regions(SetId(0)).len() == 4);
            compare(&culler, gpu, &scene).unwrap();
            let expected = CullRequest {
                key: 0,
                ..scene.frame.requests[0].clone()
            };
            for view in 0..expected.views.len() {
                let ids = culler.read_survivors(gpu, &scene.frame, 0, view).unwrap();
                if expected.order == Order::Set {
                    assert!(
                        ids.is_sorted_by(|a, b| a < b),
                        "ids of pages follow each other"
                    );
                }
                assert!(ids.iter().all(|id| (*id as usize) < scene.sets[0].len()));
            }
        }
    }
}

/// A scene of one set in one view.
fn one_view(set: bevy_gpu_culling::instance::InstanceSet, view: CullView) -> Scene {
    let request = CullRequest {
        views: vec![0],
        ..triangles_of(0)
    };
    Scene {
        sets: vec![set],
        frame: CullFrame {
            views: vec![view],
            requests: vec![request],
            ..CullFrame::default()
        },
    }
}

#[test]
fn all_and_none_survive_at_every_edge() {
    let gpu = gpu();
    for tier in CullingTier::ALL {
        for len in EDGES.into_iter().filter(|len| *len < 100_000) {
            let set = random_set(&mut rng(len as u64), len, ScaleKind::One);
            let all = one_view(set.clone(), CullView::EVERYTHING);
            let (mut culler, _) = Culler::new(gpu.device, options(tier, true)).unwrap();
            run(&mut culler, gpu, &all);
            let ids = culler.read_survivors(gpu, &all.frame, 0, 0).unwrap();
            assert!(ids.iter().copied().eq(0..len as u32), "{tier}, {len}");
            let none = one_view(
                set,
                CullView::from_planes([Vec4::new(1.0, 0.0, 0.0, -1e9); 6]),
            );
            run(&mut culler, gpu, &none);
            assert_eq!(
                culler.read_survivors(gpu, &none.frame, 0, 0).unwrap(),
                [] as [u32; 0]
            );
        }
    }
}

#[test]
fn a_frame_without_sets_or_views_records_nothing() {
    let gpu = gpu();
    let (mut culler, _) = Culler::new(gpu.device, CullerOptions::default()).unwrap();
    culler.prepare(gpu, &CullFrame::default());
    assert!(!culler.has_gpu_work());
    let scene = one_view(
        random_set(&mut rng(1), 0, ScaleKind::One),
        CullView::EVERYTHING,
    );
    run(&mut culler, gpu, &scene);
    assert!(!culler.has_gpu_work(), "an empty set needs no pass");
}

#[test]
fn an_arena_that_is_too_small_is_clamped_reported_and_grown() {
    let gpu = gpu();
    let device = gpu.device;
    for tier in GPU_TIERS {
        let options = CullerOptions {
            survivor_capacity: 1000,
            ..options(tier, true)
        };
        let (mut culler, _) = Culler::new(device, options).unwrap();
        let scene = one_view(
            random_set(&mut rng(3), 5000, ScaleKind::One),
            CullView::EVERYTHING,
        );
        run(&mut culler, gpu, &scene);
        compare(&culler, gpu, &scene).unwrap();
        let data = culler.read_batch(gpu, 0).unwrap();
        assert_eq!((data.totals.survivors, data.totals.overflow), (5000, 4000));
        assert_eq!(
            data.draws[0].instance_count, 1000,
            "a draw never reads beyond the arena"
        );
        device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
        let counts = culler.take_counts(device).unwrap();
        assert_eq!(counts.overflow, 4000);
        run(&mut culler, gpu, &scene);
        let ids = culler.read_survivors(gpu, &scene.frame, 0, 0).unwrap();
        assert_eq!(ids.len(), 5000, "grown");
    }
}

#[test]
fn counters_arrive_without_waiting_and_name_request_and_view() {
    let gpu = gpu();
    let device = gpu.device;
    for tier in CullingTier::ALL {
        let (mut culler, _) = Culler::new(device, options(tier, true)).unwrap();
        let mut scene = one_view(
            random_set(&mut rng(3), 3000, ScaleKind::One),
            CullView::EVERYTHING,
        );
        scene.frame.views.insert(
            0,
            CullView::from_planes([Vec4::new(0.0, 0.0, 1.0, -1e6); 6]),
        );
        scene.frame.requests[0].key = 42;
        scene.frame.requests[0].views = vec![1, 0];
        run(&mut culler, gpu, &scene);
        device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
        let counts = culler.take_counts(device).unwrap();
        assert_eq!(counts.view(1), (3000, 3000), "{tier}");
        assert_eq!(counts.view(0), (3000, 0));
        assert!(counts.rows.iter().all(|row| row.request == 42));
    }
}

#[test]
fn counters_are_wanted_of_changes_of_full_arenas_and_of_every_fourth_frame() {
    let gpu = gpu();
    let device = gpu.device;
    let options = CullerOptions {
        survivor_capacity: 1000,
        ..CullerOptions::default()
    };
    let (mut culler, _) = Culler::new(device, options).unwrap();
    let row = (0..5000).map(|i| Vec3::new(i as f32, 0.0, 0.0));
    let set = bevy_gpu_culling::instance::InstanceSet::from_transforms(row).unwrap();
    // A view that keeps instances below `x`.
    let below = |x| CullView::from_planes([Vec4::new(-1.0, 0.0, 0.0, x); 6]);
    let mut scene = one_view(set, below(200.0));
    let mut wanted = |scene: &Scene, frames: usize| -> Vec<bool> {
        let frame = |_| {
            run(&mut culler, gpu, scene);
            device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
            culler.wants_counts()
        };
        (0..frames).map(frame).collect()
    };
    let seldom = [false, false, false, true];
    assert_eq!(wanted(&scene, 4), [true; 4]);
    assert_eq!(wanted(&scene, 4), seldom);
    scene.frame.views[0] = below(210.0);
    assert_eq!(wanted(&scene, 4), seldom, "the plan is the same");
    scene.frame.requests[0].sphere.radius = 0.25;
    assert_eq!(wanted(&scene, 8), [&[true; 4][..], &seldom].concat());
    scene.sets.push(random_set(&mut rng(4), 70, ScaleKind::One));
    assert_eq!(wanted(&scene, 4), seldom, "no request asks for the new set");
    scene.sets[1].truncate(60);
    assert_eq!(wanted(&scene, 4), seldom, "nor for it when it has changed");
    // The counters that show the change arrive with the next frame.
    scene.frame.views[0] = below(300.0);
    assert_eq!(wanted(&scene, 4), [false, true, true, true]);
    scene.frame.views[0] = below(200.0);
    assert_eq!(wanted(&scene, 4), [true, false, false, true]);
}

#[test]
fn what_was_bound_for_a_batch_is_not_taken_for_one_made_later() {
    let gpu = gpu();
    let (mut culler, _) = Culler::new(gpu.device, CullerOptions::default()).unwrap();
    let scene = random_scene(&mut rng(12), &[5000]);
    run(&mut culler, gpu, &scene);
    let before = culler.batch_version(0).unwrap();
    culler.prepare(gpu, &scene.frame);
    assert_eq!(culler.batch_version(0), Some(before), "the same buffers");
    // Enough frames without the batch for it to be dropped.
    for _ in 0..200 {
        culler.prepare(gpu, &CullFrame::default());
    }
    culler.prepare(gpu, &scene.frame);
    assert_ne!(culler.batch_version(0), Some(before));
}

#[test]
fn an_unchanged_frame_uploads_nothing() {
    let gpu = gpu();
    let (mut culler, _) = Culler::new(gpu.device, CullerOptions::default()).unwrap();
    let scene = random_scene(&mut rng(11), &[5000, 70]);
    run(&mut culler, gpu, &scene);
    assert!(culler.take_uploaded() > 5070 * 16);
    culler.prepare(gpu, &scene.frame);
    assert_eq!(culler.take_uploaded(), 0);
}

#[test]
fn a_plan_that_is_kept_is_that_of_a_new_culler() {
    let gpu = gpu();
    let mut rng = rng(23);
    for _ in 0..4 {
        let mut scene = random_scene(&mut rng, &[5000, 70, 1025]);
        let (mut culler, _) =
            Culler::new(gpu.device, options(CullingTier::Workgroup, true)).unwrap();
        run(&mut culler, gpu, &scene);
        let mut last = culler.plan().clone();
        culler.take_work();
        for change in 0..11 {
            // Numbers of plans built and of requests mended.
            let all = scene.frame.requests.len() as u64;
            let work = match change {
                0 | 1 => Some((0, 0)),
                2 | 8 | 9 => Some((0, 1)),
                10 => Some((0, all)),
                4 | 5 | 7 => Some((1, 0)),
                // The views may be the same.
                _ => None,
            };
            match change {
                // 0: the views move. 1: nothing changes. 2: a set moves.
                0 => scene.frame.views.iter_mut().for_each(|view| {
                    *view = random_view(&mut rng);
                }),
                1 => {}
                2 => scene.frame.requests[1].world_from_local.translation.x += 1.0,
                // 3: one view fewer sees a set. 4: a mesh is larger. 5: a set is shorter.
                3 => drop(scene.frame.requests[0].views.pop()),
                4 => scene.frame.requests[2].sphere.radius += 0.5,
                5 => scene.sets[2].truncate(900),
                // 6: all views see all sets. 7: two sets have the same transform, and one view
                // fewer sees one of them.
                6 => {
                    let all = 0..scene.frame.views.len() as u32;
                    let requests = scene.frame.requests.iter_mut();
                    requests.for_each(|request| request.views = all.clone().collect());
                }
                7 => {
                    scene.frame.requests[1].world_from_local =
                        scene.frame.requests[0].world_from_local;
                    scene.frame.requests[1].views.pop();
                }
                // 8: a set is shorter, within its blocks. 9: it moves and grows within them. 10:
                // all sets move.
                8 => scene.sets[1].truncate(33),
                9 => {
                    scene.sets[1].extend([Vec3::X; 30]).unwrap();
                    scene.frame.requests[1].world_from_local.translation.y -= 2.0;
                }
                _ => {
                    let turn = Affine3A::from_rotation_x(0.3);
                    for request in &mut scene.frame.requests {
                        request.world_from_local = turn * request.world_from_local;
                    }
                }
            }
            run(&mut culler, gpu, &scene);
            let done = culler.take_work();
            let done = (done.plans, done.mended);
            assert_eq!(done, work.unwrap_or(done), "change {change}");
            compare(&culler, gpu, &scene).unwrap();
            // Plans do not depend on the tier, and this tier compiles nothing.
            let (mut other, _) = Culler::new(gpu.device, options(CullingTier::Cpu, true)).unwrap();
            common::upload(&mut other, gpu, &scene);
            other.prepare(gpu, &scene.frame);
            assert_eq!(culler.plan(), other.plan(), "change {change}");
            for (index, request) in scene.frame.requests.iter().enumerate() {
                for (slot, view) in request.views.iter().enumerate() {
                    let view_in = &scene.frame.views[*view as usize];
                    let mut seen = view_in.planes_in(&request.world_from_local);
                    let (world, radius) = (&request.world_from_local, request.sphere.radius);
                    seen.order = match request.order {
                        Order::FarFirst => view_in.far_first_in(world),
                        _ => view_in.order_in(world, radius),
                    };
                    seen.order.is_near_first = u32::from(request.order == Order::NearFirst);
                    for part in culler.plan().parts(index, slot) {
                        let row =
                            culler.plan().batches[part.batch].chunk_views[part.row as usize].planes;
                        // The bands are compared with the new culler's above.
                        seen.band = row.band;
                        assert_eq!(row, seen, "request {index}, view {view}");
                    }
                }
            }
            let is_same = *culler.plan() == last;
            assert!(is_same || change != 1, "nothing has changed");
            last = culler.plan().clone();
        }
    }
}

#[test]
fn one_set_of_two_thousand_that_moves_uploads_its_own_rows_only() {
    let gpu = gpu();
    let (mut culler, _) = Culler::new(gpu.device, options(CullingTier::Workgroup, true)).unwrap();
    let mut scene = random_scene(&mut rng(31), &[3; 2000]);
    run(&mut culler, gpu, &scene);
    for _ in 0..7 {
        culler.prepare(gpu, &scene.frame);
    }
    let (_, all) = (culler.take_work(), culler.take_uploaded());
    let request = scene.frame.requests.len() / 2;
    for frame in 0..3 {
        scene.frame.requests[request].world_from_local.translation.x += 1.0;
        culler.prepare(gpu, &scene.frame);
        let work = culler.take_work();
        assert_eq!((work.plans, work.mended), (0, 1), "frame {frame}");
        let uploaded = culler.take_uploaded();
        assert!(
            uploaded > 0 && 20 * uploaded < all,
            "{uploaded} of {all} bytes"
        );
        assert!(!culler.wants_counts(), "frame {frame}");
    }
}

#[test]
fn many_scattered_edits_are_few_writes_and_one_dispatch() {
    let gpu = gpu();
    let Gpu { device, queue } = gpu;
    for tier in [CullingTier::Workgroup, CullingTier::Cpu] {
        let (mut culler, _) = Culler::new(device, options(tier, true)).unwrap();
        let mut dice = rng(41);
        let mut scene = random_scene(&mut dice, &[1]);
        scene.sets[0] = random_set(&mut dice, 50_000, ScaleKind::Uniform);
        run(&mut culler, gpu, &scene);
        culler.take_work();
        let moved = random_set(&mut dice, 50_000, ScaleKind::Uniform);
        let set = &mut scene.sets[0];
        let ranges: Vec<_> = (0..400usize)
            .map(|i| i * 121..i * 121 + 1 + i % 5)
            .collect();
        for index in ranges.iter().cloned().flatten() {
            let index = index as u32;
            set.set(index, moved.get(index).unwrap()).unwrap();
        }
        let (packed, scales) = (set.packed().to_vec(), set.scale_floats().to_vec());
        let store = culler.store_mut();
        let parts = ranges
            .iter()
            .map(|range| (range.start, &packed[range.clone()]));
        store.upload_parts(queue, SetId(0), parts).unwrap();
        let parts = ranges
            .iter()
            .map(|range| (range.start, &scales[range.clone()]));
        store.upload_scale_parts(queue, SetId(0), parts).unwrap();
        culler.prepare(gpu, &scene.frame);
        let work = culler.take_work();
        let jobs = u64::from(tier != CullingTier::Cpu);
        assert_eq!((work.writes, work.bound_jobs), (2, jobs), "{tier:?}");
        let read = culler.store().read_instances(gpu, SetId(0)).unwrap();
        assert_eq!(read, (packed, scales), "{tier:?}");
    }
}

#[test]
fn a_set_keeps_its_place_until_it_outgrows_it() {
    use bevy_gpu_culling::cull::{Channels, Residency};
    let Gpu { device, queue } = gpu();
    let (mut culler, _) = Culler::new(device, CullerOptions::default()).unwrap();
    let bytes = culler.gpu_bytes();
    let reserve = |culler: &mut Culler, len| {
        culler
            .store_mut()
            .reserve_set(device, SetId(1), len, Channels::default())
            .unwrap()
    };
    assert_eq!(reserve(&mut culler, 1000), Residency::Moved);
    assert_eq!(reserve(&mut culler, 1024), Residency::Kept);
    assert_eq!(reserve(&mut culler, 1025), Residency::Moved);
    assert_eq!(
        reserve(&mut culler, 1664),
        Residency::Kept,
        "half as much again, in whole granules"
    );
    let data = random_set(&mut rng(1), 10, ScaleKind::One);
    let error = culler
        .store_mut()
        .upload(queue, SetId(1), 1656, data.packed());
    assert_eq!(
        error,
        Err(CullError::UploadOutOfRange {
            first: 1656,
            end: 1666,
            len: 1664
        })
    );
    // The set has no scales.
    assert_eq!(
        culler
            .store_mut()
            .upload_scales(queue, SetId(1), 0, &[1.0, 2.0]),
        Err(CullError::ScaleNumbers {
            numbers: 2,
            per_instance: 0
        })
    );
    // Nor has it data; then it gets tags, and then more, which needs other buffers.
    let upload = |culler: &mut Culler, data: &[u32]| {
        culler.store_mut().upload_data(queue, SetId(1), 0, data)
    };
    let wrong = |words, per_instance| {
        Err(CullError::DataWords {
            words,
            per_instance,
        })
    };
    assert_eq!(upload(&mut culler, &[1]), wrong(1, 0));
    for (data_words, residency) in [(1, Residency::Kept), (2, Residency::Moved)] {
        let channels = Channels {
            data_words,
            ..Channels::default()
        };
        let reserved = culler
            .store_mut()
            .reserve_set(device, SetId(1), 1664, channels);
        assert_eq!(reserved, Ok(residency));
        let words = data_words as usize;
        assert_eq!(upload(&mut culler, &vec![7; 2 * words]), Ok(()));
    }
    assert_eq!(upload(&mut culler, &[1, 2, 3]), wrong(3, 2));
    culler.store_mut().remove_set(SetId(1));
    assert_eq!(
        culler.store_mut().upload(queue, SetId(1), 0, data.packed()),
        Err(CullError::UnknownSet(1))
    );
    assert_eq!(culler.gpu_bytes(), bytes, "a page without sets is dropped");
}

#[test]
fn written_nan_is_invisible() {
    let gpu = gpu();
    for tier in CullingTier::ALL {
        let set = random_set(&mut rng(5), 100, ScaleKind::One);
        let mut broken = set.packed().to_vec();
        broken[17].position[1] = f32::NAN;
        broken[18].position[0] = f32::INFINITY;
        let scene = one_view(set, CullView::EVERYTHING);
        let (mut culler, _) = Culler::new(gpu.device, options(tier, true)).unwrap();
        common::upload(&mut culler, gpu, &scene);
        culler
            .store_mut()
            .upload(gpu.queue, SetId(0), 0, &broken)
            .unwrap();
        run_resident(&mut culler, gpu, &scene.frame);
        let ids = culler.read_survivors(gpu, &scene.frame, 0, 0).unwrap();
        assert_eq!(ids.len(), 98, "{tier}");
        assert!(!ids.contains(&17) && !ids.contains(&18));
    }
}

#[test]
fn a_tier_that_the_device_lacks_is_refused_by_name() {
    let adapter = pollster::block_on(instance().request_adapter(&Default::default())).unwrap();
    let (device, _) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
        required_features: wgpu::Features::INDIRECT_FIRST_INSTANCE & adapter.features(),
        ..Default::default()
    }))
    .unwrap();
    let error = Culler::new(&device, options(CullingTier::Subgroup, false))
        .err()
        .unwrap();
    assert!(error.to_string().contains("SUBGROUP"), "{error}");
    let (culler, reason) = Culler::new(&device, CullerOptions::default()).unwrap();
    assert_eq!(culler.tier(), CullingTier::Workgroup);
    assert!(reason.unwrap().contains("SUBGROUP"));
}
