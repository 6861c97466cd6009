//! Requests that draw several shapes: one vote, one list, and a command per shape.

use crate::common::{Scene, compare_shapes, gpu, options, random_scene, rng, run, upload};
use bevy_gpu_culling::cull::{
    CoarserLevel, Compaction, Culler, CullerOptions, CullingTier, DrawShape, DrawSource,
    ErrorRange, FurtherShape, Gpu,
    layout::{Batch, DrawCommand, args_offset},
};
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

/// One compaction per kernel that writes commands, and the tier `Cpu`. The test `ladder` checks the
/// commands of all others.
const RUNGS: [(Compaction, CullingTier); 6] = [
    (Compaction::VoteScanCompact, CullingTier::Cpu),
    (Compaction::VoteScanCompact, CullingTier::Workgroup),
    (Compaction::Classify, CullingTier::Subgroup),
    (Compaction::LookBack, CullingTier::Subgroup),
    (Compaction::NaiveAtomic, CullingTier::Workgroup),
    (Compaction::HillisSteele, CullingTier::Workgroup),
];

fn culler(device: &wgpu::Device, (compaction, tier): (Compaction, CullingTier)) -> Culler {
    let options = CullerOptions {
        compaction,
        ..options(tier, true)
    };
    Culler::new(device, options).unwrap().0
}

/// Checks the commands of all draws of a frame. Returns the number of commands of further shapes.
fn check(culler: &Culler, gpu: Gpu<'_>, scene: &Scene) -> Result<u64, String> {
    let mut drawn = 0;
    for (index, request) in scene.frame.requests.iter().enumerate() {
        for view in 0..request.views.len() {
            let parts = culler.draw_parts(index, view);
            drawn += compare_shapes(culler, gpu, request, parts)?;
        }
    }
    Ok(drawn)
}

#[test]
fn every_shape_has_a_command_with_the_survivors_of_the_request() {
    let gpu = gpu();
    let device = gpu.device;
    let mut cullers: Vec<_> = RUNGS.into_iter().map(|rung| culler(device, rung)).collect();
    let (mut rng, mut drawn) = (rng(0x5ab), 0);
    for case in 0..6 {
        // The last cases have several pages and batches per set, and arenas of another size.
        let lengths: &[usize] = match case {
            0..3 => &[3000, 40, 700],
            _ => &[9000, 2000, 5],
        };
        let scene = random_scene(&mut rng, lengths);
        for culler in &mut cullers {
            if case == 3 {
                culler.limit_pages(4096, 10, 3);
            }
            run(culler, gpu, &scene);
            drawn += check(culler, gpu, &scene).unwrap_or_else(|error| {
                let (compaction, tier) = (culler.compaction(), culler.tier());
                panic!("case {case}, {compaction} on {tier}: {error}")
            });
        }
    }
    println!("{drawn} commands of further shapes");
    assert!(drawn > 300, "{drawn} commands of further shapes");
}

/// A scene whose first request draws these shapes at two levels.
fn scene_of(shapes: &[DrawShape]) -> Scene {
    let mut scene = random_scene(&mut rng(0x7ee), &[5000]);
    let level = |shape: &DrawShape| -> Option<Arc<[CoarserLevel]>> {
        let coarser = CoarserLevel {
            shape: match *shape {
                DrawShape::Indexed {
                    first_index,
                    base_vertex,
                    ..
                } => DrawShape::Indexed {
                    index_count: 3,
                    first_index,
                    base_vertex,
                },
                DrawShape::NonIndexed { first_vertex, .. } => DrawShape::NonIndexed {
                    vertex_count: 3,
                    first_vertex,
                },
            },
            error: 0.1,
            sphere: None,
        };
        Some([coarser].into())
    };
    let request = &mut scene.frame.requests[0];
    request.errors = ErrorRange::default();
    request.views = (0..scene.frame.views.len() as u32).collect();
    (request.shape, request.coarser) = (shapes[0], level(&shapes[0]));
    request.more = shapes[1..]
        .iter()
        .map(|shape| FurtherShape {
            shape: *shape,
            coarser: level(shape),
        })
        .collect();
    scene
}

const TRUNK: DrawShape = DrawShape::Indexed {
    index_count: 36,
    first_index: 7,
    base_vertex: -3,
};
const CROWN: DrawShape = DrawShape::NonIndexed {
    vertex_count: 90,
    first_vertex: 4,
};

/// What a frame costs, and what its lists are: dispatches, tables, counters, survivors. And the
/// number of indices and vertices of one survivor of each row.
type Cost = (
    (u32, Batch, Vec<(u32, u32, u32, u32)>, Vec<Vec<u32>>),
    Vec<u32>,
);

fn cost(culler: &mut Culler, gpu: Gpu<'_>, scene: &Scene) -> Cost {
    upload(culler, gpu, scene);
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    let prepared = culler.prepare(gpu, &scene.frame);
    let recorded = prepared.record(gpu, &mut encoder);
    gpu.queue.submit([encoder.finish()]);
    let dispatches = recorded.dispatches;
    culler.finish(recorded);
    gpu.device
        .poll(wgpu::PollType::wait_indefinitely())
        .unwrap();
    let rows = culler.take_counts(gpu.device).unwrap().rows;
    let counted = rows.iter();
    let counted = counted.map(|row| (row.view, row.level, row.tested, row.visible));
    let views = 0..scene.frame.requests[0].views.len();
    // An unordered compaction lists them in another order each time.
    let read = |view| {
        let ids = culler.read_survivors(gpu, &scene.frame, 0, view);
        let mut ids = ids.unwrap();
        ids.sort_unstable();
        ids
    };
    let cost = (
        dispatches,
        culler.plan().batches[0].batch,
        counted.collect(),
        views.map(read).collect(),
    );
    (cost, rows.iter().map(|row| row.element_count).collect())
}

