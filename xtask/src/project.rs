//! The project's folders, and how its programs are started.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use xshell::Shell;

use crate::toolchain::Toolchain;

/// The crate whose Rust version counts.
const CRATE: &str = "bevy_gpu_culling";

/// What every task builds the plugin with, so that it is built once for the demo, the examples and
/// the tests.
pub const EVERY_FEATURE: &str = "--all-features";

/// Turns the validation layer off, so that a step does the same whether or not it is installed:
/// the layer has a separate step.
pub const NO_LAYER: (&str, &str) = ("WGPU_VALIDATION", "0");

/// The workspace's folders.
pub struct Project {
    /// The folder of the workspace's `Cargo.toml`.
    pub root: PathBuf,
    /// Cargo's target folder, wherever the user put it.
    pub target: PathBuf,
    /// The oldest Rust that builds the crate.
    pub rust_version: String,
    /// The compiler. Until [`Self::with_compiler`], whatever runs this tool.
    pub toolchain: Toolchain,
}

impl Project {
    /// Asks cargo for the workspace and its target folder.
    pub fn find() -> Result<Self> {
        #[derive(Deserialize)]
        struct Metadata {
            workspace_root: PathBuf,
            target_directory: PathBuf,
            packages: Vec<Package>,
        }
        #[derive(Deserialize)]
        struct Package {
            name: String,
            rust_version: Option<String>,
        }
        let toolchain = Toolchain::of_the_caller();
        let sh = Shell::new()?;
        sh.change_dir(env!("CARGO_MANIFEST_DIR"));
        let json = sh
            .cmd(toolchain.cargo())
            .args(["metadata", "--no-deps", "--format-version=1"])
            .quiet()
            .read()?;
        let metadata: Metadata = serde_json::from_str(&json).context("cargo metadata's answer")?;
        let mut packages = metadata.packages.into_iter();
        let rust_version = packages
            .find(|package| package.name == CRATE)
            .and_then(|package| package.rust_version)
            .with_context(|| format!("{CRATE} has no rust-version"))?;
        Ok(Self {
            root: metadata.workspace_root,
            target: metadata.target_directory,
            rust_version,
            toolchain,
        })
    }

    /// The same with a compiler that is new enough for the crate, fetched if need be.
    pub fn with_compiler(mut self) -> Result<Self> {
        self.toolchain = Toolchain::ready(&self.rust_version)?;
        Ok(self)
    }

    /// A shell in the workspace's root.
    pub fn shell(&self) -> Result<Shell> {
        let sh = Shell::new()?;
        sh.change_dir(&self.root);
        for (name, value) in self.toolchain.variables() {
            sh.set_var(name, value);
        }
        Ok(sh)
    }

    /// A cargo command in the workspace's root.
    pub fn cargo(&self) -> Command {
        let mut command = Command::new(self.toolchain.cargo());
        command
            .current_dir(&self.root)
            .envs(self.toolchain.variables().iter().cloned());
        command
    }

    /// What CI leaves behind: pictures and logs, to look at after a failure.
    pub fn output_folder(&self) -> Result<PathBuf> {
        let folder = self.target.join("ci");
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(folder)
    }

    /// Builds the demo and returns it; a failed build is an error, its messages already shown.
    pub fn build_demo(&self) -> Result<Demo> {
        let name = format!("orbs{}", std::env::consts::EXE_SUFFIX);
        let built = self.target.join("debug/examples").join(name).is_file();
        eprintln!("{}", announcement(built));
        let sh = self.shell()?;
        let arguments = [
            "build",
            "--example",
            "orbs",
            EVERY_FEATURE,
            "--message-format=json-render-diagnostics",
        ];
        let messages = sh
            .cmd(self.toolchain.cargo())
            .args(arguments)
            .quiet()
            .read()
            .context("the demo does not build")?;
        match example_path(&messages, "orbs") {
            Some(executable) => Ok(Demo {
                executable,
                root: self.root.clone(),
            }),
            None => bail!("cargo built the example orbs but named no executable"),
        }
    }
}

