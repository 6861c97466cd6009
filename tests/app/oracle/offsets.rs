//! Offsets between mesh and instance: a set looks like entities whose transforms hold the offset,
//! in all passes, and with the motion of an offset that changes.

use super::{
    axes::Light,
    build::{eye, ground, lights, moved, pane},
    materials::{self, Swollen},
    stage,
};
use crate::scene::{How, Stage, different_pixels, field, field_of};
use bevy::{
    camera::visibility::NoFrustumCulling,
    core_pipeline::prepass::{DepthPrepass, MotionVectorPrepass, NormalPrepass},
    prelude::*,
};
use bevy_gpu_culling::instance::ScaleKind;
use bevy_gpu_culling::prelude::*;
use image::RgbaImage;

/// An offset that turns in each frame.
#[derive(Component, Clone, Copy)]
pub struct Spin(Transform, bool);

pub fn spin(mut spinning: Query<(&mut Spin, Option<&mut InstanceOffset>, &mut Transform)>) {
    for (mut spin, offset, mut transform) in &mut spinning {
        if !spin.1 {
            continue;
        }
        spin.0.rotate_local_y(0.2);
        match offset {
            Some(mut offset) => *offset = spin.0.into(),
            None => *transform = spin.0,
        }
    }
}

/// Rotated, stretched in three ways, and away from the instance's origin.
fn stretched() -> Transform {
    Transform::from_xyz(0.4, 0.9, -0.3)
        .with_rotation(Quat::from_euler(EulerRot::XYZ, 0.5, -0.8, 1.1))
        .with_scale(Vec3::new(1.6, 0.5, 1.0))
}

/// Mirrored.
fn mirrored() -> Transform {
    Transform::from_xyz(-0.5, -0.8, 0.2)
        .with_rotation(Quat::from_euler(EulerRot::XYZ, -0.4, 0.3, 0.2))
        .with_scale(Vec3::new(-0.7, 1.2, 0.9))
}

/// Spawns a set with an offset, or one entity per instance with a child that has the offset for its
/// transform.
fn spawn_offset<M: Component + Clone>(
    stage: &mut Stage,
    set: &InstanceSet,
    (mesh, material): (Handle<Mesh>, M),
    offset: Transform,
    extra: (Option<InstanceMeshUniforms>, Option<CullingRadius>),
) {
    let spin = Spin(offset, false);
    if stage.how == How::Entities {
        let parent = stage.spawn((moved(), Visibility::default()));
        for instance in set.iter() {
            let place = (Transform::from(instance), Visibility::default());
            let node = stage.spawn((place, ChildOf(parent)));
            let mesh = Mesh3d(mesh.clone());
            let part = stage.spawn((mesh, material.clone(), offset, spin, ChildOf(node)));
            if extra.1.is_some() {
                stage.entity(part).insert(NoFrustumCulling);
            }
        }
        return;
    }
    let instances = GpuInstances(stage.add(set.clone()));
    let offset = InstanceOffset::from(offset);
    let parts = (Mesh3d(mesh), material, instances, moved(), offset, spin);
    let entity = stage.spawn(parts);
    if let Some(uniforms) = extra.0 {
        stage.entity(entity).insert(uniforms);
    }
    if let Some(radius) = extra.1 {
        stage.entity(entity).insert(radius);
    }
}

/// Sets with normal maps, and one with its own vertex shader, under all lights. Returns the camera.
fn build(stage: &mut Stage, uniforms: bool) -> Entity {
    let uniforms = uniforms.then_some(InstanceMeshUniforms);
    // Its normals point everywhere: a box's are stretched as its edges are.
    let torus = Torus::new(0.12, 0.38).mesh();
    let torus = torus.major_resolution(16).minor_resolution(8).build();
    let mesh = stage.mesh(torus.with_generated_tangents().unwrap());
    let bumps = |x: u32, y: u32| [128 + 8 * (x % 8) as u8, 100 + 8 * (y % 8) as u8, 230, 255];
    let bumps = stage.add(materials::texture(false, bumps));
    let material = stage.standard(StandardMaterial {
        base_color: Color::srgb(0.9, 0.4, 0.3),
        perceptual_roughness: 0.4,
        normal_map_texture: Some(bumps),
        ..default()
    });
    for (offset, count) in [(stretched(), 150), (mirrored(), 130)] {
        let parts = (mesh.clone(), material.clone());
        spawn_offset(
            stage,
            &field_of(count, ScaleKind::NonUniform),
            parts,
            offset,
            (uniforms, None),
        );
    }
    let color = LinearRgba::rgb(0.9, 0.5, 0.1);
    let swollen = MeshMaterial3d(stage.add(Swollen { color }));
    let radius = Some(CullingRadius(0.7));
    let parts = (mesh, swollen);
    spawn_offset(stage, &field(60, true), parts, stretched(), (None, radius));
    ground(stage);
    lights(stage, Light::All);
    let prepasses = (DepthPrepass, NormalPrepass, MotionVectorPrepass);
    stage.camera(eye(), (prepasses, Msaa::Off))
}

/// A picture at rest. Then pictures whose left half shows normals, and whose right half shows
/// motion and depth: at rest, while offsets turn, and after that.
fn pictures(how: How, uniforms: bool) -> Vec<RgbaImage> {
    let mut stage = stage(how);
    let camera = build(&mut stage, uniforms);
    let mut pictures = vec![stage.picture()];
    if how != How::Entities {
        let (views, survivors) = stage.verify();
        assert!(views > 10 && survivors > 300, "{views} {survivors}");
    }
    pane(&mut stage, camera);
    pictures.push(stage.picture());
    stage.update(2);
    for turns in [true, false] {
        let world = stage.app.world_mut();
        for mut spin in world.query::<&mut Spin>().iter_mut(world) {
            spin.1 = turns;
        }
        stage.update(2);
        pictures.push(stage.picture_now());
    }
    pictures
}

#[test]
fn an_offset_is_as_a_child_with_this_transform() {
    let entities = pictures(How::Entities, false);
    let mut failures = Vec::new();
    for uniforms in [false, true] {
        let set = pictures(How::Set(None), uniforms);
        for (at, (set, entities)) in set.iter().zip(&entities).enumerate() {
            let name = format!("offset-{uniforms}-{at}");
            let result = different_pixels(&name, set, entities);
            println!("{name}: {result:?}");
            failures.extend(result.err());
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // The pictures of turning offsets show motion.
    assert!(different_pixels("offset-motion", &entities[2], &entities[3]).is_err());
}
