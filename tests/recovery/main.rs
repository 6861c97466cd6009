//! Bevy recovers from a lost device, and sets with it.
//!
//! A separate program: nobody else draws while a device is lost, and each test reads the whole
//! log.
#![cfg(all(feature = "bevy", feature = "study"))]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic and tell what it saw"
)]

mod faults;
#[path = "../scene/log.rs"]
mod log;
mod points;
#[path = "../scene/mod.rs"]
mod scene;

use bevy::{
    asset::{RenderAssetUsages, uuid_handle},
    core_pipeline::prepass::{DepthPrepass, NormalPrepass},
    prelude::*,
    reflect::TypePath,
    render::{
        Extract, ExtractSchedule, RenderApp, RenderStartup,
        error_handler::{RenderErrorHandler, RenderErrorPolicy},
        render_resource::AsBindGroup,
        renderer::{RenderDevice, RenderGraph, RenderQueue},
        settings::{RenderCreation, WgpuSettings},
    },
    shader::ShaderRef,
};
use bevy_gpu_culling::{prelude::*, render::InstanceBuffers};
use image::RgbaImage;
use log::Log;
use scene::{How, Stage, assert_same_picture, field, field_of};

/// Moves vertices in a vertex shader that reads instances.
#[derive(Asset, TypePath, AsBindGroup, Clone, Debug, Default)]
struct Swollen {}

const SWOLLEN: Handle<Shader> = uuid_handle!("2a4f6d0e-6f6b-4f0e-9a49-0a3f5b6d7e01");

impl Material for Swollen {
    fn vertex_shader() -> ShaderRef {
        SWOLLEN.into()
    }

    fn fragment_shader() -> ShaderRef {
        SWOLLEN.into()
    }
}

const SWOLLEN_WESL: &str = "
import bevy_pbr::render::{
    mesh_functions,
    forward_io::{Vertex, VertexOutput, decompress_vertex},
    view_transformations::position_world_to_clip,
};
import bevy_gpu_culling::draw_instance::{load, position_to_set, SET};

@vertex
fn vertex(in: Vertex) -> VertexOutput {
    var out: VertexOutput;
    let instance = load(in.instance_index);
    let vertex = decompress_vertex(in, SET);
    let position = position_to_set(instance, vertex.position * 1.3);
    let world_from_local = mesh_functions::get_world_from_local(SET);
    out.world_position = mesh_functions::mesh_position_local_to_world(world_from_local, position);
    out.position = position_world_to_clip(out.world_position.xyz);
    return out;
}

@fragment
fn fragment(in: VertexOutput) -> @location(0) vec4<f32> {
    return vec4(fract(in.world_position.xyz * 0.5), 1.0);
}
";

fn stage() -> Stage {
    let mut stage = Stage::on(How::Set(None), WgpuSettings::default(), |app| {
        app.add_plugins(MaterialPlugin::<Swollen>::default());
        let shader = Shader::from_wesl(SWOLLEN_WESL, "swollen.wesl");
        let mut shaders = app.world_mut().resource_mut::<Assets<Shader>>();
        shaders.insert(SWOLLEN.id(), shader).unwrap();
        app.insert_resource(RenderErrorHandler(|_, _, _| {
            RenderErrorPolicy::Recover(RenderCreation::Automatic(Box::<WgpuSettings>::default()))
        }));
        write_sets(app);
        let render_app = app.get_sub_app_mut(RenderApp).unwrap();
        render_app
            .init_resource::<Starts>()
            .add_systems(RenderStartup, |mut starts: ResMut<Starts>| starts.0 += 1);
        points::lose_devices(render_app);
    });
    stage.lights(false);
    let eye = Transform::from_xyz(0.0, 3.0, 7.0).looking_at(Vec3::new(0.5, 0.0, 0.0), Vec3::Y);
    stage.camera(eye, ());
    stage
}

/// How often the renderer has started.
#[derive(Resource, Default)]
struct Starts(u32);

/// The set whose instances are copied to the GPU's buffers in each frame.
#[derive(Resource, Clone, Default)]
struct Written(Option<(AssetId<InstanceSet>, InstanceSet)>);

/// Makes the app write what is in its [`Written`].
fn write_sets(app: &mut App) {
    app.init_resource::<Written>();
    let render_app = app.get_sub_app_mut(RenderApp).unwrap();
    render_app
        .init_resource::<Written>()
        .add_systems(ExtractSchedule, extract_written)
        .add_systems(RenderGraph, write.in_set(GpuCullingSystems::WriteInstances));
}

/// A set of which [`write_sets`] writes these instances in each frame.
fn written_set(stage: &mut Stage, instances: InstanceSet) -> GpuInstances {
    let around = GpuWritten::within(Vec3::splat(-15.0), Vec3::splat(15.0));
    let set = InstanceSet::gpu_written(instances.len() as u32, around).unwrap();
    let set = stage.add(set);
    let written = Written(Some((set.id(), instances)));
    stage.app.insert_resource(written);
    GpuInstances(set)
}

