//! The plugin in various apps, and its log messages about sets that it does not draw.

#[path = "../../examples/orbs/tasks.rs"]
mod tasks;

use crate::{
    log::Log,
    scene::{How, Stage, assert_same_picture, field},
};
#[cfg(feature = "serde")]
use bevy::reflect::{ReflectDeserialize, ReflectSerialize};
use bevy::{
    asset::RenderAssetUsages,
    core_pipeline::Core3d,
    log::LogPlugin,
    mesh::{MeshPlugin, PrimitiveTopology, VertexAttributeValues, skinning::SkinnedMesh},
    pbr::PreparedMaterial,
    prelude::*,
    render::{
        ExtractSchedule, Render, RenderApp, RenderPlugin, erased_render_asset::ErasedRenderAssets,
        pipelined_rendering::PipelinedRenderingPlugin, renderer::RenderGraph,
        settings::WgpuSettings,
    },
    window::ExitCondition,
    winit::WinitPlugin,
};
use bevy_gpu_culling::{
    cull::{Fault, Faults},
    instance::{InstanceBounds, InstanceOrder, SetVersion},
    prelude::*,
    render::SetReport,
};
use std::{
    any::TypeId,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// Declare it before an app: it is dropped after the app, and waits for the pipelines that are
/// still being compiled.
struct CleanEnd;

impl Drop for CleanEnd {
    fn drop(&mut self) {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        // Two that wait would hold threads that the other waits for.
        let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        tasks::background_tasks_end(Duration::from_secs(30));
    }
}

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

/// Bevy orders its own sets of systems weakly: a system of one set runs before a system of the next
/// only if both use the same data, and one of them changes it. So each system of the plugin needs
/// its own order to whatever shares its data.
#[test]
fn no_system_of_the_plugin_is_without_order_to_one_that_shares_its_data() {
    let _end = CleanEnd;
    let mut app = App::new();
    // Pipelined rendering keeps the render world in another thread.
    let bevy = headless().build().disable::<PipelinedRenderingPlugin>();
    app.add_plugins((bevy, GpuCullingPlugin::default()));
    // A system without an order, to see that the test finds it.
    fn stray(_: ResMut<bevy::pbr::RenderMaterialInstances>) {}
    app.sub_app_mut(RenderApp)
        .add_systems(Render, stray.in_set(GpuCullingSystems::WriteInstances));
    run(&mut app);
    let world = app.sub_app(RenderApp).world();
    let schedules = world.resource::<Schedules>();
    let in_schedule = |schedule: &Schedule, set: GpuCullingSystems| {
        let graph = schedule.graph();
        let Ok(own) = graph.systems_in_set(set.intern()) else {
            return Vec::new();
        };
        let found = graph.conflicting_systems().iter();
        let found = found.filter(|(a, b, _)| own.contains(a) || own.contains(b));
        found
            .map(|(a, b, data)| {
                let name = |key| graph.systems.get(key).map(|system| system.system_type());
                format!("{set:?}: {:?} and {:?}: {data:?}", name(*a), name(*b))
            })
            .collect()
    };
    let extract = schedules.get(ExtractSchedule).unwrap();
    let render = schedules.get(Render).unwrap();
    let graph = schedules.get(RenderGraph).unwrap();
    let camera = schedules.get(Core3d).unwrap();
    let found = [
        (extract, GpuCullingSystems::Extract),
        (render, GpuCullingSystems::AliasMaterials),
        (render, GpuCullingSystems::Prepare),
        (graph, GpuCullingSystems::Record),
        (graph, GpuCullingSystems::Finish),
        (camera, GpuCullingSystems::DrawNearLevels),
        (camera, GpuCullingSystems::DrawLate),
    ]
    .map(|(schedule, set)| in_schedule(schedule, set));
    assert_eq!(found.concat(), Vec::<String>::new());
    let stray = in_schedule(render, GpuCullingSystems::WriteInstances);
    assert!(!stray.is_empty());
}

#[test]
fn the_order_of_plugins_does_not_matter() {
    let _end = CleanEnd;
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
    let _end = CleanEnd;
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
    let _end = CleanEnd;
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

/// Whether the renderer has a material of a mesh.
fn is_prepared(app: &App, material: &Handle<TintedMaterial>) -> bool {
    let world = app.sub_app(RenderApp).world();
    let prepared = world.resource::<ErasedRenderAssets<PreparedMaterial>>();
    prepared.get(material.id()).is_some()
}

#[test]
fn the_plugin_of_tints_may_come_first_or_alone() {
    let _end = CleanEnd;
    let log = Log::start();
    for first in [true, false] {
        let group = headless().build().disable::<PipelinedRenderingPlugin>();
        let mut app = App::new();
        if first {
            app.add_plugins((InstanceTintPlugin, group));
        } else {
            app.add_plugins((group, InstanceTintPlugin));
        }
        app.finish();
        app.cleanup();
        let mut materials = app.world_mut().resource_mut::<Assets<TintedMaterial>>();
        let material = materials.add(InstanceTint::material(Color::WHITE));
        for _ in 0..3 {
            app.update();
        }
        assert!(is_prepared(&app, &material), "the plugin first: {first}");
    }
    assert_eq!(log.lines(), Vec::<String>::new());

    let mut app = App::new();
    let more = (AssetPlugin::default(), InstanceTintPlugin);
    app.add_plugins((MinimalPlugins, more));
    run(&mut app);
    log.assert_once(&["InstanceTintPlugin", "no PbrPlugin", "DefaultPlugins"]);
}

/// A mesh whose positions are two floats instead of three.
/// Inspectors and scenes go by the registry of types.
#[test]
fn reports_sets_and_components_are_reflected() {
    use bevy::{
        asset::ReflectAsset, ecs::reflect::ReflectComponent, ecs::reflect::ReflectResource,
        reflect::GetPath,
    };
    fn is_template<T: FromTemplate>() {}
    is_template::<GpuInstances>();
    is_template::<MeshletMesh3d>();
    is_template::<InstanceScene>();

    let mut app = App::new();
    app.add_plugins((headless(), GpuCullingPlugin::default()));
    let registry = app.world().resource::<AppTypeRegistry>().read();
    let types = [
        "GpuInstances",
        "MeshletMesh3d",
        "InstanceScene",
        "InstanceOffset",
        "CullingRadius",
        "InstanceVisibilityRange",
        "FreezeCulling",
    ];
    for name in types {
        let known = registry.get_with_short_type_path(name).unwrap();
        assert!(known.data::<ReflectComponent>().is_some(), "{name}");
    }
    for name in ["CullingReport", "GpuCullingSettings"] {
        let known = registry.get_with_short_type_path(name).unwrap();
        assert!(known.data::<ReflectResource>().is_some(), "{name}");
    }
    let set = registry.get_with_short_type_path("InstanceSet").unwrap();
    assert!(set.data::<ReflectAsset>().is_some());

    let set = SetReport {
        entity: Entity::PLACEHOLDER.into(),
        tested: 9,
        visible: 5,
        shadow_tested: 0,
        shadow_visible: 0,
    };
    let report = CullingReport {
        instances: 7,
        sets: vec![set],
        ..default()
    };
    assert_eq!(report.path::<u64>("instances"), Ok(&7));
    assert_eq!(report.path::<u64>("sets[0].visible"), Ok(&5));
    assert_eq!(report.path::<u64>("meshlets.drawn"), Ok(&0));
}

/// What a component of an app may hold, for scenes and editors.
#[derive(Reflect, Clone, PartialEq, Debug)]
struct Brush {
    at: InstanceTransform,
    id: Option<InstanceId>,
    version: SetVersion,
    bounds: Option<InstanceBounds>,
    written: Option<GpuWritten>,
    packed: Vec<PackedInstance>,
    rotation: PackedQuat,
    order: InstanceOrder,
    set: InstanceSetHolder,
}

/// Sets are not compared.
#[derive(Reflect, Clone, Default, Debug)]
struct InstanceSetHolder(InstanceSet);

impl PartialEq for InstanceSetHolder {
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().eq(other.0.iter())
    }
}

#[test]
fn instances_are_reflected() {
    let set = InstanceSet::from_transforms([Vec3::X, Vec3::ZERO]).unwrap();
    let set = set.with_ids();
    let brush = Brush {
        at: Vec3::Y.into(),
        id: set.id_of(1),
        version: set.version(),
        bounds: set.bounds(),
        written: Some(GpuWritten::within(Vec3::ZERO, Vec3::ONE)),
        packed: set.packed().to_vec(),
        rotation: PackedQuat::IDENTITY,
        order: set.clone().sorted_with_order().1,
        set: InstanceSetHolder(set),
    };
    let copy = brush.to_dynamic_struct().unwrap();
    assert_eq!(Brush::from_reflect(&copy), Some(brush));

    let mut registry = bevy::reflect::TypeRegistry::default();
    registry.register::<Brush>();
    for type_id in [
        TypeId::of::<InstanceSet>(),
        TypeId::of::<InstanceTransform>(),
    ] {
        assert!(registry.get_type_data::<ReflectDefault>(type_id).is_some());
        #[cfg(feature = "serde")]
        assert!(
            registry
                .get_type_data::<ReflectSerialize>(type_id)
                .is_some()
                && registry
                    .get_type_data::<ReflectDeserialize>(type_id)
                    .is_some()
        );
    }
}

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

/// The best tier culls wrongly, on purpose: the next one draws the same, and one line says so.
#[test]
fn a_tier_that_culls_wrongly_gives_way_to_the_next() {
    let _end = CleanEnd;
    let log = Log::start();
    let mut stage = Stage::new(How::Set(None));
    let look = (
        stage.mesh(Cuboid::new(0.5, 0.4, 0.6)),
        stage.standard(StandardMaterial::from(Color::srgb(0.9, 0.3, 0.2))),
    );
    stage.spawn_set(&field(300, true), look, Transform::IDENTITY);
    stage.camera(
        Transform::from_xyz(0.0, 3.0, 7.0).looking_at(Vec3::ZERO, Vec3::Y),
        (),
    );
    stage.lights(false);
    let expected = stage.picture();
    let next = match stage.report().tier {
        Some(CullingTier::Subgroup) => CullingTier::Workgroup,
        _ => CullingTier::Cpu,
    };
    let faults = Faults::inject(Fault::CullsWrongly, 0..1);
    let world = stage.app.world_mut();
    world.resource_mut::<GpuCullingSettings>().self_test = true;
    let picture = stage.picture();
    drop(faults);
    assert_eq!(stage.report().tier, Some(next));
    assert_same_picture("self-test", &picture, &expected);
    let taken = format!("GPU culling at tier \"{next}\"");
    log.assert_once(&["WARN", &taken, "test at the start"]);
    assert_eq!(log.lines().len(), 1, "{:#?}", log.lines());
}

/// Each set that is not drawn logs exactly one message. It names the entity and says what to do.
#[test]
fn sets_that_are_not_drawn_are_named_once() {
    let _end = CleanEnd;
    let log = Log::start();
    let mut stage = Stage::new(How::Set(None));
    let cube = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
    let flat = stage.mesh(half_cuboid());
    let red = stage.standard(StandardMaterial::from(Color::srgb(0.9, 0.3, 0.2)));
    let set = |stage: &mut Stage| GpuInstances(stage.add(field(50, false)));
    let sets = [(); 6].map(|()| set(&mut stage));
    let [a, b, c, d, e, f] = sets;
    let mut large = field(50, false);
    let largest = InstanceTransform::from(Vec3::ZERO).with_scale(f32::MAX);
    large.push(largest).unwrap();
    let large = GpuInstances(stage.add(large));
    let cuboid = Mesh3d(stage.mesh(Cuboid::from_length(3.0)));
    let too_large = stage.spawn((large, cuboid, red.clone()));
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
        (skinned, ["SkinnedMesh", "InstanceAnimation"]),
        (bad_radius, ["CullingRadius is ignored", "NoFrustumCulling"]),
        (main_world, ["RENDER_WORLD", "add it"]),
        (too_large, ["times the radius", "smaller scales"]),
    ] {
        log.assert_once(&[&format!("GpuInstances on {entity}:"), parts[0], parts[1]]);
    }
    assert_eq!(log.lines().len(), 7, "{:#?}", log.lines());
}

