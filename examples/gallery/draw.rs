//! From an empty app to the picture of an example.

use crate::{
    Example, Still,
    end::{self, CleanEnd},
    offscreen,
};
use bevy::{
    asset::{UntypedAssetId, UntypedAssetLoadFailedEvent},
    camera::RenderTarget,
    diagnostic::FrameCount,
    log::LogPlugin,
    prelude::*,
    render::{
        render_resource::{TextureFormat, TextureUsages},
        view::screenshot::{Screenshot, ScreenshotCaptured},
    },
    time::TimeUpdateStrategy,
    window::{PrimaryWindow, WindowResolution},
};
use bevy_gpu_culling::prelude::*;
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Time from frame to frame. The same picture then shows the same moment, however long the frames
/// take.
const STEP: Duration = Duration::from_micros(16_667);
/// Frames in a row after which everything is there. What a frame begins, the next one may still
/// wait for.
const SETTLED: u32 = 3;
/// Frames that move before the picture.
const FRAMES: u32 = 6;
/// The longest wait for assets and for work in the background.
const LOADING: Duration = Duration::from_secs(60);
/// The longest wait for the picture, in frames.
const PATIENCE: u32 = 60;
/// The least number of colors of a picture that shows something.
const COLORS: usize = 50;

/// What is drawn besides the example's own scene.
pub struct Order {
    /// File for the picture.
    pub out: PathBuf,
    /// Width and height of the picture in pixels.
    pub size: UVec2,
    /// Number of frames that are timed after the picture.
    pub frames: usize,
}

/// Draws an example, or its still version.
pub fn run(example: &Example, still: Option<Still>, order: Order) -> AppExit {
    // Before the app, because it must be dropped after the app.
    let end = CleanEnd::new();
    let mut app = App::new();
    offscreen::add_bevy(&mut app, &end, LogPlugin::default(), true);
    app.add_plugins((GpuCullingPlugin::default(), example.scene))
        .init_resource::<Partial>()
        .add_systems(Last, follow_uploads);
    if let Some((count, set)) = example.count {
        set(&mut app, count);
    }
    if let Some(still) = still {
        (still.change)(&mut app);
    }
    let target = redirect(&mut app, order.size);
    offscreen::start(&mut app);
    let mut stage = Stage {
        app,
        is_ready: still.map_or(example.is_ready, |still| still.is_ready),
    };
    match stage.draw(example.flight, target, order) {
        Ok(()) => AppExit::Success,
        Err(exit) => exit,
    }
}

/// Makes every camera draw to an image, which is returned.
fn redirect(app: &mut App, size: UVec2) -> Handle<Image> {
    let mut image = Image::new_target_texture(size.x, size.y, TextureFormat::Rgba8UnormSrgb, None);
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
    // Nothing shows this window. It tells the examples its size and the place of the cursor.
    let mut window = Window {
        resolution: WindowResolution::new(size.x, size.y),
        ..default()
    };
    window.set_cursor_position(Some(size.as_vec2() / 2.0));
    app.world_mut().spawn((window, PrimaryWindow));
    target
}

/// Sets of which the GPU has only a part.
#[derive(Resource, Default)]
struct Partial(HashSet<AssetId<InstanceSet>>);

fn follow_uploads(
    mut progress: MessageReader<InstanceUploadProgress>,
    mut partial: ResMut<Partial>,
) {
    for progress in progress.read() {
        if progress.is_complete() {
            partial.0.remove(&progress.set);
        } else {
            partial.0.insert(progress.set);
        }
    }
}

/// The app on its way to the picture.
struct Stage {
    app: App,
    /// Whether the work that only the example knows of is done.
    is_ready: fn(&mut World) -> bool,
}

/// Whether the picture was saved.
#[derive(Resource, Clone)]
struct Saved(Result<(), String>);

/// Errors say that the app wants to end.
impl Stage {
    /// Draws everything: the flight, the picture, and the frames to time.
    fn draw(&mut self, flight: usize, target: Handle<Image>, order: Order) -> Result<(), AppExit> {
        // Loading takes any number of frames, so the clock stands still meanwhile.
        self.set_step(Duration::ZERO);
        self.load()?;
        self.set_step(STEP);
        // Bevy's motion blur has other noise in each frame.
        self.app.insert_resource(FrameCount(1));
        if flight > 0 {
            println!("flight: {}", self.frame_times(flight)?);
            self.set_step(Duration::ZERO);
            self.load()?;
        }
        for _ in 0..FRAMES {
            end::frame(&mut self.app)?;
        }
        self.save(target, order.out)?;
        if order.frames > 0 {
            println!("{}", self.frame_times(order.frames)?);
        }
        Ok(())
    }

