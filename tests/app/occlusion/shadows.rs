//! Lights that hide instances from their shadow maps: each frame has the same picture.

use super::{
    Way,
    sequences::{Actors, Sequence, light},
    sum_of,
};
use crate::scene::{SIZE, Stage};
use bevy::{
    camera::Viewport,
    light::{CascadeShadowConfigBuilder, DirectionalLightShadowMap, PointLightShadowMap},
    prelude::*,
};
use bevy_gpu_culling::{prelude::*, render::ViewKind};

/// All lights.
type Lights = Or<(With<DirectionalLight>, With<PointLight>, With<SpotLight>)>;

fn lights_of(stage: &mut Stage) -> Vec<Entity> {
    let world = stage.app.world_mut();
    let mut lights = world.query_filtered::<Entity, Lights>();
    lights.iter(world).collect()
}

/// Lets all lights hide instances, large ones, too.
pub fn equip_lights(stage: &mut Stage) {
    for light in lights_of(stage) {
        let mut light = stage.entity(light);
        light.insert(InstanceOcclusion {
            near_pixels: 1e9,
            ..default()
        });
    }
}

/// A software driver draws small maps faster.
pub fn small_maps(stage: &mut Stage) {
    let app = &mut stage.app;
    app.insert_resource(DirectionalLightShadowMap { size: 256 })
        .insert_resource(PointLightShadowMap { size: 128 });
}

/// Adds lit materials, a ground, and small shadow maps. Sorts the
/// boxes: otherwise each word of 32 is all around a light, and so it is always drawn early.
pub fn add_ground(stage: &mut Stage, actors: &Actors) {
    light(stage, actors);
    let boxes = stage.entity(actors.boxes).get::<GpuInstances>().cloned();
    {
        let mut sets = stage.app.world_mut().resource_mut::<Assets<InstanceSet>>();
        let mut boxes = sets.get_mut(&boxes.unwrap().0).unwrap();
        *boxes = boxes.clone().sorted();
    }
    for light in lights_of(stage) {
        stage.entity(light).despawn();
    }
    small_maps(stage);
    let ground = stage.mesh(Plane3d::new(Vec3::Y, Vec2::splat(20.0)));
    let gray = stage.standard(StandardMaterial::from(Color::srgb(0.6, 0.6, 0.6)));
    stage.spawn((Mesh3d(ground), gray, Transform::from_xyz(0.0, -4.5, 0.0)));
}

/// The part of a scene that a light has.
#[derive(Component)]
struct Lamp;

/// Moves the lights, and a wall that hides half of the field from them, but is gone in some frames.
pub fn act(stage: &mut Stage, actors: &Actors, frame: usize, wall: Transform) {
    let t = frame as f32;
    let world = stage.app.world_mut();
    let mut lamps = world.query_filtered::<&mut Transform, With<Lamp>>();
    for mut lamp in lamps.iter_mut(world) {
        lamp.translation.x += if frame % 4 == 3 { -2.5 } else { 1.0 };
        lamp.rotate_local_y(0.05 * t.sin());
    }
    let away = if frame % 3 == 2 { 60.0 } else { 0.0 };
    let wall = wall.with_translation(wall.translation + Vec3::X * away);
    *stage.entity(actors.wall).get_mut::<Transform>().unwrap() = wall;
}

/// The wall as a roof over the field.
pub fn roof() -> Transform {
    Transform::from_xyz(-3.0, 4.6, 0.0)
        .with_rotation(Quat::from_rotation_x(std::f32::consts::FRAC_PI_2))
        .with_scale(Vec3::new(1.5, 2.0, 1.0))
}

pub fn sun(stage: &mut Stage) {
    let cascades = CascadeShadowConfigBuilder {
        num_cascades: 2,
        maximum_distance: 40.0,
        ..default()
    };
    stage.spawn((
        DirectionalLight {
            illuminance: 5_000.0,
            shadow_maps_enabled: true,
            ..default()
        },
        cascades.build(),
        Lamp,
        Transform::from_xyz(2.0, 9.0, 3.0).looking_at(Vec3::ZERO, Vec3::Y),
    ));
}

