//! `cargo xtask soak`: random apps against the CPU twin and Bevy's entities, for as long as asked.

use anyhow::{Context, Result};

use crate::project::{EVERY_FEATURE, Project, exit_code};
use crate::setup::{self, Wants};

/// Tries random apps from this seed on; returns the exit code of the test.
pub fn run(project: &Project, minutes: f64, seed: u64) -> Result<i32> {
    let demo = project.build_demo()?;
    let wants = Wants {
        window: false,
        verbose: false,
    };
    setup::make_ready(&demo, wants)?;
    let mut command = project.cargo();
    command
        .args(["test", "--workspace", EVERY_FEATURE, "--test", "picture"])
        .args(["soak::", "--", "--nocapture"])
        .env("SOAK_MINUTES", minutes.to_string())
        .env("SOAK_SEED", seed.to_string());
    let status = command.status().context("cargo test does not start")?;
    Ok(exit_code(status))
}
