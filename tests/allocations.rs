//! What the plugin's systems allocate on the CPU in a frame: nothing for sets that do not change,
//! however many there are. The allocator counts, so this is a separate program.
#![cfg(all(feature = "bevy", feature = "study"))]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic, and prints what it counted"
)]

#[path = "scene/allocator.rs"]
mod allocator;
mod scene;

use allocator::Watched;
use bevy::{light::CascadeShadowConfigBuilder, prelude::*};
use bevy_gpu_culling::{
    prelude::*,
    render::{CpuStage, running_stage},
};
use scene::{How, Stage, field};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

#[global_allocator]
static ALLOCATOR: Watched = Watched {
    asked: |_| note(),
    freed: |_| (),
};

const STAGES: usize = CpuStage::ALL.len();

/// Number of allocations in each stage.
static COUNTS: [AtomicU32; STAGES] = [const { AtomicU32::new(0) }; STAGES];

fn note() {
    if let Some(stage) = running_stage() {
        COUNTS[stage as usize].fetch_add(1, Relaxed);
    }
}

/// Sets around a camera that hides, with two materials and four cascades.
fn scene(sets: u32) -> (Stage, Entity) {
    let mut stage = Stage::new(How::Set(None));
    let materials = [Color::WHITE, Color::BLACK];
    let materials = materials.map(|color| stage.standard(StandardMaterial::from(color)));
    for number in 0..sets {
        let mesh = stage.mesh(Cuboid::from_length(0.1 + 0.001 * number as f32));
        let material = materials[number as usize % 2].clone();
        let set = field(20, number.is_multiple_of(3));
        let turn = number as f32 * 0.7;
        let at = Transform::from_xyz(turn.sin() * 30.0, 0.0, turn.cos() * 30.0);
        stage.spawn_set(&set, (mesh, material), at);
    }
    let cascades = CascadeShadowConfigBuilder {
        num_cascades: 4,
        maximum_distance: 60.0,
        ..default()
    };
    stage.spawn((
        DirectionalLight {
            shadow_maps_enabled: true,
            ..default()
        },
        cascades.build(),
        Transform::from_xyz(4.0, 9.0, 3.0).looking_at(Vec3::ZERO, Vec3::Y),
    ));
    let camera = stage.camera(Transform::default(), InstanceOcclusion::default());
    (stage, camera)
}

/// Smallest and largest number of allocations in a frame, in each stage.
fn count(stage: &mut Stage, frames: u32, act: impl Fn(&mut Stage, u32)) -> [(u32, u32); STAGES] {
    let mut counts = [(u32::MAX, 0); STAGES];
    for frame in 0..frames {
        act(stage, frame);
        COUNTS.iter().for_each(|count| count.store(0, Relaxed));
        stage.update(1);
        for ((min, max), count) in counts.iter_mut().zip(&COUNTS) {
            let count = count.load(Relaxed);
            (*min, *max) = (count.min(*min), count.max(*max));
        }
    }
    counts
}

/// A frame in which nothing changes allocates lists of views, and what wgpu takes to record passes.
#[test]
fn frames_allocate_nothing_for_their_sets() {
    let [few, many] = [70, 210].map(|sets| {
        let (mut stage, camera) = scene(sets);
        // All directions once: lists have their full length.
        let turn = |stage: &mut Stage, frame: u32| {
            let turn = Quat::from_rotation_y(frame as f32 * 0.3);
            stage.entity(camera).insert(Transform::from_rotation(turn));
        };
        count(&mut stage, 24, turn);
        let moving = count(&mut stage, 8, turn);
        stage.update(8);
        let still = count(&mut stage, 8, |_, _| ());
        println!("{sets} sets: still {still:?}, moving {moving:?}");
        for stage in [CpuStage::Main, CpuStage::Extract] {
            assert_eq!(moving[stage as usize].1, 0, "{sets} sets, {stage:?}");
        }
        // Sets that come into view are looked at.
        assert_eq!(still[CpuStage::Materials as usize].1, 0, "{sets} sets");
        still
    });
    for stage in CpuStage::ALL {
        let (few, many) = (few[stage as usize], many[stage as usize]);
        // One allocation per set would be 140 more.
        assert!(many.0 <= few.0 + 4, "{stage:?}: {few:?} and {many:?}");
        assert!(many.0 <= 64, "{stage:?}: {many:?}");
        // Some frames after a turn, the arena follows the rows that are awake, and bind groups are
        // made again. That may be in one of these frames, or not.
        let is_measured = stage != CpuStage::Prepare;
        // Lists of counters grow by doubling: for three times the sets, two steps more each.
        assert!(
            !is_measured || many.1 <= few.1 + 16,
            "{stage:?}: {few:?} and {many:?}"
        );
    }
}