pub fn lamp(stage: &mut Stage) {
    stage.spawn((
        PointLight {
            intensity: 3_000_000.0,
            range: 30.0,
            shadow_maps_enabled: true,
            ..default()
        },
        Lamp,
        Transform::from_xyz(-2.0, 2.0, 9.5),
    ));
}

pub fn spot(stage: &mut Stage) {
    stage.spawn((
        SpotLight {
            intensity: 9_000_000.0,
            range: 40.0,
            shadow_maps_enabled: true,
            ..default()
        },
        Lamp,
        Transform::from_xyz(-5.0, 12.0, 4.0).looking_at(Vec3::new(-2.0, 0.0, 0.0), Vec3::Y),
    ));
}

/// Compares the sequences with lights that hide and with lights that do not.
fn assert_equal(
    name: &str,
    tier: CullingTier,
    (kind, wall): (ViewKind, Transform),
    dress: &dyn Fn(&mut Stage),
) {
    Sequence {
        name,
        way: Way::Shadows,
        tier,
        dress: &|stage, actors| {
            add_ground(stage, actors);
            dress(stage);
        },
        act: &|stage, actors, frame, _| act(stage, actors, frame, wall),
        report: &|stage| sum_of(stage, |view| view.kind == kind),
        ..default()
    }
    .assert_equal();
}

#[test]
fn cascades_draw_the_same_picture() {
    for tier in [CullingTier::Subgroup, CullingTier::Workgroup] {
        assert_equal("cascades", tier, (ViewKind::Cascade, roof()), &sun);
    }
}

#[test]
fn faces_of_a_point_light_draw_the_same_picture() {
    // Between the lamp and the field.
    let wall = Transform::from_xyz(-2.0, 0.0, 8.8);
    let of = (ViewKind::PointFace, wall);
    assert_equal("faces", CullingTier::Subgroup, of, &lamp);
}

#[test]
fn a_spot_light_draws_the_same_picture() {
    let of = (ViewKind::Spot, roof());
    assert_equal("spot", CullingTier::Subgroup, of, &spot);
}

/// Each camera has cascades; all share the spot light, which is off in some frames. The cameras
/// hide, too.
#[test]
fn several_cameras_and_lights_draw_the_same_picture() {
    let half = |left: bool| Viewport {
        physical_position: UVec2::new(if left { 0 } else { SIZE.x / 2 }, 0),
        physical_size: UVec2::new(SIZE.x / 2, SIZE.y),
        ..default()
    };
    Sequence {
        name: "shadows-of-two",
        way: Way::Shadows,
        dress: &|stage, actors| {
            add_ground(stage, actors);
            sun(stage);
            spot(stage);
            let mut camera = stage.entity(actors.camera);
            camera.get_mut::<Camera>().unwrap().viewport = Some(half(false));
            let eye = Transform::from_xyz(-8.0, 2.0, 9.0).looking_at(Vec3::ZERO, Vec3::Y);
            let other = stage.camera(eye, ());
            stage.entity(other).insert(Camera {
                order: 1,
                viewport: Some(half(true)),
                clear_color: ClearColorConfig::None,
                ..default()
            });
        },
        act: &|stage, actors, frame, hides| {
            act(stage, actors, frame, roof());
            let world = stage.app.world_mut();
            let mut spots = world.query_filtered::<&mut Visibility, With<SpotLight>>();
            *spots.single_mut(world).unwrap() = match frame {
                5..8 => Visibility::Hidden,
                _ => Visibility::Inherited,
            };
            if hides && frame == 3 {
                let own = InstanceOcclusion {
                    near_pixels: 1e9,
                    ..default()
                };
                stage.entity(actors.camera).insert(own);
            }
        },
        report: &|stage| sum_of(stage, |view| view.kind != ViewKind::Camera),
        ..default()
    }
    .assert_equal();
}
