//! The window.

use super::{Failure, cli::Cli, end::CleanEnd, fly, log_plugin, scene::Field};
use bevy::{
    app::TerminalCtrlCHandlerPlugin,
    input::common_conditions::input_just_pressed,
    prelude::*,
    window::{PresentMode, WindowResolution},
};

/// Opens the window and returns when it is closed.
pub fn run(cli: &Cli, end: &CleanEnd) -> Result<(), Failure> {
    require_display()?;
    let field = Field::new(cli);
    let sets = field
        .generate()
        .map_err(|error| Failure::new(Failure::WORK, error.to_string()))?;

    let window = WindowPlugin {
        primary_window: Some(Window {
            title: "orbs: bevy_gpu_culling".into(),
            resolution: WindowResolution::new(cli.size.x, cli.size.y),
            // The overlay shows the cost of a frame, not the wait for the display.
            present_mode: PresentMode::AutoNoVsync,
            ..default()
        }),
        ..default()
    };
    let mut app = App::new();
    app.add_plugins(
        DefaultPlugins
            .set(log_plugin())
            .set(window)
            .disable::<TerminalCtrlCHandlerPlugin>(),
    )
    .add_plugins(end.plugin())
    .add_systems(Update, quit.run_if(input_just_pressed(KeyCode::Escape)));
    fly::add(&mut app, cli, field, sets);
    Failure::of_app(app.run()).map_or(Ok(()), Err)
}

/// An error that names the remedy if there is no display. winit would panic.
fn require_display() -> Result<(), Failure> {
    let names_one = std::env::var_os("DISPLAY").is_some_and(|display| !display.is_empty());
    if cfg!(any(windows, target_os = "macos")) || names_one {
        return Ok(());
    }
    Err(Failure::new(
        Failure::USAGE,
        "no X11 display (DISPLAY is not set): add --headless to draw into a picture",
    ))
}

fn quit(mut exit: MessageWriter<AppExit>) {
    exit.write(AppExit::Success);
}
