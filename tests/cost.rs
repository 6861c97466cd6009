//! CPU time of the plugin, the work that it records, and the upload of sets of any size and number.
//!
//! A separate program: no other test may take the CPU meanwhile.
#![cfg(all(feature = "bevy", feature = "study"))]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic and tell what it saw"
)]

mod scene;

use bevy::{
    asset::RenderAssetUsages,
    diagnostic::{DiagnosticPath, DiagnosticsStore},
    ecs::message::MessageCursor,
    light::PointLightShadowMap,
    prelude::*,
    render::{
        diagnostic::RenderDiagnosticsPlugin, render_resource::PollType, renderer::RenderDevice,
    },
};
use bevy_gpu_culling::{
    diagnostics::{CPU_TOTAL, DISPATCHES, PASSES, STAGE_CPU, STAGE_GPU},
    instance::{InstanceError, InstanceTransform},
    prelude::*,
    render::{CpuStage, CpuTimes},
};
use core::time::Duration;
use scene::{How, Stage, assert_same_picture, field};

fn eye() -> Transform {
    Transform::from_xyz(0.0, 3.0, 7.0).looking_at(Vec3::new(0.5, 0.0, 0.0), Vec3::Y)
}

fn stage() -> Stage {
    Stage::with(How::Set(None), |app| {
        app.add_plugins(RenderDiagnosticsPlugin);
    })
}

/// Median total and median of each part over `frames` frames.
fn cpu(stage: &mut Stage, frames: usize) -> (Duration, Vec<Duration>) {
    stage.update(3);
    let mut times: Vec<CpuTimes> = Vec::new();
    for _ in 0..frames {
        stage.update(1);
        times.push(stage.app.world().resource::<CullingReport>().cpu);
    }
    let median = |of: &dyn Fn(&CpuTimes) -> Duration| {
        let mut all: Vec<_> = times.iter().map(of).collect();
        all.sort_unstable();
        all[all.len() / 2]
    };
    let parts = CpuStage::ALL.map(|part| median(&|times| times.of(part)));
    (median(&CpuTimes::total), parts.to_vec())
}

fn recorded(stage: &mut Stage) -> (u32, u32) {
    let report = stage.report();
    let shown = |path: DiagnosticPath| {
        let store = stage.app.world().resource::<DiagnosticsStore>();
        store.get(&path).and_then(|one| one.value())
    };
    assert_eq!(shown(PASSES), Some(f64::from(report.passes)));
    assert_eq!(shown(DISPATCHES), Some(f64::from(report.dispatches)));
    (report.passes, report.dispatches)
}

/// Number of stages for which GPU times have arrived.
fn timed(stage: &Stage) -> usize {
    let store = stage.app.world().resource::<DiagnosticsStore>();
    let has_time = |path| store.get(path).is_some_and(|one| one.value().is_some());
    STAGE_GPU.iter().filter(|(_, path)| has_time(path)).count()
}

#[test]
fn without_a_set_there_is_no_pass_and_nearly_no_cost() {
    let mut stage = stage();
    let mesh = stage.mesh(Cuboid::default());
    let material = stage.standard(StandardMaterial::default());
    let parts = (mesh.clone(), material.clone());
    stage.spawn((Mesh3d(mesh), material));
    stage.lights(true);
    stage.camera(eye(), ());
    let (total, parts_of_it) = cpu(&mut stage, 101);
    println!("no set: {total:?} of {parts_of_it:?}");
    assert_eq!(recorded(&mut stage), (0, 0));
    assert_eq!(timed(&stage), 0);
    // The promise is 50 us. A busy test machine gets ten times as long.
    assert!(total < Duration::from_micros(500), "{total:?}");
    assert!(total > Duration::ZERO, "nothing was measured");

    // The same app with a set has passes, so the checks above can fail.
    stage.spawn_set(&field(100, false), parts, Transform::default());
    let (passes, dispatches) = recorded(&mut stage);
    assert!(passes > 0 && dispatches > 0, "{passes} {dispatches}");
    let device = stage.app.world().resource::<RenderDevice>().clone();
    for _ in 0..20 {
        stage.update(1);
        device.poll(PollType::wait_indefinitely()).unwrap();
    }
    assert!(timed(&stage) > 0);
    let store = stage.app.world().resource::<DiagnosticsStore>();
    for path in STAGE_CPU.iter().map(|(_, path)| path).chain([&CPU_TOTAL]) {
        assert!(
            store.get(path).and_then(|one| one.value()).is_some(),
            "{path}"
        );
    }
}

