//! Finds Chromium, and asks it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::{Answer, Source, server};
use crate::project::Project;
use crate::setup::{self, Apt};

/// Browsers with Tint, by the names of their programs.
const PROGRAMS: [&str; 5] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
];

/// Debian's package. It brings a software adapter along.
const DEBIAN_CHROMIUM: &str = "chromium";

/// The kernels take two seconds; a browser that starts for the first time takes some more.
const PATIENCE: Duration = Duration::from_secs(120);

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
    eprintln!("Chromium is missing, whose compiler is asked.");
    apt.install(&[DEBIAN_CHROMIUM])?;
    find().context("no Chromium, although its package is installed")
}

/// Has the browser compile the kernels.
pub fn ask(project: &Project, browser: &Path, sources: &[Source]) -> Result<Vec<Answer>> {
    let (address, answers) = server::serve(serde_json::to_string(sources)?)?;
    let folder = project.output_folder()?;
    let log = folder.join("chromium.log");
    let profile = folder.join(format!("chromium-{}", std::process::id()));
    let mut running = Running {
        child: Command::new(browser)
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(address)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()
            .with_context(|| format!("{} does not start", browser.display()))?,
        profile,
    };
    let start = Instant::now();
    let text = loop {
        match answers.recv_timeout(Duration::from_millis(100)) {
            Ok(text) => break text,
            Err(RecvTimeoutError::Timeout) if start.elapsed() < PATIENCE => {}
            Err(_) => bail!("no answer from the browser: see {}", log.display()),
        }
        if let Some(status) = running.child.try_wait()? {
            bail!("the browser ended ({status}): see {}", log.display());
        }
    };
    // The page sends a text instead of a list if it cannot compile.
    serde_json::from_str(&text).map_err(|_| anyhow!("the page says: {text}"))
}

/// A browser that ends with this value.
struct Running {
    child: Child,
    profile: PathBuf,
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
