//! A set looks like entities: on every tier, with shadows, on render layers, and after it is gone.

use super::{both, box_mesh, eye, moved, red, red_boxes};
use crate::scene::{How, Stage, assert_same_picture, field};
use bevy::{camera::visibility::RenderLayers, prelude::*};
use bevy_gpu_culling::prelude::*;

#[test]
fn a_lit_set_looks_like_entities_on_every_tier() {
    let build = |stage: &mut Stage| {
        red_boxes(stage, &field(1500, true), moved());
        stage.lights(false);
        stage.camera(eye(), Msaa::Sample4);
    };
    let (first, entities) = both(None, build);
    assert_same_picture("lit", &first, &entities);
    for tier in [CullingTier::Workgroup, CullingTier::Cpu] {
        let mut stage = Stage::new(How::Set(Some(tier)));
        build(&mut stage);
        let (picture, report) = stage.picture_and_report();
        assert_same_picture(&format!("lit-{tier}"), &picture, &entities);
        assert_eq!(stage.verify().0, 1);
        assert_eq!(report.tier, Some(tier));
    }
}

#[test]
fn shadows_are_cast_and_received_and_every_light_view_is_verified() {
    let build = |stage: &mut Stage| {
        let mesh = stage.mesh(Sphere::new(0.3).mesh().ico(2).unwrap());
        let material = stage.standard(red());
        stage.spawn_set(
            &field(400, false),
            (mesh, material),
            Transform::from_xyz(0.0, 2.0, 0.0),
        );
        let ground = stage.mesh(Plane3d::new(Vec3::Y, Vec2::splat(12.0)));
        let gray = stage.standard(StandardMaterial::from(Color::srgb(0.5, 0.5, 0.55)));
        stage.spawn((Mesh3d(ground), gray, Transform::from_xyz(0.0, -2.5, 0.0)));
        stage.lights(true);
        stage.camera(eye(), ());
    };
    let mut stage = Stage::new(How::Set(None));
    build(&mut stage);
    let (set, report) = stage.picture_and_report();
    let (views, survivors) = stage.verify();
    assert!(views > 5, "camera, cascades and cube faces: {views}");
    assert!(survivors > 400);
    let mut bevy = Stage::new(How::Entities);
    build(&mut bevy);
    assert_same_picture("shadows", &set, &bevy.picture());
    assert_eq!(report.instances, 400);
    assert!(
        report.shadows().1 > 0 && report.cameras().0 == 400,
        "{report:?}"
    );
}

#[test]
fn render_layers_choose_the_camera() {
    let draw = |how| {
        let mut stage = Stage::new(how);
        let mesh = stage.mesh(box_mesh());
        let material = stage.standard(red());
        stage.lights(false);
        for layer in [0, 1] {
            let at = Transform::from_xyz(layer as f32, 0.0, 0.0);
            let set = stage.spawn_set(&field(150, false), (mesh.clone(), material.clone()), at);
            let children = stage
                .app
                .world()
                .get::<Children>(set)
                .map(|children| children.to_vec())
                .unwrap_or_default();
            for entity in children.into_iter().chain([set]) {
                stage.entity(entity).insert(RenderLayers::layer(layer));
            }
        }
        stage.camera(eye(), RenderLayers::layer(1));
        // Lights light what shares a layer with them.
        let world = stage.app.world_mut();
        let lights: Vec<_> = world
            .query_filtered::<Entity, Or<(With<DirectionalLight>, With<PointLight>)>>()
            .iter(world)
            .collect();
        for light in lights {
            world
                .entity_mut(light)
                .insert(RenderLayers::from_layers(&[0, 1]));
        }
        let picture = stage.picture();
        if how != How::Entities {
            assert_eq!(stage.verify().0, 1, "one set in the one camera");
        }
        picture
    };
    assert_same_picture("layers", &draw(How::Set(None)), &draw(How::Entities));
}

#[test]
fn an_entity_that_loses_its_set_is_an_ordinary_mesh_again() {
    lose_a_set("ordinary", &field(50, false));
}

/// The box of the set must go with it: it is where the instances were.
#[test]
fn a_far_set_that_is_removed_leaves_no_box() {
    let far = [Vec3::new(1000.0, 0.0, 0.0), Vec3::new(1001.0, 0.0, 0.0)];
    lose_a_set("no-box", &InstanceSet::from_transforms(far).unwrap());
}

/// An entity that has lost this set, seen or hidden, looks like one that never had a set.
fn lose_a_set(name: &str, set: &InstanceSet) {
    let draw = |how, is_hidden| {
        let mut stage = Stage::new(how);
        let mesh = stage.mesh(Cuboid::new(2.0, 1.0, 2.0));
        let material = stage.standard(red());
        stage.lights(false);
        stage.camera(eye(), ());
        if how == How::Entities {
            stage.spawn((Mesh3d(mesh), material));
            return stage.picture();
        }
        let set = stage.spawn_set(set, (mesh, material), Transform::IDENTITY);
        stage.update(3);
        if is_hidden {
            stage.entity(set).insert(Visibility::Hidden);
            stage.update(3);
        }
        stage.entity(set).remove::<GpuInstances>();
        if is_hidden {
            stage.update(3);
            stage.entity(set).insert(Visibility::Inherited);
        }
        stage.picture()
    };
    let expected = draw(How::Entities, false);
    for is_hidden in [false, true] {
        assert_same_picture(name, &draw(How::Set(None), is_hidden), &expected);
    }
}

/// Bevy's own near plane lies behind an orthographic camera and keeps what is between.
#[test]
fn what_lies_behind_an_orthographic_camera_is_culled() {
    let places = (0..400).map(|i| {
        let z = if i < 200 { -6.0 } else { 12.0 };
        Vec3::new(
            (i % 20) as f32 * 0.5 - 5.0,
            (i / 20 % 10) as f32 * 0.5 - 2.5,
            z,
        )
    });
    let places = InstanceSet::from_transforms(places).unwrap();
    let build = |stage: &mut Stage| {
        red_boxes(stage, &places, Transform::IDENTITY);
        stage.lights(false);
        let projection = OrthographicProjection {
            scale: 0.02,
            ..OrthographicProjection::default_3d()
        };
        let eye = Transform::from_xyz(0.0, 0.0, 4.0).looking_to(Vec3::NEG_Z, Vec3::Y);
        stage.camera(eye, Projection::from(projection))
    };
    let mut stage = Stage::new(How::Set(None));
    let camera = build(&mut stage);
    let (set, report) = stage.picture_and_report();
    stage.verify();
    let mut bevy = Stage::new(How::Entities);
    build(&mut bevy);
    assert_same_picture("orthographic", &set, &bevy.picture());
    let (tested, kept) = report.cameras();
    assert_eq!(tested, 400);
    assert!(kept > 50 && kept <= 200, "{kept}");
    // A frozen camera keeps the same, wherever it goes.
    stage.entity(camera).insert(FreezeCulling::default());
    stage.update(1);
    let away = Transform::from_xyz(0.0, 0.0, 40.0).looking_to(Vec3::NEG_Z, Vec3::Y);
    stage.entity(camera).insert(away);
    assert_eq!(stage.report().cameras(), (tested, kept));
}
