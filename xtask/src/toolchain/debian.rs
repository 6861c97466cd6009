//! A compiler from Debian unstable's packages, unpacked into a folder of the user's.
//!
//! The programs need newer libraries than the system may have. So the libraries are in the folder
//! as well, and scripts start the programs with them.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::apt::{self, Apt, run};
use super::version::Version;
use super::version_of;

/// The compiler's packages. Cargo is the caller's.
const PACKAGES: [&str; 4] = ["rustc", "rust-clippy", "rustfmt", "libstd-rust-dev"];

/// The standard library of browsers' target, and the linker.
const WASM: (&str, [&str; 2]) = ("wasm32-unknown-unknown", ["libstd-rust-dev-wasm32", "lld"]);

/// The programs in them.
const PROGRAMS: [&str; 6] = [
    "rustc",
    "rustdoc",
    "cargo-clippy",
    "clippy-driver",
    "rustfmt",
    "cargo-fmt",
];

/// Where the programs themselves go.
const LIBEXEC: &str = "usr/libexec/rust";

/// The last file that is written into the folder: the compiler's version.
const STAMP: &str = "version";

/// What Debian calls this machine's kind.
struct Machine {
    architecture: &'static str,
    /// The folder of libraries, in `usr/lib`.
    libraries: &'static str,
    /// The program in that folder which starts others.
    loader: &'static str,
}

impl Machine {
    fn this() -> Option<Self> {
        Self::named(std::env::consts::ARCH)
    }

    fn named(name: &str) -> Option<Self> {
        match name {
            "x86_64" => Some(Self {
                architecture: "amd64",
                libraries: "x86_64-linux-gnu",
                loader: "ld-linux-x86-64.so.2",
            }),
            "aarch64" => Some(Self {
                architecture: "arm64",
                libraries: "aarch64-linux-gnu",
                loader: "ld-linux-aarch64.so.1",
            }),
            _ => None,
        }
    }
}

/// Whether the folder has a compiler of at least this version, for this kind of machine.
pub fn is_ready(folder: &Path, needed: Version) -> bool {
    let Some(machine) = Machine::this() else {
        return false;
    };
    let loader = folder.join("usr/lib").join(machine.libraries);
    let version = std::fs::read_to_string(folder.join(STAMP)).ok();
    let version = version.and_then(|text| Version::parse(text.trim()));
    version.is_some_and(|version| version >= needed) && loader.join(machine.loader).exists()
}

/// Makes the folder, whatever it has been, and says so before, with the reason. It is made beside
/// its place and moved there, so that no run sees half of it.
pub fn make(folder: &Path, needed: Version, reason: &str) -> Result<()> {
    let machine = Machine::this().with_context(|| {
        format!(
            "Debian's packages are used on x86_64 and aarch64, not on {}",
            std::env::consts::ARCH
        )
    })?;
    let keys = apt::keys()?;
    for program in ["apt-get", "apt-cache", "dpkg"] {
        which::which(program).with_context(|| format!("there is no {program}"))?;
    }
    eprintln!(
        "{reason}: taking Debian unstable's packages into {} (120 MB; nothing is installed).",
        folder.display()
    );
    let new = folder.with_extension("new");
    // Of a run that was ended.
    remove(&new)?;
    let made = fill(&new, &machine, keys, needed).and_then(|()| {
        remove(folder)?;
        std::fs::rename(&new, folder)
            .with_context(|| format!("cannot move {} to {}", new.display(), folder.display()))
    });
    if made.is_err() {
        remove(&new)?;
    }
    made
}

/// Unpacks the standard library of another target into a folder that is made.
pub fn add_target(folder: &Path, target: &str) -> Result<()> {
    let (known, packages) = WASM;
    ensure!(target == known, "Debian's packages have no {target}");
    let machine = Machine::this().context("no folder is made on this kind of machine")?;
    let made = std::fs::read_to_string(folder.join(STAMP))?;
    let made = Version::parse(made.trim()).context("the folder has no version")?;
    let parts = folder.join("packages");
    let apt = Apt::new(
        folder.join("apt"),
        &parts,
        apt::keys()?,
        machine.architecture,
    )?;
    eprintln!("Taking Debian unstable's packages for {target} (90 MB; nothing is installed).");
    apt.find(made)?;
    apt.download(&packages)?;
    unpack(&parts, folder)?;
    for part in [&parts, apt.folder()] {
        remove(part)?;
    }
    Ok(())
}

