//! The compiler that the tasks build with: the machine's own if it is new enough, otherwise one of
//! rustup or of Debian.
//!
//! The tasks themselves build with an older Rust than the crate. Nothing that is installed is
//! replaced: what is fetched lies in a folder of rustup or in the user's cache folder.

mod apt;
mod debian;
mod rustup;
mod sources;
mod version;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use fs4::{FileExt, TryLockError};

use crate::project::{Project, exit_code};
use crate::setup;
use rustup::Rustup;
use version::Version;

/// The compiler of a task, and how its programs find it.
pub struct Toolchain {
    cargo: OsString,
    /// Set for every program that a task starts.
    variables: Vec<(&'static str, OsString)>,
    origin: Origin,
}

/// Where a compiler is from.
enum Origin {
    /// It is what cargo uses anyway.
    Machine,
    /// Of rustup, by its name there.
    Rustup(String),
    /// Debian's packages, unpacked into this folder.
    Debian(PathBuf),
}

impl Toolchain {
    /// What runs this tool, whatever its version.
    pub fn of_the_caller() -> Self {
        Self {
            cargo: std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
            variables: Vec::new(),
            origin: Origin::Machine,
        }
    }

    /// A compiler of at least this version. What is found first is taken: the machine's own, what
    /// an earlier run left in the cache folder, rustup's, Debian's.
    pub fn ready(rust_version: &str) -> Result<Self> {
        let needed = Version::parse(rust_version)
            .with_context(|| format!("rust-version of Cargo.toml is {rust_version}"))?;
        let found = version_of(&compiler());
        if found.is_some_and(|found| found >= needed) {
            return Ok(Self::of_the_caller());
        }
        Self::fetched(found, needed).map_err(|error| too_old(found, needed, &error))
    }

    fn fetched(found: Option<Version>, needed: Version) -> Result<Self> {
        let cache = cache_folder()?;
        let folder = cache.join("rust");
        let rustup = rustup::find();
        if let Some(toolchain) = Self::present(&folder, rustup.as_ref(), needed) {
            return Ok(toolchain);
        }
        let _lock = Lock::take(&cache.join("rust.lock"))?;
        // Whoever had the lock may have done it all.
        if let Some(toolchain) = Self::present(&folder, rustup.as_ref(), needed) {
            return Ok(toolchain);
        }
        if let Some(rustup) = &rustup {
            eprintln!("{}: rustup fetches it.", lacking(found, needed));
            let fetched = rustup.install(needed);
            if let Some(toolchain) = fetched.and_then(|name| Self::of_rustup(rustup, name)) {
                return Ok(toolchain);
            }
            eprintln!("rustup cannot fetch it.");
        }
        if !setup::is_debian() {
            bail!("Only on Debian and Ubuntu do the tasks fetch it without rustup");
        }
        debian::make(&folder, needed, &lacking(found, needed))?;
        Ok(Self::of_debian(folder))
    }

    /// A compiler for which nothing has to be fetched.
    fn present(folder: &Path, rustup: Option<&Rustup>, needed: Version) -> Option<Self> {
        if debian::is_ready(folder, needed) {
            return Some(Self::of_debian(folder.to_owned()));
        }
        let rustup = rustup?;
        Self::of_rustup(rustup, rustup.installed(needed)?)
    }

    /// Cargo is the caller's: it need not be as new as the compiler.
    fn of_debian(folder: PathBuf) -> Self {
        let caller = Self::of_the_caller();
        let programs = folder.join("bin");
        Self {
            variables: variables(&programs, &caller.cargo),
            cargo: caller.cargo,
            origin: Origin::Debian(folder),
        }
    }

    fn of_rustup(rustup: &Rustup, name: String) -> Option<Self> {
        let programs = rustup.programs(&name)?;
        let cargo = program(&programs, "cargo");
        let mut variables = variables(&programs, &cargo);
        variables.push(("RUSTUP_TOOLCHAIN", name.clone().into()));
        Some(Self {
            cargo,
            variables,
            origin: Origin::Rustup(name),
        })
    }

