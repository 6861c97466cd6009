//! Visibility ranges and cross-fades: each instance looks like an entity with Bevy's
//! `VisibilityRange`.

use super::{eye, moved, red};
use crate::scene::{How, SIZE, Stage, Stages, assert_same_picture, field, field_of};
use bevy::{
    camera::visibility::VisibilityRange,
    core_pipeline::prepass::{DeferredPrepass, DepthPrepass, MotionVectorPrepass, NormalPrepass},
    pbr::DefaultOpaqueRendererMethod,
    prelude::*,
};
use bevy_gpu_culling::prelude::*;
use core::f32::consts::FRAC_PI_4;

fn range(start: [f32; 2], end: [f32; 2], use_aabb: bool) -> VisibilityRange {
    VisibilityRange {
        start_margin: start[0]..start[1],
        end_margin: end[0]..end[1],
        use_aabb,
    }
}

/// A cone that stands on its origin, so that its center is elsewhere.
fn standing_cone() -> Mesh {
    Mesh::from(Cone::new(0.4, 1.6)).translated_by(Vec3::Y * 0.8)
}

/// Near instances are red cones, far ones green boxes.
fn spawn_both(stage: &mut Stage, ranges: &[VisibilityRange; 2], mask: bool) {
    let set = field(400, true);
    let green = StandardMaterial {
        base_color: Color::srgb(0.3, 0.8, 0.3),
        ..red()
    };
    let meshes = [
        stage.mesh(standing_cone()),
        stage.mesh(Cuboid::from_length(0.5)),
    ];
    let handle = match stage.how {
        How::Set(_) => stage.add(set.clone()),
        How::Entities => Handle::default(),
    };
    for ((mesh, mut material), range) in meshes.into_iter().zip([red(), green]).zip(ranges) {
        if mask {
            material.alpha_mode = AlphaMode::Mask(0.5);
        }
        let material = stage.standard(material);
        match stage.how {
            How::Set(_) => {
                let range = InstanceVisibilityRange(range.clone());
                let set = GpuInstances(handle.clone());
                stage.spawn((Mesh3d(mesh), material, set, moved(), range));
            }
            How::Entities => {
                let parent = stage.spawn((moved(), Visibility::default()));
                for instance in set.iter() {
                    stage.spawn((
                        Mesh3d(mesh.clone()),
                        material.clone(),
                        Transform::from(instance),
                        range.clone(),
                        ChildOf(parent),
                    ));
                }
            }
        }
    }
}

/// On the GPU and on the CPU. That the two tiers of the GPU keep the same instances is tested
/// elsewhere.
const TIERS: [CullingTier; 2] = [CullingTier::Subgroup, CullingTier::Cpu];

#[test]
fn instances_in_ranges_look_like_entities_with_them() {
    let stages = Stages::new(&Stage::new);
    let cases = [
        (
            "abrupt",
            [
                VisibilityRange::abrupt(4.0, 9.0),
                VisibilityRange::abrupt(9.0, 14.0),
            ],
        ),
        (
            "faded",
            [
                range([3.0, 4.0], [7.0, 10.0], false),
                range([7.0, 10.0], [12.0, 16.0], false),
            ],
        ),
        // In the fragment stages of entities, the origin decides in any case.
        (
            "centers",
            [
                VisibilityRange {
                    use_aabb: true,
                    ..VisibilityRange::abrupt(4.0, 9.0)
                },
                VisibilityRange {
                    use_aabb: true,
                    ..VisibilityRange::abrupt(9.0, 14.0)
                },
            ],
        ),
    ];
    for ((name, ranges), tier) in cases.iter().zip(CullingTier::ALL) {
        let build = |stage: &mut Stage| {
            spawn_both(stage, ranges, false);
            stage.lights(true);
            stage.camera(eye(), ());
        };
        let expected = stages.draw(How::Entities, build);
        let picture = stages.draw(How::Set(Some(tier)), build);
        assert_same_picture(&format!("{name} ranges on {tier}"), &picture, &expected);
    }
}