/// Fetches and unpacks everything.
fn fill(new: &Path, machine: &Machine, keys: &'static str, needed: Version) -> Result<()> {
    let parts = new.join("packages");
    let apt = Apt::new(new.join("apt"), &parts, keys, machine.architecture)?;
    apt.find(needed)?;
    apt.download(&PACKAGES)?;
    unpack(&parts, new)?;
    wrap(new, machine)?;
    for part in [&parts, apt.folder()] {
        remove(part)?;
    }
    let version = check(new)?;
    ensure!(version >= needed, "Debian unstable has only {version}");
    std::fs::write(new.join(STAMP), format!("{version}\n"))?;
    Ok(())
}

/// Unpacks all packages of a folder.
fn unpack(parts: &Path, folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(parts)? {
        let mut command = Command::new("dpkg");
        command.arg("-x").arg(entry?.path()).arg(folder);
        run(&mut command)?;
    }
    Ok(())
}

/// Puts a script in the place of each program, and into the other folders that programs search:
/// rustdoc searches `usr/bin` for rustc; Clippy searches the folder of the running program, which
/// is the loader's.
fn wrap(folder: &Path, machine: &Machine) -> Result<()> {
    let libraries = format!("usr/lib/{}", machine.libraries);
    let places = [
        ("bin", ".."),
        ("usr/bin", "../.."),
        (&libraries, "../../.."),
    ];
    let libexec = folder.join(LIBEXEC);
    for place in [&libexec, &folder.join("bin")] {
        std::fs::create_dir_all(place)?;
    }
    for name in PROGRAMS {
        std::fs::rename(folder.join("usr/bin").join(name), libexec.join(name))
            .with_context(|| format!("Debian's packages have no {name}"))?;
        for (place, up) in places {
            let script = script(up, &libraries, machine.loader, name);
            write_program(&folder.join(place).join(name), &script)?;
        }
    }
    Ok(())
}

/// Starts a program with the folder's own loader and libraries, wherever the folder is.
fn script(up: &str, libraries: &str, loader: &str, name: &str) -> String {
    format!(
        "#!/bin/sh\n\
         root=${{0%/*}}/{up}\n\
         exec \"$root/{libraries}/{loader}\" --library-path \"$root/{libraries}\" \
         \"$root/{LIBEXEC}/{name}\" \"$@\"\n"
    )
}

fn write_program(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// Runs the programs, which shows that no library lacks, and returns the compiler's version.
fn check(folder: &Path) -> Result<Version> {
    let version = |name: &str| version_of(folder.join("bin").join(name).as_os_str());
    for name in ["rustdoc", "clippy-driver", "rustfmt"] {
        version(name).with_context(|| format!("Debian's {name} does not run here"))?;
    }
    version("rustc").context("Debian's rustc does not run here")
}

/// Removes a folder, if it exists.
fn remove(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_finds_its_folder() {
        let script = script("../..", "usr/lib/x", "ld.so", "rustc");
        assert_eq!(
            script,
            "#!/bin/sh\n\
             root=${0%/*}/../..\n\
             exec \"$root/usr/lib/x/ld.so\" --library-path \"$root/usr/lib/x\" \
             \"$root/usr/libexec/rust/rustc\" \"$@\"\n"
        );
    }

    #[test]
    fn a_folder_without_its_stamp_is_not_ready() -> Result<()> {
        let needed = Version::parse("1.97.1").context("needed")?;
        let folder = std::env::temp_dir().join(format!("xtask-rust-{}", std::process::id()));
        let Some(machine) = Machine::this() else {
            assert!(!is_ready(&folder, needed));
            return Ok(());
        };
        let libraries = folder.join("usr/lib").join(machine.libraries);
        std::fs::create_dir_all(&libraries)?;
        std::fs::write(libraries.join(machine.loader), "")?;
        let mut ready = vec![is_ready(&folder, needed)];
        for version in ["", "1.97.0", "1.97.1\n", "1.98.0\n"] {
            std::fs::write(folder.join(STAMP), version)?;
            ready.push(is_ready(&folder, needed));
        }
        std::fs::remove_file(libraries.join(machine.loader))?;
        ready.push(is_ready(&folder, needed));
        remove(&folder)?;
        remove(&folder)?;
        assert_eq!(ready, [false, false, false, true, true, false]);
        Ok(())
    }

    #[test]
    fn two_kinds_of_machine_are_known() {
        for (name, architecture) in [("x86_64", "amd64"), ("aarch64", "arm64")] {
            let machine = Machine::named(name);
            assert!(machine.is_some_and(|machine| machine.architecture == architecture));
        }
        assert!(Machine::named("riscv64").is_none());
    }
}