/// Instances in a row along x. The camera sees the first ones.
fn row(count: u32) -> InstanceSet {
    InstanceSet::from_transforms((0..count).map(|i| Vec3::new(i as f32, 0.0, 0.0))).unwrap()
}

#[test]
fn a_static_set_costs_the_same_at_any_size() {
    let measure = |count| {
        let mut stage = Stage::new(How::Set(None));
        let mesh = stage.mesh(Cuboid::from_length(0.2));
        let material = stage.standard(StandardMaterial::default());
        stage.spawn_set(&row(count), (mesh, material), Transform::default());
        let eye = Transform::from_xyz(20.0, 1.0, 3.0).looking_at(Vec3::ZERO, Vec3::Y);
        stage.camera(eye, ());
        let (total, parts) = cpu(&mut stage, 15);
        let report = stage.report();
        assert_eq!(report.instances, u64::from(count));
        println!("{count}: {total:?} of {parts:?}");
        total
    };
    let (few, many) = (measure(10_000), measure(1_000_000));
    assert!(
        many < few * 3 + Duration::from_micros(200),
        "10 k: {few:?}, 1 M: {many:?}"
    );
}

#[test]
fn two_thousand_sets_are_a_few_dispatches() {
    let mut stage = Stage::new(How::Set(None));
    let mesh = stage.mesh(Cuboid::from_length(0.1));
    let material = stage.standard(StandardMaterial::default());
    let all = field(6000, false);
    for three in all.packed().chunks(3) {
        let set = InstanceSet::from_packed(three.to_vec()).unwrap();
        stage.spawn_set(&set, (mesh.clone(), material.clone()), Transform::default());
    }
    stage.camera(eye(), ());
    let (total, parts) = cpu(&mut stage, 11);
    println!("2,000 sets: {total:?} of {parts:?}");
    let report = stage.report();
    assert!(report.instances > 3000, "{report:?}");
    assert!(report.dispatches <= 20, "{} dispatches", report.dispatches);
    let visible = report.cameras().1;
    let (_, verified) = stage.verify();
    assert_eq!(u64::from(verified), visible);

    // One entity with all instances gives the same picture.
    let many = stage.picture();
    let mut stage = Stage::new(How::Set(None));
    let mesh = stage.mesh(Cuboid::from_length(0.1));
    let material = stage.standard(StandardMaterial::default());
    stage.spawn_set(&all, (mesh, material), Transform::default());
    stage.camera(eye(), ());
    assert_same_picture("many-sets", &many, &stage.picture());
    assert_eq!(stage.report().cameras().1, visible);
}

#[test]
fn nine_point_lights_with_shadows_add_views_but_no_pass() {
    // Each stage has a separate pass.
    let mut stage = stage();
    stage.app.insert_resource(PointLightShadowMap { size: 64 });
    // `Auto` would change the compaction, because the lights add many tests.
    let mut settings = stage.app.world_mut().resource_mut::<GpuCullingSettings>();
    settings.compaction = Compaction::Classify;
    let mesh = stage.mesh(Cuboid::from_length(0.05));
    let material = stage.standard(StandardMaterial::default());
    stage.spawn_set(
        &field(100_000, false),
        (mesh, material),
        Transform::default(),
    );
    stage.camera(eye(), ());
    stage.update(3);
    let dark = recorded(&mut stage);
    assert_eq!(stage.report().views.len(), 1);
    for light in 0..9 {
        stage.spawn((
            PointLight {
                shadow_maps_enabled: true,
                // Few instances survive. Only the number of views matters.
                range: 0.5,
                ..default()
            },
            Transform::from_xyz(light as f32 - 4.0, 2.0, 0.0),
        ));
    }
    stage.update(2);
    let lit = recorded(&mut stage);
    let views = stage.report().views.len();
    assert!(views > 9 * 4, "the camera and the lights' faces: {views}");
    assert_eq!(lit.0, dark.0, "passes");
    // Each pass has one dispatch. What is near first is sorted by one or two more.
    assert!(
        dark.1 <= dark.0 + 2 && lit.1 <= lit.0 + 2,
        "{dark:?} {lit:?}"
    );
}