/// With a prepass, deferred, masked, and with several samples per pixel. A depth prepass alone is
/// compared with the picture without one: there, Bevy's entities write the depth of pixels that
/// they do not draw.
#[test]
fn ranges_fade_in_all_passes() {
    let stages = Stages::new(&Stage::new);
    let ranges = [
        range([3.0, 4.0], [7.0, 10.0], false),
        range([7.0, 10.0], [12.0, 16.0], false),
    ];
    let scene = |stage: &mut Stage, mask: bool| {
        spawn_both(stage, &ranges, mask);
        stage.lights(false);
    };
    let forward = |how, mask| {
        stages.draw(how, |stage| {
            scene(stage, mask);
            stage.camera(eye(), Msaa::Sample4);
        })
    };
    let expected = forward(How::Entities, false);
    let depth = |mask| {
        stages.draw(How::Set(None), |stage| {
            scene(stage, mask);
            stage.camera(eye(), DepthPrepass);
        })
    };
    let single = stages.draw(How::Entities, |stage| {
        scene(stage, false);
        stage.camera(eye(), ());
    });
    assert_same_picture("depth prepass", &depth(false), &single);
    assert_same_picture("depth prepass, masked", &depth(true), &single);
    assert_same_picture("masked", &forward(How::Set(None), true), &expected);
    let prepasses = |how| {
        stages.draw(how, |stage| {
            scene(stage, false);
            let prepasses = (DepthPrepass, NormalPrepass, MotionVectorPrepass);
            stage.camera(eye(), (prepasses, Msaa::Sample4));
        })
    };
    assert_same_picture(
        "all prepasses",
        &prepasses(How::Set(None)),
        &prepasses(How::Entities),
    );
    let deferred = |how| {
        stages.draw(how, |stage| {
            stage
                .app
                .insert_resource(DefaultOpaqueRendererMethod::deferred());
            scene(stage, false);
            stage.camera(eye(), (DepthPrepass, DeferredPrepass, Msaa::Off));
        })
    };
    assert_same_picture(
        "deferred",
        &deferred(How::Set(None)),
        &deferred(How::Entities),
    );
}

/// A range may be changed, and one that makes no sense is ignored.
#[test]
fn a_range_follows_its_component() {
    let stages = Stages::new(&Stage::new);
    let set = field(300, false);
    let build = |how: How, range: Option<VisibilityRange>| {
        stages.draw(how, |stage| {
            let mesh = stage.mesh(Cuboid::from_length(0.5));
            let material = stage.standard(red());
            let entity = stage.spawn_set(&set, (mesh, material), moved());
            stage.lights(false);
            stage.camera(eye(), ());
            if let Some(range) = range {
                stage.entity(entity).insert(InstanceVisibilityRange(range));
            }
        })
    };
    let everything = build(How::Set(None), None);
    let mut stage = Stage::new(How::Set(None));
    let mesh = stage.mesh(Cuboid::from_length(0.5));
    let material = stage.standard(red());
    let entity = stage.spawn_set(&set, (mesh, material), moved());
    stage.lights(false);
    stage.camera(eye(), ());
    let faded = range([0.0, 0.0], [6.0, 9.0], false);
    for (name, now) in [
        ("nothing", Some(VisibilityRange::abrupt(500.0, 600.0))),
        ("faded", Some(faded)),
        ("abrupt", Some(VisibilityRange::abrupt(0.0, 9.0))),
        ("ignored", Some(range([5.0, 4.0], [1.0, 2.0], false))),
        ("removed", None),
    ] {
        match now.clone() {
            Some(range) => stage.entity(entity).insert(InstanceVisibilityRange(range)),
            None => stage.entity(entity).remove::<InstanceVisibilityRange>(),
        };
        let picture = stage.picture();
        if name == "nothing" {
            let colors: std::collections::HashSet<_> = picture.pixels().collect();
            assert_eq!(colors.len(), 1, "nothing is drawn");
            continue;
        }
        let expected = match name {
            "ignored" | "removed" => everything.clone(),
            _ => build(How::Set(None), now),
        };
        assert_same_picture(&format!("range changed to {name}"), &picture, &expected);
    }
}

