//! A view that hides by itself, only while that pays.

use super::camera_report;
use crate::scene::{How, SIZE, Stage, assert_same_picture};
use bevy::{camera::Viewport, prelude::*};
use bevy_gpu_culling::prelude::*;

/// Thirty-two balls of 5,120 triangles behind a wall, and three on the other side of the camera.
fn stage() -> (Stage, Entity) {
    let mut stage = Stage::new(How::Set(None));
    let ahead = Transform::default().looking_to(Vec3::NEG_Z, Vec3::Y);
    // Hundreds of frames are drawn, in which counters count, not pixels.
    let small = Viewport {
        physical_size: SIZE / 4,
        ..default()
    };
    let camera = Camera {
        viewport: Some(small),
        ..default()
    };
    let camera = stage.camera(ahead, camera);
    stage.spawn((
        DirectionalLight::default(),
        Transform::default().looking_to(Vec3::new(0.3, -1.0, 0.4), Vec3::Y),
    ));
    let ball = stage.mesh(Sphere::new(0.4).mesh().ico(15).unwrap());
    let wall = stage.mesh(Cuboid::new(30.0, 30.0, 1.0));
    let gray = stage.standard(StandardMaterial::from(Color::WHITE));
    stage.spawn((
        Mesh3d(wall),
        gray.clone(),
        Transform::from_xyz(0.0, 0.0, -6.0),
    ));
    let behind = (0..32).map(|k| Vec3::new((k % 8) as f32 - 3.5, (k / 8) as f32 - 1.5, -12.0));
    let before = (0..3).map(|k| Vec3::new(k as f32 - 1.0, 0.0, 6.0));
    let places = behind.chain(before).map(Transform::from_translation);
    let set = InstanceSet::from_transforms(places).unwrap();
    stage.spawn_set(&set, (ball, gray), Transform::default());
    // Before the wall is drawn, nothing is hidden.
    stage.settle();
    stage.entity(camera).insert(InstanceOcclusion::auto());
    (stage, camera)
}

fn turn(stage: &mut Stage, camera: Entity, to: Vec3) {
    let pose = Transform::default().looking_to(to, Vec3::Y);
    stage.entity(camera).insert(pose);
}

/// Number of frames until the camera has hidden for ten frames in a row, or has not.
fn frames_until(stage: &mut Stage, hides: bool, patience: u32) -> u32 {
    let mut row = 0;
    for frame in 0..patience {
        stage.update(1);
        stage.wait_for_gpu();
        row = if camera_report(stage).1.is_some() == hides {
            row + 1
        } else {
            0
        };
        if row == 10 {
            return frame;
        }
    }
    panic!("hides: {}, after {patience} frames", !hides);
}

#[test]
fn a_camera_hides_only_while_it_pays() {
    let (mut stage, camera) = stage();
    frames_until(&mut stage, true, 30);
    let (visible, lists) = camera_report(&mut stage);
    assert_eq!((visible, lists.map(|lists| lists.hidden)), (0, Some(32)));
    // Six counters say that nothing is hidden. One of four frames is counted.
    turn(&mut stage, camera, Vec3::Z);
    frames_until(&mut stage, false, 60);
    let paused = stage.picture();
    stage.entity(camera).remove::<InstanceOcclusion>();
    assert_same_picture("occlusion_pauses", &paused, &stage.picture());
    stage.entity(camera).insert(InstanceOcclusion::auto());
    turn(&mut stage, camera, Vec3::NEG_Z);
    // The first pause takes 60 frames.
    frames_until(&mut stage, true, 90);
    // It goes on as long as it pays.
    for _ in 0..30 {
        stage.update(1);
        stage.wait_for_gpu();
        assert!(camera_report(&mut stage).1.is_some());
    }
    // A camera that is told to hide does not pause.
    stage.entity(camera).insert(InstanceOcclusion::default());
    turn(&mut stage, camera, Vec3::Z);
    for _ in 0..30 {
        stage.update(1);
        stage.wait_for_gpu();
        assert!(camera_report(&mut stage).1.is_some());
    }
}