fn extract_written(mut written: ResMut<Written>, from: Extract<Res<Written>>) {
    written.0.clone_from(&from.0);
}

fn write(written: Res<Written>, buffers: Res<InstanceBuffers>, queue: Res<RenderQueue>) {
    let Some((id, set)) = &written.0 else { return };
    let Some(buffer) = buffers.get(*id) else {
        return;
    };
    let instances = &buffer.regions()[0].instances;
    queue.write_buffer(instances, 0, bytemuck::cast_slice(set.packed()));
}

/// Destroys the device and lets the app run until Bevy has another and has drawn with it.
fn lose_device(stage: &mut Stage) {
    lose_device_and(stage, |_| ());
}

/// As [`lose_device`], with something that the app does before it knows of the loss.
fn lose_device_and(stage: &mut Stage, meanwhile: impl FnOnce(&mut Stage)) {
    let old = stage.app.world().resource::<RenderDevice>().clone();
    let old = old.wgpu_device();
    let before = starts(stage);
    let wait = || drop(old.poll(wgpu::PollType::wait_indefinitely()));
    // Bevy 0.19.1 itself panics if one of Bevy's readbacks is in flight (`clustering metadata
    // staging buffer`), or if it draws once more before it knows of the loss
    // (`StorageBuffer::write_buffer` maps a buffer that was refused).
    wait();
    old.destroy();
    wait();
    meanwhile(stage);
    wait_for_device(stage, before);
}

/// Lets the app run until the renderer has started more often than `before`, and has drawn since.
fn wait_for_device(stage: &mut Stage, before: u32) {
    for _ in 0..100 {
        stage.update(1);
        if starts(stage) > before {
            stage.update(5);
            stage.assert_runs("a lost device");
            return;
        }
    }
    panic!("Bevy has made no other device");
}

/// How often the renderer of the app has started.
fn starts(stage: &Stage) -> u32 {
    let render_world = stage.app.sub_app(RenderApp).world();
    render_world.resource::<Starts>().0
}

fn red(stage: &mut Stage) -> MeshMaterial3d<StandardMaterial> {
    stage.standard(StandardMaterial::from(Color::srgb(0.9, 0.3, 0.2)))
}

/// What most sets here are made of.
fn cube_and_red(stage: &mut Stage) -> (Handle<Mesh>, MeshMaterial3d<StandardMaterial>) {
    (stage.mesh(Cuboid::new(0.5, 0.4, 0.6)), red(stage))
}

/// The pictures before and after a lost device, and the stage.
fn around_a_loss(mut stage: Stage) -> (RgbaImage, RgbaImage, Stage) {
    let before = stage.picture();
    lose_device(&mut stage);
    let after = stage.picture();
    stage.assert_runs("after a lost device");
    (before, after, stage)
}

#[test]
fn sets_are_drawn_as_before() {
    let log = Log::start();
    let mut stage = stage();
    let (cube, red) = cube_and_red(&mut stage);
    let at = |x| Transform::from_xyz(x, 0.0, 0.0);
    // Prepasses and shadow maps have separate pipelines.
    stage.lights(true);
    let world = stage.app.world_mut();
    let mut cameras = world.query_filtered::<Entity, With<Camera3d>>();
    let camera = cameras.single(world).unwrap();
    let prepasses = (DepthPrepass, NormalPrepass);
    stage.entity(camera).insert(prepasses);
    stage.spawn_set(
        &field_of(700, ScaleKind::NonUniform),
        (cube.clone(), red.clone()),
        at(0.0),
    );
    let swollen = MeshMaterial3d(stage.add(Swollen::default()));
    stage.spawn_set(&field(60, false), (cube.clone(), swollen), at(0.5));
    let uniforms = stage.spawn_set(&field(90, true), (cube, red), at(-0.5));
    stage.entity(uniforms).insert(InstanceMeshUniforms);
    let (before, after, mut stage) = around_a_loss(stage);
    assert_same_picture("recovered", &after, &before);
    let (views, survivors) = stage.verify();
    assert!(views > 3 && survivors > 100, "{views} {survivors}");
    assert_eq!(stage.report().instances, 700 + 60 + 90);
    assert_eq!(log.lines(), Vec::<String>::new());
}

