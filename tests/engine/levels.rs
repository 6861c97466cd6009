//! Levels of detail: of each view, an instance is drawn at one level, and by its error.

mod sharing;

use crate::common::{Scene, gpu, options, random_scene, rng, run};
use bevy_gpu_culling::cull::{
    BoundingSphere, CoarserLevel, Compaction, CullFrame, CullRequest, CullView, Culler,
    CullerOptions, CullingTier, DistanceRange, DrawShape, DrawSource, ErrorRange, Gpu, LodEye,
    SetId,
};
use bevy_gpu_culling::instance::{InstanceSet, InstanceTransform};
use glam::camera::rh::proj::directx;
use glam::{Affine3A, Mat4, Vec3};
use rand::RngExt;
use std::collections::HashSet;

const TIERS: [CullingTier; 3] = [
    CullingTier::Subgroup,
    CullingTier::Workgroup,
    CullingTier::Cpu,
];

fn shape(index_count: u32) -> DrawShape {
    DrawShape::Indexed {
        index_count,
        first_index: 0,
        base_vertex: 0,
    }
}

/// A request of set 0 with levels of these errors. Its spheres have diameter 0.5, so that the
/// nearest points of a row of instances are at 0.25, 1.25 and so on.
fn request(errors: &[f32], views: u32) -> CullRequest {
    let level = |(index, error): (usize, &f32)| CoarserLevel {
        shape: shape(30 - index as u32),
        error: *error,
        sphere: None,
    };
    CullRequest {
        coarser: Some(errors.iter().enumerate().map(level).collect()),
        views: (0..views).collect(),
        ..CullRequest::new(
            SetId(0),
            BoundingSphere {
                center: Vec3::ZERO,
                radius: 0.25,
            },
            shape(36),
        )
    }
}

fn with(compaction: Compaction, tier: CullingTier) -> CullerOptions {
    CullerOptions {
        compaction,
        ..options(tier, true)
    }
}

/// The survivors of a view, level after level.
fn survivors(
    culler: &Culler,
    gpu: Gpu<'_>,
    scene: &Scene,
    request: usize,
    view: usize,
) -> Vec<u32> {
    culler
        .read_survivors(gpu, &scene.frame, request, view)
        .unwrap()
}

