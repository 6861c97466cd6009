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
