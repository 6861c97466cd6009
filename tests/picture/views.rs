//! Views: which of them Bevy draws, and which sets each of them sees.

use super::{box_mesh, eye, red};
use crate::scene::{How, Stage, assert_same_picture, different_pixels, field};
use bevy::{
    camera::{RenderTarget, ScalingMode, visibility::NoCpuCulling},
    light::{CascadeShadowConfigBuilder, DirectionalLightShadowMap, PointLightShadowMap},
    pbr::Shadow,
    prelude::*,
    render::{
        RenderApp, render_phase::ViewBinnedRenderPhases, render_resource::TextureFormat,
        sync_world::SyncToRenderWorld, view::NoIndirectDrawing,
    },
};
use bevy_gpu_culling::{
    prelude::*,
    render::{ViewKind, ViewReport},
};

/// Small shadow maps, and a ground that receives shadows.
fn add_ground(stage: &mut Stage) {
    stage
        .app
        .insert_resource(DirectionalLightShadowMap { size: 256 })
        .insert_resource(PointLightShadowMap { size: 128 });
    let ground = stage.mesh(Plane3d::new(Vec3::Y, Vec2::splat(12.0)));
    let gray = stage.standard(StandardMaterial::from(Color::srgb(0.5, 0.5, 0.55)));
    stage.spawn((Mesh3d(ground), gray, Transform::from_xyz(0.0, -4.5, 0.0)));
}

/// A light like the sun, with two cascades per camera.
fn sun(stage: &mut Stage, from: Vec3) -> Entity {
    let cascades = CascadeShadowConfigBuilder {
        num_cascades: 2,
        maximum_distance: 30.0,
        ..default()
    };
    let light = DirectionalLight {
        illuminance: 3_000.0,
        shadow_maps_enabled: true,
        ..default()
    };
    let at = Transform::from_translation(from).looking_at(Vec3::ZERO, Vec3::Y);
    stage.spawn((light, cascades.build(), at))
}

fn lamp(at: Vec3, shadow_maps_enabled: bool) -> impl Bundle {
    let light = PointLight {
        intensity: 400_000.0,
        range: 20.0,
        shadow_maps_enabled,
        ..default()
    };
    (light, Transform::from_translation(at))
}

/// Number of sets in a street, and of lamps.
const STREET: [usize; 2] = [6, 12];

/// Sets and lamps that are lights and meshes at once, spawned in one of three orders. Some sets are
/// in the render world, too. Returns the sets.
fn street(stage: &mut Stage, order: usize) -> Vec<Entity> {
    let [sets, lamps] = STREET;
    let mesh = stage.mesh(box_mesh());
    let red = stage.standard(red());
    let bulb = stage.mesh(Sphere::new(0.2).mesh().ico(1).unwrap());
    let white = stage.standard(StandardMaterial::from(Color::WHITE));
    let mut found = Vec::new();
    for i in 0..sets + lamps {
        let is_set = match order {
            0 => i < sets,
            1 => i >= lamps,
            _ => i % 3 == 1,
        };
        if !is_set {
            let at = Vec3::new(i as f32 - 9.0, 2.0, (i % 4) as f32 - 2.0);
            // The fifth one casts shadows.
            let lamp = stage.spawn(lamp(at, i - found.len() == 4));
            let bulb = (Mesh3d(bulb.clone()), white.clone());
            stage.entity(lamp).insert(bulb);
            continue;
        }
        let number = found.len();
        let at = Transform::from_xyz(0.3 * number as f32, -1.0, -0.2 * number as f32);
        let set = field(20 + number, false);
        let set = stage.spawn_set(&set, (mesh.clone(), red.clone()), at);
        match number {
            0 => stage.entity(set).insert(SyncToRenderWorld::default()),
            1 => stage.entity(set).insert(InstanceOcclusion::default()),
            2 => stage.entity(set).insert(PointLight::default()),
            _ => &mut stage.entity(set),
        };
        found.push(set);
    }
    found
}

