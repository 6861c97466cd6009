//! Reports and diagnostics.

use super::{eye, red_boxes};
use crate::scene::{How, SIZE, Stage, field};
use bevy::{camera::Viewport, prelude::*};
use bevy_gpu_culling::prelude::*;

#[test]
fn a_static_scene_uploads_nothing_and_an_empty_one_runs_no_pass() {
    let mut stage = Stage::new(How::Set(None));
    stage.camera(eye(), ());
    assert_eq!(stage.report().views.len(), 0);
    let set = red_boxes(&mut stage, &field(5000, false), Transform::IDENTITY);
    let report = stage.report();
    assert_eq!((report.uploaded_bytes, report.instances), (0, 5000));
    // One changed instance uploads its granule, not the set.
    let handle = stage
        .app
        .world()
        .get::<GpuInstances>(set)
        .unwrap()
        .0
        .clone();
    let mut assets = stage.app.world_mut().resource_mut::<Assets<InstanceSet>>();
    assets
        .get_mut(&handle)
        .unwrap()
        .set(3000, Transform::from_xyz(0.0, 1.0, 2.0))
        .unwrap();
    stage.update(1);
    stage.update(1);
    let uploaded = stage.app.world().resource::<CullingReport>().uploaded_bytes;
    assert!(
        uploaded > 0 && uploaded <= 16 * InstanceSet::CHANGE_GRANULE as u64,
        "{uploaded}"
    );
    stage.verify();
}

/// Counters come back some frames late: they belong to the views of their frame. Every fourth
/// frame's are read back, so the view goes at each place between two readbacks.
#[test]
fn counters_stay_with_their_views() {
    let mut stage = Stage::new(How::Set(None));
    let of = |report: &CullingReport, entity: Entity| {
        let view = report.views.iter().find(|view| view.entity.id() == entity);
        view.map(|view| view.visible)
    };
    // Pixels take most of the time, and none is looked at.
    let viewport = Viewport {
        physical_size: SIZE / 10,
        ..default()
    };
    for more_frames in 0..4 {
        for goes_first in [false, true] {
            stage.clear();
            red_boxes(&mut stage, &field(200, false), Transform::IDENTITY);
            let few =
                Transform::from_xyz(0.0, 0.0, 8.0).looking_to(Vec3::new(0.9, 0.0, -0.4), Vec3::Y);
            let all = Transform::from_xyz(0.0, 0.0, 60.0).looking_at(Vec3::ZERO, Vec3::Y);
            let [first, second] = [(few, 0), (all, 1)].map(|(at, order)| {
                let small = Camera {
                    order,
                    viewport: Some(viewport.clone()),
                    ..default()
                };
                stage.camera(at, small)
            });
            let report = stage.report();
            let few = of(&report, first).unwrap();
            assert!(few < 100, "{report:?}");
            assert_eq!(of(&report, second), Some(200));
            stage.update(more_frames);
            let (goes, stays, count) = match goes_first {
                true => (first, second, 200),
                false => (second, first, few),
            };
            stage.entity(goes).despawn();
            for _ in 0..6 {
                stage.update(1);
                let report = stage.app.world().resource::<CullingReport>();
                assert_eq!(of(report, stays), Some(count), "{more_frames} {goes_first}");
            }
            assert_eq!(stage.report().views.len(), 1);
        }
    }
}

#[test]
fn the_diagnostics_have_counters_and_stage_times() {
    use bevy::diagnostic::DiagnosticsStore;
    use bevy_gpu_culling::diagnostics;
    let mut stage = Stage::with(How::Set(None), |app| {
        app.add_plugins(bevy::render::diagnostic::RenderDiagnosticsPlugin);
    });
    let compaction = Compaction::Classify;
    stage
        .app
        .world_mut()
        .resource_mut::<GpuCullingSettings>()
        .compaction = compaction;
    red_boxes(&mut stage, &field(3000, false), Transform::IDENTITY);
    stage.camera(eye(), ());
    let report = stage.report();
    let store = stage.app.world().resource::<DiagnosticsStore>();
    let value = |path| {
        store
            .get(&path)
            .and_then(bevy::diagnostic::Diagnostic::value)
            .unwrap()
    };
    let (tested, visible) = report.cameras();
    assert_eq!(value(diagnostics::INSTANCES), 3000.0);
    assert_eq!(value(diagnostics::VISIBLE), visible as f64);
    assert_eq!(value(diagnostics::CULLED), (tested - visible) as f64);
    assert_eq!(value(diagnostics::VIEWS), 1.0);
    assert!(value(diagnostics::GPU_BYTES) > 3000.0 * 16.0);
    for (name, path) in diagnostics::STAGE_GPU {
        let is_its_own = compaction.stages().any(|stage| stage.name() == name);
        assert_eq!(store.get(&path).is_some(), is_its_own, "time of {name}");
    }
}