/// Instances along x, one per unit, seen from the origin: level k begins at the distance from which
/// its error is seen as one pixel at the nearest point.
#[test]
fn a_level_begins_where_its_error_is_seen_as_the_greatest_allowed() {
    let gpu = gpu();
    let places = (1..=4000).map(|x| InstanceTransform {
        translation: Vec3::X * (x as f32 - 0.5),
        scale: Vec3::splat(if x % 2 == 0 { 2.0 } else { 1.0 }),
        ..InstanceTransform::default()
    });
    let eye = LodEye {
        position: Vec3::ZERO,
        is_orthographic: false,
        resolution: 1000.0,
        min_resolution: f32::INFINITY,
        pixels: 0.0,
        fades: false,
    };
    let flat = LodEye {
        is_orthographic: true,
        resolution: 60.0,
        ..eye
    };
    // The set is stretched by 3, and so are distances and errors.
    let mut request = request(&[0.01, 0.1, 1.0], 3);
    request.world_from_local = Affine3A::from_scale(Vec3::splat(3.0));
    let scene = Scene {
        sets: vec![InstanceSet::from_transforms(places).unwrap()],
        frame: CullFrame {
            views: vec![
                CullView::EVERYTHING.with_lods_of(eye),
                CullView::EVERYTHING.with_lods_of(flat),
                CullView::EVERYTHING,
            ],
            requests: vec![request],
            ..CullFrame::default()
        },
    };
    // Level k begins at distance error * scale * 1000. At the orthographic view, an instance of
    // scale 1 sees errors of 1.8, 18 and 180, one of scale 2 of twice as much.
    let level_of = |id: u32| {
        let scale = if (id + 1).is_multiple_of(2) { 2.0 } else { 1.0 };
        let apart = id as f32 + 0.5 - 0.25 * scale;
        [0.01, 0.1, 1.0]
            .iter()
            .filter(|error| apart >= *error * scale * 1000.0)
            .count()
    };
    for tier in TIERS {
        let (mut culler, _) = Culler::new(gpu.device, with(Compaction::Auto, tier)).unwrap();
        run(&mut culler, gpu, &scene);
        let parts = culler.draw_parts(0, 0).to_vec();
        assert_eq!(
            parts.iter().map(|part| part.level).collect::<Vec<_>>(),
            [0, 1, 2, 3]
        );
        let drawn = |view| {
            let batch = culler.read_batch(gpu, 0).unwrap();
            let parts = culler.draw_parts(0, view).iter();
            parts
                .map(|part| {
                    let command = batch.draws[part.row as usize];
                    (command.element_count, command.instance_count)
                })
                .collect::<Vec<_>>()
        };
        let mut expected = [0; 4];
        (0..4000).for_each(|id| expected[level_of(id)] += 1);
        assert_eq!(
            drawn(0),
            [
                (36, expected[0]),
                (30, expected[1]),
                (29, expected[2]),
                (28, expected[3])
            ],
            "{tier}"
        );
        let ids = survivors(&culler, gpu, &scene, 0, 0);
        assert!(
            ids.is_sorted_by_key(|id| level_of(*id)),
            "level after level"
        );
        // Nothing is coarse enough for an orthographic view that sees each error larger than
        // allowed.
        assert_eq!(drawn(1), [(36, 4000), (30, 0), (29, 0), (28, 0)], "{tier}");
        assert_eq!(drawn(2), [(36, 4000), (30, 0), (29, 0), (28, 0)], "{tier}");
    }
}

/// The nearest point of a large sphere is much nearer than its center, and decides: no survivor of
/// a coarser level has a larger error than allowed there.
#[test]
fn no_point_of_an_instance_has_a_larger_error_than_allowed() {
    let gpu = gpu();
    let eye = LodEye {
        position: Vec3::new(3.0, -2.0, 5.0),
        resolution: 1303.0,
        fades: false,
        ..EYE
    };
    let mut rng = rng(0x3e7);
    let mut far = || Vec3::from_array([(); 3].map(|()| rng.random_range(-150.0..150.0)));
    // From the middle of a sphere to four radii.
    let mut places: Vec<_> = (0..400).map(|i| Vec3::X * (0.5 * i as f32)).collect();
    places.extend((0..600).map(|_| far()));
    let scale = |id: usize| 1.0 + (id % 3) as f32;
    let transform = |(id, place): (usize, &Vec3)| InstanceTransform {
        translation: *place,
        scale: Vec3::splat(scale(id)),
        ..InstanceTransform::default()
    };
    let set = InstanceSet::from_transforms(places.iter().enumerate().map(transform)).unwrap();
    for (error, world_scale) in [(0.05, 1.0), (0.002, 2.0), (0.1, 0.5)] {
        let mut request = request(&[error, error * 2.0], 1);
        request.sphere.radius = 25.0;
        let turned = Affine3A::from_rotation_y(0.7) * Affine3A::from_translation(Vec3::Y);
        request.world_from_local = turned * Affine3A::from_scale(Vec3::splat(world_scale));
        let world = request.world_from_local;
        let scene = Scene {
            sets: vec![set.clone()],
            frame: CullFrame {
                views: vec![CullView::EVERYTHING.with_lods_of(eye)],
                requests: vec![request],
                ..CullFrame::default()
            },
        };
        // The distance at which the level's error is seen as one pixel, over the distance of the
        // nearest point.
        let seen = |id: u32, level: usize| {
            let size = scale(id as usize) * world_scale;
            let center = world.transform_point3(places[id as usize]);
            let nearest = center.distance(eye.position) - 25.0 * size;
            (error * level as f32 * size * 1303.0, nearest)
        };
        for tier in TIERS {
            let (mut culler, _) = Culler::new(gpu.device, with(Compaction::Auto, tier)).unwrap();
            run(&mut culler, gpu, &scene);
            let mut count = [0; 3];
            for part in culler.draw_parts(0, 0).to_vec() {
                let level = part.level;
                for id in culler.read_part(gpu, SetId(0), &part).unwrap() {
                    count[level] += 1;
                    let (begin, nearest) = seen(id, level);
                    let name = format!("{tier}, {error}: {id} at level {level}");
                    assert!(
                        level == 0 || begin <= nearest * 1.0001 + 1e-3,
                        "{name}: {nearest}"
                    );
                    let (next, _) = seen(id, level + 1);
                    let is_last = level == 2 || next >= nearest * 0.9999 - 1e-3;
                    assert!(is_last, "{name}: {nearest}, and the next begins at {next}");
                }
            }
            let levels = count.iter().filter(|count| **count > 20).count();
            assert!(levels >= 2 && count[0] > 20, "{tier}, {error}: {count:?}");
        }
    }
}

