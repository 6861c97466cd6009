//! The overlay: which rows there are when, which camera shows them, and what it covers.

use crate::scene::{How, Stage, field};
use bevy::{
    camera::{RenderTarget, Viewport},
    core_pipeline::tonemapping::Tonemapping,
    dev_tools::diagnostics_overlay::{DiagnosticsOverlay, DiagnosticsOverlayPlane},
    light::{CascadeShadowConfigBuilder, DirectionalLightShadowMap},
    prelude::*,
    render::render_resource::{TextureFormat, TextureUsages},
    time::TimeUpdateStrategy,
    ui::UiGlobalTransform,
};
use bevy_gpu_culling::{diagnostics::CullingOverlay, prelude::*};
use core::time::Duration;

/// The size of the demo's smallest window.
const SIZE: UVec2 = UVec2::new(960, 540);

/// A stage with the overlay. Time passes fast, so that the rows are written.
fn stage(detail: OverlayDetail) -> Stage {
    let mut stage = Stage::with(How::Set(None), |app| {
        app.add_plugins(CullingOverlayPlugin { detail });
        let step = Duration::from_millis(250);
        app.insert_resource(TimeUpdateStrategy::ManualDuration(step));
    });
    // The compaction decides which stages there are.
    let mut settings = stage.app.world_mut().resource_mut::<GpuCullingSettings>();
    settings.compaction = Compaction::Classify;
    stage
}

/// Gives the stage a large picture.
fn enlarge(stage: &mut Stage) {
    let mut image = Image::new_target_texture(SIZE.x, SIZE.y, TextureFormat::Rgba8UnormSrgb, None);
    image.texture_descriptor.usage |= TextureUsages::COPY_SRC;
    stage.target = stage.add(image);
}

fn eye() -> Transform {
    Transform::from_xyz(0.0, 3.0, 7.0).looking_at(Vec3::ZERO, Vec3::Y)
}

fn boxes(stage: &mut Stage) -> Entity {
    let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
    let material = stage.standard(StandardMaterial::from(Color::srgb(0.9, 0.3, 0.2)));
    stage.spawn_set(&field(2000, false), (mesh, material), Transform::IDENTITY)
}

fn sun(stage: &mut Stage) -> Entity {
    stage
        .app
        .insert_resource(DirectionalLightShadowMap { size: 64 });
    let cascades = CascadeShadowConfigBuilder {
        num_cascades: 2,
        ..default()
    };
    let sun = DirectionalLight {
        shadow_maps_enabled: true,
        ..default()
    };
    stage.spawn((sun, cascades.build(), eye()))
}

/// The last parts of the paths of a window's rows.
fn rows(stage: &mut Stage, window: CullingOverlay) -> Vec<String> {
    stage.report();
    let world = stage.app.world_mut();
    let mut windows = world.query::<(&CullingOverlay, &DiagnosticsOverlay)>();
    let (_, overlay) = windows
        .iter(world)
        .find(|(one, _)| **one == window)
        .unwrap();
    let paths = overlay.items.iter().map(|row| row.path.to_string());
    let short = |path: String| {
        let path = path.trim_start_matches("render/");
        path.trim_start_matches("gpu_culling/").to_owned()
    };
    paths.map(short).collect()
}

fn set_detail(stage: &mut Stage, detail: OverlayDetail) {
    stage.app.insert_resource(detail);
}

#[test]
fn rows_are_there_if_they_apply() {
    use CullingOverlay::{Counters, Stages};
    let mut stage = stage(OverlayDetail::Summary);
    let camera = stage.camera(eye(), ());
    let empty = ["fps", "frame_time", "cpu/total"];
    assert_eq!(rows(&mut stage, Counters), empty);
    assert_eq!(rows(&mut stage, Stages), [""; 0]);

    let set = boxes(&mut stage);
    let seen = [
        "fps",
        "frame_time",
        "visible",
        "triangles",
        "gpu/total",
        "cpu/total",
    ];
    assert_eq!(rows(&mut stage, Counters), seen);
    assert_eq!(rows(&mut stage, Stages), [""; 0], "a summary has no stages");

    let sun = sun(&mut stage);
    let lit = rows(&mut stage, Counters);
    assert_eq!(lit.len(), 7, "{lit:?}");
    assert_eq!(lit[4], "shadow_visible");

    set_detail(&mut stage, OverlayDetail::Full);
    let full = rows(&mut stage, Counters);
    for row in ["instances", "shadow_triangles", "passes", "gpu_bytes"] {
        assert!(full.iter().any(|other| other == row), "{row} of {full:?}");
    }
    assert!(!full.iter().any(|row| row.contains("meshlet")), "{full:?}");
    let stages = rows(&mut stage, Stages);
    for name in Compaction::Classify.stages().map(|stage| stage.name()) {
        let path = format!("{name}/elapsed_gpu");
        assert!(stages.contains(&path), "{path} of {stages:?}");
    }
    let ran = |stages: &[String], name: &str| stages.iter().any(|row| row.starts_with(name));
    assert!(ran(&stages, "cpu/prepare"), "{stages:?}");
    assert!(!ran(&stages, "occlude"), "{stages:?}");

    stage.entity(camera).insert(InstanceOcclusion::default());
    let hiding = rows(&mut stage, Stages);
    assert!(
        ran(&hiding, "occlude") && ran(&hiding, "recall"),
        "{hiding:?}"
    );
    let lists = |rows: &[String]| ["early", "late", "hidden"].map(|row| rows.contains(&row.into()));
    assert_eq!(lists(&rows(&mut stage, Counters)), [true; 3]);
    stage.entity(camera).remove::<InstanceOcclusion>();
    assert_eq!(
        rows(&mut stage, Stages),
        stages,
        "stages that no longer run"
    );
    assert_eq!(lists(&rows(&mut stage, Counters)), [false; 3]);

    stage.entity(sun).despawn();
    set_detail(&mut stage, OverlayDetail::Summary);
    assert_eq!(rows(&mut stage, Counters), seen);
    stage.entity(set).despawn();
    assert_eq!(rows(&mut stage, Counters), empty);
    set_detail(&mut stage, OverlayDetail::Hidden);
    assert_eq!(rows(&mut stage, Counters), [""; 0]);
}

