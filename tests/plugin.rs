//! The plugin in various apps, and its log messages about sets that it does not draw.
#![cfg(feature = "bevy")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "scene/log.rs"]
mod log;
mod scene;

use bevy::{
    asset::RenderAssetUsages,
    log::LogPlugin,
    mesh::{MeshPlugin, PrimitiveTopology, VertexAttributeValues, skinning::SkinnedMesh},
    prelude::*,
    render::{RenderPlugin, settings::WgpuSettings},
    window::ExitCondition,
    winit::WinitPlugin,
};
use bevy_gpu_culling::prelude::*;
use log::Log;
use scene::{How, Stage, field};

/// Runs a few frames.
fn run(app: &mut App) {
    app.finish();
    app.cleanup();
    for _ in 0..3 {
        app.update();
    }
    assert_eq!(app.should_exit(), None);
}

fn headless() -> impl PluginGroup {
    DefaultPlugins
        .set(WindowPlugin {
            primary_window: None,
            exit_condition: ExitCondition::DontExit,
            ..default()
        })
        .disable::<WinitPlugin>()
        .disable::<LogPlugin>()
}

#[test]
fn the_order_of_plugins_does_not_matter() {
    let log = Log::start();
    for first in [true, false] {
        let mut app = App::new();
        if first {
            app.add_plugins((GpuCullingPlugin::default(), headless()));
        } else {
            app.add_plugins((headless(), GpuCullingPlugin::default()));
        }
        run(&mut app);
        let report = app.world().resource::<CullingReport>();
        assert!(report.tier.is_some(), "the culling plugin first: {first}");
        app.insert_resource(GpuCullingSettings {
            tier: Some(CullingTier::Cpu),
            ..default()
        });
        for _ in 0..3 {
            app.update();
        }
        let report = app.world().resource::<CullingReport>();
        assert_eq!(
            report.tier,
            Some(CullingTier::Cpu),
            "the settings must reach the renderer"
        );
    }
    assert_eq!(log.lines(), Vec::<String>::new());
}

#[test]
fn the_plugin_may_come_between_those_that_it_needs() {
    let log = Log::start();
    for after_assets in [true, false] {
        let group = headless().build();
        let plugin = GpuCullingPlugin::default();
        let mut app = App::new();
        app.add_plugins(match after_assets {
            true => group.add_after::<AssetPlugin>(plugin),
            false => group.add_before::<bevy::pbr::PbrPlugin>(plugin),
        });
        run(&mut app);
        assert!(app.world().resource::<CullingReport>().tier.is_some());
    }
    assert_eq!(log.lines(), Vec::<String>::new());
}

#[test]
fn an_app_without_assets_meshes_or_renderer_runs() {
    let log = Log::start();
    let mut app = App::new();
    app.add_plugins((MinimalPlugins, GpuCullingPlugin::default()));
    run(&mut app);
    log.assert_once(&["no AssetPlugin", "DefaultPlugins"]);

    let mut app = App::new();
    app.add_plugins((
        MinimalPlugins,
        AssetPlugin::default(),
        GpuCullingPlugin::default(),
    ));
    run(&mut app);
    log.assert_once(&["no renderer"]);

    let mut app = App::new();
    let more = (
        AssetPlugin::default(),
        MeshPlugin,
        GpuCullingPlugin::default(),
    );
    app.add_plugins((MinimalPlugins, more));
    app.init_asset::<Shader>();
    run(&mut app);

    let mut app = App::new();
    let settings = WgpuSettings {
        backends: None,
        ..default()
    };
    let render = RenderPlugin {
        render_creation: settings.into(),
        ..default()
    };
    app.add_plugins((headless().set(render), GpuCullingPlugin::default()));
    run(&mut app);
}

/// A mesh whose positions are two floats instead of three.
fn half_cuboid() -> Mesh {
    let usage = RenderAssetUsages::default();
    let points = VertexAttributeValues::Float32x2(vec![[0.0; 2]; 3]);
    let position = bevy::mesh::MeshVertexAttribute::new(
        "Vertex_Position2",
        77,
        bevy::mesh::VertexFormat::Float32x2,
    );
    Mesh::new(PrimitiveTopology::TriangleList, usage).with_inserted_attribute(position, points)
}

/// Each set that is not drawn logs exactly one message. It names the entity and says what to do.
#[test]
fn sets_that_are_not_drawn_are_named_once() {
    let log = Log::start();
    let mut stage = Stage::new(How::Set(None));
    let cube = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
    let flat = stage.mesh(half_cuboid());
    let red = stage.standard(StandardMaterial::from(Color::srgb(0.9, 0.3, 0.2)));
    let set = |stage: &mut Stage| GpuInstances(stage.add(field(50, false)));
    let sets = [(); 6].map(|()| set(&mut stage));
    let [a, b, c, d, e, f] = sets;
    let without_mesh = stage.spawn((a, red.clone()));
    let without_material = stage.spawn((b, Mesh3d(cube.clone())));
    let without_positions = stage.spawn((c, Mesh3d(flat), red.clone()));
    let skinned = stage.spawn((d, Mesh3d(cube.clone()), red.clone(), SkinnedMesh::default()));
    let bad_radius = stage.spawn((e, Mesh3d(cube.clone()), red.clone(), CullingRadius(-2.0)));
    let mut main_world = field(50, false);
    main_world.asset_usage = RenderAssetUsages::MAIN_WORLD;
    let main_world = GpuInstances(stage.add(main_world));
    let main_world = stage.spawn((main_world, Mesh3d(cube), red));
    stage.camera(
        Transform::from_xyz(0.0, 3.0, 7.0).looking_at(Vec3::ZERO, Vec3::Y),
        (),
    );
    stage.update(150);
    // Edits do not repeat the messages.
    let mut assets = stage.app.world_mut().resource_mut::<Assets<InstanceSet>>();
    let ids: Vec<_> = assets.ids().collect();
    for id in ids {
        assets.get_mut(id).unwrap().push(Vec3::ZERO).unwrap();
    }
    stage.update(150);
    stage.assert_runs("sets that are not drawn");
    drop(f);
    for (entity, parts) in [
        (without_mesh, ["Mesh3d", "Add one"]),
        (without_material, ["material", "Add"]),
        (without_positions, ["three floats", "CullingRadius"]),
        (skinned, ["SkinnedMesh", "draw_instance"]),
        (bad_radius, ["CullingRadius is ignored", "NoFrustumCulling"]),
        (main_world, ["RENDER_WORLD", "add it"]),
    ] {
        log.assert_once(&[&format!("GpuInstances on {entity}:"), parts[0], parts[1]]);
    }
    assert_eq!(log.lines().len(), 6, "{:#?}", log.lines());
}