/// What to say before the demo is built.
fn announcement(built: bool) -> &'static str {
    if built {
        "Building the demo."
    } else {
        "Building the demo. The first build compiles Bevy: 8 to 15 minutes on two cores. Later builds \
         take seconds."
    }
}

/// The demo's executable.
#[derive(Clone)]
pub struct Demo {
    executable: PathBuf,
    root: PathBuf,
}

impl Demo {
    /// Where the executable lies.
    pub fn path(&self) -> &Path {
        &self.executable
    }

    /// The demo as `cargo run` would start it, in the caller's folder: Bevy looks for assets under
    /// `CARGO_MANIFEST_DIR`, which in here is this tool's folder.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.env("CARGO_MANIFEST_DIR", &self.root);
        command
    }
}

impl fmt::Display for Demo {
    /// Its path, short if it lies in the workspace.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.executable.strip_prefix(&self.root);
        path.unwrap_or(&self.executable).display().fmt(f)
    }
}

/// The exit code of a program, by the shells' habit 128 + n when signal n ended it.
pub fn exit_code(status: ExitStatus) -> i32 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return 128 + signal;
    }
    status.code().unwrap_or(1)
}

/// Finds an example's executable in cargo's JSON messages, one per line.
fn example_path(messages: &str, name: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| {
            message["target"]["name"] == name && message["target"]["kind"][0] == "example"
        })
        .find_map(|message| {
            message["executable"]
                .as_str()
                .map(|path| Path::new(path).to_owned())
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The packages that are built for a selection, with their features.
    fn built(selection: &[&str]) -> Result<BTreeSet<String>> {
        let project = Project::find()?;
        let tree = ["tree", EVERY_FEATURE, "--edges", "normal,build,dev"];
        let lines = ["--prefix", "none", "--format", "{p} {f}"];
        let sh = project.shell()?;
        let cargo = sh.cmd(project.toolchain.cargo());
        let output = cargo.args(tree).args(lines).args(selection).quiet();
        let output = output.ignore_stderr().read()?;
        let lines = output.lines().map(|line| line.trim_end_matches(" (*)"));
        Ok(lines.map(str::to_owned).collect())
    }

    /// A dependency of these tasks that gives one of Bevy's another feature would have CI compile
    /// Bevy once for the tests of the workspace, and once for the demo.
    #[test]
    fn the_workspace_and_the_crate_share_one_build_of_bevy() -> Result<()> {
        let workspace = built(&["--workspace"])?;
        let package = built(&["--package", "bevy_gpu_culling"])?;
        let twice: Vec<_> = package.difference(&workspace).collect();
        assert!(package.len() > 100 && twice.is_empty(), "{twice:#?}");
        Ok(())
    }

    #[test]
    fn the_examples_path_is_read_from_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"orbs"},"executable":null}
{"reason":"compiler-artifact","target":{"kind":["example"],"name":"minimal"},"executable":"/t/examples/minimal"}
not json
{"reason":"compiler-artifact","target":{"kind":["example"],"name":"orbs"},"executable":"/t/examples/orbs"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(
            example_path(messages, "orbs"),
            Some(PathBuf::from("/t/examples/orbs"))
        );
        assert_eq!(example_path(messages, "absent"), None);
    }

    #[test]
    fn the_first_build_says_how_long_it_takes() {
        assert!(announcement(false).contains("8 to 15 minutes"));
        assert!(!announcement(true).contains("minutes"));
    }

    /// `.cargo/config.toml` sets it if the session does not.
    #[test]
    fn programs_that_draw_have_a_runtime_folder() {
        let folder = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        assert!(folder.is_some_and(|folder| folder.is_absolute()));
    }

    #[cfg(unix)]
    #[test]
    fn a_signal_becomes_an_exit_code() -> Result<()> {
        let status = Command::new("sh").args(["-c", "kill -9 $$"]).status()?;
        assert_eq!(exit_code(status), 137);
        let status = Command::new("sh").args(["-c", "exit 3"]).status()?;
        assert_eq!(exit_code(status), 3);
        Ok(())
    }
}
