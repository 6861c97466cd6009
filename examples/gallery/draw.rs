//! From an empty app to the picture of an example.

use crate::{
    end::{self, CleanEnd},
    list::{Example, Still},
    offscreen,
    stage::{COLORS, FRAMES, SETTLED, STEP, is_loaded, redirect},
};
use bevy::{
    asset::UntypedAssetLoadFailedEvent,
    diagnostic::FrameCount,
    log::LogPlugin,
    prelude::*,
    render::view::screenshot::{Screenshot, ScreenshotCaptured},
    time::TimeUpdateStrategy,
};
use bevy_gpu_culling::prelude::*;
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// The longest wait for assets and for work in the background.
const LOADING: Duration = Duration::from_secs(60);
/// The longest wait for the picture, in frames.
const PATIENCE: u32 = 60;

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
    app.add_plugins((GpuCullingPlugin::default(), example.scene));
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
