//! An app as users have it: a city of many meshes with levels of detail, cars that move, entities
//! among the sets, instances that become entities, a sun with cascades, lamps that are meshes and
//! cast shadows, a camera and a sun that hide, another camera for the UI, and a render world on its
//! own thread.

use super::batch_sets::sun;
use crate::scene::{How, Stage, assert_same_picture};
use bevy::{
    camera::visibility::Visibility,
    light::{
        DirectionalLightShadowMap, NotShadowCaster, PointLightShadowMap, ShadowFilteringMethod,
    },
    prelude::*,
};
use bevy_gpu_culling::prelude::*;
use image::RgbaImage;

/// Number of meshes. With all views, rows are many enough to rest and to share planes.
const MESHES: u32 = 70;
const STREETS: i32 = 5;
const BLOCK: f32 = 6.0;

/// Nothing is drawn early because it is large: what comes into view is late.
const HIDES: InstanceOcclusion = InstanceOcclusion {
    near_pixels: 1e9,
    may_pause: false,
};

struct City {
    camera: Entity,
    houses: Vec<Entity>,
    cars: Vec<Entity>,
    lamps: Vec<Entity>,
    /// Instances that have become entities, and have moved.
    detached: Vec<Entity>,
}

/// A number from 0 to 1.
fn noise(seed: u32) -> f32 {
    let mixed = (seed ^ 0x5bd1).wrapping_mul(0x9e37_79b9);
    (mixed ^ mixed >> 15) as f32 / u32::MAX as f32
}

fn size(number: u32) -> Vec3 {
    let height = 1.0 + 4.0 * noise(number * 3);
    Vec3::new(
        1.0 + noise(number * 3 + 1),
        height,
        1.0 + noise(number * 3 + 2),
    )
}

/// A house at a few places beside the streets.
fn spawn_house(
    stage: &mut Stage,
    number: u32,
    material: &MeshMaterial3d<StandardMaterial>,
) -> Entity {
    let size = size(number);
    let places = (0..5).map(|k| {
        let at = |seed: u32| {
            let block = (noise(seed) * (2 * STREETS) as f32).floor() - STREETS as f32;
            block * BLOCK + 2.2 + 1.6 * noise(seed + 1)
        };
        let seed = number * 64 + k * 8;
        let turn = Quat::from_rotation_y(noise(seed + 4) * 6.0);
        Transform::from_xyz(at(seed), 0.5 * size.y, at(seed + 2)).with_rotation(turn)
    });
    let set = InstanceSet::from_transforms(places).unwrap();
    let mesh = stage.mesh(Cuboid::from_size(size));
    let house = stage.spawn_set(&set, (mesh, material.clone()), Transform::IDENTITY);
    if stage.how != How::Entities && number.is_multiple_of(2) {
        // It looks the same.
        let coarse = stage.mesh(Cuboid::from_size(size));
        let levels = vec![InstanceLod::new(coarse, 0.03)];
        stage.entity(house).insert(InstanceLods {
            levels,
            ..default()
        });
    }
    house
}

fn spawn_city(stage: &mut Stage) -> City {
    let app = &mut stage.app;
    app.insert_resource(DirectionalLightShadowMap { size: 512 })
        .insert_resource(PointLightShadowMap { size: 128 });
    let paints = [Color::srgb(0.8, 0.7, 0.6), Color::srgb(0.5, 0.6, 0.7)];
    let paints = paints.map(|color| stage.standard(StandardMaterial::from(color)));
    let houses = (0..MESHES)
        .map(|number| spawn_house(stage, number, &paints[number as usize % 7 / 5]))
        .collect();
    let red = stage.standard(super::red());
    let cars = (-2..3)
        .map(|street| {
            let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 1.0 + 0.1 * street as f32));
            let cars = (-6..6).map(|car| Transform::from_xyz(0.0, 0.2, car as f32 * 5.0));
            let cars = InstanceSet::from_transforms(cars).unwrap();
            let at = Transform::from_xyz(street as f32 * BLOCK, 0.0, 0.0);
            stage.spawn_set(&cars, (mesh, red.clone()), at)
        })
        .collect();
    let gray = stage.standard(StandardMaterial::from(Color::srgb(0.4, 0.4, 0.4)));
    let ground = stage.mesh(Plane3d::new(Vec3::Y, Vec2::splat(60.0)));
    stage.spawn((Mesh3d(ground), gray));
    let tower = stage.mesh(Cuboid::new(3.0, 9.0, 3.0));
    let towers = [(-9.0, -3.0), (9.0, 3.0), (3.0, -15.0)];
    for (x, z) in towers {
        let at = Transform::from_xyz(x, 4.5, z);
        stage.spawn((Mesh3d(tower.clone()), paints[1].clone(), at));
    }
    let bulb = stage.mesh(Sphere::new(0.2));
    let glow = stage.standard(StandardMaterial {
        emissive: LinearRgba::rgb(4.0, 3.0, 1.0),
        ..default()
    });
    let lamps = [(1.0, 8.0), (-5.0, 3.0), (7.0, -4.0)];
    let lamps = lamps.map(|(x, z)| {
        let light = PointLight {
            intensity: 400_000.0,
            range: 12.0,
            color: Color::srgb(1.0, 0.8, 0.5),
            // Each has six views.
            shadow_maps_enabled: x < 0.0,
            ..default()
        };
        let bulb = (Mesh3d(bulb.clone()), glow.clone(), NotShadowCaster);
        stage.spawn((light, bulb, Transform::from_xyz(x, 1.8, z)))
    });
    let sun = stage.spawn(sun(4, 40.0));
    stage.entity(sun).insert(HIDES);
    // Users have Bevy's filter of shadows.
    let filter = ShadowFilteringMethod::default();
    let camera = stage.camera(look(0), (HIDES, filter));
    stage.interface(1);
    City {
        camera,
        houses,
        cars,
        lamps: lamps.into(),
        detached: Vec::new(),
    }
}