/// So does each impostor, and each that takes the place of a level.
#[test]
fn impostors_that_are_not_drawn_are_named_once() {
    let _end = CleanEnd;
    let log = Log::start();
    let mut stage = Stage::new(How::Set(None));
    let cube = Mesh3d(stage.mesh(Cuboid::new(0.5, 0.4, 0.6)));
    let red = stage.standard(StandardMaterial::from(Color::srgb(0.9, 0.3, 0.2)));
    let set = GpuInstances(stage.add(field(50, false)));
    let full = stage.spawn((set.clone(), cube.clone(), red.clone()));
    let leveled = stage.spawn((set, cube.clone(), red.clone()));
    let levels = vec![InstanceLod::new(cube.0.clone(), 0.3)];
    stage.entity(leveled).insert(InstanceLods {
        levels,
        ..default()
    });
    let no_set = stage.spawn((cube.clone(), red.clone()));
    let parts = (cube, red);
    let impostor = |stage: &mut Stage, error, parent: Option<Entity>| {
        let child = stage.spawn((InstanceImpostor { error }, parts.clone()));
        if let Some(parent) = parent {
            stage.entity(child).insert(ChildOf(parent));
        }
        child
    };
    let drawn = impostor(&mut stage, 0.5, Some(full));
    let second = impostor(&mut stage, 0.5, Some(full));
    let orphan = impostor(&mut stage, 0.5, None);
    let of_mesh = impostor(&mut stage, 0.5, Some(no_set));
    let bad_error = impostor(&mut stage, f32::NAN, Some(no_set));
    let before_level = impostor(&mut stage, 0.2, Some(leveled));
    stage.camera(
        Transform::from_xyz(0.0, 3.0, 7.0).looking_at(Vec3::ZERO, Vec3::Y),
        (),
    );
    stage.update(60);
    let moved = Transform::from_xyz(0.0, 7.5, 0.0);
    stage.entity(drawn).insert(moved);
    stage.update(60);
    stage.assert_runs("impostors that are not drawn");
    for (entity, parts) in [
        (second, [format!("{drawn}"), "Remove one".into()]),
        (orphan, ["no parent".into(), "child".into()]),
        (of_mesh, [format!("{no_set}"), "no GpuInstances".into()]),
        (bad_error, ["NaN".into(), "finite and at least 0".into()]),
        (drawn, ["7.5".into(), "move the mesh's vertices".into()]),
    ] {
        log.assert_once(&[
            &format!("InstanceImpostor on {entity}"),
            &parts[0],
            &parts[1],
        ]);
    }
    log.assert_once(&[
        &format!("InstanceLods on {leveled}: level 1 is not drawn"),
        "0.3",
        &format!("InstanceImpostor on {before_level} from the error 0.2 on"),
    ]);
    assert_eq!(log.lines().len(), 6, "{:#?}", log.lines());
}