/// Nothing can be made on a lost device, and nothing says so. (Entities that are spawned meanwhile
/// are lost to Bevy 0.19.1 itself, so these were there before.)
#[test]
fn instances_that_come_while_the_device_is_lost_are_drawn_afterwards() {
    let log = Log::start();
    let draw = |is_lost: bool| {
        let mut stage = stage();
        let (cube, red) = cube_and_red(&mut stage);
        let sets = [0.0, 0.5, 1000.0].map(|z| {
            let set = stage.add(field(100, true));
            let at = Transform::from_xyz(0.0, z, z);
            stage.spawn((
                Mesh3d(cube.clone()),
                red.clone(),
                GpuInstances(set.clone()),
                at,
            ));
            set
        });
        stage.update(3);
        let edit = move |stage: &mut Stage| {
            let world = stage.app.world_mut();
            let mut assets = world.resource_mut::<Assets<InstanceSet>>();
            // One that outgrows its room, one in its place, and one with a private page, out of
            // sight: a software adapter would draw it for long.
            let more = field(2000, true);
            assets
                .get_mut(&sets[0])
                .unwrap()
                .extend(more.iter())
                .unwrap();
            *assets.get_mut(&sets[1]).unwrap() = field(150, false);
            let many = InstanceSet::from_transforms(vec![Vec3::ZERO; 300_000]).unwrap();
            *assets.get_mut(&sets[2]).unwrap() = many;
        };
        match is_lost {
            true => lose_device_and(&mut stage, edit),
            false => edit(&mut stage),
        }
        let picture = stage.picture();
        stage.assert_runs("instances that come while the device is lost");
        (picture, stage.verify())
    };
    let (expected, survivors) = draw(false);
    let (recovered, recovered_survivors) = draw(true);
    assert_same_picture("recovered-newcomers", &recovered, &expected);
    assert_eq!(recovered_survivors, survivors);
    let text = log.text();
    assert!(!text.contains("Caught rendering error"), "{text}");
}

#[cfg(feature = "meshlets")]
#[test]
fn meshlets_are_drawn_as_before() {
    let log = Log::start();
    let mut stage = stage();
    let torus = Torus::new(0.2, 0.5).mesh();
    let torus = torus.major_resolution(64).minor_resolution(32).build();
    let settings = MeshletSettings {
        lods: Some(LodSettings::default()),
        ..default()
    };
    let meshlets = MeshletMesh::from_mesh(&torus, &settings).unwrap();
    let meshlets = MeshletMesh3d(stage.add(meshlets));
    let set = GpuInstances(stage.add(field(100, false)));
    let red = red(&mut stage);
    stage.spawn((meshlets, red, set));
    let (before, after, mut stage) = around_a_loss(stage);
    assert_same_picture("recovered-meshlets", &after, &before);
    let report = stage.report();
    assert!(report.views.iter().all(|view| view.levels.len() == 6));
    let meshlets = report.meshlets;
    assert!(
        meshlets.drawn > 0 && meshlets.rows_drawn_whole == 0,
        "{meshlets:?}"
    );
    assert_eq!(log.lines(), Vec::<String>::new());
}

#[test]
fn a_set_that_was_dropped_on_the_cpu_is_named_and_left_out() {
    let log = Log::start();
    let mut stage = stage();
    let (cube, red) = cube_and_red(&mut stage);
    stage.spawn_set(
        &field(300, true),
        (cube.clone(), red.clone()),
        Transform::IDENTITY,
    );
    let without = stage.picture();
    let mut dropped = field(200, false);
    dropped.asset_usage = RenderAssetUsages::RENDER_WORLD;
    let entity = stage.spawn_set(&dropped, (cube, red), Transform::from_xyz(0.0, 0.5, 0.0));
    let (before, after, mut stage) = around_a_loss(stage);
    assert_ne!(before, without, "both sets are drawn before");
    assert_same_picture("recovered-without", &after, &without);
    stage.update(5);
    log.assert_once(&[
        &format!("GpuInstances on {entity}"),
        "200 instances were dropped on the CPU",
        "keep MAIN_WORLD",
    ]);
    assert_eq!(log.lines().len(), 1);
}

#[test]
fn a_set_that_the_gpu_writes_is_empty_until_it_is_written_again() {
    let log = Log::start();
    let mut stage = stage();
    let (cube, red) = cube_and_red(&mut stage);
    stage.spawn_set(
        &field(300, true),
        (cube.clone(), red.clone()),
        Transform::IDENTITY,
    );
    let without = stage.picture();
    let set = written_set(&mut stage, field(200, false));
    stage.spawn((Mesh3d(cube), red, set));
    let before = stage.picture();
    assert_ne!(before, without, "both sets are drawn before");
    // What was written once is gone.
    let written = stage.app.world_mut().remove_resource::<Written>().unwrap();
    stage.app.insert_resource(Written::default());
    lose_device(&mut stage);
    assert_same_picture("recovered-empty", &stage.picture(), &without);
    log.assert_once(&["the device was lost", "empty until it is written again"]);
    stage.app.insert_resource(written);
    assert_same_picture("recovered-written", &stage.picture(), &before);
    assert_eq!(log.lines().len(), 1);
}

/// The kernel of a `Scatter` fills other buffers again, so nobody has to be told.
#[test]
fn what_a_scatter_plants_grows_again() {
    let log = Log::start();
    let mut stage = stage();
    let (cube, red) = cube_and_red(&mut stage);
    let without = stage.picture();
    let scatter = Scatter {
        spacing: 2.0,
        radius: 20.0,
        ..default()
    };
    let at = Transform::from_xyz(0.0, -1.5, 0.0);
    stage.spawn((Mesh3d(cube), red, scatter, at));
    let (before, after, _) = around_a_loss(stage);
    assert_ne!(before, without, "something grows before");
    assert_same_picture("recovered-scatter", &after, &before);
    assert_eq!(log.lines(), Vec::<String>::new());
}
