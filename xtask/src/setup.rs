//! Makes a machine able to run the demo: a GPU adapter, and the libraries of a window.
//!
//! On Debian and Ubuntu, as root or with a sudo that asks for no password, what lacks is installed.
//! Elsewhere the line to type is printed: nobody's machine is changed behind their back.

use std::fmt;

use anyhow::{Context, Result, bail};
use xshell::Shell;

use crate::project::{Demo, Project, exit_code};

/// The Vulkan loader and Mesa's drivers, the software one (lavapipe) among them.
const DEBIAN_ADAPTER: &[&str] = &["libvulkan1", "mesa-vulkan-drivers"];

/// What the build looks for: the headers of ALSA, which Bevy's audio crate binds. Bevy's tools for
/// developers bring that crate along.
const DEBIAN_BUILD: &[&str] = &["libasound2-dev", "pkg-config"];

/// What a window loads at run time: the library and its Debian package.
const DEBIAN_WINDOW: &[(&str, &str)] = &[
    ("libX11.so.6", "libx11-6"),
    ("libX11-xcb.so.1", "libx11-xcb1"),
    ("libXcursor.so.1", "libxcursor1"),
    ("libXi.so.6", "libxi6"),
    ("libXrandr.so.2", "libxrandr2"),
    ("libxkbcommon-x11.so.0", "libxkbcommon-x11-0"),
];

/// The demo's exit code for `--probe` without an adapter.
const NO_ADAPTER: i32 = 3;

/// What the caller is about to do.
#[derive(Clone, Copy)]
pub struct Wants {
    /// A window, not only pictures.
    pub window: bool,
    /// Say what was found even if there was nothing to do.
    pub verbose: bool,
}

/// `cargo xtask setup`: only the set-up, and what it found.
pub fn run(project: &Project) -> Result<i32> {
    println!("system: {}", System::detect());
    println!("compiler: {}", project.toolchain);
    match Apt::find(&System::detect()) {
        Some(apt) => println!("packages: installed when needed, by {apt}"),
        None => println!("packages: never installed from here, the line to type is printed"),
    }
    // It looks for adapters as it will when it runs.
    let demo = project.build_demo()?;
    let wants = Wants {
        window: true,
        verbose: true,
    };
    for name in make_ready(&demo, wants)? {
        println!("adapter: {name}");
    }
    println!("ready: cargo xtask orbs, cargo xtask test");
    Ok(0)
}

/// Makes sure that Bevy can be built. If nothing may be installed, the line to type is printed,
/// and the build is tried.
pub fn build_libraries() -> Result<()> {
    let system = System::detect();
    if !matches!(system, System::Linux(_)) || has_alsa()? {
        return Ok(());
    }
    if let Some(apt) = Apt::find(&system) {
        eprintln!("The headers of ALSA are missing, which Bevy is built with.");
        return apt.install(DEBIAN_BUILD);
    }
    eprintln!(
        "Bevy's build may need the headers of ALSA and pkg-config. {}",
        system.build_advice()
    );
    Ok(())
}

fn has_alsa() -> Result<bool> {
    let sh = Shell::new()?;
    let found = sh.cmd("pkg-config").args(["--exists", "alsa"]);
    Ok(found.quiet().ignore_stderr().run().is_ok())
}

/// Makes sure that the demo finds an adapter, and its window the libraries that it loads; returns
/// the adapters' names.
pub fn make_ready(demo: &Demo, wants: Wants) -> Result<Vec<String>> {
    let system = System::detect();
    if wants.window {
        window_libraries(&system, wants)?;
    }
    adapter(demo, &system)
}

/// Installs what a window lacks. A package that cannot be installed is only a warning: a library
/// may lie outside the loader's cache.
fn window_libraries(system: &System, wants: Wants) -> Result<()> {
    if *system != System::Linux(Family::Debian) {
        return Ok(());
    }
    // Not in the path of every user.
    let ldconfig = which::which("ldconfig").unwrap_or_else(|_| "/sbin/ldconfig".into());
    let Ok(cache) = Shell::new()?.cmd(ldconfig).arg("-p").quiet().read() else {
        return Ok(());
    };
    let missing = missing_packages(&cache);
    if missing.is_empty() {
        if wants.verbose {
            println!("window: every library is there");
        }
        return Ok(());
    }
    match Apt::find(system) {
        Some(apt) => apt.install(&missing),
        None => {
            eprintln!(
                "A window may lack libraries. To install them, type:\n  {}",
                apt_line(&missing)
            );
            Ok(())
        }
    }
}