    /// The cargo to start. Its environment has to be [`Self::variables`].
    pub fn cargo(&self) -> &OsStr {
        &self.cargo
    }

    /// The variables that differ from the task's environment, for every program that it starts.
    pub fn variables(&self) -> &[(&'static str, OsString)] {
        &self.variables
    }

    /// A command of the compiler itself.
    pub fn rustc(&self) -> Command {
        let mut command = Command::new(self.rustc_path());
        command.envs(self.variables.iter().cloned());
        command
    }

    fn rustc_path(&self) -> OsString {
        let rustc = self.variables.iter().find(|(name, _)| *name == "RUSTC");
        rustc.map_or_else(compiler, |(_, path)| path.clone())
    }

    /// The compiler's own words.
    fn rustc_says(&self) -> Option<String> {
        says(&self.rustc_path())
    }

    /// Fetches the standard library of another target, for what fetched the compiler.
    pub fn add_target(&self, target: &str) -> Result<()> {
        if let Origin::Debian(folder) = &self.origin {
            return debian::add_target(folder, target);
        }
        let name = match &self.origin {
            Origin::Rustup(name) => Some(name.as_str()),
            _ => None,
        };
        let rustup = rustup::find().with_context(|| {
            format!("the compiler has no standard library for {target}, and there is no rustup")
        })?;
        rustup.add_target(name, target)
    }
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.rustc_says();
        f.write_str(words.as_deref().unwrap_or("rustc, of an unknown version"))?;
        match &self.origin {
            Origin::Machine => Ok(()),
            Origin::Rustup(name) => write!(f, ", rustup's toolchain {name}"),
            Origin::Debian(folder) => write!(f, ", Debian's, in {}", folder.display()),
        }
    }
}

/// `cargo xtask toolchain`: prints the compiler, or runs a command with it; returns the exit code.
pub fn run(project: &Project, command: &[OsString]) -> Result<i32> {
    let toolchain = &project.toolchain;
    let Some((program, arguments)) = command.split_first() else {
        println!("{toolchain}");
        return Ok(0);
    };
    let program = if program == "cargo" {
        toolchain.cargo()
    } else {
        program
    };
    let status = Command::new(program)
        .args(arguments)
        .envs(toolchain.variables().iter().cloned())
        .status()
        .with_context(|| format!("{} does not start", program.to_string_lossy()))?;
    Ok(exit_code(status))
}

/// What makes cargo and its subcommands use the programs in a folder.
fn variables(programs: &Path, cargo: &OsStr) -> Vec<(&'static str, OsString)> {
    let mut path = vec![programs.to_owned()];
    path.extend(std::env::split_paths(
        &std::env::var_os("PATH").unwrap_or_default(),
    ));
    // Cargo looks for subcommands in its own folder first, but not if the path has that folder.
    let own = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    if let Some(own) = own.or_else(|| Some(home()?.join(".cargo"))) {
        path.push(own.join("bin"));
    }
    let mut variables = vec![
        ("CARGO", cargo.to_owned()),
        ("RUSTC", program(programs, "rustc")),
        ("RUSTDOC", program(programs, "rustdoc")),
        ("RUSTFMT", program(programs, "rustfmt")),
    ];
    // It fails only on a folder whose name no path can have.
    if let Ok(path) = std::env::join_paths(path) {
        variables.push(("PATH", path));
    }
    variables
}

fn program(folder: &Path, name: &str) -> OsString {
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    folder.join(name).into()
}

/// The compiler that cargo uses by itself.
fn compiler() -> OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

/// What a program prints for `--version`; `None` if it does not run.
fn says(program: &OsStr) -> Option<String> {
    let output = Command::new(program)
        .arg("--version")
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let words = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(words)
}

fn version_of(program: &OsStr) -> Option<Version> {
    Version::of_program(&says(program)?)
}

/// What is there and what is needed.
fn lacking(found: Option<Version>, needed: Version) -> String {
    match found {
        Some(found) => format!("rustc is {found}, the crate needs Rust {needed}"),
        None => format!("There is no rustc that runs, the crate needs Rust {needed}"),
    }
}

/// The last word if no compiler can be had.
fn too_old(found: Option<Version>, needed: Version, error: &anyhow::Error) -> anyhow::Error {
    let line = match rustup::find() {
        Some(_) => rustup::install_line(needed),
        None if cfg!(windows) => "winget install Rustlang.Rustup".into(),
        None => "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh".into(),
    };
    anyhow!(
        "{}. {error:#}. To install the compiler, type:\n  {line}",
        lacking(found, needed)
    )
}

/// This project's folder in the user's cache folder, made if there is none.
fn cache_folder() -> Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| set("LOCALAPPDATA"))
        .or_else(|| Some(home()?.join(".cache")));
    let folder = cache
        .context("HOME is not set, so there is no cache folder")?
        .join("bevy_gpu_culling");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

