//! Colors of what is drawn early and of what is late.

use super::Way;
use crate::scene::{How, Stage};
use bevy::{core_pipeline::tonemapping::Tonemapping, prelude::*};
use bevy_gpu_culling::{instance::InstanceSet, prelude::*};
use core::f32::consts::PI;
use image::{Rgba, RgbaImage};

/// Numbers of pixels of each color, without the background.
#[derive(Debug, Default, PartialEq, Eq)]
struct Colors {
    green: usize,
    orange: usize,
    white: usize,
}

impl Colors {
    fn of(picture: &RgbaImage) -> Self {
        let mut colors = Self::default();
        for Rgba([red, green, blue, _]) in picture.pixels() {
            match (*red > 100, *green > 100, *blue > 180) {
                (true, true, true) => colors.white += 1,
                (false, true, _) => colors.green += 1,
                (true, _, false) => colors.orange += 1,
                _ => {}
            }
        }
        colors
    }
}

/// A camera that hides, before a wall of white cuboids with vertex colors, unlit.
fn stage(way: Way, colors: bool) -> (Stage, Entity) {
    let mut stage = Stage::new(How::Set(None));
    let mut settings = stage.app.world_mut().resource_mut::<GpuCullingSettings>();
    settings.color_occlusion = colors;
    let mesh = Mesh::from(Cuboid::from_length(0.6));
    let white = vec![[1.0; 4]; mesh.count_vertices()];
    let mesh = stage.mesh(mesh.with_inserted_attribute(Mesh::ATTRIBUTE_COLOR, white));
    let material = stage.standard(StandardMaterial {
        unlit: true,
        ..default()
    });
    let places = (0..300).map(|i| Transform::from_xyz((i % 20) as f32, (i / 20) as f32, 0.0));
    let set = InstanceSet::from_transforms(places).unwrap();
    stage.spawn_set(
        &set,
        (mesh, material),
        Transform::from_xyz(-10.0, -7.5, -20.0),
    );
    let camera = stage.camera(Transform::IDENTITY, ());
    stage.entity(camera).insert(Tonemapping::None);
    way.equip(&mut stage.entity(camera), way == Way::Prepass);
    (stage, camera)
}

/// The frame in which the camera turns back to the wall, and the one after it.
fn frames(way: Way, colors: bool) -> [Colors; 2] {
    let (mut stage, camera) = stage(way, colors);
    let appears = (0..20).any(|_| Colors::of(&stage.picture_now()) != Colors::default());
    assert!(appears, "nothing is drawn");
    let away = Transform::from_rotation(Quat::from_rotation_y(PI));
    stage.entity(camera).insert(away);
    assert_eq!(Colors::of(&stage.picture()), Colors::default());
    stage.entity(camera).insert(Transform::IDENTITY);
    [(); 2].map(|()| Colors::of(&stage.picture_now()))
}

#[test]
fn what_is_late_is_orange_and_then_early_and_green() {
    let [first, second] = frames(Way::Forward, true);
    assert!(first.orange > 1000, "{first:?}");
    assert_eq!((first.green, first.white), (0, 0));
    assert!(second.green > 1000, "{second:?}");
    assert_eq!((second.orange, second.white), (0, 0));
}

#[test]
fn draws_of_several_lists_and_of_none_have_their_own_colors() {
    for (way, colors) in [
        (Way::Prepass, true),
        (Way::Off, true),
        (Way::Forward, false),
    ] {
        for seen in frames(way, colors) {
            assert!(seen.white > 1000, "{way:?}, {colors}: {seen:?}");
            assert_eq!((seen.green, seen.orange), (0, 0), "{way:?}, {colors}");
        }
    }
}
