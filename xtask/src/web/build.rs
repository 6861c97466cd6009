//! The program for WebAssembly, and the tools that it takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::project::Project;
use crate::setup::{self, Apt};

/// The target of browsers.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// The example with all pages, and its features. Not all of the crate's: `tune` writes files, and
/// the compactions of `study` would only make the program larger.
const EXAMPLE: &str = "gallery";
const PROFILE: &str = "web";
const FEATURES: &str = "animation,gizmos,meshlets,overlay,picking,testing";

/// Debian's package of a C++ compiler for the target.
const DEBIAN_CLANG: &str = "clang";

/// Whether the program was built before, so that Bevy is compiled.
pub fn has_built(project: &Project) -> bool {
    let examples = project.target.join(TARGET).join(PROFILE).join("examples");
    examples.join(format!("{EXAMPLE}.wasm")).is_file()
}

/// The program and the script that starts it.
pub struct Program {
    /// The folder of both.
    pub folder: PathBuf,
}

impl Program {
    /// The name of the program's file.
    pub const WASM: &'static str = "gallery_bg.wasm";
    /// The name of the script.
    pub const SCRIPT: &'static str = "gallery.js";

    /// Builds the program. (wasm-opt would make it smaller, but not what is packed of it.)
    pub fn build(project: &Project) -> Result<Self> {
        add_target(project)?;
        clang()?;
        let binder = binder(project)?;
        eprintln!(
            "Building the program for browsers. The first build compiles Bevy: 10 to 15 minutes on \
             two cores."
        );
        run(project
            .cargo()
            .args(["build", "--quiet", "--target", TARGET, "--profile", PROFILE])
            .args(["--example", EXAMPLE, "--features", FEATURES]))?;
        let wasm = project.target.join(TARGET).join(PROFILE).join("examples");
        let folder = project.target.join("web/program");
        fs::create_dir_all(&folder)?;
        run(Command::new(binder)
            .args(["--target", "web", "--no-typescript", "--out-name", EXAMPLE])
            .args(["--remove-name-section", "--remove-producers-section"])
            .arg("--out-dir")
            .arg(&folder)
            .arg(wasm.join(format!("{EXAMPLE}.wasm"))))?;
        Ok(Self { folder })
    }
}

/// Runs a program to its end.
fn run(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command
        .status()
        .with_context(|| format!("{name} does not start"))?;
    ensure!(status.success(), "{name} failed ({status})");
    Ok(())
}

/// Makes sure that the compiler has the standard library of the target.
fn add_target(project: &Project) -> Result<()> {
    let has_it = || {
        let mut rustc = project.toolchain.rustc();
        let output = rustc
            .args(["--print", "target-libdir", "--target", TARGET])
            .output();
        output.is_ok_and(|output| {
            let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            output.status.success() && Path::new(&folder).is_dir()
        })
    };
    if !has_it() {
        project.toolchain.add_target(TARGET)?;
        ensure!(
            has_it(),
            "the compiler has no standard library for {TARGET}"
        );
    }
    Ok(())
}

/// Makes sure that there is a C++ compiler for the target: meshoptimizer is written in C++.
fn clang() -> Result<()> {
    if which::which("clang").is_ok() {
        return Ok(());
    }
    match Apt::here() {
        Some(apt) => apt.install(&[DEBIAN_CLANG]),
        None if setup::is_debian() => bail!(
            "clang is not installed, which compiles meshoptimizer for browsers. To install it, \
             type: {}",
            setup::apt_line(&[DEBIAN_CLANG])
        ),
        None => bail!("clang is not installed, which compiles meshoptimizer for browsers"),
    }
}

/// The command line of wasm-bindgen, at the version that the program is linked with.
fn binder(project: &Project) -> Result<PathBuf> {
    let version = bound_version(project)?;
    let root = project.target.join(format!("tools/wasm-bindgen-{version}"));
    let binder = root.join(format!("bin/wasm-bindgen{}", std::env::consts::EXE_SUFFIX));
    if binder.is_file() {
        return Ok(binder);
    }
    eprintln!(
        "Installing wasm-bindgen {version} into {}: two minutes.",
        root.display()
    );
    let install = |how: &[&str]| {
        run(project
            .cargo()
            .args(["install", "--quiet", "--root"])
            .arg(&root)
            .args(["wasm-bindgen-cli", "--version", &version])
            .args(how))
    };
    // What it was released with may be withdrawn, or not be on a mirror.
    install(&["--locked"]).or_else(|_| install(&[]))?;
    Ok(binder)
}

/// The version of wasm-bindgen in `Cargo.lock`.
fn bound_version(project: &Project) -> Result<String> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
        name: String,
        version: String,
    }
    let output = project
        .cargo()
        .args([
            "metadata",
            "--format-version=1",
            "--filter-platform",
            TARGET,
        ])
        .output()?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Metadata = serde_json::from_slice(&output.stdout)?;
    let mut packages = metadata.packages.into_iter();
    let found = packages.find(|package| package.name == "wasm-bindgen");
    Ok(found.context("Cargo.lock has no wasm-bindgen")?.version)
}