#[test]
fn sets_beside_lamps_and_in_the_render_world_look_like_entities() {
    let mut stages = [How::Set(None), How::Entities].map(Stage::new);
    for order in 0..3 {
        let pictures = stages.each_mut().map(|stage| {
            stage.clear();
            add_ground(stage);
            let sets = street(stage, order);
            sun(stage, Vec3::new(4.0, 9.0, 3.0));
            stage.camera(eye(), ());
            if stage.how != How::Entities {
                let report = stage.report();
                for (number, set) in sets.iter().enumerate() {
                    let of_set = report.set(*set);
                    let of_set = of_set.unwrap_or_else(|| panic!("{order}: set {number} is lost"));
                    let instances = 20 + number as u64;
                    assert_eq!(of_set.tested, instances, "{order}: set {number}");
                    // Two cascades, and at least one face of the lamp with shadows.
                    assert!(of_set.shadow_tested > 2 * instances, "{order}: {of_set:?}");
                }
            } else {
                stage.update(6);
            }
            stage.picture()
        });
        let [set, bevys] = &pictures;
        assert_same_picture(&format!("street-{order}"), set, bevys);
    }
}

#[test]
fn a_set_without_bevys_culling_looks_like_entities() {
    let mut stages = [How::Set(None), How::Entities].map(Stage::new);
    let pictures = stages.each_mut().map(|stage| {
        add_ground(stage);
        let mesh = stage.mesh(box_mesh());
        let red = stage.standard(red());
        for (i, count) in [100, 150].into_iter().enumerate() {
            let at = Transform::from_xyz(i as f32, 0.0, 0.0);
            let set = stage.spawn_set(&field(count, false), (mesh.clone(), red.clone()), at);
            if i == 0 {
                stage.entity(set).insert(NoCpuCulling);
            }
        }
        sun(stage, Vec3::new(4.0, 9.0, 3.0));
        stage.camera(eye(), ());
        stage.picture()
    });
    let [set, bevys] = &pictures;
    assert_same_picture("no-cpu-culling", set, bevys);
    let report = stages[0].report();
    assert_eq!(report.cameras().0, 250, "{:?}", report.views);
}

/// The shadow views of a report, each with its light.
fn shadow_views(stage: &mut Stage) -> Vec<ViewReport> {
    let report = stage.report();
    let views = report.views.into_iter();
    let shadows: Vec<_> = views.filter(|view| view.kind != ViewKind::Camera).collect();
    // Bevy draws no others, and each of them once.
    let world = stage.app.sub_app(RenderApp).world();
    let drawn = world.resource::<ViewBinnedRenderPhases<Shadow>>();
    assert!(
        shadows.len() <= drawn.len(),
        "{} of {}: {shadows:?}",
        shadows.len(),
        drawn.len()
    );
    for view in &shadows {
        let same = |other: &&ViewReport| {
            (other.entity, other.camera, &other.name) == (view.entity, view.camera, &view.name)
        };
        assert_eq!(shadows.iter().filter(same).count(), 1, "{view:?}");
    }
    shadows
}

/// Number of shadow views of a light.
fn count_of(views: &[ViewReport], light: Entity) -> usize {
    let of_light = |view: &&ViewReport| view.entity.id() == light;
    views.iter().filter(of_light).count()
}

/// A scene with a moon, a sun, and lamps behind the camera.
fn night(stage: &mut Stage) -> (Entity, Entity, [Entity; 2], Entity) {
    add_ground(stage);
    let mesh = stage.mesh(box_mesh());
    let red = stage.standard(red());
    stage.spawn_set(&field(400, false), (mesh, red), Transform::IDENTITY);
    let moon = sun(stage, Vec3::new(-3.0, 9.0, 2.0));
    let sun = sun(stage, Vec3::new(4.0, 9.0, 3.0));
    let lamps = [-3.0, 3.0].map(|x| {
        let lamp = lamp(Vec3::new(x, 3.0, 0.0), true);
        stage.spawn(lamp)
    });
    // With indirect drawing, Bevy 0.19.1 asserts in debug builds that a view comes once, which the
    // cascades of a light that is shown again do not.
    let camera = stage.camera(eye(), NoIndirectDrawing);
    (moon, sun, lamps, camera)
}

