//! Frames of Bevy's meshlet feature, and of one set by meshlets, on the same scene: spheres of
//! 9,680 triangles in a cube around the camera, which turns once. The camera has no multisampling,
//! which Bevy's meshlets do not support. The GPU is waited for in each frame.
//!
//! ```sh
//! cargo run --release --manifest-path benches/peers/bevy_meshlet/Cargo.toml -- --peer bevy
//! ```
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool talks by printing"
)]

#[path = "../../../../examples/orbs/end.rs"]
#[allow(dead_code, unused_imports, reason = "the demo uses the rest")]
mod end;
#[path = "../../../../examples/orbs/failure.rs"]
#[allow(dead_code, unused_imports, reason = "the demo uses the rest")]
mod failure;
#[path = "../../../../examples/orbs/offscreen.rs"]
#[allow(dead_code, unused_imports, reason = "the demo uses the rest")]
mod offscreen;
#[path = "../../../../examples/orbs/picture.rs"]
#[allow(dead_code, unused_imports, reason = "the demo uses the rest")]
mod picture;

use anyhow::{Result, anyhow, bail, ensure};
use bevy::{
    camera::RenderTarget,
    diagnostic::DiagnosticsStore,
    math::ops,
    pbr::experimental::meshlet::{
        MESHLET_DEFAULT_VERTEX_POSITION_QUANTIZATION_FACTOR, MeshletMesh as BevyMeshletMesh,
        MeshletMesh3d as BevyMeshletMesh3d, MeshletPlugin,
    },
    prelude::*,
    render::{
        diagnostic::RenderDiagnosticsPlugin,
        renderer::{RenderAdapterInfo, RenderDevice},
    },
};
use bevy_gpu_culling::{
    instance::{InstanceSet, InstanceTransform},
    prelude::{
        GpuCullingPlugin, GpuInstances, InstanceOcclusion, LodSettings, MeshletMesh, MeshletMesh3d,
        MeshletSettings,
    },
};
use clap::{Parser, ValueEnum};
use end::CleanEnd;
use failure::Failure;
use offscreen::Uploads;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::{
    f32::consts::TAU,
    path::PathBuf,
    time::{Duration, Instant},
};

/// Cuts of each edge of the icosahedron: 20 * 22^2 triangles.
const CUTS: u32 = 21;
const RADIUS: f32 = 0.5;
/// The side of the cube is this times the cube root of the count.
const SPACING: f32 = 4.0;
const SEED: u64 = 3;
/// Slots for clusters of Bevy's meshlets: the most that the plugin takes.
const SLOTS: u32 = 1 << 25;
/// The least time of a warm-up: a GPU reaches its full clock only under load.
const BUSY: Duration = Duration::from_secs(1);

/// Measures Bevy's meshlets, or a set by meshlets
#[derive(Parser)]
struct Cli {
    /// What draws the spheres
    #[arg(long, value_enum, default_value_t)]
    peer: Peer,
    #[arg(long, default_value_t = 100_000)]
    count: u32,
    /// Measured frames, in which the camera turns once
    #[arg(long, default_value_t = 150, value_parser = clap::value_parser!(u32).range(1..))]
    frames: u32,
    /// Frames before them
    #[arg(long, default_value_t = 150)]
    warm_up: u32,
    /// Size of the picture
    #[arg(long, default_value_t = 1920)]
    width: u32,
    #[arg(long, default_value_t = 1080)]
    height: u32,
    /// Writes the last frame to this PNG file
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Peer {
    /// One entity per sphere, by Bevy's meshlet feature
    #[default]
    Bevy,
    /// One set, with levels of detail
    Sets,
    /// The same, with what is hidden left out
    Occlusion,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let end = CleanEnd::new();
    let mut stage = Stage::new(&cli, &end)?;
    stage.warm_up()?;
    let floor = stage.measure()?;
    stage.fill()?;
    stage.warm_up()?;
    let full = stage.measure()?;
    let info = stage.app.world().resource::<RenderAdapterInfo>();
    println!(
        "{:?}, {} spheres, {} x {}, {} frames, {} {} {}: {full:.2} ms, floor {floor:.2} ms",
        cli.peer,
        cli.count,
        cli.width,
        cli.height,
        cli.frames,
        info.name,
        info.driver,
        info.driver_info,
    );
    let store = stage.app.world().resource::<DiagnosticsStore>();
    for one in store.iter() {
        let pass = one.path().as_str().strip_suffix("/elapsed_gpu");
        if let (Some(pass), Some(time)) = (pass, one.average()) {
            println!("  {pass}: {time:.3} ms");
        }
    }
    if let Some(path) = &cli.out {
        picture::request(stage.app.world_mut(), stage.target.clone());
        while !picture::is_there(stage.app.world()) {
            stage.frame()?;
        }
        picture::save(stage.app.world_mut(), path).map_err(|failure| anyhow!(failure.message))?;
    }
    Ok(())
}

struct Stage<'a> {
    app: App,
    cli: &'a Cli,
    camera: Entity,
    target: Handle<Image>,
    drawn: u32,
}

