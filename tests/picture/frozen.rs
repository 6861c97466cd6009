//! Frozen cameras.

use super::{eye, red_boxes};
use crate::scene::{How, Stage, field};
use bevy::prelude::*;
use bevy_gpu_culling::prelude::*;

#[test]
fn a_frozen_camera_draws_what_it_kept() {
    let mut stage = Stage::new(How::Set(None));
    red_boxes(&mut stage, &field(2000, false), Transform::IDENTITY);
    let camera = stage.camera(eye(), ());
    let kept = stage.report().cameras();
    assert!(kept.1 > 0 && kept.1 < 2000, "{kept:?}");
    stage.entity(camera).insert(FreezeCulling::default());
    stage.update(1);
    let away = Transform::from_xyz(0.0, 20.0, 40.0).looking_at(Vec3::ZERO, Vec3::Y);
    stage.entity(camera).insert(away);
    assert_eq!(stage.report().cameras(), kept);
    stage.entity(camera).remove::<FreezeCulling>();
    assert!(stage.report().cameras().1 > kept.1);
}

#[test]
fn a_camera_that_is_frozen_again_stays_frozen() {
    let mut stage = Stage::new(How::Set(None));
    red_boxes(&mut stage, &field(2000, false), Transform::IDENTITY);
    let camera = stage.camera(eye(), ());
    stage.entity(camera).insert(FreezeCulling::default());
    let kept = stage.report().cameras();
    stage.entity(camera).insert(FreezeCulling::default());
    stage.update(1);
    let away = Transform::from_xyz(0.0, 20.0, 40.0).looking_at(Vec3::ZERO, Vec3::Y);
    stage.entity(camera).insert(away);
    assert_eq!(stage.report().cameras(), kept);
    assert!(kept.1 > 0 && kept.1 < 2000, "{kept:?}");
}
