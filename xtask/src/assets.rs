//! `cargo xtask assets`: the files that the examples load.

use anyhow::{Context, Result};

use crate::project::{EVERY_FEATURE, Project, exit_code};

/// Runs the generator, which is a test that also compares, and returns its exit code.
pub fn run(project: &Project) -> Result<i32> {
    let mut command = project.cargo();
    command
        .args(["test", "--workspace", EVERY_FEATURE, "--test", "app"])
        // Not the tests that load the files meanwhile.
        .arg("is_what_is_generated")
        .env("UPDATE_ASSETS", "1");
    let status = command.status().context("cargo test does not start")?;
    Ok(exit_code(status))
}