/// The levels of the tests below: the full mesh and two coarser ones.
fn level_meshes(stage: &mut Stage) -> [Handle<Mesh>; 3] {
    [
        stage.mesh(Sphere::new(0.3)),
        stage.mesh(Cuboid::new(0.4, 0.4, 0.4)),
        stage.mesh(Mesh::from(Tetrahedron::default()).scaled_by(Vec3::splat(0.4))),
    ]
}

fn levels(coarser: [Handle<Mesh>; 2], errors: [f32; 2], fade: f32) -> InstanceLods {
    let level = |(mesh, error)| InstanceLod::new(mesh, error);
    InstanceLods {
        levels: coarser.into_iter().zip(errors).map(level).collect(),
        fade,
        ..default()
    }
}

/// A range limits and fades all levels, also if these do not fade into each other.
#[test]
fn a_range_fades_every_level() {
    let stages = Stages::new(&Stage::new);
    let set = field(400, true);
    let place = Transform::from_xyz(0.5, -0.3, -1.0).with_scale(Vec3::splat(1.2));
    let faded = range([3.0, 5.0], [8.0, 13.0], false);
    let expected = stages.draw(How::Entities, |stage| {
        let meshes = level_meshes(stage);
        let material = stage.standard(red());
        let pixels = SIZE.y as f32 / 2.0 / (FRAC_PI_4 / 2.0).tan();
        let mut count = [0; 3];
        for instance in set.iter() {
            let transform = place * Transform::from(instance);
            let apart = eye().translation.distance(transform.translation);
            let nearest = apart - RADIUS * transform.scale.x;
            let begins = |error: &&f32| *error * transform.scale.x * pixels <= nearest;
            let level = ERRORS.iter().filter(begins).count();
            count[level] += i32::from(faded.is_visible_at_all(apart));
            let mesh = Mesh3d(meshes[level].clone());
            stage.spawn((mesh, material.clone(), transform, faded.clone()));
        }
        assert!(count.iter().all(|count| *count > 10), "{count:?}");
        stage.lights(false);
        stage.camera(eye(), ());
    });
    for tier in TIERS {
        let picture = stages.draw(How::Set(Some(tier)), |stage| {
            let [full, coarser @ ..] = level_meshes(stage);
            let material = stage.standard(red());
            let entity = stage.spawn_set(&set, (full, material), place);
            stage.entity(entity).insert(CullingRadius(RADIUS));
            let range = InstanceVisibilityRange(faded.clone());
            let levels = levels(coarser, ERRORS, 0.0);
            stage.entity(entity).insert((levels, range));
            stage.lights(false);
            stage.camera(eye(), ());
        });
        assert_same_picture(&format!("levels in a range on {tier}"), &picture, &expected);
    }
}

/// What is drawn in full does not fade away: with an allowed error of 0, with a mesh without size.
#[test]
fn what_has_no_distance_does_not_fade() {
    let stages = Stages::new(&Stage::new);
    let set = field_of(300, ScaleKind::NonUniform);
    let picture = |errors: Option<[f32; 2]>, change: fn(&mut Stage, Entity)| {
        stages.draw(How::Set(None), |stage| {
            let [full, coarser @ ..] = level_meshes(stage);
            let material = stage.standard(red());
            let entity = stage.spawn_set(&set, (full, material), moved());
            if let Some(errors) = errors {
                stage.entity(entity).insert(levels(coarser, errors, FADE));
            }
            change(stage, entity);
            stage.lights(false);
            stage.camera(eye(), ());
        })
    };
    let no_error: fn(&mut Stage, Entity) = |stage, _| {
        let world = stage.app.world_mut();
        world.resource_mut::<GpuCullingSettings>().lod_pixels = 0.0;
    };
    let no_size: fn(&mut Stage, Entity) = |stage, entity| {
        stage.entity(entity).insert(CullingRadius(0.0));
    };
    for (name, change) in [("no error allowed", no_error), ("no size", no_size)] {
        let expected = picture(None, change);
        for errors in [ERRORS, [0.0, 0.05]] {
            let picture = picture(Some(errors), change);
            assert_same_picture(&format!("{name}, {errors:?}"), &picture, &expected);
        }
    }
}

