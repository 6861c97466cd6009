//! What the plugin's systems allocate on the CPU in a frame: nothing for sets that do not change,
//! however many there are. And all that a frame costs in numbers that no clock decides: they are
//! stored in `docs/internals/counts.md`, which `UPDATE_DOCS=1` rewrites. The allocator counts, so
//! this is a separate program.
#![cfg(all(feature = "bevy", feature = "study"))]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic, and prints what it counted"
)]

#[path = "scene/allocator.rs"]
mod allocator;
#[path = "common/generated.rs"]
mod generated;
mod scene;

use allocator::Watched;
use bevy::{light::CascadeShadowConfigBuilder, prelude::*};
use bevy_gpu_culling::{
    cull::{Fault, Faults},
    prelude::*,
    render::{CpuStage, running_stage},
};
use core::cell::Cell;
use generated::assert_generated;
use scene::{How, Stage, field};
use std::{
    backtrace::Backtrace,
    fmt::Write as _,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering::Relaxed},
    },
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
    let Some(stage) = running_stage() else {
        return;
    };
    COUNTS[stage as usize].fetch_add(1, Relaxed);
    if ASKS.load(Relaxed) && !IS_ASKED.replace(true) {
        let trace = Backtrace::force_capture().to_string();
        let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
        own.extend(own_function(&trace).map(str::to_owned));
        drop(own);
        IS_ASKED.set(false);
    }
}

/// Whether the plugin's functions that allocate are noted in [`OWN`].
static ASKS: AtomicBool = AtomicBool::new(false);

static OWN: Mutex<Vec<String>> = Mutex::new(Vec::new());

thread_local! {
    /// Whether this thread is looking for a function, and allocates for that.
    static IS_ASKED: Cell<bool> = const { Cell::new(false) };
}

/// The plugin's function that allocates, not one of wgpu or Bevy that it has called.
fn own_function(trace: &str) -> Option<&str> {
    let names = trace.lines().filter_map(|line| {
        let (number, name) = line.trim().split_once(": ")?;
        number.parse::<u32>().is_ok().then_some(name)
    });
    for name in names {
        let path = name.trim_start_matches(['<', '(', '&', '_']);
        let path = path.trim_start_matches(" as ");
        match path.split("::").next()? {
            // A system may be part of the function that runs it.
            "bevy_gpu_culling" | "bevy_ecs" => return Some(name),
            "wgpu" | "wgpu_core" | "wgpu_hal" | "bevy_render" | "bevy_core_pipeline"
            | "bevy_pbr" => return None,
            _ => {}
        }
    }
    None
}

/// Sets around a camera that hides, with two materials and four cascades. Returns the camera.
fn spawn_scene(stage: &mut Stage, sets: u32) -> Entity {
    spawn_sets(stage, sets);
    stage.camera(Transform::default(), InstanceOcclusion::default())
}

/// Sets around the origin, with two materials and four cascades. Returns the last one.
fn spawn_sets(stage: &mut Stage, sets: u32) -> Entity {
    let mut last = Entity::PLACEHOLDER;
    let materials = [Color::WHITE, Color::BLACK];
    let materials = materials.map(|color| stage.standard(StandardMaterial::from(color)));
    for number in 0..sets {
        let mesh = stage.mesh(Cuboid::from_length(0.1 + 0.001 * number as f32));
        let material = materials[number as usize % 2].clone();
        let set = field(20, number.is_multiple_of(3));
        let turn = number as f32 * 0.7;
        let at = Transform::from_xyz(turn.sin() * 30.0, 0.0, turn.cos() * 30.0);
        last = stage.spawn_set(&set, (mesh, material), at);
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
    last
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

/// A frame in which nothing changes allocates what wgpu takes to record passes.
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

/// In frames like the ones before, whether the camera stands or turns, only wgpu allocates, and Bevy
/// where a pass is recorded.
#[test]
fn steady_frames_allocate_nothing_but_what_wgpu_needs() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    for (sets, hides) in [(1, false), (70, false), (70, true)] {
        let mut stage = Stage::new(How::Set(None));
        spawn_sets(&mut stage, sets);
        let what = format!("{sets} sets, hides: {hides}");
        assert_steady(&mut stage, hides, &what);
        // What the plugin allocates for a new set is found.
        spawn_sets(&mut stage, 1);
        let found = own_allocations(&mut stage, |_, _| ());
        assert_ne!(found, Vec::<String>::new(), "{what}");
    }
}

/// The same holds for sets that are drawn by meshlets, however they are expanded and hidden.
#[cfg(feature = "meshlets")]
#[test]
fn steady_frames_with_meshlets_allocate_nothing_but_what_wgpu_needs() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let division = MeshletExpansion::Division;
    let buckets = MeshletExpansion::By(Expansion::OneBucket);
    for (hides, expansion) in [(false, division), (true, division), (true, buckets)] {
        let mut stage = Stage::new(How::Set(None));
        let mut settings = stage.app.world_mut().resource_mut::<GpuCullingSettings>();
        settings.expansion = expansion;
        // One set is drawn whole.
        spawn_sets(&mut stage, 1);
        spawn_meshlet_sets(&mut stage, 5);
        let what = format!("hides: {hides}, {expansion}");
        assert_steady(&mut stage, hides, &what);
        // What the plugin allocates for new meshlets is found.
        spawn_meshlet_sets(&mut stage, 1);
        let found = own_allocations(&mut stage, |_, _| ());
        let is_of_meshlets = |name: &String| name.contains("meshlet");
        assert!(found.iter().any(is_of_meshlets), "{what}: {found:?}");
        let report = stage.report();
        assert_eq!(report.expansion, Some(expansion), "{what}");
        for drawn in [report.meshlets, report.shadow_meshlets] {
            assert!(drawn.drawn > 0, "{what}: {drawn:?}");
        }
    }
}

