//! `cargo xtask test`: every test of the workspace.

use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context, Result};

use crate::project::{Project, cargo, exit_code};
use crate::setup::{self, Wants};

/// The engine alone, without Bevy. First, because it is the quickest to fail.
pub const ENGINE: &[&str] = &[
    "test",
    "--package",
    "bevy_gpu_culling",
    "--no-default-features",
    "--lib",
];

/// Everything, doc tests included.
pub const WORKSPACE: &[&str] = &["test", "--workspace"];

/// Flags of `cargo test` that choose what is tested.
const SELECTORS: [&str; 14] = [
    "--all-targets",
    "--bench",
    "--benches",
    "--bin",
    "--bins",
    "--doc",
    "--example",
    "--examples",
    "--exclude",
    "--lib",
    "--package",
    "--test",
    "--tests",
    "-p",
];

/// Makes sure of an adapter, then runs [`ENGINE`] and [`WORKSPACE`] with the caller's arguments;
/// returns the exit code of the first that fails.
pub fn run(project: &Project, arguments: &[OsString]) -> Result<i32> {
    let demo = project.build_demo()?;
    let wants = Wants {
        window: false,
        verbose: false,
    };
    setup::make_ready(&demo, wants)?;
    for suite in suites(arguments) {
        eprintln!("$ cargo {}", suite.join(" "));
        let mut command = Command::new(cargo());
        command.args(*suite).args(arguments);
        command.current_dir(&project.root);
        let code = exit_code(command.status().context("cargo test does not start")?);
        if code != 0 {
            return Ok(code);
        }
    }
    Ok(0)
}

/// Both suites, unless the caller chose a target, which the engine alone may not have.
fn suites(arguments: &[OsString]) -> &'static [&'static [&'static str]] {
    let chooses = |argument: &OsString| {
        let text = argument.to_string_lossy();
        SELECTORS.contains(&text.split('=').next().unwrap_or_default())
    };
    let mut for_cargo = arguments.iter().take_while(|argument| *argument != "--");
    if for_cargo.any(chooses) {
        &[WORKSPACE]
    } else {
        &[ENGINE, WORKSPACE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(line: &str) -> usize {
        let arguments: Vec<_> = line.split_whitespace().map(OsString::from).collect();
        suites(&arguments).len()
    }

    #[test]
    fn a_filter_goes_to_both_suites() {
        assert_eq!(count(""), 2);
        assert_eq!(count("vote"), 2);
        assert_eq!(count("-- --test-threads 1"), 2);
        assert_eq!(count("--release -- --test"), 2);
    }

    #[test]
    fn a_chosen_target_goes_to_the_workspace() {
        assert_eq!(count("--test layout"), 1);
        assert_eq!(count("--test=layout"), 1);
        assert_eq!(count("-p xtask"), 1);
        assert_eq!(count("--doc -- --nocapture"), 1);
    }
}
