//! `cargo xtask orbs`: the demo, in a window if there is a display.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::INTERRUPTED;
use crate::journal::Journal;
use crate::project::{Demo, Project, exit_code};
use crate::setup::{self, Wants};

/// Builds the demo, makes it runnable, runs it and returns its exit code.
pub fn run(project: &Project, mut flags: Vec<OsString>) -> Result<i32> {
    let journal = Journal::begin();
    let run = |demo: &Demo, flags: &[OsString]| {
        let status = demo.command().args(flags).status();
        Ok(exit_code(status.context("the demo does not start")?))
    };
    if only_asks(&flags) {
        return run(&project.build_demo()?, &flags);
    }
    let demo = journal.step("build", || project.build_demo(), ToString::to_string)?;
    let headless = is_headless(&flags);
    let wants = Wants {
        window: !headless && has_display(),
        verbose: false,
    };
    let adapters = || setup::make_ready(&demo, wants);
    journal.step("adapter", adapters, |names| names.join(", "))?;
    if !headless && !wants.window {
        eprintln!(
            "No display (DISPLAY is not set; a Wayland session needs XWayland): the demo draws a \
             picture."
        );
        // In front, so that a `--` among the flags cannot hide it.
        flags.insert(0, "--headless".into());
        if picture(&flags).is_none() {
            flags.splice(0..0, ["--out".into(), "orbs.png".into()]);
        }
    }
    eprintln!();
    let code = run(&demo, &flags)?;
    eprintln!();
    journal.end(&ending(code, picture(&flags).as_deref()));
    Ok(code)
}

/// How the demo ended, and the path of its picture.
fn ending(code: i32, picture: Option<&Path>) -> String {
    match (code, picture) {
        (0, None) => String::new(),
        (0, Some(picture)) => {
            let place = std::path::absolute(picture);
            let place = place.as_deref().unwrap_or(picture);
            format!("the picture is {}", place.display())
        }
        (INTERRUPTED, _) => "ended by Ctrl-C".into(),
        (code, _) => format!("the demo FAILED with exit code {code}"),
    }
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

/// Where the flags put the picture.
fn picture(flags: &[OsString]) -> Option<PathBuf> {
    let mut flags = options(flags);
    while let Some(flag) = flags.next() {
        if flag == "--out" {
            return flags.next().map(PathBuf::from);
        }
        if let Some(path) = flag.to_string_lossy().strip_prefix("--out=") {
            return Some(path.into());
        }
    }
    None
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
        let place = |line: &str| picture(&flags(line));
        assert_eq!(place("--count 5 --out a.png"), Some("a.png".into()));
        assert_eq!(place("--out=b/a.png --json"), Some("b/a.png".into()));
        assert_eq!(place("--count 5 -- --out a.png"), None);
        assert_eq!(place("--count 5"), None);
    }

    #[test]
    fn the_last_line_says_how_the_demo_ended() {
        let picture = ending(0, Some(Path::new("a.png")));
        let path = picture.strip_prefix("the picture is ").unwrap_or_default();
        assert!(
            Path::new(path).is_absolute() && path.ends_with("a.png"),
            "{picture}"
        );
        assert_eq!(ending(0, None), "");
        assert_eq!(ending(130, Some(Path::new("a.png"))), "ended by Ctrl-C");
        assert!(ending(1, None).contains("FAILED with exit code 1"));
    }

    #[test]
    fn questions_need_no_adapter() {
        assert!(only_asks(&flags("--help")));
        assert!(only_asks(&flags("--count 5 -h")));
        assert!(!only_asks(&flags("--headless --out help.png")));
    }
}