/// An orthographic view has one level per scale.
#[test]
fn an_orthographic_view_draws_small_instances_at_coarse_levels() {
    let gpu = gpu();
    let scales = [1.0, 0.5, 0.05, 0.005];
    let places = (0..400).map(|i| InstanceTransform {
        translation: Vec3::X * i as f32,
        scale: Vec3::splat(scales[i % 4]),
        ..InstanceTransform::default()
    });
    let eye = LodEye {
        position: Vec3::ZERO,
        is_orthographic: true,
        resolution: 100.0,
        min_resolution: f32::INFINITY,
        pixels: 0.0,
        fades: false,
    };
    let scene = Scene {
        sets: vec![InstanceSet::from_transforms(places).unwrap()],
        frame: CullFrame {
            views: vec![CullView::EVERYTHING.with_lods_of(eye)],
            requests: vec![request(&[0.015, 0.15, 1.5], 1)],
            ..CullFrame::default()
        },
    };
    // Errors in multiples of the greatest allowed: 1.5, 15 and 150 at scale 1; 0.75, 7.5 and 75 at
    // 0.5; 0.075, 0.75 and 7.5 at 0.05; all below 1 at 0.005.
    for tier in TIERS {
        let (mut culler, _) = Culler::new(gpu.device, with(Compaction::Auto, tier)).unwrap();
        run(&mut culler, gpu, &scene);
        let batch = culler.read_batch(gpu, 0).unwrap();
        let counts: Vec<_> = batch.draws.iter().map(|draw| draw.instance_count).collect();
        assert_eq!(counts, [100, 100, 100, 100], "{tier}");
        let ids = survivors(&culler, gpu, &scene, 0, 0);
        assert!(ids.is_sorted_by_key(|id| id % 4));
    }
}

