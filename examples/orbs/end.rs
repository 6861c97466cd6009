//! A clean end, whatever the app is doing.
//!
//! Without it, two things may go wrong. When `main` returns, the process runs the exit handlers of
//! the GPU driver, and a thread that still compiles a pipeline crashes inside the driver. And wgpu
//! panics if the GPU has not finished its work a few seconds after the last handle was dropped.
//! [`CleanEnd`] outlives the app and waits for both. It also answers Ctrl-C.

#![allow(
    clippy::print_stderr,
    reason = "there is no log yet when the handler is set"
)]

use bevy::{
    app::ctrlc,
    prelude::*,
    render::{
        render_resource::PollType,
        renderer::{RenderDevice, RenderQueue},
    },
};
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tasks::background_tasks_end;

#[path = "tasks.rs"]
mod tasks;

/// The exit code after Ctrl-C, by the shells' convention: 128 + SIGINT.
pub const INTERRUPTED: u8 = 130;

/// The longest wait for background tasks. A pipeline takes seconds at most.
const PATIENCE: Duration = Duration::from_secs(30);

/// The time that the app has to end by itself after Ctrl-C. A software adapter may draw one frame
/// for longer.
const GRACE: Duration = Duration::from_secs(5);

/// Whether Ctrl-C was typed.
static CTRL_C: AtomicBool = AtomicBool::new(false);

/// The GPU's handles.
type Gpu = (RenderDevice, RenderQueue);

/// Declare it before the app, so that it is dropped after the app, and add its [`plugin`].
///
/// [`plugin`]: Self::plugin
pub struct CleanEnd {
    /// Keeps wgpu's queue alive until the GPU is idle.
    gpu: Arc<OnceLock<Gpu>>,
}

impl CleanEnd {
    /// Handles Ctrl-C from now on: the app ends after its current frame. If that takes too long, or
    /// at the second Ctrl-C, the process ends at once.
    pub fn new() -> Self {
        let answer = || {
            if CTRL_C.swap(true, Ordering::Relaxed) {
                end_at_once();
            }
            std::thread::spawn(|| {
                std::thread::sleep(GRACE);
                end_at_once();
            });
        };
        if let Err(error) = ctrlc::set_handler(answer) {
            eprintln!("Ctrl-C will end the process at once: {error}");
        }
        Self {
            gpu: Arc::default(),
        }
    }

    /// The plugin that takes the GPU's handles and passes Ctrl-C on to the app. It replaces Bevy's
    /// `TerminalCtrlCHandlerPlugin`.
    pub fn plugin(&self) -> impl Plugin + use<> {
        EndPlugin(Arc::clone(&self.gpu))
    }
}

impl Drop for CleanEnd {
    fn drop(&mut self) {
        let Some((device, _)) = self.gpu.get() else {
            return;
        };
        // The app canceled its pipelines, but those that had begun are still being compiled.
        if !background_tasks_end(PATIENCE) {
            warn!("background tasks still run after {PATIENCE:?}");
        }
        // For a lost device there is nothing to wait for.
        let _ = device.poll(PollType::wait_indefinitely());
    }
}

struct EndPlugin(Arc<OnceLock<Gpu>>);

impl Plugin for EndPlugin {
    fn build(&self, app: &mut App) {
        app.add_systems(Update, exit_on_ctrl_c);
    }

    /// The renderer exists only after `finish`.
    fn cleanup(&self, app: &mut App) {
        let world = app.world();
        if let (Some(device), Some(queue)) = (
            world.get_resource::<RenderDevice>(),
            world.get_resource::<RenderQueue>(),
        ) {
            let _ = self.0.set((device.clone(), queue.clone()));
        }
    }
}

fn exit_on_ctrl_c(mut exit: MessageWriter<AppExit>) {
    if CTRL_C.load(Ordering::Relaxed) {
        exit.write(AppExit::from_code(INTERRUPTED));
    }
}

/// Draws one frame, waits for the GPU, and returns the time in milliseconds: no frame is in flight
/// afterwards. An error says that the app wants to end.
pub fn frame(app: &mut App) -> Result<f64, AppExit> {
    // The first frame may take seconds. An early Ctrl-C does not wait for it.
    if CTRL_C.load(Ordering::Relaxed) {
        return Err(AppExit::from_code(INTERRUPTED));
    }
    let start = Instant::now();
    app.update();
    let device = app.world().resource::<RenderDevice>();
    if let Err(error) = device.poll(PollType::wait_indefinitely()) {
        warn!("the GPU did not finish the frame: {error}");
    }
    let time = start.elapsed();
    match app.should_exit() {
        Some(exit) => Err(exit),
        None => Ok(time.as_secs_f64() * 1000.0),
    }
}

/// Ends the process with the exit code of Ctrl-C, whatever its other threads do.
fn end_at_once() -> ! {
    // `exit` would run the driver's exit handlers while other threads are inside the driver.
    // Another program in the place of this one ends all threads first.
    #[cfg(unix)]
    let _ = std::os::unix::process::CommandExt::exec(
        std::process::Command::new("sh").args(["-c", &format!("exit {INTERRUPTED}")]),
    );
    std::process::exit(INTERRUPTED.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bevy::tasks::{AsyncComputeTaskPool, TaskPool};
    use std::sync::mpsc;

    #[test]
    fn the_end_waits_for_tasks_that_have_begun() {
        let pool = AsyncComputeTaskPool::get_or_init(TaskPool::new);
        let (begin, begun) = mpsc::channel();
        let done = Arc::new(AtomicBool::new(false));
        let task_done = Arc::clone(&done);
        let task = pool.spawn(async move {
            let _ = begin.send(());
            std::thread::sleep(Duration::from_millis(300));
            task_done.store(true, Ordering::Relaxed);
        });
        begun.recv().expect("the task begins");
        // As the app does with its pipelines.
        drop(task);
        assert!(!background_tasks_end(Duration::from_millis(20)));
        assert!(!done.load(Ordering::Relaxed));
        assert!(background_tasks_end(PATIENCE));
        assert!(done.load(Ordering::Relaxed));
    }
}
