//! `cargo xtask web`: the demo and the examples in a browser.
//!
//! One program for WebAssembly has all of them: the example `gallery`, whose page's address says
//! what it shows. So Bevy is compiled once, and a browser fetches it once.
//!
//! * `build`: the program, and the tools that it takes.
//! * `pages`: the folder that any server of files serves.
//! * `check`: every example and the demo in headless Chromium.

mod build;
mod check;
mod pages;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::Result;

use crate::project::{Demo, Project};
use crate::server;
use crate::setup::{self, Wants};
use crate::steps::Outcome;
use build::Program;

/// The port of the pages, as for other servers of WebAssembly. Any free one if it is taken.
const PORT: u16 = 1334;

/// Writes the pages into a folder, or serves them until Ctrl-C. Returns the exit code.
pub fn run(project: &Project, out: Option<&Path>) -> Result<i32> {
    let program = Program::build(project)?;
    let Some(out) = out else {
        let folder = project.target.join("web/pages");
        pages::write(project, &program, &folder)?;
        return serve(folder);
    };
    pages::write(project, &program, out)?;
    println!(
        "The pages are in {}: any server of files will do.",
        out.display()
    );
    Ok(0)
}

/// Draws the demo and the examples in a browser, and compares what they draw.
pub fn check_only(project: &Project, names: &[String]) -> Result<i32> {
    let demo = || {
        let demo = project.build_demo()?;
        let wants = Wants {
            window: false,
            verbose: false,
        };
        setup::make_ready(&demo, wants)?;
        Ok(demo)
    };
    match check::run(project, names, demo)? {
        Outcome::Passed => Ok(0),
        Outcome::Skipped(reason) => {
            eprintln!("not checked: {reason}");
            Ok(1)
        }
    }
}

/// The same in CI, if the program was built before: its first build takes longer than CI has.
pub fn check(project: &Project, demo: &Demo) -> Result<Outcome> {
    if !build::has_built(project) {
        return Ok(Outcome::Skipped(
            "no program for browsers was built here before, which takes 10 to 20 minutes: type \
             cargo xtask web --check"
                .into(),
        ));
    }
    check::run(project, &[], || Ok(demo.clone()))
}

fn serve(folder: PathBuf) -> Result<i32> {
    let file = move |path: &str| pages::read(&folder, path);
    let served = server::serve(PORT, file.clone()).or_else(|_| server::serve(0, file))?;
    println!("{} (Ctrl-C ends)", served.address);
    open(&served.address);
    loop {
        thread::park();
    }
}

/// Opens a page in the desktop's browser, if there is a desktop.
fn open(address: &str) {
    let has_desktop = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    let opener = match std::env::consts::OS {
        "macos" => "open",
        "windows" => "explorer",
        _ if has_desktop => "xdg-open",
        _ => return,
    };
    // Without it, the address is still on the screen.
    let _ = Command::new(opener)
        .arg(address)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
}
