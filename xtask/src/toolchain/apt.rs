//! apt, to fetch packages of Debian unstable and to check their signatures.
//!
//! Its lists are separate: the system's apt and its packages stay as they are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use super::sources::{self, ARCHIVE};
use super::version::Version;

/// Debian's public keys, of the package `debian-archive-keyring`.
const KEYS: [&str; 2] = [
    "/usr/share/keyrings/debian-archive-keyring.gpg",
    "/usr/share/keyrings/debian-archive-keyring.pgp",
];

/// Debian's keys on this machine.
pub fn keys() -> Result<&'static str> {
    keys_in(&KEYS)
}

/// The first of the files that exists.
fn keys_in(files: &[&'static str]) -> Result<&'static str> {
    let found = files.iter().find(|path| Path::new(path).is_file());
    found.copied().context(
        "Debian's keys are not here, so its packages cannot be checked; \
         `sudo apt-get install debian-archive-keyring` installs them",
    )
}

/// The mirrors to ask, in this order: the first one of the system's own, then Debian's archive. A
/// mirror may have no unstable.
fn mirrors() -> Vec<String> {
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    if let Ok(entries) = std::fs::read_dir("/etc/apt/sources.list.d") {
        files.extend(entries.flatten().map(|entry| entry.path()));
    }
    files[1..].sort();
    let of_system = files.iter().find_map(|path| {
        let text = std::fs::read_to_string(path).ok()?;
        let mirrors = match path.extension()?.to_str()? {
            "list" => sources::mirrors_in_list(&text),
            "sources" => sources::mirrors_in_stanzas(&text),
            _ => return None,
        };
        mirrors.into_iter().next()
    });
    let mut mirrors = Vec::from_iter(of_system);
    if mirrors
        .iter()
        .all(|mirror| mirror.trim_end_matches('/') != ARCHIVE)
    {
        mirrors.push(ARCHIVE.into());
    }
    mirrors
}

/// apt with separate lists and packages.
pub struct Apt {
    folder: PathBuf,
    parts: PathBuf,
    keys: &'static str,
}

impl Apt {
    /// Makes the folder of its lists, and the one of its packages.
    pub fn new(
        folder: PathBuf,
        parts: &Path,
        keys: &'static str,
        architecture: &str,
    ) -> Result<Self> {
        for folder in [&folder.join("lists/partial"), &folder.join("cache"), parts] {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot create {}", folder.display()))?;
        }
        std::fs::write(folder.join("status"), "")?;
        std::fs::write(
            folder.join("apt.conf"),
            configuration(&folder, architecture),
        )?;
        Ok(Self {
            folder,
            parts: parts.to_owned(),
            keys,
        })
    }

    /// Where its lists are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Chooses the mirror. If none will do, the error is the last one's.
    pub fn find(&self, needed: Version) -> Result<()> {
        let mut looked = Ok(());
        for mirror in mirrors() {
            looked = self.look(&mirror, needed);
            if looked.is_ok() {
                break;
            }
        }
        looked
    }

    /// Reads the lists of a mirror's unstable; an error if its compiler is too old.
    fn look(&self, mirror: &str, needed: Version) -> Result<()> {
        let line = format!("deb [signed-by={}] {mirror} sid main\n", self.keys);
        std::fs::write(self.folder.join("sources.list"), line)?;
        self.run("apt-get", &["update"])?;
        let answer = self.run("apt-cache", &["show", "rustc"])?;
        let package = sources::version_in(&answer)
            .with_context(|| format!("{mirror} has no rustc in unstable"))?;
        ensure!(
            Version::parse(package).is_some_and(|version| version >= needed),
            "{mirror} has only rustc {package} in unstable"
        );
        Ok(())
    }

    /// Fetches packages and the packages of the libraries that they load.
    pub fn download(&self, packages: &[&str]) -> Result<()> {
        let depends = ["depends", "--recurse", "--important"];
        let answer = self.run("apt-cache", &[&depends[..], packages].concat())?;
        let packages = sources::with_libraries(packages, &sources::dependencies(&answer));
        self.run("apt-get", &[&["download"], &packages[..]].concat())?;
        Ok(())
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(program);
        command
            .arg("-c")
            .arg(self.folder.join("apt.conf"))
            .args(arguments)
            // Packages are downloaded to there.
            .current_dir(&self.parts);
        run(&mut command)
    }
}

/// apt's configuration, on top of the system's: that may have a proxy.
fn configuration(apt: &Path, architecture: &str) -> String {
    let apt = apt.display();
    format!(
        r#"#clear APT::Architectures;
APT::Architecture "{architecture}";
APT::Architectures {{ "{architecture}"; }};
APT::Default-Release "";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Acquire::Languages "none";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::Retries "2";
Dir::Etc::sourcelist "{apt}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "{apt}";
Dir::State::lists "{apt}/lists";
Dir::State::status "{apt}/status";
Dir::Cache "{apt}/cache";
"#
    )
}

/// Runs a program and returns what it prints, or why it failed.
pub fn run(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        // Its answers are read here.
        .env("LC_ALL", "C")
        .output()
        .with_context(|| format!("{name} does not start"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        bail!("{name} failed: {}", failure(&words));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// apt's first error, or the last line of a program that marks none.
fn failure(words: &str) -> &str {
    let marked = words.lines().find_map(|line| line.strip_prefix("E: "));
    let line = marked.or_else(|| words.lines().last());
    line.unwrap_or("it says nothing")
        .trim()
        .trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_debians_keys_the_error_says_what_to_install() {
        let error = keys_in(&["/nowhere/a.gpg"])
            .err()
            .map(|error| error.to_string());
        assert!(error.is_some_and(|error| error.contains("install debian-archive-keyring")));
    }

    #[test]
    fn apts_first_error_is_told() {
        let words =
            "W: One mirror is slow.\nE: Failed to fetch http://a/InRelease.\nE: Some failed.\n";
        assert_eq!(failure(words), "Failed to fetch http://a/InRelease");
        assert_eq!(failure("dpkg: no such file\n"), "dpkg: no such file");
        assert_eq!(failure(""), "it says nothing");
    }

    #[test]
    fn apts_lists_are_its_own() {
        let text = configuration(Path::new("/home/a b/apt"), "arm64");
        assert!(text.contains("Dir::State::lists \"/home/a b/apt/lists\";"));
        assert!(text.contains("APT::Architecture \"arm64\";"));
        assert!(!text.to_lowercase().contains("unauthenticated"));
    }
}