/// Bevy's own component on a set's entity is of the whole set, by its origin: all instances fade at
/// once.
#[test]
fn bevys_range_acts_on_the_whole_set() {
    let stages = Stages::new(&Stage::new);
    let set = field(300, false);
    let place = Transform::from_xyz(0.5, -0.3, -1.0).with_rotation(Quat::from_rotation_y(0.3));
    let apart = eye().translation.distance(place.translation);
    let picture = |how: How, range: Option<VisibilityRange>| {
        stages.draw(how, |stage| {
            let mesh = stage.mesh(Cuboid::from_length(0.5));
            let material = stage.standard(red());
            match (how, range) {
                (How::Set(_), range) => {
                    let entity = stage.spawn_set(&set, (mesh, material), place);
                    if let Some(range) = range {
                        stage.entity(entity).insert(range);
                    }
                }
                (How::Entities, range) => {
                    for instance in set.iter() {
                        let transform = place * Transform::from(instance);
                        // As far beyond the margin as the set's origin is.
                        let own = eye().translation.distance(transform.translation) - apart;
                        let entity = (Mesh3d(mesh.clone()), material.clone(), transform);
                        let entity = stage.spawn(entity);
                        if let Some(VisibilityRange { end_margin, .. }) = &range {
                            let end = [end_margin.start + own, end_margin.end + own];
                            let range = self::range([-100.0, -100.0], end, false);
                            stage.entity(entity).insert(range);
                        }
                    }
                }
            }
            stage.lights(false);
            stage.camera(eye(), ());
        })
    };
    let half = || Some(range([0.0, 0.0], [apart - 2.0, apart + 2.0], false));
    let fading = [How::Set(None), How::Entities].map(|how| picture(how, half()));
    assert_same_picture("a whole set fades", &fading[0], &fading[1]);
    let everything = picture(How::Set(None), None);
    let near = picture(
        How::Set(None),
        Some(VisibilityRange::abrupt(0.0, apart + 1.0)),
    );
    assert_same_picture("a whole set in its range", &near, &everything);
    let far = picture(
        How::Set(None),
        Some(VisibilityRange::abrupt(0.0, apart - 1.0)),
    );
    let colors: std::collections::HashSet<_> = far.pixels().collect();
    assert_eq!(colors.len(), 1, "nothing is drawn");
}

/// Errors of the levels of the test below.
const ERRORS: [f32; 2] = [0.02, 0.05];
/// The radius by which sets are tested, around all meshes.
const RADIUS: f32 = 0.55;
/// How long they fade.
const FADE: f32 = 0.6;

/// Two levels that fade into each other look like two entities whose ranges do.
#[test]
fn levels_fade_as_entities_do() {
    let stages = Stages::new(&Stage::new);
    let set = field(400, true);
    let place = Transform::from_xyz(0.5, -0.3, -1.0).with_scale(Vec3::splat(1.2));
    let expected = stages.draw(How::Entities, |stage| {
        let meshes = level_meshes(stage);
        let material = stage.standard(red());
        let pixels = SIZE.y as f32 / 2.0 / (FRAC_PI_4 / 2.0).tan();
        for instance in set.iter() {
            let transform = place * Transform::from(instance);
            let begin = ERRORS.map(|error| error * transform.scale.x * pixels);
            let of_center = |distance: f32| distance + RADIUS * transform.scale.x;
            let [near, far] = [
                [begin[0], (begin[0] * (1.0 + FADE)).min(begin[1])],
                [begin[1], begin[1] * (1.0 + FADE)],
            ];
            let [near, far] = [near.map(of_center), far.map(of_center)];
            let ranges = [
                range([0.0, 0.0], near, false),
                range(near, far, false),
                range(far, [1e6, 1e6], false),
            ];
            for (mesh, range) in meshes.iter().zip(ranges) {
                stage.spawn((Mesh3d(mesh.clone()), material.clone(), transform, range));
            }
        }
        stage.lights(false);
        stage.camera(eye(), ());
    });
    for tier in TIERS {
        let picture = stages.draw(How::Set(Some(tier)), |stage| {
            let [full, coarser @ ..] = level_meshes(stage);
            let material = stage.standard(red());
            let entity = stage.spawn_set(&set, (full, material), place);
            stage.entity(entity).insert(CullingRadius(RADIUS));
            stage.entity(entity).insert(levels(coarser, ERRORS, FADE));
            stage.lights(false);
            stage.camera(eye(), ());
        });
        assert_same_picture(&format!("levels fade on {tier}"), &picture, &expected);
    }
}