/// Asks the demo for an adapter. If there is none, installs a software one, or says how.
fn adapter(demo: &Demo, system: &System) -> Result<Vec<String>> {
    let mut names = probe(demo)?;
    let apt = if names.is_none() {
        Apt::find(system)
    } else {
        None
    };
    if let Some(apt) = apt {
        eprintln!("No GPU adapter found: the Vulkan loader and Mesa's software driver are needed.");
        apt.install(DEBIAN_ADAPTER)?;
        names = probe(demo)?;
        if names.is_none() {
            bail!(
                "no GPU adapter, although {} are installed",
                DEBIAN_ADAPTER.join(" and ")
            );
        }
    }
    names.with_context(|| format!("no GPU adapter found. {}", system.adapter_advice()))
}

/// The names of the adapters that the demo sees; `None` without any.
fn probe(demo: &Demo) -> Result<Option<Vec<String>>> {
    let output = demo
        .command()
        .arg("--probe")
        .output()
        .context("the demo does not start")?;
    match exit_code(output.status) {
        0 => {
            let names = String::from_utf8_lossy(&output.stdout);
            Ok(Some(names.lines().map(str::to_owned).collect()))
        }
        NO_ADAPTER => Ok(None),
        code => {
            eprint!("{}", String::from_utf8_lossy(&output.stderr));
            bail!("looking for adapters ended with exit code {code}")
        }
    }
}

/// Whether the system has Debian's packages, or alike.
pub fn is_debian() -> bool {
    System::detect() == System::Linux(Family::Debian)
}

/// The system, as far as its packages go.
#[derive(Debug, PartialEq)]
enum System {
    Linux(Family),
    Windows,
    MacOs,
    Unknown,
}

/// Linux distributions by their package manager.
#[derive(Debug, PartialEq)]
enum Family {
    Debian,
    Fedora,
    Arch,
    Suse,
    Other,
}

impl System {
    fn detect() -> Self {
        match std::env::consts::OS {
            "linux" => {
                let release = ["/etc/os-release", "/usr/lib/os-release"];
                let text = release
                    .iter()
                    .find_map(|path| std::fs::read_to_string(path).ok());
                Self::Linux(Family::from_os_release(&text.unwrap_or_default()))
            }
            "windows" => Self::Windows,
            "macos" => Self::MacOs,
            _ => Self::Unknown,
        }
    }

    /// What to do about missing headers.
    fn build_advice(&self) -> String {
        let line = match self {
            Self::Linux(Family::Debian) => apt_line(DEBIAN_BUILD),
            Self::Linux(Family::Fedora) => "sudo dnf install alsa-lib-devel pkgconf".into(),
            Self::Linux(Family::Arch) => "sudo pacman -S alsa-lib pkgconf".into(),
            Self::Linux(Family::Suse) => "sudo zypper install alsa-devel pkg-config".into(),
            _ => return "Install both if it fails.".into(),
        };
        format!("If it fails, type: {line}")
    }

    /// What to do about a missing adapter.
    fn adapter_advice(&self) -> String {
        let line = match self {
            Self::Linux(Family::Debian) => apt_line(DEBIAN_ADAPTER),
            Self::Linux(Family::Fedora) => {
                "sudo dnf install vulkan-loader mesa-vulkan-drivers".into()
            }
            Self::Linux(Family::Arch) => "sudo pacman -S vulkan-icd-loader vulkan-swrast".into(),
            Self::Linux(Family::Suse) => "sudo zypper install libvulkan1 libvulkan_lvp".into(),
            Self::Linux(Family::Other) | Self::Unknown => {
                return "Install the Vulkan loader and a Vulkan driver (Mesa's lavapipe needs no GPU).".into();
            }
            Self::Windows => return "Install the graphics driver of your GPU's vendor.".into(),
            Self::MacOs => return "Metal is part of macOS: it needs macOS 10.13 or later.".into(),
        };
        format!("To install one, type: {line}")
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Linux(Family::Debian) => "Linux, Debian or alike",
            Self::Linux(Family::Fedora) => "Linux, Fedora or alike",
            Self::Linux(Family::Arch) => "Linux, Arch or alike",
            Self::Linux(Family::Suse) => "Linux, openSUSE or alike",
            Self::Linux(Family::Other) => "Linux, of a distribution unknown here",
            Self::Windows => "Windows",
            Self::MacOs => "macOS",
            Self::Unknown => "unknown",
        })
    }
}

