//! Finds Chromium, and has it show a page.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::project::Project;
use crate::setup::{self, Apt};

/// Browsers with WebGPU on a software adapter, by the names of their programs.
const PROGRAMS: [&str; 5] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
];

/// Debian's package. It brings a software adapter along.
const DEBIAN_CHROMIUM: &str = "chromium";

/// Headless, with WebGPU on the software adapter, and quiet on the network.
const FLAGS: [&str; 12] = [
    "--headless=new",
    // Root has no sandbox. The page is ours.
    "--no-sandbox",
    "--disable-gpu-sandbox",
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",
    "--enable-features=Vulkan",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
];

/// Finds the browser. If there is none, installs it, or says how.
pub fn find() -> Result<PathBuf> {
    let find = || PROGRAMS.iter().find_map(|name| which::which(name).ok());
    if let Some(browser) = find() {
        return Ok(browser);
    }
    let Some(apt) = Apt::here() else {
        let missing = "neither Chromium nor Chrome is installed";
        if setup::is_debian() {
            bail!(
                "{missing}. To install it, type: {}",
                setup::apt_line(&[DEBIAN_CHROMIUM])
            );
        }
        bail!("{missing}. Install either");
    };
    eprintln!("Chromium is missing.");
    apt.install(&[DEBIAN_CHROMIUM])?;
    find().context("no Chromium, although its package is installed")
}

/// A browser without a window that shows a page. It ends with this value.
pub struct Running {
    child: Child,
    profile: PathBuf,
    log: PathBuf,
}

impl Running {
    /// Opens a page.
    pub fn open(project: &Project, browser: &Path, address: &str) -> Result<Self> {
        let folder = project.output_folder()?;
        let log = folder.join("chromium.log");
        let profile = folder.join(format!("chromium-{}", std::process::id()));
        let child = Command::new(browser)
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(address)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()
            .with_context(|| format!("{} does not start", browser.display()))?;
        Ok(Self {
            child,
            profile,
            log,
        })
    }

    /// What the page sends next. An error if it takes longer than `patience`.
    pub fn next<T>(&mut self, answers: &Receiver<T>, patience: Duration) -> Result<T> {
        let start = Instant::now();
        loop {
            match answers.recv_timeout(Duration::from_millis(100)) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Timeout) if start.elapsed() < patience => {}
                Err(_) => bail!("no answer from the browser: see {}", self.log.display()),
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("the browser ended ({status}): see {}", self.log.display());
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Its other processes end a moment later, and may still write.
        for _ in 0..20 {
            if fs::remove_dir_all(&self.profile).is_ok() {
                break;
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}