/// Sets in front of a camera that are drawn by meshlets, every second one without levels of detail.
#[cfg(feature = "meshlets")]
fn spawn_meshlet_sets(stage: &mut Stage, sets: u32) {
    let material = stage.standard(StandardMaterial::default());
    for number in 0..sets {
        let has_levels = number.is_multiple_of(2);
        let settings = MeshletSettings {
            lods: has_levels.then(LodSettings::default),
            ..default()
        };
        let torus = Torus::new(0.2, 0.5 + 0.01 * number as f32).mesh();
        let mesh = torus.major_resolution(32).minor_resolution(16).build();
        let meshlets = MeshletMesh::from_mesh(&mesh, &settings).unwrap();
        assert_eq!(meshlets.levels().len() > 1, has_levels);
        let mesh = MeshletMesh3d(stage.add(meshlets));
        let set = GpuInstances(stage.add(field(20, number.is_multiple_of(3))));
        let at = Transform::from_xyz(number as f32 * 6.0 - 12.0, 0.0, -25.0);
        stage.spawn((mesh, material.clone(), set, at));
    }
}

/// Adds a camera, and checks that frames in which it stands or turns are without allocations of the
/// plugin.
fn assert_steady(stage: &mut Stage, hides: bool, what: &str) {
    let camera = stage.camera(Transform::default(), ());
    if hides {
        stage.entity(camera).insert(InstanceOcclusion::default());
    }
    // No set comes into view.
    let turn = turn(camera, 0.001);
    warm_up(stage, &turn);
    let nothing = Vec::<String>::new();
    assert_eq!(own_allocations(stage, |_, _| ()), nothing, "{what}");
    let turning = own_allocations(stage, &turn);
    assert_eq!(turning, nothing, "{what}, turning");
}

