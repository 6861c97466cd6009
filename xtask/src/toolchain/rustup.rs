//! A compiler of rustup: one that is installed, or one that rustup fetches.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::version::Version;
use super::{program, version_of};

/// How long rustup may take. With a connection it is done in a minute; without, it may wait.
const PATIENCE: Duration = Duration::from_secs(300);

/// What is installed: the minimal profile, and what `cargo xtask ci` needs.
const INSTALL: [&str; 6] = ["--profile", "minimal", "-c", "clippy", "-c", "rustfmt"];

/// rustup, if it is on the path.
pub struct Rustup {
    path: PathBuf,
}

/// Looks for rustup.
pub fn find() -> Option<Rustup> {
    let path = which::which("rustup").ok()?;
    Some(Rustup { path })
}

/// The line for a person to type.
pub fn install_line(needed: Version) -> String {
    format!("rustup toolchain install {needed} {}", INSTALL.join(" "))
}

impl Rustup {
    /// The oldest installed toolchain that is new enough.
    pub fn installed(&self, needed: Version) -> Option<String> {
        let list = self.says(&["toolchain", "list"])?;
        let candidates = releases(&list).filter_map(|name| {
            let rustc = program(&self.programs(name)?, "rustc");
            Some((version_of(&rustc)?, name))
        });
        let enough = candidates.filter(|(version, _)| *version >= needed);
        Some(enough.min()?.1.to_owned())
    }

    /// Fetches a toolchain and returns its name; `None` if that fails or takes too long. rustup's
    /// own messages are not shown: there is another way, or the line to type shows them.
    pub fn install(&self, needed: Version) -> Option<String> {
        let name = needed.to_string();
        let mut child = Command::new(&self.path)
            .args(["toolchain", "install", &name])
            .args(INSTALL)
            .arg("--no-self-update")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().ok()? {
                break status;
            }
            if start.elapsed() > PATIENCE {
                // It may have ended by now; the toolchain is asked for below anyway.
                let _ = child.kill();
                break child.wait().ok()?;
            }
            std::thread::sleep(Duration::from_millis(100));
        };
        let rustc = program(&self.programs(&name)?, "rustc");
        (status.success() && version_of(&rustc)? >= needed).then_some(name)
    }

    /// Fetches the standard library of a target, for a toolchain or for the one that cargo uses.
    pub fn add_target(&self, toolchain: Option<&str>, target: &str) -> Result<()> {
        let mut command = Command::new(&self.path);
        command.args(["target", "add", target]);
        if let Some(name) = toolchain {
            command.args(["--toolchain", name]);
        }
        let status = command.status().context("rustup does not start")?;
        ensure!(status.success(), "rustup cannot add the target {target}");
        Ok(())
    }

    /// The folder of a toolchain's programs.
    pub fn programs(&self, name: &str) -> Option<PathBuf> {
        let rustc = self.says(&["which", "--toolchain", name, "rustc"])?;
        Path::new(rustc.trim()).parent().map(Path::to_owned)
    }

    /// What rustup prints; `None` if it fails.
    fn says(&self, arguments: &[&str]) -> Option<String> {
        let output = Command::new(&self.path)
            .args(arguments)
            // Asking is not fetching.
            .env("RUSTUP_AUTO_INSTALL", "0")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .ok()?;
        let words = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then_some(words)
    }
}

/// The names of Rust's releases in rustup's list. A nightly, or a toolchain that somebody built,
/// may lack a part or be ahead of its version.
fn releases(list: &str) -> impl Iterator<Item = &str> {
    let names = list
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    names.filter(|name| name.starts_with("stable-") || Version::parse(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_releases_are_taken_from_rustups_list() {
        let list = "stable-x86_64-unknown-linux-gnu (active, default)\n\
                    beta-x86_64-unknown-linux-gnu\n\
                    nightly-2026-07-01-x86_64-unknown-linux-gnu\n\
                    1.85-x86_64-unknown-linux-gnu\n\
                    1.97.1-x86_64-unknown-linux-gnu\n\
                    mine\n";
        let names: Vec<_> = releases(list).collect();
        assert_eq!(
            names,
            [
                "stable-x86_64-unknown-linux-gnu",
                "1.85-x86_64-unknown-linux-gnu",
                "1.97.1-x86_64-unknown-linux-gnu"
            ]
        );
        assert_eq!(releases("no installed toolchains").count(), 0);
    }

    #[test]
    fn the_line_to_type_has_clippy_and_rustfmt() {
        let line = Version::parse("1.97.1").map(install_line);
        assert_eq!(
            line.as_deref(),
            Some("rustup toolchain install 1.97.1 --profile minimal -c clippy -c rustfmt")
        );
    }
}
