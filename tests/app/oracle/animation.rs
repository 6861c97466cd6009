//! Figures have the motion vectors of Bevy's skinned entities whose joints move.

use super::{
    build::{eye, pane},
    stage,
};
use crate::scene::{How, different_pixels, field_of, posed};
use bevy::{
    camera::visibility::NoFrustumCulling,
    core_pipeline::prepass::{DepthPrepass, MotionVectorPrepass, NormalPrepass},
    math::{Affine3A, Mat4},
    mesh::skinning::{SkinnedMesh, SkinnedMeshInverseBindposes},
    prelude::*,
};
use bevy_gpu_culling::{instance::ScaleKind, prelude::*, render::PoseClip};
use core::time::Duration;
use image::RgbaImage;

/// Ticks that the clip takes, and ticks of each frame.
const LENGTH: u32 = 2048;
const STEPS: [u32; 10] = [256, 256, 256, 256, 256, 256, 192, 0, 0, 224];
/// How far the upper joint moves.
const FAR: Vec3 = Vec3::new(0.7, 0.2, -0.3);

/// A pole whose upper end goes away.
fn poses() -> AnimationPoses {
    let pose = |share: f32| vec![Affine3A::IDENTITY, Affine3A::from_translation(FAR * share)];
    let clip = PoseClip {
        poses: vec![pose(0.0), pose(0.5), pose(1.0)],
        seconds: LENGTH as f32 / 1024.0,
        loops: true,
    };
    AnimationPoses::new([clip]).unwrap()
}

/// Pictures of motion vectors while the poles move, stop with the time, and move again.
fn motions(how: How) -> Vec<RgbaImage> {
    let mut stage = stage(how);
    let set = field_of(150, ScaleKind::Uniform);
    let mesh = stage.mesh(posed::mesh());
    let material = stage.standard(StandardMaterial::default());
    let at = Transform::from_xyz(0.3, 0.2, -1.0).with_rotation(Quat::from_rotation_y(0.3));
    let mut upper = Vec::new();
    if how == How::Entities {
        let binds = SkinnedMeshInverseBindposes::from(vec![Mat4::IDENTITY; 2]);
        let binds = stage.add(binds);
        let parent = stage.spawn((at, Visibility::default()));
        for instance in set.iter() {
            let root = (Transform::from(instance), Visibility::default());
            let root = stage.spawn((root, ChildOf(parent)));
            let joints = [0, 1].map(|_| stage.spawn((Transform::IDENTITY, ChildOf(root))));
            upper.push(joints[1]);
            let skin = SkinnedMesh {
                inverse_bindposes: binds.clone(),
                joints: joints.into(),
            };
            // Bevy tests the box of the mesh without a pose.
            let figure = (
                Mesh3d(mesh.clone()),
                material.clone(),
                skin,
                NoFrustumCulling,
            );
            stage.spawn((figure, ChildOf(root)));
        }
    } else {
        let poses = stage.add(poses());
        let now = stage.app.world().resource::<Time>().elapsed();
        let states = vec![AnimationState::play(0, now); set.len()];
        let set = set.with_data(states).unwrap();
        let entity = stage.spawn_set(&set, (mesh, material), at);
        stage.entity(entity).insert(InstanceAnimation {
            source: AnimationSource::InData { first_word: 0 },
            ..poses.into()
        });
    }
    let prepasses = (DepthPrepass, NormalPrepass, MotionVectorPrepass);
    let camera = stage.camera(eye(), (prepasses, Msaa::Off));
    pane(&mut stage, camera);
    let mut ticks = 0;
    let mut pictures = Vec::new();
    for step in STEPS {
        let time = Duration::from_nanos(u64::from(step) * 1_000_000_000 / 1024);
        stage.tick(time);
        ticks += step;
        for joint in &upper {
            let share = (ticks % LENGTH) as f32 / LENGTH as f32;
            stage
                .entity(*joint)
                .insert(Transform::from_translation(FAR * share));
        }
        pictures.push(stage.picture_now());
    }
    pictures
}

#[test]
fn figures_have_the_motion_of_skinned_entities() {
    let sets = motions(How::Set(None));
    let entities = motions(How::Entities);
    for (frame, (set, entities)) in sets.iter().zip(&entities).enumerate().skip(5) {
        different_pixels(&format!("motion-figures-{frame}"), set, entities).unwrap();
    }
    // The comparison sees motion.
    assert!(different_pixels("motion-figures-stop", &sets[6], &sets[8]).is_err());
}