/// The plugin's functions that allocate in some frames.
fn own_allocations(stage: &mut Stage, act: impl Fn(&mut Stage, u32)) -> Vec<String> {
    ASKS.store(true, Relaxed);
    for frame in 0..FRAMES {
        act(stage, frame);
        // The counters of the frames before have arrived: a machine that is busy for a moment would
        // need one more buffer for them.
        stage.wait_for_gpu();
        stage.update(1);
    }
    ASKS.store(false, Relaxed);
    core::mem::take(&mut *OWN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Frames in which lists get their length, and then nothing happens.
fn warm_up(stage: &mut Stage, act: impl Fn(&mut Stage, u32)) {
    for frame in 0..24 {
        act(stage, frame);
        stage.update(1);
    }
    stage.update(QUIET);
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

/// What frames cost, in numbers that are the same on each machine with the adapter.
#[derive(Default)]
struct Costs {
    passes: u32,
    dispatches: u32,
    draw_calls: u32,
    requests: u64,
    plans: u64,
    /// Most bytes that a frame uploads.
    uploaded: u64,
    /// Number of buffers, bind groups and the like that were made in all frames.
    made: u64,
    /// Fewest allocations of a frame.
    allocations: u32,
}

/// Frames in which a cost is found.
const FRAMES: u32 = 8;

impl Costs {
    fn of(stage: &mut Stage, act: impl Fn(&mut Stage, u32)) -> Self {
        // The frame before is in the report.
        act(stage, FRAMES);
        stage.update(1);
        let made = Faults::inject(Fault::Refused, 0..0);
        let mut costs = Self {
            allocations: u32::MAX,
            ..Self::default()
        };
        for frame in 0..FRAMES {
            act(stage, frame);
            COUNTS.iter().for_each(|count| count.store(0, Relaxed));
            stage.update(1);
            let allocations = COUNTS.iter().map(|count| count.load(Relaxed)).sum();
            let report = stage.app.world().resource::<CullingReport>();
            costs.passes = costs.passes.max(report.passes);
            costs.dispatches = costs.dispatches.max(report.dispatches);
            costs.draw_calls = costs.draw_calls.max(report.draw_calls);
            costs.requests = costs.requests.max(report.work.requests);
            costs.plans += report.work.plans;
            costs.uploaded = costs.uploaded.max(report.uploaded_bytes);
            costs.allocations = costs.allocations.min(allocations);
        }
        costs.made = made.calls();
        costs
    }
}

/// Turns the camera back and forth by an angle, within what it has seen.
fn turn(camera: Entity, angle: f32) -> impl Fn(&mut Stage, u32) {
    move |stage, frame| {
        let turn = Quat::from_rotation_y((frame % 2) as f32 * angle);
        stage.entity(camera).insert(Transform::from_rotation(turn));
    }
}

/// The table of costs.
fn table() -> String {
    let mut text = String::from(
        "| scene | frames | passes | dispatches | draw calls | requests made | plans | bytes uploaded | buffers and bind groups made | allocations |\n\
         | --- | --- | --: | --: | --: | --: | --: | --: | --: | --: |\n",
    );
    let mut add = |scene: &str, frames: &str, costs: Costs| {
        let Costs {
            passes,
            dispatches,
            draw_calls,
            requests,
            plans,
            uploaded,
            made,
            allocations,
        } = costs;
        // Frames that upload allocate what the queue's staging needs, which differs from run to run.
        let allocations = match requests {
            0 => allocations.to_string(),
            _ => "-".to_owned(),
        };
        let numbers = format!(
            "{passes} | {dispatches} | {draw_calls} | {requests} | {plans} | {uploaded} | {made} | {allocations}"
        );
        writeln!(text, "| {scene} | {frames} | {numbers} |").unwrap();
    };
    let scenes = [
        ("one set of 20,000", 1, false),
        ("70 sets, four cascades", 70, false),
        ("210 sets, four cascades", 210, false),
        ("70 sets, four cascades, occlusion", 70, true),
    ];
    for (name, sets, hides) in scenes {
        let mut stage = Stage::new(How::Set(None));
        let set = match sets {
            1 => {
                let look = (
                    stage.mesh(Cuboid::from_length(0.1)),
                    stage.standard(StandardMaterial::default()),
                );
                stage.spawn_set(&field(20_000, false), look, Transform::IDENTITY)
            }
            _ => spawn_sets(&mut stage, sets),
        };
        let camera = stage.camera(Transform::default(), ());
        if hides {
            stage.entity(camera).insert(InstanceOcclusion::default());
        }
        let turn = turn(camera, 0.3);
        warm_up(&mut stage, &turn);
        add(name, "still", Costs::of(&mut stage, |_, _| ()));
        add(name, "the camera turns", Costs::of(&mut stage, &turn));
        let moved = |stage: &mut Stage, frame: u32| {
            let mut set = stage.entity(set);
            let mut place = set.get_mut::<Transform>().unwrap();
            place.translation.y = frame as f32 * 0.01;
        };
        add(name, "one set moves", Costs::of(&mut stage, moved));
        let edited = |stage: &mut Stage, frame: u32| {
            let place = Vec3::Y * frame as f32;
            stage.edit_set(set, |set| set.set(3, place).unwrap());
        };
        add(name, "one instance moves", Costs::of(&mut stage, edited));
    }
    text
}

/// A frame that costs more or less than before is a change that is wanted, and then stored.
#[test]
fn frames_cost_what_is_stored() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if !Stage::new(How::Set(None)).is_software() {
        println!("skipped: the counts are of the software adapter");
        return;
    }
    let part = [
        "<!-- counts: written by tests/allocations.rs -->\n",
        "<!-- end of counts -->\n",
    ];
    let table = format!("\n{}\n", table());
    assert_generated("docs/internals/counts.md", part, &table, "allocations");
}