#[test]
fn stages_share_a_pass_in_an_app_without_timestamps() {
    let [timed, plain] = [stage(), Stage::new(How::Set(None))].map(|mut stage| {
        let mut settings = stage.app.world_mut().resource_mut::<GpuCullingSettings>();
        settings.compaction = Compaction::Classify;
        let mesh = stage.mesh(Cuboid::from_length(0.2));
        let material = stage.standard(StandardMaterial::default());
        stage.spawn_set(&field(3000, false), (mesh, material), Transform::default());
        stage.camera(eye(), ());
        stage.update(3);
        recorded(&mut stage)
    });
    assert!(timed.0 > 3, "{timed:?}");
    assert_eq!(plain, (1, timed.1));
}

/// Messages since the last call.
fn progress(
    stage: &Stage,
    cursor: &mut MessageCursor<InstanceUploadProgress>,
) -> Vec<InstanceUploadProgress> {
    let messages = stage
        .app
        .world()
        .resource::<Messages<InstanceUploadProgress>>();
    cursor.read(messages).copied().collect()
}

#[test]
fn a_large_set_streams_within_the_budget() {
    let mut stage = Stage::new(How::Set(None));
    let budget = 20_000 * 16;
    stage
        .app
        .world_mut()
        .resource_mut::<GpuCullingSettings>()
        .upload_budget = Some(budget);
    stage.update(1);
    let mesh = stage.mesh(Cuboid::from_length(0.05));
    let material = stage.standard(StandardMaterial::default());
    let (large, small) = (field(70_001, true), field(1500, false));
    let set = stage.add(large.clone());
    stage.spawn((
        Mesh3d(mesh.clone()),
        material.clone(),
        GpuInstances(set.clone()),
    ));
    stage.spawn_set(
        &small,
        (mesh.clone(), material.clone()),
        Transform::default(),
    );
    stage.camera(eye(), ());
    let mut cursor = MessageCursor::default();
    let (mut steps, mut frames) = (Vec::new(), 0);
    while steps.last() != Some(&70_001) {
        stage.update(1);
        frames += 1;
        assert!(frames < 30, "{steps:?}");
        let uploaded = stage.app.world().resource::<CullingReport>().uploaded_bytes;
        assert!(uploaded < budget + 16_384, "{uploaded} bytes in one frame");
        for one in progress(&stage, &mut cursor) {
            if one.set == set.id() {
                assert_eq!(one.total, 70_001);
                assert_eq!(one.is_complete(), one.uploaded == one.total);
                steps.push(one.uploaded);
            } else {
                assert!(
                    one.is_complete() && steps.len() <= 1,
                    "the small set must not wait"
                );
            }
        }
        // Only uploaded instances are tested, and the twin keeps the same ones.
        if frames == 3 {
            let (views, _) = stage.verify();
            assert_eq!(views, 2);
            frames += 1;
        }
    }
    assert!(steps.len() >= 5 && steps.is_sorted(), "{steps:?}");
    let streamed = stage.picture();
    assert_eq!(stage.report().instances, 71_501);

    // An edit is uploaded at once, regardless of the budget.
    let mut sets = stage.app.world_mut().resource_mut::<Assets<InstanceSet>>();
    let mut edited = sets.get_mut(&set).unwrap();
    for index in 0..70_001 {
        let moved = edited.get(index).unwrap();
        edited
            .set(
                index,
                InstanceTransform {
                    translation: moved.translation + Vec3::X,
                    ..moved
                },
            )
            .unwrap();
    }
    drop(edited);
    stage.update(2);
    assert!(progress(&stage, &mut cursor).is_empty());
    assert_eq!(stage.verify().0, 2);

    // A set that keeps previous places arrives in one frame.
    let keeping = stage.add(field(100, false).keep_previous(true));
    stage.spawn((Mesh3d(mesh), material, GpuInstances(keeping.clone())));
    stage.update(3);
    let all = InstanceUploadProgress {
        set: keeping.id(),
        uploaded: 100,
        total: 100,
    };
    assert_eq!(progress(&stage, &mut cursor), [all]);

    let mut at_once = Stage::new(How::Set(None));
    let mesh = at_once.mesh(Cuboid::from_length(0.05));
    let material = at_once.standard(StandardMaterial::default());
    at_once.spawn_set(
        &large,
        (mesh.clone(), material.clone()),
        Transform::default(),
    );
    at_once.spawn_set(&small, (mesh, material), Transform::default());
    at_once.camera(eye(), ());
    assert_same_picture("streamed", &streamed, &at_once.picture());
}

