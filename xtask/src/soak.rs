//! `cargo xtask soak`: random apps against the CPU twin and Bevy's entities, for as long as asked.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::project::{EVERY_FEATURE, Project, exit_code};
use crate::setup::{self, Wants};
use crate::steps::Outcome;

/// For how long CI tries apps, in minutes.
const CI_MINUTES: f64 = 5.0;

/// Tries random apps from this seed on; returns the exit code of the test.
pub fn run(project: &Project, minutes: f64, seed: u64) -> Result<i32> {
    let demo = project.build_demo()?;
    let wants = Wants {
        window: false,
        verbose: false,
    };
    setup::make_ready(&demo, wants)?;
    soak(&mut command(project, minutes, seed))
}

/// Tries random apps for some minutes: on GitHub, others in each run.
pub fn check(project: &Project, variable: (&str, &str)) -> Result<Outcome> {
    let run = std::env::var("GITHUB_RUN_NUMBER");
    let run: u64 = run.ok().and_then(|run| run.parse().ok()).unwrap_or(0);
    let seed = run * 100;
    println!("{CI_MINUTES} minutes from seed {seed} on");
    let mut command = command(project, CI_MINUTES, seed);
    let code = soak(command.env(variable.0, variable.1))?;
    ensure!(code == 0, "an app is wrong: its acts are above");
    Ok(Outcome::Passed)
}

/// The test that tries random apps.
fn command(project: &Project, minutes: f64, seed: u64) -> Command {
    let mut command = project.cargo();
    command
        .args(["test", "--workspace", EVERY_FEATURE, "--test", "picture"])
        .args(["soak::", "--", "--nocapture"])
        .env("SOAK_MINUTES", minutes.to_string())
        .env("SOAK_SEED", seed.to_string());
    command
}

fn soak(command: &mut Command) -> Result<i32> {
    let status = command.status().context("cargo test does not start")?;
    Ok(exit_code(status))
}
