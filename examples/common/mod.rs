//! What the small examples share: a window, or a picture with `--headless --out FILE.png`.
#![allow(
    dead_code,
    clippy::print_stdout,
    reason = "not every example uses every helper; one prints the time of frames"
)]

pub mod end;
mod offscreen;

use bevy::{
    app::TerminalCtrlCHandlerPlugin,
    camera::RenderTarget,
    log::LogPlugin,
    prelude::*,
    render::{
        render_resource::{TextureFormat, TextureUsages},
        view::screenshot::{Screenshot, ScreenshotCaptured},
    },
    time::TimeUpdateStrategy,
};
use bevy_gpu_culling::prelude::*;
use clap::Parser;
use end::CleanEnd;
use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

/// Flags of every example.
#[derive(Parser)]
struct Flags {
    /// Draw without a window
    #[arg(long, requires = "out")]
    headless: bool,
    /// File for the picture
    #[arg(long, value_name = "FILE.png")]
    out: Option<PathBuf>,
    /// Number of instances, in examples that let you choose
    #[arg(long, value_name = "N")]
    count: Option<u32>,
    /// Draw N more frames and print their median time
    #[arg(long, value_name = "N", requires_all = ["headless", "out"])]
    frames: Option<usize>,
    /// Draw a still version to compare with, in examples that have one
    #[arg(long)]
    still: bool,
}

/// The flag `--still`.
#[derive(Resource)]
pub struct Still(pub bool);

/// The flag `--count`.
#[derive(Resource)]
pub struct Count(Option<u32>);

impl Count {
    /// The number from the command line, or else `default`.
    pub fn or(&self, default: u32) -> u32 {
        self.0.unwrap_or(default)
    }
}

/// Assets that the picture waits for.
#[derive(Resource, Default)]
pub struct Awaited(pub Vec<UntypedHandle>);

/// Whether the example works in the background. The picture waits until it does not.
#[derive(Resource, Default)]
pub struct Busy(pub bool);

/// Frames that a run without a window draws and times before the picture.
#[derive(Resource, Default)]
pub struct Flight(pub usize);

/// Time from frame to frame without a window. The same picture then shows the same moment, however
/// long the frames take.
pub const STEP: Duration = Duration::from_micros(16_667);

/// Frames before the picture, once the assets are loaded: time for uploads and pipelines.
const FRAMES: u32 = 6;
/// The longest wait for assets and for work in the background.
const LOADING: Duration = Duration::from_secs(60);
/// The longest wait for the picture, in frames.
const PATIENCE: u32 = 60;

/// Runs an example. `setup` adds its scene.
pub fn run(setup: impl FnOnce(&mut App)) -> AppExit {
    let flags = Flags::parse();
    // Before the app, because it must be dropped after the app.
    let end = CleanEnd::new();
    let mut app = App::new();
    app.insert_resource(Count(flags.count));
    app.insert_resource(Still(flags.still));
    app.init_resource::<Awaited>()
        .init_resource::<Busy>()
        .init_resource::<Flight>();
    let Some(out) = flags.out.filter(|_| flags.headless) else {
        app.add_plugins((
            DefaultPlugins
                .build()
                .disable::<TerminalCtrlCHandlerPlugin>(),
            end.plugin(),
            GpuCullingPlugin::default(),
        ));
        setup(&mut app);
        return app.run();
    };
    offscreen::add_bevy(&mut app, &end, LogPlugin::default(), true);
    app.add_plugins(GpuCullingPlugin::default())
        .insert_resource(TimeUpdateStrategy::ManualDuration(STEP));
    setup(&mut app);
    offscreen::start(&mut app);
    match draw(&mut app, out, flags.frames) {
        Ok(()) => AppExit::Success,
        Err(exit) => exit,
    }
}

/// Draws the picture, then the frames to time. An error means that the app wants to end.
fn draw(app: &mut App, out: PathBuf, frames: Option<usize>) -> Result<(), AppExit> {
    picture(app, out)?;
    if let Some(frames) = frames {
        let [median, _] = frame_times(app, frames)?;
        println!("median frame: {median:.2} ms");
    }
    Ok(())
}

/// Median and longest time of a frame in milliseconds, including the GPU's part.
fn frame_times(app: &mut App, frames: usize) -> Result<[f64; 2], AppExit> {
    let mut times = (0..frames.max(1))
        .map(|_| end::frame(app))
        .collect::<Result<Vec<_>, _>>()?;
    times.sort_by(f64::total_cmp);
    Ok([times[times.len() / 2], times[times.len() - 1]])
}