/// Two shapes cost what one costs: the same tables, dispatches, tests and survivors. Commands
/// follow the request's shapes from frame to frame, and an unchanged frame uploads nothing.
#[test]
fn further_shapes_add_commands_alone_and_commands_follow_them() {
    let gpu = gpu();
    for rung in RUNGS {
        let mut culler = culler(gpu.device, rung);
        let sequence: [&[DrawShape]; 6] = [
            &[TRUNK],
            &[TRUNK, CROWN],
            &[TRUNK, TRUNK],
            &[CROWN, TRUNK, CROWN],
            &[CROWN],
            &[TRUNK, CROWN],
        ];
        let mut first = None;
        for shapes in sequence {
            let mut scene = scene_of(shapes);
            let (cost, elements) = cost(&mut culler, gpu, &scene);
            assert!(cost.3.iter().any(|survivors| !survivors.is_empty()));
            assert!(*first.get_or_insert(cost.clone()) == cost, "{rung:?}");
            let of = |shape: &DrawShape, level: usize| match (level, *shape) {
                (0, DrawShape::Indexed { index_count, .. }) => index_count,
                (0, DrawShape::NonIndexed { vertex_count, .. }) => vertex_count,
                _ => 3,
            };
            for (row, elements) in cost.2.iter().zip(elements) {
                let shapes = shapes.iter().map(|shape| of(shape, row.1 as usize));
                assert_eq!(elements, shapes.sum::<u32>(), "{rung:?}");
            }
            check(&culler, gpu, &scene).unwrap_or_else(|error| panic!("{rung:?}: {error}"));
            culler.take_uploaded();
            culler.prepare(gpu, &scene.frame);
            if rung.1 != CullingTier::Cpu {
                assert_eq!(culler.take_uploaded(), 0, "{rung:?}");
            }
            // Only the planes change: the commands stay.
            scene.frame.views.reverse();
            run(&mut culler, gpu, &scene);
            check(&culler, gpu, &scene).unwrap_or_else(|error| panic!("{rung:?}: {error}"));
        }
    }
}

#[test]
fn an_arena_that_is_too_small_clamps_all_commands() {
    let gpu = gpu();
    for rung in RUNGS.into_iter().skip(1) {
        let options = CullerOptions {
            compaction: rung.0,
            survivor_capacity: 100,
            ..options(rung.1, true)
        };
        let (mut culler, _) = Culler::new(gpu.device, options).unwrap();
        let scene = scene_of(&[TRUNK, CROWN, TRUNK]);
        run(&mut culler, gpu, &scene);
        let totals = culler.read_batch(gpu, 0).unwrap().totals;
        assert!(totals.overflow > 0, "{rung:?}: {totals:?}");
        check(&culler, gpu, &scene).unwrap_or_else(|error| panic!("{rung:?}: {error}"));
    }
}

/// What a caller draws is the command of the shape: the one in the buffer, or the CPU's own.
#[test]
fn a_source_is_the_command_of_its_shape() {
    let gpu = gpu();
    for tier in CullingTier::ALL {
        let mut culler = culler(gpu.device, (Compaction::VoteScanCompact, tier));
        let scene = scene_of(&[TRUNK, CROWN]);
        run(&mut culler, gpu, &scene);
        for part in culler.draw_parts(0, 0) {
            for shape in 0..2 {
                let (command, _): (DrawCommand, bool) =
                    culler.read_command(gpu, part, shape).unwrap();
                let index = culler.plan().batches[part.batch]
                    .command_of(part.row, shape)
                    .unwrap();
                match culler.shape_source(part, shape).unwrap() {
                    DrawSource::Direct(direct) => assert_eq!(direct, command),
                    DrawSource::Indirect(draws) => {
                        assert_eq!((draws.offset, draws.max), (args_offset(index), 1));
                    }
                }
            }
            assert!(culler.shape_source(part, 2).is_none());
        }
    }
}

/// Kernels that leave out a part of a sibling command are seen.
#[test]
fn broken_kernels_are_seen() {
    let gpu = gpu();
    let scene = scene_of(&[TRUNK, CROWN, TRUNK]);
    for (compaction, tier) in [RUNGS[1], RUNGS[3]] {
        for (line, instead) in [
            ("", ""),
            (
                "[sibling].instance_count = instances",
                "[sibling].instance_count = 0u",
            ),
            (
                "[sibling].base_vertex_or_first_instance = first",
                "[sibling].base_vertex_or_first_instance = 0u",
            ),
            (
                "[sibling].first_instance = first",
                "[sibling].first_instance = 0u",
            ),
        ] {
            let options = CullerOptions {
                compaction,
                ..options(tier, true)
            };
            let edited = AtomicU32::new(0);
            let edit = |_: &str, source: String| {
                edited.fetch_add(u32::from(source.contains(line)), Ordering::Relaxed);
                source.replace(line, instead)
            };
            let mut culler = Culler::with_sources(gpu.device, options, edit).unwrap();
            assert!(edited.into_inner() > 0, "no kernel has {line}");
            run(&mut culler, gpu, &scene);
            let seen = check(&culler, gpu, &scene);
            assert_eq!(seen.is_err(), !line.is_empty(), "{line}: {seen:?}");
        }
    }
}