#[test]
fn the_views_of_lights_that_are_not_drawn_are_not_tested() {
    let mut stage = Stage::new(How::Set(None));
    let (moon, sun, lamps, camera) = night(&mut stage);
    let views = shadow_views(&mut stage);
    assert_eq!([count_of(&views, moon), count_of(&views, sun)], [2, 2]);
    assert!(
        lamps.iter().all(|lamp| count_of(&views, *lamp) > 1),
        "{views:?}"
    );
    for _ in 0..3 {
        stage.entity(sun).insert(Visibility::Hidden);
        stage.entity(lamps[0]).insert(Visibility::Hidden);
        let views = shadow_views(&mut stage);
        assert_eq!([count_of(&views, moon), count_of(&views, sun)], [2, 0]);
        assert_eq!(count_of(&views, lamps[0]), 0);
        stage.entity(sun).insert(Visibility::Inherited);
        stage.entity(lamps[0]).insert(Visibility::Inherited);
        let views = shadow_views(&mut stage);
        assert_eq!([count_of(&views, moon), count_of(&views, sun)], [2, 2]);
        assert!(count_of(&views, lamps[0]) > 1);
    }
    // The camera turns away from the lamps. Their range is short.
    for lamp in lamps {
        stage.entity(lamp).get_mut::<PointLight>().unwrap().range = 5.0;
    }
    let away = eye().looking_at(Vec3::new(0.0, 3.0, 100.0), Vec3::Y);
    *stage.entity(camera).get_mut::<Transform>().unwrap() = away;
    let views = shadow_views(&mut stage);
    assert!(
        views.iter().all(|view| view.kind == ViewKind::Cascade),
        "{views:?}"
    );
}

/// While the sun was hidden, it moved: its old cascades see other instances. The moon's shadows end
/// after, which changes the order of Bevy's views.
#[test]
fn a_light_that_was_hidden_casts_the_shadows_of_entities() {
    let mut stages = [How::Set(None), How::Entities].map(Stage::new);
    let pictures = stages.each_mut().map(|stage| {
        let (moon, sun, lamps, _) = night(stage);
        // In cameras with `NoIndirectDrawing`, Bevy 0.19.1 draws other shadows of point lights for
        // entities than without it. Sets have the same in both.
        for lamp in lamps {
            stage.entity(lamp).despawn();
        }
        stage.update(3);
        let mut pictures = vec![stage.picture_now()];
        for from in [Vec3::new(-9.0, 3.0, 1.0), Vec3::new(2.0, 3.0, -9.0)] {
            stage.entity(sun).insert(Visibility::Hidden);
            stage.update(2);
            let at = Transform::from_translation(from).looking_at(Vec3::ZERO, Vec3::Y);
            *stage.entity(sun).get_mut::<Transform>().unwrap() = at;
            stage.entity(sun).insert(Visibility::Inherited);
            pictures.extend([(); 3].map(|()| stage.picture_now()));
        }
        let mut moon = stage.entity(moon);
        moon.get_mut::<DirectionalLight>()
            .unwrap()
            .shadow_maps_enabled = false;
        pictures.extend([(); 3].map(|()| stage.picture_now()));
        pictures
    });
    let [sets, bevys] = &pictures;
    for (number, (set, bevys)) in sets.iter().zip(bevys).enumerate() {
        assert_same_picture(&format!("shown-again-{number}"), set, bevys);
    }
    // The scene shows the changes.
    assert!(different_pixels("shown-moved", &bevys[0], &bevys[1]).is_err());
    assert!(different_pixels("shown-moonless", &bevys[6], &bevys[9]).is_err());
}

/// When a camera for 2D is spawned.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Flat {
    Never,
    First,
    Last,
}