/// So does each level that is a part of its mesh which the mesh does not have.
#[test]
fn levels_that_are_no_part_of_their_mesh_are_named_once() {
    let _end = CleanEnd;
    let log = Log::start();
    let mut stage = Stage::new(How::Set(None));
    let cube = Mesh3d(stage.mesh(Cuboid::new(0.5, 0.4, 0.6)));
    let bare = Mesh::from(Cuboid::new(0.5, 0.4, 0.6)).with_duplicated_vertices();
    let bare = Mesh3d(stage.mesh(bare));
    let red = stage.standard(StandardMaterial::from(Color::srgb(0.9, 0.3, 0.2)));
    let set = GpuInstances(stage.add(field(50, false)));
    let mut expected = Vec::new();
    for (mesh, full, part, parts) in [
        (&cube, None, 6..37, ["level 1 is ignored", "has 36 indices"]),
        (&cube, None, 6..10, ["level 1", "no multiple of 3"]),
        (&cube, None, 6..6, ["level 1", "no index"]),
        (&bare, None, 6..9, ["level 1", "the mesh has no indices"]),
        (&cube, Some(0..40), 6..9, ["full is ignored", "36 at most"]),
    ] {
        let lods = InstanceLods {
            levels: vec![InstanceLod::new(part, 0.1)],
            full,
            ..default()
        };
        let entity = stage.spawn((set.clone(), mesh.clone(), red.clone(), lods));
        expected.push((entity, parts));
    }
    stage.camera(
        Transform::from_xyz(0.0, 3.0, 7.0).looking_at(Vec3::ZERO, Vec3::Y),
        (),
    );
    stage.update(20);
    stage.assert_runs("levels that are no part of their mesh");
    for (entity, parts) in &expected {
        let entity = format!("InstanceLods on {entity}:");
        log.assert_once(&[&entity, parts[0], parts[1], "of the Mesh"]);
    }
    assert_eq!(log.lines().len(), expected.len(), "{:#?}", log.lines());
}
