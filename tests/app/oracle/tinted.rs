//! Instances with their own colors, as sets and meshes with `TintedMaterial`, and as entities
//! that each have a `StandardMaterial` of the multiplied color.

use crate::scene::{How, Stage};
use bevy::{mesh::MeshTag, prelude::*};
use bevy_gpu_culling::prelude::*;

/// The color of an instance. Every eighth is white, which is what an instance without a tag has.
/// Some are too transparent for a mask, and some for a shadow.
fn color(index: usize) -> Srgba {
    if index.is_multiple_of(8) {
        return Srgba::WHITE;
    }
    let [red, green, blue] = [97, 59, 151].map(|step| (index * step % 256) as u8);
    let alpha = [255, 200, 255, 90, 255, 7, 0][index % 7];
    Srgba::rgba_u8(red, green, blue, alpha)
}

/// Ways in which a tinted instance can be drawn.
const WAYS: usize = 4;

/// Spawns the instances with their colors. `is_one_set` draws all in one set; otherwise they take
/// turns: a set, a set with `InstanceMeshUniforms`, meshes with a `MeshTag`, and, for white ones,
/// a set and meshes without tags.
pub fn spawn(
    stage: &mut Stage,
    set: &InstanceSet,
    (mesh, base): (Handle<Mesh>, StandardMaterial),
    at: Transform,
    is_one_set: bool,
) -> Entity {
    let instances: Vec<_> = set.iter().zip((0..).map(color)).collect();
    if stage.how == How::Entities {
        let parent = stage.spawn((at, Visibility::default()));
        for (instance, color) in instances {
            let material = stage.standard(multiplied(&base, color));
            let place = Transform::from(instance);
            stage.spawn((Mesh3d(mesh.clone()), material, place, ChildOf(parent)));
        }
        return parent;
    }
    let material = MeshMaterial3d(stage.add(InstanceTint::material(base)));
    let tagged = |parts: &[(InstanceTransform, Srgba)]| {
        let tags = parts.iter().map(|(_, color)| InstanceTint::tag(*color));
        let set = InstanceSet::from_transforms(parts.iter().map(|(place, _)| *place)).unwrap();
        set.with_tags(tags.collect()).unwrap()
    };
    if is_one_set {
        return stage.spawn_set(&tagged(&instances), (mesh, material), at);
    }
    let parent = stage.spawn((at, Visibility::default()));
    let mut ways: [Vec<_>; WAYS] = default();
    for (index, instance) in instances.into_iter().enumerate() {
        let is_white = index.is_multiple_of(16);
        ways[if is_white { 3 } else { index / 2 % 3 }].push(instance);
    }
    let here = Transform::IDENTITY;
    let [by_instances, by_uniforms, by_meshes, untagged] = ways;
    let whole = stage.spawn_set(
        &tagged(&by_instances),
        (mesh.clone(), material.clone()),
        here,
    );
    let uniforms = stage.spawn_set(
        &tagged(&by_uniforms),
        (mesh.clone(), material.clone()),
        here,
    );
    let (plain, single) = untagged.split_at(untagged.len() / 2);
    let plain = InstanceSet::from_transforms(plain.iter().map(|(place, _)| *place)).unwrap();
    assert_eq!(plain.tags(), None);
    let plain = stage.spawn_set(&plain, (mesh.clone(), material.clone()), here);
    stage.entity(uniforms).insert(InstanceMeshUniforms);
    for set in [whole, uniforms, plain] {
        stage.entity(set).insert(ChildOf(parent));
    }
    let single = single.iter().map(|(place, _)| (*place, None));
    let tagged = by_meshes.into_iter();
    for (place, color) in tagged
        .map(|(place, color)| (place, Some(color)))
        .chain(single)
    {
        let place = Transform::from(place);
        let spawned = stage.spawn((
            Mesh3d(mesh.clone()),
            material.clone(),
            place,
            ChildOf(parent),
        ));
        if let Some(color) = color {
            stage
                .entity(spawned)
                .insert(MeshTag::new(InstanceTint::tag(color)));
        }
    }
    parent
}

/// The material with its base color multiplied by another.
fn multiplied(base: &StandardMaterial, by: Srgba) -> StandardMaterial {
    let color = base.base_color.to_linear().to_vec4() * LinearRgba::from(by).to_vec4();
    StandardMaterial {
        base_color: LinearRgba::from_vec4(color).into(),
        ..base.clone()
    }
}