/// A set with levels in the light of a lamp. Its shadows are drawn by their errors.
fn leveled(flat: Flat, is_thinned: bool) -> (image::RgbaImage, CullingReport) {
    let mut stage = Stage::new(How::Set(None));
    add_ground(&mut stage);
    let other = Image::new_target_texture(64, 64, TextureFormat::Rgba8UnormSrgb, None);
    let other = RenderTarget::Image(stage.add(other).into());
    let camera = Camera {
        order: 1,
        ..default()
    };
    let flat_camera = (Camera2d, camera, other, Msaa::Off);
    if flat == Flat::First {
        stage.spawn(flat_camera.clone());
    }
    let ball = stage.mesh(Sphere::new(0.3).mesh().ico(4).unwrap());
    let levels = [
        (Cuboid::new(0.4, 0.4, 0.4), 0.03),
        (Cuboid::new(0.6, 0.2, 0.2), 0.06),
    ];
    let levels = levels.map(|(mesh, error)| InstanceLod::new(stage.mesh(mesh), error));
    let lods = InstanceLods {
        levels: levels.into(),
        ..default()
    };
    let red = stage.standard(red());
    let set = stage.spawn_set(&field(300, false), (ball, red), Transform::IDENTITY);
    stage.entity(set).insert(lods);
    if is_thinned {
        let detail = AggregateDetail { below_pixels: 20.0 };
        stage.entity(set).insert(detail);
    }
    sun(&mut stage, Vec3::new(4.0, 9.0, 3.0));
    stage.spawn(lamp(Vec3::new(-2.0, 5.0, 1.0), true));
    stage.camera(eye(), ());
    if flat == Flat::Last {
        stage.spawn(flat_camera);
    }
    stage.picture_and_report()
}

#[test]
fn a_camera_for_2d_changes_no_view() {
    for is_thinned in [false, true] {
        let (expected, without) = leveled(Flat::Never, is_thinned);
        let face = without
            .views
            .iter()
            .filter(|view| view.kind == ViewKind::PointFace)
            .max_by_key(|view| view.visible);
        let used = face
            .unwrap()
            .levels
            .iter()
            .filter(|level| level.visible > 0);
        assert!(used.count() > 1, "{face:?}");
        for flat in [Flat::First, Flat::Last] {
            let (picture, report) = leveled(flat, is_thinned);
            // Entities have other numbers.
            let counters = |report: &CullingReport| {
                let mut views: Vec<_> = report
                    .views
                    .iter()
                    .map(|view| (view.name.clone(), view.tested, view.levels.clone()))
                    .collect();
                views.sort_by(|a, b| a.0.cmp(&b.0));
                views
            };
            assert_eq!(
                counters(&report),
                counters(&without),
                "{flat:?}, {is_thinned}"
            );
            if !is_thinned {
                assert_same_picture(&format!("flat-{flat:?}"), &picture, &expected);
            }
        }
    }
}

/// A camera whose transform is a tenth as large sees a tenth of the height.
#[test]
fn the_scale_of_an_orthographic_camera_counts_in_levels_and_sizes() {
    let draw = |scale: f32, is_thinned: bool| {
        let mut stage = Stage::new(How::Set(None));
        let ball = stage.mesh(Sphere::new(0.3).mesh().ico(4).unwrap());
        let coarse = stage.mesh(Cuboid::new(0.4, 0.4, 0.4));
        let red = stage.standard(red());
        let set = stage.spawn_set(&field(300, true), (ball, red), Transform::IDENTITY);
        let lods = InstanceLods {
            // Of one unit, 20 pixels are seen: an instance of scale 0.7 is at the border.
            levels: vec![InstanceLod::new(coarse, 0.07)],
            fade: 0.4,
            ..default()
        };
        stage.entity(set).insert(lods);
        if is_thinned {
            let detail = AggregateDetail { below_pixels: 14.0 };
            stage.entity(set).insert(detail);
        }
        stage.lights(false);
        let lens = OrthographicProjection {
            scaling_mode: ScalingMode::FixedVertical {
                viewport_height: 10.0 / scale,
            },
            ..OrthographicProjection::default_3d()
        };
        let at = eye().with_scale(Vec3::splat(scale));
        stage.camera(at, Projection::from(lens));
        let (picture, report) = stage.picture_and_report();
        (picture, report.views[0].levels.clone())
    };
    for is_thinned in [false, true] {
        let (expected, levels) = draw(1.0, is_thinned);
        assert!(levels.iter().all(|level| level.visible > 20), "{levels:?}");
        for scale in [0.1, 3.0] {
            let (picture, scaled) = draw(scale, is_thinned);
            assert_eq!(scaled, levels, "{scale}, {is_thinned}");
            let name = format!("scaled-{scale}-{is_thinned}");
            assert_same_picture(&name, &picture, &expected);
        }
    }
}