/// Where the camera looks from in a frame: along a street, then around a corner.
fn look(frame: u32) -> Transform {
    let t = frame as f32;
    let eye = Vec3::new(0.3, 1.2, 16.0 - 1.5 * t);
    let turn = if frame < 6 { 0.05 * t } else { 1.3 };
    Transform::from_translation(eye).with_rotation(Quat::from_rotation_y(turn))
}

/// The entity of an instance of a house. A set's instance becomes one.
fn entity_of(stage: &mut Stage, house: Entity, instance: u32) -> Entity {
    if stage.how == How::Entities {
        return stage.entity(house).get::<Children>().unwrap()[instance as usize];
    }
    let world = stage.app.world_mut();
    let entity = world.commands().detach_instance(house, instance).id();
    world.flush();
    entity
}

/// What happens to the city before a frame.
fn act(stage: &mut Stage, city: &mut City, frame: u32) {
    stage.entity(city.camera).insert(look(frame));
    for (number, car) in city.cars.iter().enumerate() {
        let speed = 0.3 + 0.1 * number as f32;
        let mut car = stage.entity(*car);
        car.get_mut::<Transform>().unwrap().translation.z = speed * frame as f32;
    }
    match frame {
        2 => {
            for house in &city.houses[15..] {
                for instance in [1, 4] {
                    let entity = entity_of(stage, *house, instance);
                    let mut entity = stage.entity(entity);
                    entity.get_mut::<Transform>().unwrap().translation.y += 0.7;
                    city.detached.push(entity.id());
                }
            }
        }
        3 => {
            stage.entity(city.lamps[0]).insert(Visibility::Hidden);
            let mut lamp = stage.entity(city.lamps[1]);
            lamp.get_mut::<Transform>().unwrap().translation.x += 1.0;
        }
        4 => {
            for house in city.houses.drain(10..14) {
                stage.entity(house).despawn();
            }
        }
        5 => {
            let green = StandardMaterial::from(Color::srgb(0.3, 0.8, 0.4));
            let green = stage.standard(green);
            for number in MESHES..MESHES + 6 {
                city.houses.push(spawn_house(stage, number, &green));
            }
            stage.entity(city.houses[0]).insert(Visibility::Hidden);
        }
        6 if stage.how != How::Entities => {
            for entity in city.detached.drain(..) {
                stage.app.world_mut().commands().attach_instance(entity);
            }
            stage.app.world_mut().flush();
        }
        7 => {
            stage.entity(city.camera).remove::<InstanceOcclusion>();
            stage.entity(city.houses[0]).insert(Visibility::Inherited);
        }
        8 => {
            stage.entity(city.camera).insert(HIDES);
        }
        _ => {}
    }
}

fn pictures(how: How) -> Vec<RgbaImage> {
    let mut stage = Stage::pipelined(how, |_| ());
    let mut city = spawn_city(&mut stage);
    stage.settle();
    let frames = 0..10;
    let pictures = frames.map(|frame| {
        act(&mut stage, &mut city, frame);
        // What is new waits for its mesh and its pipelines.
        if [2, 3, 5, 7, 8].contains(&frame) {
            stage.settle();
        }
        stage.picture_now()
    });
    let pictures = pictures.collect();
    if how != How::Entities {
        let lists = stage.report().camera_occlusion().unwrap();
        assert!(lists.hidden > 0, "{lists:?}");
    }
    pictures
}

#[test]
fn the_app_of_a_user_looks_like_bevys_entities() {
    let entities = pictures(How::Entities);
    let sets = pictures(How::Set(None));
    for (frame, (sets, entities)) in sets.iter().zip(&entities).enumerate() {
        assert_same_picture(&format!("city-{frame}"), sets, entities);
    }
}