/// What becomes too small fades away like entities at the end of their range: with and without
/// levels, and if no error is allowed.
#[test]
fn what_becomes_too_small_fades_away() {
    let stages = Stages::new(&Stage::new);
    let set = field(400, true);
    let place = Transform::from_xyz(0.5, -0.3, -1.0).with_scale(Vec3::splat(1.2));
    let errors = [0.01, 0.02];
    for (name, has_levels, lod_pixels, min_pixels) in [
        ("without levels", false, 1.0, 17.0),
        ("with levels", true, 1.0, 18.0),
        ("without allowed errors", true, 0.0, 17.0),
        ("with doubled errors", true, 2.0, 16.0),
    ] {
        let expected = stages.draw(How::Entities, |stage| {
            let meshes = level_meshes(stage);
            let material = stage.standard(red());
            let pixels = SIZE.y as f32 / 2.0 / (FRAC_PI_4 / 2.0).tan();
            let radius = RADIUS;
            let (mut whole, mut fading) = (0, 0);
            for instance in set.iter() {
                let transform = place * Transform::from(instance);
                let begin = errors.map(|error| error * transform.scale.x * pixels / lod_pixels);
                let gone = 2.0 * radius * transform.scale.x * pixels / min_pixels;
                let away = [gone / (1.0 + FADE), gone];
                let apart = eye().translation.distance(transform.translation);
                whole += i32::from(apart < away[0]);
                fading += i32::from((away[0]..away[1]).contains(&apart));
                if !has_levels || lod_pixels == 0.0 {
                    let mesh = Mesh3d(meshes[0].clone());
                    let range = range([0.0, 0.0], away, false);
                    stage.spawn((mesh, material.clone(), transform, range));
                    continue;
                }
                let of_center = |distance: f32| distance + RADIUS * transform.scale.x;
                let near = [begin[0], (begin[0] * (1.0 + FADE)).min(begin[1])].map(of_center);
                let far = [begin[1], begin[1] * (1.0 + FADE)].map(of_center);
                assert!(far[1] <= away[0], "{far:?}, {away:?}");
                let ranges = [
                    range([0.0, 0.0], near, false),
                    range(near, far, false),
                    range(far, away, false),
                ];
                for (mesh, range) in meshes.iter().zip(ranges) {
                    stage.spawn((Mesh3d(mesh.clone()), material.clone(), transform, range));
                }
            }
            assert!(
                whole > 30 && fading > 30,
                "{name}: {whole} whole, {fading} fade"
            );
            stage.lights(false);
            stage.camera(eye(), ());
        });
        let tiers = if has_levels { &TIERS[..1] } else { &TIERS[..] };
        for &tier in tiers {
            let picture = stages.draw(How::Set(Some(tier)), |stage| {
                let world = stage.app.world_mut();
                let mut settings = world.resource_mut::<GpuCullingSettings>();
                (settings.lod_pixels, settings.min_pixels) = (lod_pixels, min_pixels);
                let [full, coarser @ ..] = level_meshes(stage);
                let material = stage.standard(red());
                let entity = stage.spawn_set(&set, (full, material), place);
                stage.entity(entity).insert(CullingRadius(RADIUS));
                let mut lods = levels(coarser, errors, FADE);
                if !has_levels {
                    lods.levels.clear();
                }
                stage.entity(entity).insert(lods);
                stage.lights(false);
                stage.camera(eye(), ());
            });
            let name = format!("too small {name} on {tier}");
            assert_same_picture(&name, &picture, &expected);
        }
    }
}
