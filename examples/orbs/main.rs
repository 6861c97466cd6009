//! A field of orbs, culled on the GPU: in a window to fly through, or headless with a picture and a
//! report.
//!
//! `cargo xtask orbs` does the set-up that a machine needs, then runs it; `--help` lists the flags.
//! It needs two features: `cargo run --example orbs --features meshlets,overlay`.
//!
//! * `cli`: the flags.
//! * `field`: the places of the orbs, as pure data.
//! * `look`: meshes, materials, sky, lights and camera.
//! * `scene`: the field in the world, as instance sets or as one entity per orb.
//! * `freeze`: frozen culling while the camera flies on.
//! * `windowed`, `help`: keys and on-screen text.
//! * `headless`, `picture`, `report`: frames without a window, the PNG file, the table and the JSON
//!   line.
//! * `upload`: how fast a field streams to the GPU. `zoom`: fields of view that see a given number
//!   of orbs.
//! * `adapters`: the adapters.
//! * `end`: a clean end, shared with the small examples.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool talks by printing"
)]

mod adapters;
mod cli;
#[path = "../common/end.rs"]
mod end;
mod field;
mod freeze;
mod headless;
mod help;
mod look;
mod picture;
mod report;
mod scene;
mod upload;
mod windowed;
mod zoom;

use bevy::{
    log::{BoxedFmtLayer, LogPlugin, tracing_subscriber},
    prelude::*,
};
use clap::Parser;
use cli::Cli;
use end::CleanEnd;
use std::{io::IsTerminal, process::ExitCode};

/// A failure: a message for people, and the exit code.
#[derive(Debug)]
struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// The work failed or its check did.
    const WORK: u8 = 1;
    /// The flags ask for something that cannot be done.
    const USAGE: u8 = 2;
    /// There is no adapter.
    const NO_ADAPTER: u8 = 3;
    /// Ctrl-C.
    const INTERRUPTED: u8 = end::INTERRUPTED;

    fn new(code: u8, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// The failure that the app's exit stands for; `None` if it ended well.
    fn of_app(exit: AppExit) -> Option<Self> {
        let AppExit::Error(code) = exit else {
            return None;
        };
        let message = if code.get() == Self::INTERRUPTED {
            "interrupted"
        } else {
            "the app ended with an error: the log says which"
        };
        Some(Self::new(code.get(), message))
    }
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // The user typed Ctrl-C and needs no message.
            if failure.code != Failure::INTERRUPTED {
                eprintln!("error: {}", failure.message);
            }
            ExitCode::from(failure.code)
        }
    }
}

fn run(cli: &Cli) -> Result<(), Failure> {
    // First, because it answers Ctrl-C, and because it must be dropped after the app.
    let end = CleanEnd::new();
    if cli.probe {
        return adapters::list();
    }
    cli.check()?;
    adapters::require_one()?;
    if cli.headless {
        headless::run(cli, &end)
    } else {
        windowed::run(cli, &end)
    }
}

/// Logs warnings, and what the plugin says of itself, to stderr; stdout is for the report.
/// `RUST_LOG` overrides the filter.
fn log_plugin() -> LogPlugin {
    LogPlugin {
        // `wgpu_hal=error` hides the Vulkan loader's warnings about drivers that it skipped.
        filter: "warn,bevy_gpu_culling=info,orbs=info,wgpu_hal=error".into(),
        fmt_layer: |_| -> Option<BoxedFmtLayer> {
            let layer = tracing_subscriber::fmt::Layer::default().with_writer(std::io::stderr);
            Some(Box::new(layer.with_ansi(std::io::stderr().is_terminal())))
        },
        ..default()
    }
}
