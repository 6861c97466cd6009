//! `cargo xtask orbs`: the demo, in a window where there is a display.

use std::ffi::{OsStr, OsString};

use anyhow::{Context, Result};

use crate::project::{Project, exit_code};
use crate::setup::{self, Wants};

/// Builds the demo, makes it runnable, runs it and returns its exit code.
pub fn run(project: &Project, mut flags: Vec<OsString>) -> Result<i32> {
    let demo = project.build_demo()?;
    if !only_asks(&flags) {
        let headless = is_headless(&flags);
        let windowed = !headless && has_display();
        setup::make_ready(
            &demo,
            Wants {
                window: windowed,
                verbose: false,
            },
        )?;
        if !headless && !windowed {
            eprintln!(
                "No display (DISPLAY is not set; a Wayland session needs XWayland): adding --headless."
            );
            // In front, so that a `--` among the flags cannot hide it.
            flags.insert(0, "--headless".into());
            if !options(&flags).any(is_out) {
                eprintln!("No --out: the picture goes to orbs.png.");
                flags.splice(0..0, ["--out".into(), "orbs.png".into()]);
            }
        }
    }
    let status = demo
        .command()
        .args(&flags)
        .status()
        .context("the demo does not start")?;
    Ok(exit_code(status))
}

/// Whether a window can open here. Only Linux and its kin say so in the environment.
fn has_display() -> bool {
    let names_one = |variable| std::env::var_os(variable).is_some_and(|value| !value.is_empty());
    cfg!(any(windows, target_os = "macos")) || names_one("DISPLAY")
}

/// Whether the flags ask for a picture instead of a window.
fn is_headless(flags: &[OsString]) -> bool {
    options(flags).any(|flag| flag == "--headless")
}

/// Whether the flag says where the picture goes.
fn is_out(flag: &OsStr) -> bool {
    flag == "--out" || flag.to_string_lossy().starts_with("--out=")
}

/// Whether the flags only ask the demo something that needs no adapter.
fn only_asks(flags: &[OsString]) -> bool {
    options(flags).any(|flag| {
        ["--help", "-h", "--version", "-V", "--probe"]
            .iter()
            .any(|ask| flag == *ask)
    })
}

/// What stands before a `--`.
fn options(flags: &[OsString]) -> impl Iterator<Item = &OsStr> {
    flags
        .iter()
        .map(OsString::as_os_str)
        .take_while(|flag| *flag != "--")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn headless_is_seen_among_the_flags() {
        assert!(is_headless(&flags("--count 5 --headless")));
        assert!(!is_headless(&flags("--count 5")));
        assert!(!is_headless(&flags("--count 5 -- --headless")));
    }

    #[test]
    fn the_pictures_place_is_seen_in_both_spellings() {
        let says_where = |line: &str| options(&flags(line)).any(is_out);
        assert!(says_where("--count 5 --out a.png") && says_where("--out=a.png"));
        assert!(!says_where("--count 5 -- --out a.png"));
    }

    #[test]
    fn questions_need_no_adapter() {
        assert!(only_asks(&flags("--help")));
        assert!(only_asks(&flags("--count 5 -h")));
        assert!(!only_asks(&flags("--headless --out help.png")));
    }
}
