//! A field of orbs, culled on the GPU: in a window to fly through, or headless with a picture and a
//! report.
//!
//! `cargo xtask orbs` does the set-up that a machine needs, then runs it; `--help` lists the flags.
//! It needs four features: `cargo run --example orbs --features gizmos,meshlets,overlay,study`.
//!
//! * `cli`: the flags.
//! * `field`: the places of the orbs, as pure data.
//! * `look`: meshes, materials, sky, lights and camera.
//! * `scene`: the field in the world, as instance sets or as one entity per orb.
//! * `freeze`: frozen culling while the camera flies on.
//! * `fly`, `help`, `windowed`: keys, on-screen text, and the window.
//! * `headless`, `picture`, `report`: frames without a window, the PNG file, the table and the JSON
//!   line.
//! * `upload`: how fast a field streams to the GPU. `zoom`: fields of view that see a given number
//!   of orbs.
//! * `adapters`: the adapters.
//! * `end`, `offscreen`: a clean end, and an app without a window; shared with the gallery of the
//!   small examples and with the benchmarks.
//! * `failure`: messages and exit codes.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool talks by printing"
)]

mod adapters;
mod cli;
mod end;
mod failure;
mod field;
mod fly;
mod freeze;
mod headless;
mod help;
mod look;
mod offscreen;
mod picture;
mod report;
mod scene;
mod upload;
mod windowed;
mod zoom;

use bevy::log::LogPlugin;
use clap::Parser;
use cli::Cli;
use end::CleanEnd;
use failure::Failure;
use std::process::ExitCode;

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
    cli.check()
        .map_err(|reason| Failure::new(Failure::USAGE, reason))?;
    cli.out.as_deref().map_or(Ok(()), picture::check_writable)?;
    adapters::require_one()?;
    if cli.headless {
        headless::run(cli, &end)
    } else {
        windowed::run(cli, &end)
    }
}

/// Logs warnings, and what the plugin says of itself.
fn log_plugin() -> LogPlugin {
    // `wgpu_hal=error` hides the Vulkan loader's warnings about drivers that it skipped.
    offscreen::log_to_stderr("warn,bevy_gpu_culling=info,orbs=info,wgpu_hal=error")
}