fn home() -> Option<PathBuf> {
    let name = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    std::env::var_os(name).map(PathBuf::from)
}

/// One run at a time fetches a compiler. Ends with the process in any case.
struct Lock(#[expect(dead_code, reason = "open as long as it is locked")] File);

impl Lock {
    fn take(path: &Path) -> Result<Self> {
        let cannot = || format!("cannot lock {}", path.display());
        let file = File::create(path).with_context(cannot)?;
        match FileExt::try_lock(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                eprintln!("Another run is fetching a compiler: waiting for it.");
                FileExt::lock(&file).with_context(cannot)?;
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(cannot),
        }
        Ok(Self(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Debian's stable release has this one.
    #[test]
    fn the_tasks_build_with_an_old_rust() -> Result<()> {
        let own = Version::parse(env!("CARGO_PKG_RUST_VERSION")).context("rust-version")?;
        let oldest = Version::parse("1.85").context("1.85")?;
        assert!(own <= oldest, "xtask/Cargo.toml has rust-version {own}");
        Ok(())
    }

    #[test]
    fn the_crates_version_is_asked_from_cargo() -> Result<()> {
        let project = Project::find()?;
        let manifest = std::fs::read_to_string(project.root.join("Cargo.toml"))?;
        let line = format!("\nrust-version = \"{}\"\n", project.rust_version);
        assert!(manifest.contains(&line), "{line}");
        Ok(())
    }

    #[test]
    fn the_error_names_both_versions_and_the_line_to_type() -> Result<()> {
        let needed = Version::parse("1.97.1").context("needed")?;
        let why = anyhow!("Why");
        let error = too_old(Version::parse("1.90.0"), needed, &why).to_string();
        assert!(
            error.starts_with("rustc is 1.90.0, the crate needs Rust 1.97.1. Why."),
            "{error}"
        );
        assert!(error.contains("type:\n"), "{error}");
        let error = too_old(None, needed, &why).to_string();
        assert!(error.starts_with("There is no rustc"), "{error}");
        Ok(())
    }

    #[test]
    fn programs_are_found_in_the_folder_first() -> Result<()> {
        let folder = Path::new("/a folder/bin");
        let variables = variables(folder, OsStr::new("/usr/bin/cargo"));
        let value = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.as_os_str())
        };
        assert_eq!(value("CARGO"), Some(OsStr::new("/usr/bin/cargo")));
        assert_eq!(value("RUSTC"), Some(program(folder, "rustc").as_os_str()));
        let path = value("PATH").context("no PATH")?;
        let mut folders = std::env::split_paths(path);
        assert_eq!(folders.next().as_deref(), Some(folder));
        assert!(folders.any(|folder| folder.ends_with("bin")));
        Ok(())
    }

    #[test]
    fn a_lock_is_held_until_it_is_dropped() -> Result<()> {
        let path = std::env::temp_dir().join(format!("xtask-{}.lock", std::process::id()));
        let lock = Lock::take(&path)?;
        let other = File::open(&path)?;
        assert!(FileExt::try_lock(&other).is_err());
        drop(lock);
        assert!(FileExt::try_lock(&other).is_ok());
        std::fs::remove_file(&path)?;
        Ok(())
    }
}
