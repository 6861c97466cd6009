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
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicI64, AtomicU32, Ordering::Relaxed},
};

#[global_allocator]
static ALLOCATOR: Watched = Watched {
    asked: |bytes| {
        note();
        HELD.fetch_add(bytes as i64, Relaxed);
    },
    freed: |bytes| {
        HELD.fetch_sub(bytes as i64, Relaxed);
    },
};

/// The counts are of the program: one test at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Bytes that were asked for and not given back.
static HELD: AtomicI64 = AtomicI64::new(0);

const STAGES: usize = CpuStage::ALL.len();

/// Number of allocations in each stage.
static COUNTS: [AtomicU32; STAGES] = [const { AtomicU32::new(0) }; STAGES];

fn note() {
    if let Some(stage) = running_stage() {
        COUNTS[stage as usize].fetch_add(1, Relaxed);
    }
}

/// Sets around a camera that hides, with two materials and four cascades.
fn spawn_scene(stage: &mut Stage, sets: u32) -> Entity {
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
    stage.camera(Transform::default(), InstanceOcclusion::default())
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
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let [few, many] = [70, 210].map(|sets| {
        let mut stage = Stage::new(How::Set(None));
        let camera = spawn_scene(&mut stage, sets);
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

/// Frames until nothing is in flight, and buffers follow the rows that are awake.
const QUIET: usize = 10;

/// Bytes of Bevy's own lists, of which some grow for a few scenes. The large set alone has more.
const MAX_GROWTH: i64 = 200_000;

/// Scenes that come and go, each with new meshes, materials and sets, take no more memory than the
/// ones before. Up to 4,096 slots of the first ones are kept.
#[test]
fn scenes_that_go_give_their_memory_back() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut stage = Stage::new(How::Set(None));
    let large = field(20_000, true);
    let gpu_bytes = |stage: &mut Stage| {
        stage.update(QUIET);
        stage.app.world().resource::<CullingReport>().gpu_bytes
    };
    let bytes: Vec<_> = (0..10)
        .map(|_| {
            spawn_scene(&mut stage, 70);
            let mesh = stage.mesh(Cuboid::from_length(0.2));
            let material = stage.standard(StandardMaterial::default());
            // No view sees it, which would take long.
            let at = Transform::from_xyz(0.0, -500.0, 0.0);
            stage.spawn_set(&large, (mesh, material), at);
            let full = gpu_bytes(&mut stage);
            stage.clear();
            (full, gpu_bytes(&mut stage), HELD.load(Relaxed))
        })
        .collect();
    println!("GPU bytes with a scene and without, CPU bytes without: {bytes:?}");
    let [.., before, last] = &bytes[..] else {
        unreachable!("ten scenes")
    };
    assert!(
        last.0 > last.1 + 20_000 * 16,
        "the large set is not counted"
    );
    assert_eq!((last.0, last.1), (before.0, before.1));
    assert!(last.2 < before.2 + MAX_GROWTH);
}
