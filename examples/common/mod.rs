//! What the small examples share: a window, or with `--headless --out FILE.png` a picture.
#![allow(
    dead_code,
    clippy::print_stdout,
    reason = "not every example uses every helper; one says how long frames take"
)]

pub mod end;

use bevy::{
    app::{PluginsState, TerminalCtrlCHandlerPlugin},
    camera::RenderTarget,
    prelude::*,
    render::{
        RenderPlugin,
        pipelined_rendering::PipelinedRenderingPlugin,
        render_resource::{TextureFormat, TextureUsages},
        view::screenshot::{Screenshot, ScreenshotCaptured},
    },
    window::ExitCondition,
    winit::WinitPlugin,
};
use bevy_gpu_culling::prelude::*;
use clap::Parser;
use end::CleanEnd;
use std::path::PathBuf;

/// Flags of every example.
#[derive(Parser)]
struct Flags {
    /// Draw without a window
    #[arg(long, requires = "out")]
    headless: bool,
    /// Where the picture goes
    #[arg(long, value_name = "FILE.png")]
    out: Option<PathBuf>,
    /// How many instances, where the example lets one choose
    #[arg(long, value_name = "N")]
    count: Option<u32>,
    /// Times so many frames, and says their median
    #[arg(long, value_name = "N", requires_all = ["headless", "out"])]
    frames: Option<usize>,
    /// Nothing moves, where the example has a still form to compare with
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
    /// As many as asked for, or `most` if nobody asked.
    pub fn or(&self, most: u32) -> u32 {
        self.0.unwrap_or(most)
    }
}

/// Frames before the picture: time for assets and pipelines.
const FRAMES: u32 = 6;
/// Frames that the picture may take to arrive.
const PATIENCE: u32 = 60;

/// Runs an example: `setup` adds what it shows.
pub fn run(setup: impl FnOnce(&mut App)) -> AppExit {
    let flags = Flags::parse();
    // Before the app, because it must be dropped after the app.
    let end = CleanEnd::new();
    let mut app = App::new();
    app.insert_resource(Count(flags.count));
    app.insert_resource(Still(flags.still));
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
    app.add_plugins((
        DefaultPlugins
            .set(WindowPlugin {
                primary_window: None,
                exit_condition: ExitCondition::DontExit,
                ..default()
            })
            .set(RenderPlugin {
                synchronous_pipeline_compilation: true,
                ..default()
            })
            .disable::<TerminalCtrlCHandlerPlugin>()
            .disable::<PipelinedRenderingPlugin>()
            .disable::<WinitPlugin>(),
        end.plugin(),
        GpuCullingPlugin::default(),
    ));
    setup(&mut app);
    while app.plugins_state() == PluginsState::Adding {
        bevy::tasks::tick_global_task_pools_on_main_thread();
    }
    app.finish();
    app.cleanup();
    match draw(&mut app, out, flags.frames) {
        Ok(()) => AppExit::Success,
        Err(exit) => exit,
    }
}

/// Draws the picture, then the frames to time; an error says that the app wants to end.
fn draw(app: &mut App, out: PathBuf, frames: Option<usize>) -> Result<(), AppExit> {
    picture(app, out)?;
    if let Some(frames) = frames {
        println!("median frame: {:.2} ms", median_frame(app, frames)?);
    }
    Ok(())
}

/// Milliseconds of a frame, until the GPU is done with it.
fn median_frame(app: &mut App, frames: usize) -> Result<f64, AppExit> {
    let mut times = (0..frames.max(1))
        .map(|_| end::frame(app))
        .collect::<Result<Vec<_>, _>>()?;
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// What came of the picture.
#[derive(Resource, Clone)]
struct Saved(Result<(), String>);

/// Points every camera at an image, draws, and saves it.
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
            None => std::thread::sleep(core::time::Duration::from_millis(5)),
        }
    }
    error!("the renderer gave no picture");
    Err(AppExit::error())
}

/// Writes a picture that shows something.
fn save(image: Image, out: &std::path::Path) -> Result<(), String> {
    let picture = image
        .try_into_dynamic()
        .map_err(|error| error.to_string())?;
    let picture = picture.to_rgb8();
    let colours: std::collections::HashSet<_> = picture.pixels().collect();
    if colours.len() < 50 {
        return Err(format!("the picture has only {} colours", colours.len()));
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

/// A sun from the side; with shadows or without.
pub fn sun(shadow_maps_enabled: bool) -> impl Bundle {
    (
        DirectionalLight {
            shadow_maps_enabled,
            ..default()
        },
        Transform::default().looking_to(Vec3::new(1.0, -1.5, -0.7), Vec3::Y),
    )
}