impl<'a> Stage<'a> {
    fn new(cli: &'a Cli, end: &CleanEnd) -> Result<Self> {
        let mut app = App::new();
        let log = offscreen::log_to_stderr("warn,wgpu_hal=error");
        offscreen::add_bevy(&mut app, end, log, true);
        app.add_plugins(RenderDiagnosticsPlugin)
            .insert_resource(ClearColor(Color::BLACK));
        match cli.peer {
            Peer::Bevy => app.add_plugins(MeshletPlugin {
                cluster_buffer_slots: SLOTS,
            }),
            Peer::Sets | Peer::Occlusion => app.add_plugins(GpuCullingPlugin::default()),
        };
        offscreen::start(&mut app);
        let features = app.world().resource::<RenderDevice>().features();
        let missing = MeshletPlugin::required_wgpu_features().difference(features);
        ensure!(
            cli.peer != Peer::Bevy || missing.is_empty(),
            "this adapter lacks what Bevy's meshlets need: {missing:?}"
        );
        let world = app.world_mut();
        let target = picture::target(UVec2::new(cli.width, cli.height));
        let target = world.resource_mut::<Assets<Image>>().add(target);
        let lens = PerspectiveProjection {
            far: SPACING * ops::cbrt(cli.count as f32),
            ..default()
        };
        let mut camera = world.spawn((
            Camera3d::default(),
            Msaa::Off,
            Projection::Perspective(lens),
            RenderTarget::Image(target.clone().into()),
        ));
        if cli.peer == Peer::Occlusion {
            camera.insert(InstanceOcclusion::default());
        }
        let camera = camera.id();
        let direction = Vec3::new(-0.5, -0.8, -0.6);
        world.spawn((
            DirectionalLight::default(),
            Transform::default().looking_to(direction, Vec3::Y),
        ));
        Ok(Self {
            app,
            cli,
            camera,
            target,
            drawn: 0,
        })
    }

    /// Adds the spheres, and draws until they have arrived.
    fn fill(&mut self) -> Result<()> {
        let sphere = Sphere::new(RADIUS).mesh().ico(CUTS)?;
        let set = InstanceSet::from_transforms(places(self.cli.count))?.sorted();
        let world = self.app.world_mut();
        let mut materials = world.resource_mut::<Assets<StandardMaterial>>();
        let material = MeshMaterial3d(materials.add(StandardMaterial {
            base_color: Color::srgb(0.55, 0.68, 0.85),
            perceptual_roughness: 0.6,
            ..default()
        }));
        if self.cli.peer == Peer::Bevy {
            let factor = MESHLET_DEFAULT_VERTEX_POSITION_QUANTIZATION_FACTOR;
            let mesh = BevyMeshletMesh::from_mesh(&sphere, factor)?;
            let mesh = world.resource_mut::<Assets<BevyMeshletMesh>>().add(mesh);
            let entities: Vec<_> = set
                .iter()
                .map(|instance| {
                    let place = Transform {
                        translation: instance.translation,
                        rotation: instance.rotation,
                        scale: instance.scale,
                    };
                    (BevyMeshletMesh3d(mesh.clone()), material.clone(), place)
                })
                .collect();
            world.spawn_batch(entities);
            for _ in 0..8 {
                self.frame()?;
            }
            return Ok(());
        }
        let settings = MeshletSettings {
            lods: Some(LodSettings::default()),
            ..default()
        };
        let mesh = MeshletMesh::from_mesh(&sphere, &settings)?;
        let mesh = world.resource_mut::<Assets<MeshletMesh>>().add(mesh);
        let set = world.resource_mut::<Assets<InstanceSet>>().add(set);
        world.spawn((MeshletMesh3d(mesh), material, GpuInstances(set)));
        let mut uploads = Uploads::default();
        for _ in 0..1000 {
            self.frame()?;
            if uploads.are_complete(self.app.world_mut()) {
                return Ok(());
            }
        }
        bail!("the set did not arrive within 1,000 frames")
    }

    /// Draws one frame, waits for the GPU, and returns the time in milliseconds.
    fn frame(&mut self) -> Result<f64> {
        let share = (self.drawn % self.cli.frames) as f32 / self.cli.frames as f32;
        self.drawn += 1;
        let mut camera = self.app.world_mut().entity_mut(self.camera);
        let mut place = (camera.get_mut::<Transform>()).ok_or_else(|| anyhow!("no camera"))?;
        place.rotation = Quat::from_rotation_y(share * TAU);
        end::frame(&mut self.app).map_err(|exit| match Failure::of_app(exit) {
            Some(failure) => anyhow!(failure.message),
            None => anyhow!("the app ended before its work was done"),
        })
    }

    fn warm_up(&mut self) -> Result<()> {
        let begin = Instant::now();
        let mut drawn = 0;
        while drawn < self.cli.warm_up || begin.elapsed() < BUSY {
            self.frame()?;
            drawn += u32::from(offscreen::pipelines_are_ready(&self.app));
        }
        Ok(())
    }

    /// Median time of the frames of one turn, in milliseconds.
    fn measure(&mut self) -> Result<f64> {
        let mut store = self.app.world_mut().resource_mut::<DiagnosticsStore>();
        store.iter_mut().for_each(|one| one.clear_history());
        self.drawn = 0;
        let times: Result<Vec<_>> = (0..self.cli.frames).map(|_| self.frame()).collect();
        let mut times = times?;
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    }
}

/// Random places in the cube.
fn places(count: u32) -> impl Iterator<Item = InstanceTransform> {
    let half = SPACING * ops::cbrt(count as f32) / 2.0;
    let mut dice = ChaCha8Rng::seed_from_u64(SEED);
    (0..count).map(move |_| {
        let mut unit = || dice.random_range(-1.0f32..1.0);
        InstanceTransform {
            translation: Vec3::new(unit(), unit(), unit()) * half,
            rotation: Quat::from_xyzw(unit(), unit(), unit(), 1.5).normalize(),
            ..default()
        }
    })
}