/// With any compaction, the levels of a view share out what the view keeps without levels. Only an
/// instance on the border of a view may be kept in one case and not in the other.
#[test]
fn each_survivor_is_in_one_level() {
    let gpu = gpu();
    let mut rng = rng(0x10d);
    let mut kept_at_coarser_levels = 0;
    for case in 0..4 {
        let lengths = [10f32.powf(rng.random_range(2.0..4.2)) as usize, 700];
        let mut scene = random_scene(&mut rng, &lengths);
        scene.frame.views.truncate(8);
        for request in &mut scene.frame.requests {
            let errors: Vec<f32> = (0..4).map(|k| 0.003 * 4f32.powi(k)).collect();
            request.coarser = self::request(&errors, 0).coarser;
            (request.fade, request.errors) = (0.0, ErrorRange::default());
        }
        let mut plain = scene.frame.clone();
        for request in &mut plain.requests {
            request.coarser = None;
        }
        let plain = Scene {
            sets: scene.sets.clone(),
            frame: plain,
        };
        for tier in TIERS {
            for compaction in Compaction::supported(tier, gpu.device.features()) {
                let (mut culler, _) = Culler::new(gpu.device, with(compaction, tier)).unwrap();
                let mut read = |scene: &Scene| {
                    run(&mut culler, gpu, scene);
                    let mut all = Vec::new();
                    for (index, request) in scene.frame.requests.iter().enumerate() {
                        for view in 0..request.views.len() {
                            all.push(survivors(&culler, gpu, scene, index, view));
                        }
                    }
                    let coarser = culler
                        .plan()
                        .batches
                        .iter()
                        .flat_map(|batch| &batch.chunk_views);
                    (
                        all,
                        coarser.filter(|view| view.planes.band.low > 0.0).count(),
                    )
                };
                let (whole, none) = read(&plain);
                let (levels, some) = read(&scene);
                assert_eq!(none, 0);
                kept_at_coarser_levels += some;
                for (whole, levels) in whole.iter().zip(&levels) {
                    let of_whole: HashSet<u32> = whole.iter().copied().collect();
                    let of_levels: HashSet<u32> = levels.iter().copied().collect();
                    assert_eq!(
                        of_levels.len(),
                        levels.len(),
                        "case {case}, {compaction} on {tier}: an instance is in two levels"
                    );
                    let differ = of_whole.symmetric_difference(&of_levels).count();
                    assert!(
                        differ * 1000 <= whole.len(),
                        "case {case}, {compaction} on {tier}: {differ} of {} differ",
                        whole.len()
                    );
                }
            }
        }
    }
    assert!(kept_at_coarser_levels > 100, "{kept_at_coarser_levels}");
}

/// A camera that comes nearer changes the bands, not the plan.
/// The levels of a view are one draw of contiguous commands, except on the tier without any.
#[test]
fn levels_of_a_view_are_contiguous_rows() {
    let gpu = gpu();
    let eye = LodEye {
        position: Vec3::ZERO,
        is_orthographic: false,
        resolution: 10.0,
        min_resolution: f32::INFINITY,
        pixels: 1.0,
        fades: false,
    };
    let scene = row_of(3000, request(&[1.0, 2.0], 1), eye);
    for tier in TIERS {
        let (mut culler, _) = Culler::new(gpu.device, options(tier, true)).unwrap();
        run(&mut culler, gpu, &scene);
        let [full, near, far] = culler.draw_parts(0, 0) else {
            panic!("{:?}", culler.draw_parts(0, 0))
        };
        assert!(near.follows(full, 1) && far.follows(full, 2));
        assert!(!far.follows(full, 1) && !full.follows(near, 1));
        let rows = |first, rows| Some(culler.rows_source(first, rows)?.max);
        let all = (tier != CullingTier::Cpu).then_some(3);
        assert_eq!(rows(full, 3), all, "{tier}");
        // There are three.
        assert_eq!((rows(full, 4), rows(far, 2)), (None, None));
        assert_eq!(rows(full, Culler::MAX_ROWS_OF_A_DRAW + 1), None);
        if let Some(DrawSource::Indirect(one)) = culler.draw_source(near) {
            let two = culler.rows_source(near, 2).unwrap();
            assert_eq!((two.buffer, two.offset), (one.buffer, one.offset));
        }
    }
}

