//! Offsets between mesh and instance: levels of detail are as of larger instances, and what is no
//! transform is refused. The picture oracle compares offsets with entities.

use super::{
    eye,
    impostors::{self, Look},
    red_boxes,
};
use crate::scene::{How, Stage, assert_same_picture, field};
use bevy::{math::Affine3A, prelude::*};
use bevy_gpu_culling::prelude::*;
use image::RgbaImage;

/// The set with larger instances.
fn enlarged(set: &InstanceSet, times: f32) -> InstanceSet {
    let larger = set.iter().map(|mut instance| {
        instance.scale *= times;
        instance
    });
    InstanceSet::from_transforms(larger).unwrap()
}

/// The picture of a set with a coarser level and an impostor, and how many instances the camera
/// sees at each level of the set and of the impostor.
fn leveled(set: &InstanceSet, scale: f32) -> (RgbaImage, Vec<u64>) {
    let mut stage = impostors::stage(How::Set(None));
    let [parent, _] = impostors::spawn(&mut stage, set, Look::Masked, 0.2);
    let offset = Transform::from_scale(Vec3::splat(scale));
    stage.entity(parent).insert(InstanceOffset::from(offset));
    stage.lights(false);
    stage.camera(eye(), ());
    let picture = stage.picture();
    stage.verify();
    let report = stage.report();
    let views = report.views.iter().filter(|view| view.name == "camera");
    let levels = views.flat_map(|view| &view.levels);
    (picture, levels.map(|level| level.visible).collect())
}

#[test]
fn levels_and_impostors_behind_an_offset_are_as_of_larger_instances() {
    let set = field(200, true);
    let (expected, levels) = leveled(&enlarged(&set, 1.7), 1.0);
    assert!(
        levels.iter().filter(|visible| **visible > 10).count() >= 3,
        "{levels:?}"
    );
    let (offset, seen) = leveled(&set, 1.7);
    assert_same_picture("offset-levels", &offset, &expected);
    assert_eq!(seen, levels);
}

#[test]
fn an_offset_that_is_no_transform_draws_nothing_until_it_is_one() {
    let mut stage = Stage::new(How::Set(None));
    let set = red_boxes(&mut stage, &field(100, false), Transform::IDENTITY);
    stage.lights(false);
    stage.camera(eye(), ());
    let expected = stage.picture();
    let mut bad = Affine3A::IDENTITY;
    bad.matrix3.y_axis.z = f32::NAN;
    stage.entity(set).insert(InstanceOffset(bad));
    let none = stage.picture();
    assert!(none.pixels().all(|pixel| pixel == none.get_pixel(0, 0)));
    stage.entity(set).insert(InstanceOffset::default());
    assert_same_picture("offset-again", &stage.picture(), &expected);
    // Each instance turns the offset another way.
    let away = Transform::from_xyz(0.0, 1e6, 0.0);
    stage.entity(set).insert(InstanceOffset::from(away));
    assert!(stage.picture() == none, "something was drawn");
    stage.entity(set).remove::<InstanceOffset>();
    assert_same_picture("offset-removed", &stage.picture(), &expected);
}