/// There is nothing to upload of an empty set and of one that the GPU writes. A loading screen that
/// waits for all sets is told so, and an empty set can be filled later.
#[test]
fn sets_without_data_are_complete_at_once() {
    let mut stage = Stage::new(How::Set(None));
    let mesh = stage.mesh(Cuboid::from_length(0.3));
    let material = stage.standard(StandardMaterial::default());
    let usage = RenderAssetUsages::RENDER_WORLD;
    let around = GpuWritten::within(Vec3::NEG_ONE, Vec3::ONE);
    let sets = [
        InstanceSet::new().with_asset_usage(usage),
        InstanceSet::new().keep_previous(true),
        InstanceSet::gpu_written(300, around).unwrap(),
    ];
    let sets = sets.map(|set| stage.add(set));
    for set in &sets {
        stage.spawn((
            Mesh3d(mesh.clone()),
            material.clone(),
            GpuInstances(set.clone()),
        ));
    }
    stage.camera(eye(), ());
    let mut cursor = MessageCursor::default();
    let mut told = Vec::new();
    for _ in 0..4 {
        stage.update(1);
        told.extend(progress(&stage, &mut cursor));
    }
    told.sort_by_key(|message| sets.iter().position(|set| set.id() == message.set));
    let expected = [(0, 0), (1, 0), (2, 300)].map(|(set, all)| InstanceUploadProgress {
        set: sets[set].id(),
        uploaded: all,
        total: all,
    });
    assert_eq!(told, expected);
    assert!(told.iter().all(InstanceUploadProgress::is_complete));
    let mut assets = stage.app.world_mut().resource_mut::<Assets<InstanceSet>>();
    let mut empty = assets.get_mut(&sets[0]).unwrap();
    empty.extend((0..40).map(|i| Vec3::X * i as f32)).unwrap();
    drop(empty);
    stage.update(3);
    assert_eq!(stage.report().instances, 340);
    let assets = stage.app.world().resource::<Assets<InstanceSet>>();
    assert!(assets.get(&sets[0]).unwrap().is_released());
}

#[test]
fn one_frame_makes_room_for_one_kind_of_large_sets() {
    let mut stage = Stage::new(How::Set(None));
    stage
        .app
        .world_mut()
        .resource_mut::<GpuCullingSettings>()
        .upload_budget = Some(1 << 20);
    let mesh = stage.mesh(Cuboid::from_length(0.05));
    let material = stage.standard(StandardMaterial::default());
    // More instances than may share a page with small sets. There are two sets of each kind.
    let plain = field(300_000, false);
    let scaled = || plain.clone().with_scales(vec![2.0; 300_000]).unwrap();
    let tagged = || plain.clone().with_tags(vec![7; 300_000]).unwrap();
    for set in [
        plain.clone(),
        scaled(),
        tagged(),
        scaled(),
        tagged(),
        plain.clone(),
    ] {
        stage.spawn_set(&set, (mesh.clone(), material.clone()), Transform::default());
    }
    stage.camera(eye(), ());
    let mut pages = Vec::new();
    for _ in 0..6 {
        stage.update(1);
        let bytes = stage.app.world().resource::<CullingReport>().gpu_bytes;
        pages.push(bytes / (2 * 300_000 * 16));
    }
    // Each frame makes room for both sets of one kind.
    let known = pages.iter().position(|page| *page > 0).unwrap();
    assert_eq!(pages[known..][..3], [1, 2, 3], "{pages:?}");
    assert_eq!(pages[5], 3, "{pages:?}");
}

