//! Many sets: small ones rest in views that do not see them, and rows share views.

use super::{batch_sets::sun, red};
use crate::scene::{How, Stage, assert_same_picture};
use bevy::{camera::visibility::RenderLayers, light::DirectionalLightShadowMap, prelude::*};
use bevy_gpu_culling::prelude::*;
use image::RgbaImage;

/// With a camera and four cascades, more rows than have their own planes (1,024).
const SETS: usize = 220;

/// A few instances around the origin.
fn group(number: usize) -> InstanceSet {
    let spread = |k: usize| ((number * 5 + k) as f32 * 12.9898).sin() * 1.2;
    let places = (0..5).map(|k| {
        let turn = Quat::from_rotation_y(spread(k + 40));
        Transform::from_xyz(spread(k), spread(k + 10), spread(k + 20)).with_rotation(turn)
    });
    InstanceSet::from_transforms(places).unwrap()
}

/// A ring around the camera, of which it sees a part.
fn place(number: usize) -> Transform {
    let turn = number as f32 * core::f32::consts::TAU / SETS as f32;
    let away = 8.0 + (number % 7) as f32;
    Transform::from_xyz(
        turn.sin() * away,
        (number % 5) as f32 - 2.0,
        turn.cos() * away,
    )
}

fn look(turn: f32) -> Transform {
    Transform::from_xyz(0.0, 1.0, 0.0).with_rotation(Quat::from_rotation_y(turn))
}

/// The entity, and its children: in scenes of entities, its instances.
fn with_children(stage: &Stage, entity: Entity) -> Vec<Entity> {
    let children = stage.app.world().get::<Children>(entity);
    let children = children.into_iter().flatten().copied();
    children.chain([entity]).collect()
}

/// Turns a camera in a ring of sets, and changes some. Cascades see all of the ring: without
/// shadows, no view sees a set behind the camera.
fn pictures(how: How, shadows: bool) -> Vec<(&'static str, RgbaImage)> {
    let mut stage = Stage::new(how);
    stage
        .app
        .insert_resource(DirectionalLightShadowMap { size: 256 });
    if shadows {
        stage.spawn(sun(4, 40.0));
    } else {
        stage.lights(false);
    }
    let camera = stage.camera(look(0.0), ());
    let material = stage.standard(red());
    let meshes: Vec<_> = (0..20)
        .map(|number| stage.mesh(Cuboid::new(0.3, 0.3 + 0.03 * number as f32, 0.4)))
        .collect();
    let mut all: Vec<_> = (0..SETS)
        .map(|number| {
            let parts = (meshes[number % 20].clone(), material.clone());
            stage.spawn_set(&group(number), parts, place(number))
        })
        .collect();
    let mut pictures = vec![("start", stage.picture())];
    let turn = |stage: &mut Stage, to: f32| {
        *stage.app.world_mut().get_mut::<Transform>(camera).unwrap() = look(to);
    };
    for (name, to) in [
        ("turned", 2.0),
        ("further", 4.0),
        ("around", 6.0),
        ("back", 0.0),
    ] {
        turn(&mut stage, to);
        pictures.push((name, stage.picture()));
    }
    // The camera sees these, and saw them before.
    let near = SETS / 2;
    stage.entity(all[near]).insert(Visibility::Hidden);
    stage.entity(all[near + 1]).insert(place(near + 9));
    for entity in with_children(&stage, all[near + 2]) {
        stage.entity(entity).insert(RenderLayers::layer(3));
    }
    pictures.push(("changed", stage.picture()));
    // They change while no camera sees them.
    turn(&mut stage, 3.0);
    stage.picture();
    stage.entity(all[near]).insert(Visibility::Inherited);
    stage.entity(all[near + 3]).insert(place(near + 4));
    for entity in with_children(&stage, all[near + 2]) {
        stage.entity(entity).remove::<RenderLayers>();
    }
    stage.picture();
    turn(&mut stage, 0.0);
    pictures.push(("seen again", stage.picture()));
    // No entity gets another component: all that was made for the sets stays.
    turn(&mut stage, 3.0);
    stage.picture();
    // The first scale moves a set to another page, and many instances move one to another place in
    // its page. All look like one, as which they are drawn among entities.
    let one = Transform::from_xyz(0.0, 0.6, 0.0);
    let scaled = one.with_scale(Vec3::splat(1.6));
    for (number, added, count) in [(near + 5, scaled, 1), (near + 6, one, 3000)] {
        let (mesh, entity) = (meshes[number % 20].clone(), all[number]);
        if how == How::Entities {
            stage.spawn((Mesh3d(mesh), material.clone(), added, ChildOf(entity)));
            continue;
        }
        let world = stage.app.world_mut();
        let set = world.get::<GpuInstances>(entity).unwrap().0.clone();
        let mut sets = world.resource_mut::<Assets<InstanceSet>>();
        let mut set = sets.get_mut(&set).unwrap();
        set.extend((0..count).map(|_| added)).unwrap();
    }
    stage.picture();
    turn(&mut stage, 0.0);
    pictures.push(("grown", stage.picture()));
    for entity in all.drain(near..near + 4) {
        stage.entity(entity).despawn();
    }
    pictures.push(("fewer", stage.picture()));
    for number in [near, near + 1] {
        let parts = (meshes[3].clone(), material.clone());
        stage.spawn_set(&group(number + 7), parts, place(number));
    }
    pictures.push(("new", stage.picture()));
    // So few that none rests.
    for entity in all.drain(40..near - 4) {
        stage.entity(entity).despawn();
    }
    for entity in all.drain(50..) {
        stage.entity(entity).despawn();
    }
    pictures.push(("few", stage.picture()));
    if how != How::Entities {
        stage.verify();
    }
    pictures
}

#[test]
fn many_sets_around_a_camera_that_turns_look_like_bevys_entities() {
    for (shadows, tier) in [(true, None), (false, Some(CullingTier::Workgroup))] {
        let entities = pictures(How::Entities, shadows);
        let sets = pictures(How::Set(tier), shadows);
        for ((name, sets), (_, entities)) in sets.iter().zip(&entities) {
            let name = format!("many-{tier:?}-{shadows}-{}", name.replace(' ', "-"));
            assert_same_picture(&name, sets, entities);
        }
    }
}
