//! Instances that become entities look as before, and as instances again.

use super::{eye, moved, red, red_boxes};
use crate::scene::{How, Stage, assert_same_picture, field};
use bevy::prelude::*;
use bevy_gpu_culling::prelude::*;

/// Takes some instances out of a set and puts them back; one of them is moved in between.
#[test]
fn entities_of_instances_look_like_them() {
    let mut stage = Stage::new(How::Set(None));
    let set = red_boxes(&mut stage, &field(300, true), moved());
    // A second part, which each instance has.
    let part = Transform::from_xyz(0.0, 0.6, 0.1).with_scale(Vec3::splat(0.4));
    let instances = stage.app.world().get::<GpuInstances>(set).unwrap().clone();
    let ball = stage.mesh(Sphere::new(0.5));
    let material = stage.standard(StandardMaterial {
        base_color: Color::srgb(0.2, 0.5, 0.9),
        ..red()
    });
    let offset = InstanceOffset::from(part);
    stage.spawn((Mesh3d(ball), material, instances, offset, ChildOf(set)));
    stage.lights(true);
    stage.camera(eye(), ());
    let (before, report) = stage.picture_and_report();
    let visible = report.cameras().1;
    let taken: Vec<Entity> = {
        let world = stage.app.world_mut();
        let mut commands = world.commands();
        let ids = (0..300).step_by(3);
        let taken = ids
            .map(|id| commands.detach_instance(set, id).id())
            .collect();
        world.flush();
        taken
    };
    let (entities, report) = stage.picture_and_report();
    assert!(
        report.cameras().1 < visible * 3 / 4,
        "{visible}: {report:?}"
    );
    assert_same_picture("detached", &entities, &before);
    // One moves: it is seen where it goes, and stays there as an instance.
    let mut place = *stage.app.world().get::<Transform>(taken[7]).unwrap();
    place.translation = Vec3::new(0.0, 1.5, 4.0);
    stage.entity(taken[7]).insert(place);
    let moved = stage.picture();
    let differ = moved.pixels().zip(before.pixels()).filter(|(a, b)| a != b);
    assert!(differ.count() > 500, "nothing moved");
    for entity in taken {
        stage.app.world_mut().commands().attach_instance(entity);
    }
    stage.app.world_mut().flush();
    assert_same_picture("attached", &stage.picture(), &moved);
    stage.verify();
}

/// The mesh of a set of meshlets has the triangles of all its levels; an entity has those of the
/// full mesh.
#[test]
fn an_entity_of_meshlets_has_the_full_mesh() {
    let statue = Torus::new(0.2, 0.6).mesh();
    let statue = statue.major_resolution(32).minor_resolution(16).build();
    let settings = MeshletSettings {
        lods: Some(LodSettings::default()),
        ..default()
    };
    let statue = MeshletMesh::from_mesh(&statue, &settings).unwrap();
    assert!(statue.levels().len() > 1);
    let full = statue.to_mesh().unwrap();
    let places: Vec<_> = field(6, true).iter().collect();
    // Inside out, so that coarser levels would be seen through the full one.
    let glass = StandardMaterial {
        alpha_mode: AlphaMode::Add,
        cull_mode: None,
        ..red()
    };

    let mut stage = Stage::new(How::Set(None));
    let material = stage.standard(glass.clone());
    let meshlets = stage.add(statue);
    let instances = stage.add(field(6, true));
    let set = (MeshletMesh3d(meshlets), material, GpuInstances(instances));
    let set = stage.spawn((set, Transform::default()));
    stage.lights(true);
    stage.camera(eye(), ());
    stage.update(3);
    for index in 0..6 {
        let mut commands = stage.app.world_mut().commands();
        commands.detach_instance(set, index);
    }
    stage.app.world_mut().flush();
    let detached = stage.picture();

    let mut bevy = Stage::new(How::Entities);
    let material = bevy.standard(glass);
    let mesh = bevy.mesh(full);
    for place in places {
        let parts = (Mesh3d(mesh.clone()), material.clone());
        bevy.spawn((parts, Transform::from(place)));
    }
    bevy.lights(true);
    bevy.camera(eye(), ());
    assert_same_picture("detached meshlets", &detached, &bevy.picture());
}

/// What a ray hits of a scene is a part.
#[test]
fn a_part_of_a_scene_is_detached_with_the_others() {
    let mut stage = Stage::new(How::Set(None));
    let mut scene = World::new();
    let ball = Mesh3d(stage.mesh(Sphere::new(0.3)));
    let trunk = Mesh3d(stage.mesh(Cuboid::new(0.1, 0.8, 0.1)));
    let paint = stage.standard(red());
    scene.spawn((ball, paint.clone(), Transform::from_xyz(0.0, 0.6, 0.0)));
    scene.spawn((trunk, paint, Transform::from_xyz(0.0, 0.1, 0.0)));
    let scene = stage.add(WorldAsset::new(scene));
    let instances = stage.add(field(60, true));
    let root = stage.spawn((InstanceScene(scene), GpuInstances(instances)));
    stage.lights(true);
    stage.camera(eye(), ());
    let before = stage.picture();
    let part = stage.app.world().get::<Children>(root).unwrap()[1];
    for index in (0..60).step_by(2) {
        let mut commands = stage.app.world_mut().commands();
        commands.detach_instance(part, index);
    }
    stage.app.world_mut().flush();
    assert_same_picture("a detached part", &stage.picture(), &before);
}