#[test]
fn a_set_for_the_gpu_only_is_dropped_on_the_cpu() {
    let mut stage = Stage::new(How::Set(None));
    let mesh = stage.mesh(Cuboid::from_length(0.3));
    let material = stage.standard(StandardMaterial::default());
    let kept = field(2000, true);
    let entity = stage.spawn_set(
        &kept
            .clone()
            .with_asset_usage(RenderAssetUsages::RENDER_WORLD),
        (mesh.clone(), material.clone()),
        Transform::default(),
    );
    stage.camera(eye(), ());
    stage.update(4);
    let set = stage
        .app
        .world()
        .get::<GpuInstances>(entity)
        .unwrap()
        .0
        .clone();
    let only_gpu = stage.picture();
    let mut sets = stage.app.world_mut().resource_mut::<Assets<InstanceSet>>();
    let mut dropped = sets.get_mut(&set).unwrap();
    assert!(dropped.is_released() && dropped.packed().is_empty());
    assert_eq!((dropped.len(), dropped.bounds()), (2000, kept.bounds()));
    assert_eq!(dropped.push(Vec3::ZERO), Err(InstanceError::Released));
    drop(dropped);
    // The check reads back instances that are only on the GPU.
    assert_eq!(stage.verify().0, 1);

    // Other pipelines test the instances that are already on the GPU.
    let mut settings = stage.app.world_mut().resource_mut::<GpuCullingSettings>();
    settings.compaction = Compaction::NaiveAtomic;
    settings.tier = Some(CullingTier::Workgroup);
    stage.update(3);
    let report = stage.report();
    assert_eq!(
        (report.tier, report.compaction, report.instances),
        (Some(CullingTier::Workgroup), Compaction::NaiveAtomic, 2000)
    );
    assert_same_picture("dropped", &stage.picture(), &only_gpu);

    // A released set can be truncated. After `clear`, it can be filled again.
    let edit = |stage: &mut Stage, edit: &dyn Fn(&mut InstanceSet)| {
        let mut sets = stage.app.world_mut().resource_mut::<Assets<InstanceSet>>();
        edit(&mut sets.get_mut(&set).unwrap());
    };
    edit(&mut stage, &|set| set.truncate(500));
    assert_eq!(stage.report().instances, 500);
    edit(&mut stage, &|set| {
        set.clear();
        set.extend((0..700).map(|i| Vec3::X * i as f32)).unwrap();
    });
    assert_eq!(stage.report().instances, 700);
    stage.update(4);
    edit(&mut stage, &|set| {
        assert!(set.is_released());
        set.truncate(0);
    });
    stage.update(3);
    edit(&mut stage, &|set| {
        set.clear();
        set.push(Vec3::ZERO).unwrap();
    });
    assert_eq!(stage.report().instances, 1);

    // A set for the main world only is neither uploaded nor drawn.
    let mut stage = Stage::new(How::Set(None));
    let usage = RenderAssetUsages::MAIN_WORLD;
    let mesh = stage.mesh(Cuboid::from_length(0.3));
    let material = stage.standard(StandardMaterial::default());
    stage.spawn_set(
        &kept.with_asset_usage(usage),
        (mesh, material),
        Transform::default(),
    );
    stage.camera(eye(), ());
    stage.update(3);
    assert_eq!(stage.report().instances, 0);
}