/// Whether the picture was saved.
#[derive(Resource, Clone)]
struct Saved(Result<(), String>);

/// Makes every camera draw to an image, and saves it.
fn picture(app: &mut App, out: PathBuf) -> Result<(), AppExit> {
    let mut image = Image::new_target_texture(640, 360, TextureFormat::Rgba8UnormSrgb, None);
    image.texture_descriptor.usage |= TextureUsages::COPY_SRC;
    let target = app.world_mut().resource_mut::<Assets<Image>>().add(image);
    let shown = target.clone();
    app.add_systems(
        PostStartup,
        move |mut commands: Commands, cameras: Query<Entity, With<Camera>>| {
            for camera in &cameras {
                commands
                    .entity(camera)
                    .insert(RenderTarget::Image(shown.clone().into()));
            }
        },
    );
    load(app)?;
    let Flight(frames) = *app.world().resource();
    if frames > 0 {
        let [median, longest] = frame_times(app, frames)?;
        println!("{frames} frames: median {median:.1} ms, longest {longest:.1} ms");
        load(app)?;
    }
    for _ in 0..FRAMES {
        end::frame(app)?;
    }
    app.world_mut().spawn(Screenshot::image(target)).observe(
        move |captured: On<ScreenshotCaptured>, mut commands: Commands| {
            commands.insert_resource(Saved(save(captured.image.clone(), &out)));
        },
    );
    for _ in 0..PATIENCE {
        end::frame(app)?;
        match app.world().get_resource::<Saved>() {
            Some(Saved(Ok(()))) => return Ok(()),
            Some(Saved(Err(reason))) => {
                error!("{reason}");
                return Err(AppExit::error());
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    error!("the renderer gave no picture");
    Err(AppExit::error())
}

/// Draws until the assets that the picture needs are loaded, and the example is not busy.
fn load(app: &mut App) -> Result<(), AppExit> {
    let begin = Instant::now();
    loop {
        end::frame(app)?;
        let world = app.world();
        let (server, awaited) = (world.resource::<AssetServer>(), world.resource::<Awaited>());
        let is_loaded = |asset: &UntypedHandle| server.is_loaded_with_dependencies(asset);
        let Busy(is_busy) = world.resource::<Busy>();
        if !is_busy && awaited.0.iter().all(is_loaded) {
            return Ok(());
        }
        let failed = |asset: &UntypedHandle| server.load_state(asset).is_failed();
        if awaited.0.iter().any(failed) {
            // Bevy has logged the file and the error.
            error!(
                "no picture: start the example by cargo, or set BEVY_ASSET_ROOT to the crate's folder"
            );
            return Err(AppExit::error());
        }
        if begin.elapsed() > LOADING {
            error!(
                "assets are not loaded, or work in the background has not ended, after {LOADING:?}"
            );
            return Err(AppExit::error());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Writes the picture. A picture of few colors shows nothing and is an error.
fn save(image: Image, out: &std::path::Path) -> Result<(), String> {
    let picture = image
        .try_into_dynamic()
        .map_err(|error| error.to_string())?;
    let picture = picture.to_rgb8();
    let colors: std::collections::HashSet<_> = picture.pixels().collect();
    if colors.len() < 50 {
        return Err(format!("the picture has only {} colors", colors.len()));
    }
    picture
        .save(out)
        .map_err(|error| format!("{}: {error}", out.display()))
}

/// A square grid of `side` times `side` places, `step` apart, in gentle waves.
pub fn waves(side: u32, step: f32) -> impl Iterator<Item = Transform> {
    (0..side * side).map(move |i| {
        let place = Vec2::new((i % side) as f32, (i / side) as f32) - side as f32 / 2.0;
        let height = (place.x * 0.15).sin() + (place.y * 0.11).cos();
        Transform::from_xyz(place.x * step, height, place.y * step)
            .with_rotation(Quat::from_rotation_y(i as f32))
    })
}

/// A sun from the side, with or without shadows.
pub fn sun(shadow_maps_enabled: bool) -> impl Bundle {
    (
        DirectionalLight {
            shadow_maps_enabled,
            ..default()
        },
        Transform::default().looking_to(Vec3::new(1.0, -1.5, -0.7), Vec3::Y),
    )
}
