//! Late lists of sets whose draws are joined.

use super::{
    Way,
    sequences::{Sequence, build, colored, light, stage},
    shadows::{self, small_maps, sun},
    sum_of,
};
use crate::scene::{Stage, field};
use bevy::prelude::*;
use bevy_gpu_culling::{prelude::*, render::ViewKind};

/// Adds sets of different meshes with one material. Every third has levels of detail.
fn add_sets(stage: &mut Stage, count: u32, material: impl Bundle + Clone) {
    for number in 0..count {
        let side = |k: u32| 0.15 + 0.05 * ((number * 7 + k * 5) % 9) as f32;
        let mesh = stage.mesh(Cuboid::new(side(0), side(1), side(2)));
        let set = stage.add(field(30 + number as usize, number % 4 == 0));
        let set = (Mesh3d(mesh), material.clone(), GpuInstances(set));
        let set = stage.spawn((set, Transform::from_xyz(0.0, 0.01 * number as f32, 0.0)));
        if number % 3 == 0 {
            let coarse = stage.mesh(Cuboid::new(side(0), side(1), 0.9 * side(2)));
            let levels = vec![InstanceLod::new(coarse, 0.05)];
            stage.entity(set).insert(InstanceLods {
                levels,
                ..default()
            });
        }
    }
}

#[test]
fn joined_sets_draw_the_same_picture() {
    for (name, way, tier) in [
        ("joined", Way::Forward, CullingTier::Workgroup),
        ("joined-prepass", Way::Prepass, CullingTier::Subgroup),
    ] {
        Sequence {
            name,
            way,
            tier,
            dress: &|stage, _| {
                let orange = colored(stage, [0.9, 0.5, 0.1]);
                add_sets(stage, 24, orange);
            },
            // One comes, one goes.
            act: &|stage, actors, frame, _| match frame {
                5 => {
                    let violet = colored(stage, [0.5, 0.1, 0.9]);
                    add_sets(stage, 2, violet);
                }
                7 => stage.entity(actors.slabs).despawn(),
                _ => {}
            },
            ..default()
        }
        .assert_equal();
    }
}

#[test]
fn joined_sets_cast_the_same_shadows() {
    Sequence {
        name: "joined-shadows",
        way: Way::Shadows,
        dress: &|stage, actors| {
            shadows::add_ground(stage, actors);
            sun(stage);
            let orange = stage.standard(StandardMaterial::from(Color::srgb(0.9, 0.5, 0.1)));
            add_sets(stage, 24, orange);
        },
        act: &|stage, actors, frame, _| shadows::act(stage, actors, frame, shadows::roof()),
        report: &|stage| sum_of(stage, |view| view.kind == ViewKind::Cascade),
        ..default()
    }
    .assert_equal();
}

/// A view that hides draws each batch set twice, however many members it has.
#[test]
fn more_sets_are_not_more_late_draws() {
    let calls = |count: u32| {
        let mut stage = stage(None);
        let actors = build(&mut stage);
        light(&mut stage, &actors);
        for entity in [actors.boxes, actors.slabs] {
            stage.entity(entity).despawn();
        }
        small_maps(&mut stage);
        sun(&mut stage);
        Way::Forward.equip(&mut stage.entity(actors.camera), false);
        shadows::equip_lights(&mut stage);
        let gray = stage.standard(StandardMaterial::default());
        for number in 0..count {
            let mesh = stage.mesh(Cuboid::from_length(0.2 + 0.01 * number as f32));
            stage.spawn_set(&field(30, false), (mesh, gray.clone()), Transform::IDENTITY);
        }
        let eye = Transform::from_xyz(0.0, 0.5, 13.0).looking_at(Vec3::ZERO, Vec3::Y);
        stage.entity(actors.camera).insert(eye);
        stage.picture_and_report().1.draw_calls
    };
    let few = calls(4);
    // A camera and two cascades, each early and late.
    assert_eq!(few, 6);
    assert_eq!(calls(100), few);
}