#[test]
fn a_camera_that_moves_keeps_the_plan() {
    let gpu = gpu();
    let places = (0..3000).map(|x| InstanceTransform {
        translation: Vec3::Z * -(x as f32 + 0.5),
        ..InstanceTransform::default()
    });
    let view = |z: f32| {
        let clip = directx::perspective_infinite_reverse(1.0, 1.0, 0.1)
            * Mat4::from_translation(Vec3::Z * -z);
        CullView::from_clip_from_world(&clip).with_lods_of(LodEye {
            position: Vec3::Z * z,
            is_orthographic: false,
            resolution: 1000.0,
            min_resolution: f32::INFINITY,
            pixels: 0.0,
            fades: false,
        })
    };
    let mut scene = Scene {
        sets: vec![InstanceSet::from_transforms(places).unwrap()],
        frame: CullFrame {
            views: vec![view(0.0)],
            requests: vec![request(&[0.1, 1.0], 1)],
            ..CullFrame::default()
        },
    };
    let (mut culler, _) =
        Culler::new(gpu.device, with(Compaction::Auto, CullingTier::Workgroup)).unwrap();
    let counts = |culler: &Culler| {
        let batch = culler.read_batch(gpu, 0).unwrap();
        batch
            .draws
            .iter()
            .map(|draw| draw.instance_count)
            .collect::<Vec<_>>()
    };
    run(&mut culler, gpu, &scene);
    assert_eq!(counts(&culler), [100, 900, 2000]);
    scene.frame.views = vec![view(50.0)];
    run(&mut culler, gpu, &scene);
    assert_eq!(counts(&culler), [50, 900, 2050]);
}

/// A view of instances that draws everything, by the number of survivors of each level.
fn counts_of(culler: &mut Culler, gpu: Gpu<'_>, scene: &Scene) -> Vec<u32> {
    run(culler, gpu, scene);
    let batch = culler.read_batch(gpu, 0).unwrap();
    let draws = batch.draws.iter();
    draws.map(|draw| draw.instance_count).collect()
}

/// Instances along x, at 0.5, 1.5 and so on, seen from the origin.
fn row_of(len: u32, request: CullRequest, eye: LodEye) -> Scene {
    let places = (0..len).map(|x| InstanceTransform::from(Vec3::X * (x as f32 + 0.5)));
    Scene {
        sets: vec![InstanceSet::from_transforms(places).unwrap()],
        frame: CullFrame {
            views: vec![CullView::EVERYTHING.with_lods_of(eye)],
            requests: vec![request],
            ..CullFrame::default()
        },
    }
}

const EYE: LodEye = LodEye {
    position: Vec3::ZERO,
    is_orthographic: false,
    resolution: 1000.0,
    min_resolution: f32::INFINITY,
    pixels: 0.0,
    fades: true,
};

/// Levels overlap by the share of the distance at which the coarser begins, but never three of
/// them. A view that does not fade, such as a shadow's, has the coarser one alone.
#[test]
fn levels_overlap_where_they_fade() {
    let gpu = gpu();
    let mut request = request(&[0.1, 1.0, 1.1], 1);
    request.fade = 0.2;
    // They begin at 100, 1000 and 1100: the full mesh ends at 120, the first coarser level at 1100
    // instead of 1200, and the next at 1320.
    let mut scene = row_of(2000, request, EYE);
    for tier in TIERS {
        let (mut culler, _) = Culler::new(gpu.device, with(Compaction::Auto, tier)).unwrap();
        scene.frame.views[0] = CullView::EVERYTHING.with_lods_of(EYE);
        let counts = counts_of(&mut culler, gpu, &scene);
        assert_eq!(counts, [120, 1000, 320, 900], "{tier}");
        scene.frame.views[0] = CullView::EVERYTHING.with_lods_of(LodEye {
            fades: false,
            ..EYE
        });
        let counts = counts_of(&mut culler, gpu, &scene);
        assert_eq!(counts, [100, 900, 100, 900], "{tier}");
    }
}