impl Family {
    /// Reads the family from the text of `/etc/os-release`: `ID` first, then what it is like.
    fn from_os_release(text: &str) -> Self {
        let value = |key: &str| {
            let line = text
                .lines()
                .find_map(|line| line.trim().strip_prefix(key)?.strip_prefix('='));
            line.unwrap_or_default()
                .trim_matches(['"', '\''])
                .to_lowercase()
        };
        let (id, like) = (value("ID"), value("ID_LIKE"));
        for name in id.split_whitespace().chain(like.split_whitespace()) {
            match name {
                "debian" | "ubuntu" => return Self::Debian,
                "fedora" | "rhel" | "centos" => return Self::Fedora,
                "arch" | "archlinux" => return Self::Arch,
                "suse" | "opensuse" | "sles" => return Self::Suse,
                _ if name.starts_with("opensuse-") => return Self::Suse,
                _ => {}
            }
        }
        Self::Other
    }
}

/// apt-get, if it may be used without asking for a password.
#[derive(Clone, Copy)]
pub struct Apt {
    sudo: bool,
}

impl Apt {
    /// apt-get on this machine, if packages may be installed from here.
    pub fn here() -> Option<Self> {
        Self::find(&System::detect())
    }

    fn find(system: &System) -> Option<Self> {
        if *system != System::Linux(Family::Debian) || which::which("apt-get").is_err() {
            return None;
        }
        let sh = Shell::new().ok()?;
        if sh
            .cmd("id")
            .arg("-u")
            .quiet()
            .read()
            .is_ok_and(|id| id == "0")
        {
            return Some(Self { sudo: false });
        }
        let sudo = sh
            .cmd("sudo")
            .args(["-n", "true"])
            .quiet()
            .ignore_stdout()
            .ignore_stderr();
        sudo.run().is_ok().then_some(Self { sudo: true })
    }

    /// Installs packages. What apt-get prints is shown only if it fails.
    pub fn install(self, packages: &[&str]) -> Result<()> {
        eprintln!("Installing {} by {self}.", packages.join(" "));
        let sh = Shell::new()?;
        let run = |command: &[String]| -> Result<()> {
            let command = sh.cmd(&command[0]).args(&command[1..]);
            let output = command.quiet().ignore_status().output()?;
            if !output.status.success() {
                eprint!("{}", String::from_utf8_lossy(&output.stdout));
                eprint!("{}", String::from_utf8_lossy(&output.stderr));
                bail!("apt-get ended with exit code {}", exit_code(output.status));
            }
            Ok(())
        };
        let [update, install] = self.commands(packages);
        // One unreachable list of many is no reason to stop: the installation itself decides.
        if let Err(error) = run(&update) {
            eprintln!("The package lists are not all up to date: {error}");
        }
        let by_hand = || format!("cannot install packages; by hand: {}", apt_line(packages));
        run(&install).with_context(by_hand)
    }

    /// Two commands. The lists first: on a fresh machine or image there are none.
    fn commands(self, packages: &[&str]) -> [Vec<String>; 2] {
        let command = |arguments: &[&str]| {
            let sudo: &[&str] = if self.sudo { &["sudo", "-n"] } else { &[] };
            // Through env, because sudo drops the variables of its caller. Another apt may be at
            // work on a machine that has just started: wait for it.
            let apt = [
                "env",
                "DEBIAN_FRONTEND=noninteractive",
                "apt-get",
                "-o",
                "DPkg::Lock::Timeout=120",
            ];
            sudo.iter()
                .chain(&apt)
                .chain(arguments)
                .map(|&word| word.to_owned())
                .collect()
        };
        let install = [&["install", "-y", "--no-install-recommends"], packages].concat();
        [command(&["update"]), command(&install)]
    }
}

