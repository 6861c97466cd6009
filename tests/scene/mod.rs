//! A headless Bevy app that draws one scene, either with instance sets or with one entity per
//! instance.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a test may panic, and not every test uses every helper"
)]

mod compare;
mod device;
mod frames;
pub mod items;
pub mod normals;
pub mod posed;
mod stages;

#[allow(
    unused_imports,
    reason = "not every test compares pictures, or draws several scenes"
)]
pub use {
    compare::{Difference, assert_same_picture, different_pixels},
    stages::Stages,
};

use bevy::{
    app::{PluginGroupBuilder, TaskPoolOptions, TaskPoolPlugin},
    asset::RenderAssetUsages,
    camera::RenderTarget,
    light::{DirectionalLightShadowMap, PointLightShadowMap, ShadowFilteringMethod},
    log::LogPlugin,
    pbr::PbrPlugin,
    prelude::*,
    render::{
        ExtractSchedule, RenderApp, RenderPlugin,
        batching::gpu_preprocessing::{GpuPreprocessingMode, GpuPreprocessingSupport},
        pipelined_rendering::PipelinedRenderingPlugin,
        render_resource::{
            BufferDescriptor, BufferUsages, CommandEncoderDescriptor, MapMode, PollType,
            TexelCopyBufferInfo, TexelCopyBufferLayout, TextureFormat, TextureUsages,
        },
        renderer::{RenderAdapter, RenderAdapterInfo, RenderDevice, RenderQueue},
        settings::{RenderCreation, WgpuSettings},
    },
    time::TimeUpdateStrategy,
    window::ExitCondition,
    winit::WinitPlugin,
};
use bevy_gpu_culling::{
    prelude::*,
    render::verify::{Verdict, Verifier},
};
use device::{panic_at_errors, shared_device};
use frames::Frames;
use image::RgbaImage;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::{
    sync::mpsc::{self, TryRecvError},
    time::{Duration, Instant},
};

pub const SIZE: UVec2 = UVec2::new(320, 200);

/// How the scene is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum How {
    Set(Option<CullingTier>),
    Entities,
}

/// A headless app with one render target.
pub struct Stage {
    pub app: App,
    pub how: How,
    pub target: Handle<Image>,
    frames: Frames,
}

/// Frames without a new pipeline after which no more are expected. A spot light lights nothing in
/// the first four or five frames.
const CALM: usize = 6;

/// The longest time in which all pipelines of a scene are compiled.
const PATIENCE: Duration = Duration::from_secs(240);

/// Shaders that plugins ask for last.
const LAST_SHADERS: [&str; 3] = [
    "embedded://bevy_pbr/render/pbr.wesl",
    "embedded://bevy_gpu_culling/fade_depth.wesl",
    "embedded://bevy_gpu_culling/tint_prepass.wesl",
];

/// The most instances, in a thousand, that may be so near a border that rounding decides.
pub const MAX_BORDERLINE: u32 = 4;

/// Panics if the twin differs, or if rounding decides about more than this many of a thousand
/// instances.
pub fn assert_right(verdicts: &[Verdict], max_borderline: u32) {
    for verdict in verdicts {
        assert_eq!(verdict.error, None, "{verdict:?}");
        let max = 1 + verdict.tested * max_borderline / 1000;
        assert!(verdict.borderline <= max, "{verdict:?}");
    }
}

/// The plugins, without a log unless `TEST_LOG` is set.
fn plugins(device: RenderCreation) -> PluginGroupBuilder {
    let group = headless(device);
    if std::env::var_os("TEST_LOG").is_some() {
        group
    } else {
        group.disable::<LogPlugin>()
    }
}

fn headless(device: RenderCreation) -> PluginGroupBuilder {
    DefaultPlugins
        .set(WindowPlugin {
            primary_window: None,
            exit_condition: ExitCondition::DontExit,
            ..default()
        })
        .set(RenderPlugin {
            synchronous_pipeline_compilation: true,
            render_creation: device,
            ..default()
        })
        // Apps share the pools, and compile pipelines there. On two cores, Bevy has one thread for
        // all of them.
        .set(TaskPoolPlugin {
            task_pool_options: TaskPoolOptions::with_num_threads(8),
        })
        .disable::<WinitPlugin>()
        .disable::<PipelinedRenderingPlugin>()
}