/// A visibility range is measured in the world, from the instances' origins or centers, and it
/// limits every level.
#[test]
fn a_range_limits_the_distance_in_the_world() {
    let gpu = gpu();
    let range = |start, end, of_centers| {
        Some(DistanceRange {
            start,
            end,
            of_centers,
        })
    };
    let cases = [
        // In the set, distances are a third.
        (0.0, range(300.0, 900.0, false), [0, 200, 0]),
        (0.0, range(0.0, 600.0, false), [100, 100, 0]),
        (0.0, range(600.0, f32::INFINITY, false), [0, 800, 1000]),
        (0.0, range(-1.0, f32::NAN, false), [100, 900, 1000]),
        (0.0, range(f32::NAN, 600.0, true), [100, 100, 0]),
        (0.0, range(500.0, 500.0, false), [0, 0, 0]),
        (0.0, range(500.0, 400.0, false), [0, 0, 0]),
        // The centers are two units farther. Levels go by their spheres.
        (2.0, range(0.0, 300.0, false), [98, 2, 0]),
        (2.0, range(0.0, 300.0, true), [98, 0, 0]),
    ];
    for tier in TIERS {
        let (mut culler, _) = Culler::new(gpu.device, with(Compaction::Auto, tier)).unwrap();
        for (center, range, expected) in cases {
            let mut request = request(&[0.1, 1.0], 1);
            request.range = range;
            request.world_from_local = Affine3A::from_scale(Vec3::new(3.0, 0.5, 0.1));
            request.sphere.center = Vec3::X * center;
            let counts = counts_of(&mut culler, gpu, &row_of(2000, request, EYE));
            assert_eq!(counts, expected, "{tier}, {center}, {range:?}");
        }
    }
}

/// What a view sees smaller than it draws is rejected, at every level.
#[test]
fn what_is_too_small_is_not_drawn() {
    let gpu = gpu();
    let eye = LodEye {
        min_resolution: 1000.0,
        pixels: 0.0,
        ..EYE
    };
    // Diameter 0.5: too small from 500 on.
    for (errors, expected) in [
        (&[][..], vec![500]),
        (&[0.1], vec![100, 400]),
        (&[0.1, 0.3, 1.0], vec![100, 200, 200, 0]),
    ] {
        for tier in TIERS {
            let (mut culler, _) = Culler::new(gpu.device, with(Compaction::Auto, tier)).unwrap();
            let scene = row_of(2000, request(errors, 1), eye);
            assert_eq!(counts_of(&mut culler, gpu, &scene), expected, "{tier}");
        }
    }
}

/// Sets and views in which distances mean nothing draw the full mesh.
#[test]
fn what_has_no_distance_is_drawn_in_full() {
    let gpu = gpu();
    let usual = || request(&[0.1, 1.0], 1);
    let flattened = CullRequest {
        world_from_local: Affine3A::from_scale(Vec3::new(1.0, 0.0, 1.0)),
        ..usual()
    };
    let vanished = CullRequest {
        world_from_local: Affine3A::from_scale(Vec3::ZERO),
        ..usual()
    };
    let mut point = usual();
    point.sphere.radius = 0.0;
    let with_resolution = |resolution| LodEye { resolution, ..EYE };
    let lost = LodEye {
        position: Vec3::NAN,
        ..EYE
    };
    let cases = [
        ("as usual", usual(), EYE, [100, 900, 1000]),
        // It still has a length along x.
        ("a flattened set", flattened, EYE, [100, 900, 1000]),
        ("a set without size", vanished, EYE, [2000, 0, 0]),
        ("a mesh without size", point.clone(), EYE, [2000, 0, 0]),
        (
            "a mesh without size that is too small",
            point,
            LodEye {
                min_resolution: 1.0,
                pixels: 0.0,
                ..EYE
            },
            [2000, 0, 0],
        ),
        (
            "no error allowed",
            usual(),
            with_resolution(f32::INFINITY),
            [2000, 0, 0],
        ),
        (
            "no resolution",
            usual(),
            with_resolution(f32::NAN),
            [2000, 0, 0],
        ),
        (
            "a negative one",
            usual(),
            with_resolution(-1.0),
            [2000, 0, 0],
        ),
        ("an eye nowhere", usual(), lost, [2000, 0, 0]),
    ];
    for tier in TIERS {
        let (mut culler, _) = Culler::new(gpu.device, with(Compaction::Auto, tier)).unwrap();
        for (name, request, eye, expected) in &cases {
            let scene = row_of(2000, request.clone(), *eye);
            let counts = counts_of(&mut culler, gpu, &scene);
            assert_eq!(counts, expected, "{tier}: {name}");
        }
    }
}