/// The camera that shows the overlay, if the overlay chose it.
fn shown_by(stage: &mut Stage) -> Option<Entity> {
    stage.update(2);
    let world = stage.app.world_mut();
    let mut planes =
        world.query_filtered::<Option<&UiTargetCamera>, With<DiagnosticsOverlayPlane>>();
    planes.single(world).unwrap().map(UiTargetCamera::entity)
}

fn view(stage: &mut Stage, order: isize, corner: [u32; 2], size: [u32; 2]) -> Entity {
    let target = RenderTarget::Image(stage.target.clone().into());
    let viewport = Viewport {
        physical_position: corner.into(),
        physical_size: size.into(),
        ..default()
    };
    let camera = Camera {
        order,
        viewport: Some(viewport),
        ..default()
    };
    stage.spawn((Camera3d::default(), camera, target, Tonemapping::None))
}

#[test]
fn the_largest_view_shows_the_overlay() {
    let mut stage = stage(OverlayDetail::Summary);
    enlarge(&mut stage);
    assert_eq!(shown_by(&mut stage), None);
    let right = view(&mut stage, 1, [480, 0], [480, 540]);
    assert_eq!(shown_by(&mut stage), Some(right));
    let left = view(&mut stage, 0, [0, 0], [480, 540]);
    assert_eq!(shown_by(&mut stage), Some(left), "the top left half");
    let small = view(&mut stage, 5, [0, 0], [100, 100]);
    assert_eq!(shown_by(&mut stage), Some(left), "a small picture on it");
    let last = view(&mut stage, 2, [0, 0], [480, 540]);
    assert_eq!(shown_by(&mut stage), Some(last), "what is drawn last");
    stage.entity(small).insert(IsDefaultUiCamera);
    assert_eq!(shown_by(&mut stage), None, "Bevy knows the camera");
    stage.entity(small).remove::<IsDefaultUiCamera>();
    assert_eq!(shown_by(&mut stage), Some(last));
    let world = stage.app.world_mut();
    let mut planes = world.query_filtered::<Entity, With<DiagnosticsOverlayPlane>>();
    let plane = planes.single(world).unwrap();
    stage.entity(plane).insert(UiTargetCamera(right));
    assert_eq!(shown_by(&mut stage), Some(right), "the app's choice stays");
}

/// The edges of a window: left, top, right, bottom.
fn edges(stage: &mut Stage, window: CullingOverlay) -> [f32; 4] {
    let world = stage.app.world_mut();
    let mut windows = world.query::<(&CullingOverlay, &ComputedNode, &UiGlobalTransform)>();
    let (_, node, at) = windows
        .iter(world)
        .find(|(one, ..)| **one == window)
        .unwrap();
    let (center, half) = (at.translation, node.size() / 2.0);
    [center - half, center + half]
        .map(|edge| edge.to_array())
        .concat()
        .try_into()
        .unwrap()
}

/// The demo's help needs the lowest 100 pixels of a small window.
#[test]
fn the_overlay_is_in_the_picture_and_leaves_room_for_help() {
    let mut stage = stage(OverlayDetail::Hidden);
    enlarge(&mut stage);
    boxes(&mut stage);
    sun(&mut stage);
    stage.camera(eye(), ());
    stage.update(6);
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let without = stage.picture_now();
    let mut parts = Vec::new();
    for detail in [OverlayDetail::Summary, OverlayDetail::Full] {
        set_detail(&mut stage, detail);
        stage.report();
        stage.update(6);
        let picture = stage.picture_now();
        picture
            .save(folder.join(format!("overlay-{detail:?}.png")))
            .unwrap();
        let [left, top, right, bottom] = edges(&mut stage, CullingOverlay::Counters);
        assert!(
            left >= 0.0 && top >= 0.0 && right < 480.0,
            "{left} {top} {right}"
        );
        assert!(bottom < 440.0, "{bottom}");
        let pixels = picture.enumerate_pixels().zip(without.pixels());
        let changed: Vec<_> = pixels
            .filter(|((.., a), b)| a != b)
            .map(|(at, _)| at)
            .collect();
        assert!(
            changed.iter().all(|(_, y, _)| *y < 440),
            "the room for help"
        );
        let bright = changed
            .iter()
            .filter(|(.., color)| color.0[..3].iter().all(|c| *c > 200));
        assert!(bright.count() > 500, "no text");
        if detail == OverlayDetail::Full {
            let stages = edges(&mut stage, CullingOverlay::Stages);
            assert!(
                stages[0] > right && stages[3] < 440.0,
                "{right}: {stages:?}"
            );
        }
        parts.push(changed.len());
    }
    assert!(parts[0] > 10_000 && parts[1] > 2 * parts[0], "{parts:?}");
    set_detail(&mut stage, OverlayDetail::Hidden);
    stage.update(6);
    assert!(stage.picture_now() == without, "something is still shown");
}