impl Stage {
    pub fn new(how: How) -> Self {
        Self::with(how, |_| ())
    }

    /// A stage with more plugins.
    pub fn with(how: How, more: impl FnOnce(&mut App)) -> Self {
        Self::of(how, plugins(shared_device()), more)
    }

    /// A stage on its own device, with these settings.
    pub fn on(how: How, settings: WgpuSettings, more: impl FnOnce(&mut App)) -> Self {
        Self::of(how, plugins(settings.into()), more)
    }

    /// A stage with Bevy's entities that are sorted by depth. Bevy writes uniforms on the CPU here:
    /// with uniforms on the GPU, Bevy 0.19.1 sorts blended entities by their place when they were
    /// queued, which may not be written yet.
    pub fn of_sorted_entities(more: impl FnOnce(&mut App)) -> Self {
        let on_cpu = PbrPlugin {
            use_gpu_instance_buffer_builder: false,
            ..default()
        };
        let plugins = plugins(shared_device()).set(on_cpu);
        Self::of(How::Entities, plugins, |app| {
            // Otherwise Bevy leaves out opaque meshes: their phases expect uniforms on the GPU.
            app.sub_app_mut(RenderApp).add_systems(
                ExtractSchedule,
                |mut support: ResMut<GpuPreprocessingSupport>| {
                    support.max_supported_mode = GpuPreprocessingMode::None;
                },
            );
            more(app);
        })
    }

    /// A stage as apps are by default: it draws a frame while the main world is at the next, and
    /// compiles pipelines in the background. See [`Self::settle`].
    pub fn pipelined(how: How, more: impl FnOnce(&mut App)) -> Self {
        Self::behind(how, [true; 2], more)
    }

    /// A stage that draws a frame while the main world is at the next, or not, and compiles
    /// pipelines in the background, or not.
    pub fn behind(how: How, [draws, compiles]: [bool; 2], more: impl FnOnce(&mut App)) -> Self {
        let mut plugins = plugins(shared_device()).set(RenderPlugin {
            synchronous_pipeline_compilation: !compiles,
            render_creation: shared_device(),
            ..default()
        });
        if draws {
            plugins = plugins.enable::<PipelinedRenderingPlugin>();
        }
        Self::of(how, plugins, more)
    }

    /// A stage that loads the files of a folder, also of impostors.
    pub fn with_files(how: How, folder: &std::path::Path) -> Self {
        let assets = AssetPlugin {
            file_path: folder.to_str().unwrap().into(),
            ..default()
        };
        Self::of(how, plugins(shared_device()).set(assets), |app| {
            app.add_plugins(ImpostorPlugin);
        })
    }

    fn of(how: How, plugins: PluginGroupBuilder, more: impl FnOnce(&mut App)) -> Self {
        let mut app = App::new();
        app.add_plugins(plugins);
        if let How::Set(tier) = how {
            app.add_plugins(GpuCullingPlugin::from(GpuCullingSettings {
                tier,
                shader_checks: true,
                // The same on a machine with a kept tuning.
                tuning: TuningSource::Rule,
                ..default()
            }));
        }
        app.insert_resource(ClearColor(Color::srgb(0.05, 0.06, 0.1)))
            // A quarter of Bevy's sizes: software draws them.
            .insert_resource(DirectionalLightShadowMap { size: 512 })
            .insert_resource(PointLightShadowMap { size: 256 });
        more(&mut app);
        let frames = Frames::default();
        frames.watch(&mut app);
        app.finish();
        app.cleanup();
        panic_at_errors();
        let mut image =
            Image::new_target_texture(SIZE.x, SIZE.y, TextureFormat::Rgba8UnormSrgb, None);
        image.texture_descriptor.usage |= TextureUsages::COPY_SRC;
        image.asset_usage = RenderAssetUsages::default();
        let target = app.world_mut().resource_mut::<Assets<Image>>().add(image);
        frames.set_target(&target);
        let mut stage = Self {
            app,
            how,
            target,
            frames,
        };
        stage.wait_for_shaders();
        stage
    }