    fn set_step(&mut self, step: Duration) {
        let strategy = TimeUpdateStrategy::ManualDuration(step);
        self.app.insert_resource(strategy);
    }

    /// Draws frames and says how long they took, including the GPU's part.
    fn frame_times(&mut self, frames: usize) -> Result<String, AppExit> {
        let mut times = (0..frames)
            .map(|_| end::frame(&mut self.app))
            .collect::<Result<Vec<_>, _>>()?;
        times.sort_by(f64::total_cmp);
        let [median, slow, longest] = [50, 99, 100].map(|percent| {
            let rank = (times.len() * percent).div_ceil(100).max(1);
            times[rank - 1]
        });
        Ok(format!(
            "{frames} frames, median {median:.2} ms, 99 % within {slow:.2} ms, longest {longest:.2} ms"
        ))
    }

    /// Draws until everything that the picture needs is there.
    fn load(&mut self) -> Result<(), AppExit> {
        let begin = Instant::now();
        let mut settled = 0;
        while settled < SETTLED {
            end::frame(&mut self.app)?;
            let failures: &Messages<UntypedAssetLoadFailedEvent> = self.app.world().resource();
            if !failures.is_empty() {
                // Bevy has logged the file and the error.
                error!(
                    "no picture: start the gallery by cargo, or set BEVY_ASSET_ROOT to the crate's \
                     folder"
                );
                return Err(AppExit::error());
            }
            if self.is_settled() {
                settled += 1;
                continue;
            }
            settled = 0;
            if begin.elapsed() > LOADING {
                error!(
                    "assets are not loaded, or work in the background has not ended, after \
                     {LOADING:?}"
                );
                return Err(AppExit::error());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn is_settled(&mut self) -> bool {
        offscreen::pipelines_are_ready(&self.app)
            && is_loaded(self.app.world_mut())
            && (self.is_ready)(self.app.world_mut())
    }

    /// Saves the next frame.
    fn save(&mut self, target: Handle<Image>, out: PathBuf) -> Result<(), AppExit> {
        let shot = Screenshot::image(target);
        self.app.world_mut().spawn(shot).observe(
            move |captured: On<ScreenshotCaptured>, mut commands: Commands| {
                commands.insert_resource(Saved(write(captured.image.clone(), &out)));
            },
        );
        for _ in 0..PATIENCE {
            end::frame(&mut self.app)?;
            match self.app.world().get_resource::<Saved>() {
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
}

/// What entities draw and may come from a file.
fn assets(world: &mut World) -> Vec<UntypedAssetId> {
    let mut entities = world.query::<AnyOf<(&GpuInstances, &MeshletMesh3d, &InstanceScene)>>();
    let assets = entities.iter(world).flat_map(|(set, mesh, scene)| {
        [
            set.map(|set| set.id().untyped()),
            mesh.map(|mesh| mesh.0.id().untyped()),
            scene.map(|scene| scene.0.id().untyped()),
        ]
    });
    assets.flatten().collect()
}

/// Whether files are loaded, sets are on the GPU, scenes are spawned, and levels of detail are
/// built.
fn is_loaded(world: &mut World) -> bool {
    let assets = assets(world);
    let server = world.resource::<AssetServer>();
    // The server knows nothing of assets that an example made itself.
    let is_there = |asset: UntypedAssetId| {
        server.get_load_state(asset).is_none() || server.is_loaded_with_dependencies(asset)
    };
    let are_there = assets.into_iter().all(is_there);
    let mut spawning = world.query_filtered::<(), (With<InstanceScene>, Without<Children>)>();
    let mut building = world.query_filtered::<(), With<BuildLods>>();
    let mut sets = world.query::<&GpuInstances>();
    let Partial(partial) = world.resource();
    let have_arrived = sets.iter(world).all(|set| !partial.contains(&set.id()));
    let are_spawned = spawning.iter(world).next().is_none();
    are_there && have_arrived && are_spawned && building.iter(world).next().is_none()
}

/// Writes the picture. A picture of few colors shows nothing and is an error.
fn write(image: Image, out: &Path) -> Result<(), String> {
    let picture = image
        .try_into_dynamic()
        .map_err(|error| error.to_string())?;
    let picture = picture.to_rgb8();
    let colors: HashSet<_> = picture.pixels().collect();
    if colors.len() < COLORS {
        return Err(format!("the picture has only {} colors", colors.len()));
    }
    picture
        .save(out)
        .map_err(|error| format!("{}: {error}", out.display()))
}