impl fmt::Display for Apt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.sudo { "sudo apt-get" } else { "apt-get" })
    }
}

/// The line for a person to type.
pub fn apt_line(packages: &[&str]) -> String {
    format!(
        "sudo apt-get update && sudo apt-get install -y --no-install-recommends {}",
        packages.join(" ")
    )
}

/// The packages of the window's libraries that `ldconfig -p` does not list.
fn missing_packages(cache: &str) -> Vec<&'static str> {
    let listed = |library: &str| {
        cache
            .lines()
            .any(|line| line.split_whitespace().next() == Some(library))
    };
    DEBIAN_WINDOW
        .iter()
        .filter(|(library, _)| !listed(library))
        .map(|(_, package)| *package)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_are_told_apart() {
        let cases = [
            (
                "PRETTY_NAME=\"Debian GNU/Linux 12\"\nVERSION_ID=\"12\"\nID=debian\n",
                Family::Debian,
            ),
            ("ID=ubuntu\nID_LIKE=debian\n", Family::Debian),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", Family::Debian),
            ("ID=fedora\nVERSION_ID=42\n", Family::Fedora),
            (
                "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n",
                Family::Fedora,
            ),
            ("NAME='Arch Linux'\nID=arch\n", Family::Arch),
            ("ID=cachyos\nID_LIKE=arch\n", Family::Arch),
            (
                "ID=\"opensuse-tumbleweed\"\nID_LIKE=\"opensuse suse\"\n",
                Family::Suse,
            ),
            ("ID=\"opensuse-leap\"\n", Family::Suse),
            ("ID=nixos\n", Family::Other),
            ("", Family::Other),
        ];
        for (text, family) in cases {
            assert_eq!(Family::from_os_release(text), family, "{text}");
        }
    }

    #[test]
    fn apt_runs_as_root_or_through_sudo() {
        let [update, install] = Apt { sudo: false }.commands(DEBIAN_ADAPTER);
        assert_eq!(
            update.join(" "),
            "env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 update"
        );
        assert!(
            install
                .join(" ")
                .ends_with("install -y --no-install-recommends libvulkan1 mesa-vulkan-drivers")
        );
        let [update, install] = Apt { sudo: true }.commands(DEBIAN_ADAPTER);
        assert_eq!(update[..3], ["sudo", "-n", "env"]);
        assert_eq!(install[..3], ["sudo", "-n", "env"]);
    }

    #[test]
    fn every_system_gets_its_advice() {
        let advice = |system: System| system.adapter_advice();
        assert!(advice(System::Linux(Family::Debian)).ends_with(
            "sudo apt-get update && sudo apt-get install -y --no-install-recommends libvulkan1 mesa-vulkan-drivers"
        ));
        assert!(
            advice(System::Linux(Family::Fedora))
                .ends_with("sudo dnf install vulkan-loader mesa-vulkan-drivers")
        );
        assert!(
            advice(System::Linux(Family::Arch))
                .ends_with("sudo pacman -S vulkan-icd-loader vulkan-swrast")
        );
        assert!(
            advice(System::Linux(Family::Suse))
                .ends_with("sudo zypper install libvulkan1 libvulkan_lvp")
        );
        let build = |family| System::Linux(family).build_advice();
        assert!(build(Family::Debian).ends_with("libasound2-dev pkg-config"));
        assert!(build(Family::Other).contains("Install both"));
        assert!(advice(System::Linux(Family::Other)).contains("lavapipe"));
        assert!(advice(System::Windows).contains("driver"));
        assert!(advice(System::MacOs).contains("10.13"));
    }

    #[test]
    fn missing_libraries_are_named_by_package() {
        let cache = "5 libs found in cache `/etc/ld.so.cache'\n\
                     \tlibxkbcommon-x11.so.0 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libxkbcommon-x11.so.0\n\
                     \tlibXrandr.so.2 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libXrandr.so.2\n\
                     \tlibXi.so.6 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libXi.so.6\n\
                     \tlibX11-xcb.so.1 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libX11-xcb.so.1\n\
                     \tlibX11.so.6 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libX11.so.6\n";
        assert_eq!(missing_packages(cache), ["libxcursor1"]);
        assert_eq!(missing_packages("").len(), DEBIAN_WINDOW.len());
    }
}