    /// Draws empty frames until the shaders of the plugins are loaded. Embedded assets are loaded
    /// in the background, which takes seconds if several tests begin at once.
    fn wait_for_shaders(&mut self) {
        let server = self.app.world().resource::<AssetServer>().clone();
        let start = Instant::now();
        let is_open = |path: &&'static str| {
            let Some(shader) = server.get_handle::<Shader>(*path) else {
                return false;
            };
            let state = server.load_state(&shader);
            assert!(!state.is_failed(), "{path}: {state:?}");
            !state.is_loaded()
        };
        while LAST_SHADERS.iter().any(is_open) {
            self.app.update();
            std::thread::sleep(Duration::from_millis(5));
            let time = start.elapsed();
            assert!(time < PATIENCE, "shaders are not loaded after {time:?}");
        }
    }

    /// Despawns the scene, which is everything with a transform, and sets the frame count to zero.
    /// Shaders use the frame count for noise.
    pub fn clear(&mut self) {
        let world = self.app.world_mut();
        let placed: Vec<_> = world
            .query_filtered::<Entity, (With<Transform>, Without<ChildOf>)>()
            .iter(world)
            .collect();
        for entity in placed {
            world.despawn(entity);
        }
        self.update(1);
        self.app.insert_resource(bevy::diagnostic::FrameCount(0));
    }

    pub fn add<A: Asset>(&mut self, asset: A) -> Handle<A> {
        self.app.world_mut().resource_mut::<Assets<A>>().add(asset)
    }

    pub fn mesh(&mut self, mesh: impl Into<Mesh>) -> Handle<Mesh> {
        self.add(mesh.into())
    }

    pub fn standard(&mut self, material: StandardMaterial) -> MeshMaterial3d<StandardMaterial> {
        MeshMaterial3d(self.add(material))
    }

    pub fn spawn(&mut self, bundle: impl Bundle) -> Entity {
        self.app.world_mut().spawn(bundle).id()
    }

    /// Mutable access to an entity.
    pub fn entity(&mut self, entity: Entity) -> EntityWorldMut<'_> {
        self.app.world_mut().entity_mut(entity)
    }

    /// A camera that draws into the target, with one sample per pixel and of shadow maps unless `more`
    /// says otherwise: software draws four for twice the time, and compiles dozens of reads of a
    /// shadow map for seconds.
    pub fn camera(&mut self, transform: Transform, more: impl Bundle) -> Entity {
        let target = RenderTarget::Image(self.target.clone().into());
        let camera = (Camera3d::default(), target, Tonemapping::Reinhard);
        let samples = (Msaa::Off, ShadowFilteringMethod::Hardware2x2);
        let camera = self.spawn((camera, transform, samples));
        self.entity(camera).insert(more);
        camera
    }

    /// A camera for an interface, drawn in this order after others, and a panel that it shows.
    pub fn interface(&mut self, order: isize) -> [Entity; 2] {
        let camera = Camera {
            order,
            clear_color: ClearColorConfig::None,
            ..default()
        };
        let target = RenderTarget::Image(self.target.clone().into());
        // With other samples than the 3D camera, it would have its own texture, which nothing
        // clears, and which had been the 3D camera's if Bevy lists the two in another order than
        // before.
        let camera = self.spawn((Camera2d, camera, target, Msaa::Off));
        let panel = Node {
            position_type: PositionType::Absolute,
            left: px(12),
            top: px(9),
            width: px(60),
            height: px(20),
            ..default()
        };
        let color = BackgroundColor(Color::srgba(0.1, 0.8, 0.2, 0.6));
        [camera, self.spawn((panel, color, UiTargetCamera(camera)))]
    }

    /// Edits the set of an entity.
    pub fn edit_set(&mut self, entity: Entity, edit: impl FnOnce(&mut InstanceSet)) {
        let handle = self.entity(entity).get::<GpuInstances>().unwrap().0.clone();
        let mut sets = self.app.world_mut().resource_mut::<Assets<InstanceSet>>();
        edit(&mut sets.get_mut(&handle).unwrap());
    }

    /// A sun, a point light and a spot light, with or without shadows.
    pub fn lights(&mut self, shadows: bool) {
        self.spawn((
            DirectionalLight {
                illuminance: 5_000.0,
                shadow_maps_enabled: shadows,
                ..default()
            },
            Transform::from_xyz(4.0, 9.0, 3.0).looking_at(Vec3::ZERO, Vec3::Y),
        ));
        self.spawn((
            PointLight {
                intensity: 3_000_000.0,
                range: 30.0,
                shadow_maps_enabled: shadows,
                color: Color::srgb(0.4, 0.6, 1.0),
                ..default()
            },
            Transform::from_xyz(-6.0, 6.0, 2.0),
        ));
    }

    /// Spawns the set as `GpuInstances`, or as children of one entity with the same transform and
    /// components.
    pub fn spawn_set<M: Component + Clone>(
        &mut self,
        set: &InstanceSet,
        parts: (Handle<Mesh>, M),
        at: Transform,
    ) -> Entity {
        let (mesh, material) = parts;
        match self.how {
            How::Set(_) => {
                let handle = self.add(set.clone());
                self.spawn((Mesh3d(mesh), material, GpuInstances(handle), at))
            }
            How::Entities => {
                let parent = self.spawn((at, Visibility::default()));
                for instance in set.iter() {
                    let child = (
                        Mesh3d(mesh.clone()),
                        material.clone(),
                        Transform::from(instance),
                        ChildOf(parent),
                    );
                    self.spawn(child);
                }
                parent
            }
        }
    }

    /// Whether the adapter is a software driver.
    pub fn is_software(&self) -> bool {
        let adapter = self.app.world().resource::<RenderAdapterInfo>();
        adapter.device_type == wgpu::DeviceType::Cpu
    }

    /// Whether the adapter can draw color and depth with this number of samples per pixel.
    pub fn has_samples(&self, samples: u32) -> bool {
        let adapter = self.app.world().resource::<RenderAdapter>();
        [TextureFormat::Rgba8UnormSrgb, TextureFormat::Depth32Float]
            .iter()
            .all(|format| {
                let flags = adapter.get_texture_format_features(*format).flags;
                flags.sample_count_supported(samples)
            })
    }

    /// Panics if the app has requested to exit.
    pub fn assert_runs(&self, name: &str) {
        assert_eq!(self.app.should_exit(), None, "{name}: the app ended");
    }

    pub fn update(&mut self, frames: usize) {
        for _ in 0..frames {
            self.app.update();
        }
    }

    /// Lets the time of the app go on by this much per frame.
    pub fn tick(&mut self, step: Duration) {
        let strategy = TimeUpdateStrategy::ManualDuration(step);
        self.app.world_mut().insert_resource(strategy);
    }

    /// Draws frames until all pipelines of the scene are compiled.
    pub fn settle(&mut self) {
        let start = Instant::now();
        let mut calm = 0;
        while calm < CALM {
            self.app.update();
            let (_, waiting) = self.frames.drawn();
            calm = if waiting == 0 { calm + 1 } else { 0 };
            self.wait_for_gpu();
            let time = start.elapsed();
            assert!(time < PATIENCE, "{waiting} pipelines after {time:?}");
        }
    }

    /// The picture after three more frames.
    pub fn picture(&mut self) -> RgbaImage {
        self.update(3);
        self.picture_now()
    }

    /// The picture after three more frames, and the report with the counters of the fourth.
    pub fn picture_and_report(&mut self) -> (RgbaImage, CullingReport) {
        for _ in 0..3 {
            self.app.update();
            self.wait_for_gpu();
        }
        // One of four frames is counted.
        (self.picture_now(), self.report_in(2))
    }

    /// The picture of the next frame. Bevy's `Screenshot` would arrive some frames later, and each
    /// of them would be drawn for nothing.
    pub fn picture_now(&mut self) -> RgbaImage {
        // A test may have given the cameras another image.
        self.frames.set_target(&self.target);
        self.app.update();
        let texture = self.frames.drawn().0.unwrap();
        let world = self.app.world();
        let device = world.resource::<RenderDevice>();
        let (size, row) = (texture.size(), texture.width() * 4);
        let padded = RenderDevice::align_copy_bytes_per_row(row as usize) as u32;
        let buffer = device.create_buffer(&BufferDescriptor {
            label: Some("picture"),
            size: u64::from(padded * size.height),
            usage: BufferUsages::COPY_DST | BufferUsages::MAP_READ,
            mapped_at_creation: false,
        });
        let mut encoder = device.create_command_encoder(&CommandEncoderDescriptor::default());
        let layout = TexelCopyBufferLayout {
            offset: 0,
            bytes_per_row: Some(padded),
            rows_per_image: None,
        };
        let into = TexelCopyBufferInfo {
            buffer: &buffer,
            layout,
        };
        encoder.copy_texture_to_buffer(texture.as_image_copy(), into, size);
        world.resource::<RenderQueue>().submit([encoder.finish()]);
        let (answer, mapped) = mpsc::channel();
        buffer.slice(..).map_async(MapMode::Read, move |read| {
            let _ = answer.send(read);
        });
        self.wait_for_gpu();
        mapped.recv().unwrap().unwrap();
        let bytes = buffer.slice(..).get_mapped_range().unwrap();
        let rows = bytes.chunks(padded as usize);
        let pixels = rows.flat_map(|bytes| &bytes[..row as usize]).copied();
        RgbaImage::from_raw(size.width, size.height, pixels.collect()).unwrap()
    }

    /// Waits for the GPU, and until callbacks were called. On a busy machine, a frame may take
    /// longer than any number of updates. Other threads poll the same device: they may have taken
    /// this app's callbacks, and call them in a moment. A poll that waits would wait for their
    /// frames, too, and keep them from making and freeing resources meanwhile.
    pub fn wait_for_gpu(&self) {
        let world = self.app.world();
        let (answer, done) = mpsc::channel();
        let queue = world.resource::<RenderQueue>();
        queue.on_submitted_work_done(move || {
            let _ = answer.send(());
        });
        let device = world.resource::<RenderDevice>();
        // An error means that the device is lost. Then nothing is left to wait for.
        while device.poll(PollType::Poll).is_ok() && done.try_recv() == Err(TryRecvError::Empty) {
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Compares every view of every set with the twin. Returns the number of views and the sum of
    /// their survivors.
    pub fn verify(&mut self) -> (usize, u32) {
        self.verify_within(MAX_BORDERLINE)
    }

    /// The same, if up to this many of a thousand instances may be decided by rounding.
    pub fn verify_within(&mut self, max_borderline: u32) -> (usize, u32) {
        let verifier = self.app.world().resource::<Verifier>().clone();
        verifier.request();
        for _ in 0..5 {
            self.app.update();
            if let Some(verdicts) = verifier.take() {
                assert_right(&verdicts, max_borderline);
                return (
                    verdicts.len(),
                    verdicts.iter().map(|verdict| verdict.visible).sum(),
                );
            }
        }
        panic!("no verdict arrived");
    }

    /// The app's report with the counters of the current frame. One of four frames is counted, and
    /// its counters are in the report two frames later.
    pub fn report(&mut self) -> CullingReport {
        self.report_in(6)
    }

    fn report_in(&mut self, frames: usize) -> CullingReport {
        for _ in 0..frames {
            self.app.update();
            self.wait_for_gpu();
        }
        self.app.world().resource::<CullingReport>().clone()
    }
}

use bevy::core_pipeline::tonemapping::Tonemapping;
use bevy_gpu_culling::instance::ScaleKind;

/// A field of instances around the origin, with rotations that 32 bits represent exactly.
pub fn field(count: usize, scaled: bool) -> InstanceSet {
    let kind = if scaled {
        ScaleKind::Uniform
    } else {
        ScaleKind::One
    };
    field_of(count, kind)
}

/// Same as [`field`], with scales of this kind.
pub fn field_of(count: usize, kind: ScaleKind) -> InstanceSet {
    let mut rng = ChaCha8Rng::seed_from_u64(count as u64);
    let mut random = |size: f32| rng.random_range(-size..=size);
    InstanceSet::from_transforms((0..count).map(|_| {
        let rotation = Quat::from_euler(EulerRot::XYZ, random(3.0), random(3.0), random(3.0));
        Transform {
            translation: Vec3::new(random(9.0), random(4.0), random(9.0)),
            rotation,
            scale: match kind {
                ScaleKind::One => Vec3::ONE,
                ScaleKind::Uniform => Vec3::splat(0.7 + random(0.5)),
                ScaleKind::NonUniform => Vec3::from_array([(); 3].map(|()| 0.7 + random(0.5))),
            },
        }
    }))
    .unwrap()
}
