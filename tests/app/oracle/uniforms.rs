//! Sets that are drawn with one `MeshUniform` per survivor.

use super::{
    build::{eye, moved, sun},
    stage,
};
use crate::scene::{How, different_pixels, field_of};
use bevy::prelude::*;
use bevy_gpu_culling::instance::ScaleKind;
use bevy_gpu_culling::prelude::*;
use image::RgbaImage;

/// The uniforms of all instances would not fit, but only survivors need uniforms.
#[test]
fn room_for_uniforms_follows_the_survivors() {
    let near = field_of(2000, ScaleKind::NonUniform);
    // Outside the view.
    let far = (0..1_200_000).map(|i| InstanceTransform::from(Vec3::new(i as f32, 0.0, 500.0)));
    let set = InstanceSet::from_transforms(far.chain(near.iter())).unwrap();
    let result = different_pixels("uniforms-many", &draw(&set, true), &draw(&set, false));
    assert!(result.is_ok(), "{result:?}");
}

/// A flat instance has no inverse, but its face has a normal.
#[test]
fn flat_instances_are_lit_as_without_uniforms() {
    let flat = |(at, mut instance): (usize, InstanceTransform)| {
        instance.scale[at % 3] = 0.0;
        instance
    };
    let field = field_of(300, ScaleKind::NonUniform);
    let set = InstanceSet::from_transforms(field.iter().enumerate().map(flat)).unwrap();
    let result = different_pixels("uniforms-flat", &draw(&set, true), &draw(&set, false));
    assert!(result.is_ok(), "{result:?}");
}

/// The set in the sun, drawn with or without uniforms.
fn draw(set: &InstanceSet, uniforms: bool) -> RgbaImage {
    let mut stage = stage(How::Set(None));
    let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
    let material = stage.standard(StandardMaterial::from(Color::srgb(0.9, 0.4, 0.3)));
    let entity = stage.spawn_set(set, (mesh, material), moved());
    if uniforms {
        let world = stage.app.world_mut();
        world.entity_mut(entity).insert(InstanceMeshUniforms);
    }
    let sun = sun(&mut stage);
    let world = stage.app.world_mut();
    let mut sun = world.get_mut::<DirectionalLight>(sun).unwrap();
    sun.shadow_maps_enabled = false;
    stage.camera(eye(), ());
    // The counters arrive after some frames.
    stage.report();
    stage.picture()
}
