//! The demo must end cleanly, whatever it is doing: at Ctrl-C, and while pipelines are compiled.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::INTERRUPTED;
use crate::project::NO_LAYER;
use crate::project::{Demo, Project};
use crate::steps::Outcome;

/// More frames than the demo ever draws here.
const FRAMES: &str = "100000";

/// A run that Ctrl-C ends.
struct Interrupted {
    name: &'static str,
    flags: &'static [&'static str],
    /// When Ctrl-C is typed, from when the demo handles it.
    after: Duration,
    times: u32,
    /// The longest time that the end may take. Alone, the demo gives its last frame five seconds.
    limit: Duration,
}

const SMALL: &[&str] = &["--count", "20000", "--size", "320x180", "--frames", FRAMES];
const STREAMING: &[&str] = &[
    "--count",
    "8000000",
    "--upload",
    "--upload-budget",
    "1",
    "--frames",
    FRAMES,
];
/// Frames of several seconds on a software adapter.
const SLOW: &[&str] = &["--count", "1000000", "--frames", FRAMES];
const LIMIT: Duration = Duration::from_secs(8);

/// At the start, while shaders are compiled, in the middle of frames, while sets stream; and twice,
/// which does not wait for the frame.
const INTERRUPTIONS: [Interrupted; 5] = [
    Interrupted {
        name: "start",
        flags: SMALL,
        after: Duration::from_millis(200),
        times: 1,
        limit: LIMIT,
    },
    Interrupted {
        name: "warm-up",
        flags: SMALL,
        after: Duration::from_secs(1),
        times: 1,
        limit: LIMIT,
    },
    Interrupted {
        name: "frames",
        flags: SMALL,
        after: Duration::from_secs(3),
        times: 1,
        limit: LIMIT,
    },
    Interrupted {
        name: "streaming",
        flags: STREAMING,
        after: Duration::from_secs(3),
        times: 1,
        limit: LIMIT,
    },
    Interrupted {
        name: "twice",
        flags: SLOW,
        after: Duration::from_secs(3),
        times: 2,
        limit: Duration::from_secs(2),
    },
];

/// Frames after which the demo ends by itself, while pipelines are compiled.
const LAST_FRAMES: [&str; 3] = ["1", "2", "3"];

/// Runs the demo and ends it in all these ways.
pub fn check(project: &Project, demo: &Demo) -> Result<Outcome> {
    if !cfg!(unix) {
        return Ok(Outcome::Skipped("Ctrl-C is sent by a Unix shell".into()));
    }
    let folder = project.output_folder()?.join("ends");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    for run in &INTERRUPTIONS {
        let log = folder.join(format!("{}.log", run.name));
        let mut child = start(demo, run.flags, &log)?;
        wait_for_handler(&mut child).with_context(|| run.name.to_owned())?;
        sleep(run.after);
        if let Some(status) = child.try_wait()? {
            bail!("{}: over before Ctrl-C, {status}", run.name);
        }
        let start = Instant::now();
        for _ in 0..run.times {
            interrupt(&child)?;
            sleep(Duration::from_millis(100));
        }
        let status = wait(&mut child, run.limit).with_context(|| run.name.to_owned())?;
        println!(
            "{}: ended {:.1} s after Ctrl-C",
            run.name,
            start.elapsed().as_secs_f64()
        );
        verdict(run.name, status, INTERRUPTED, &log)?;
    }
    for frames in LAST_FRAMES {
        let name = format!("frame-{frames}");
        let log = folder.join(format!("{name}.log"));
        let flags = [
            "--count",
            "20000",
            "--size",
            "320x180",
            "--end-after",
            frames,
        ];
        let mut child = start(demo, &flags, &log)?;
        let status = wait(&mut child, LIMIT).with_context(|| name.clone())?;
        println!("{name}: ended by itself");
        verdict(&name, status, 0, &log)?;
    }
    Ok(Outcome::Passed)
}

/// Starts the demo; its log goes to a file.
fn start(demo: &Demo, flags: &[&str], log: &Path) -> Result<Child> {
    demo.command()
        .arg("--headless")
        .args(flags)
        .env(NO_LAYER.0, NO_LAYER.1)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(log)?)
        .spawn()
        .context("the demo does not start")
}

/// Waits until the child handles Ctrl-C, if the system tells. Before that, Ctrl-C ends any program.
fn wait_for_handler(child: &mut Child) -> Result<()> {
    let file = format!("/proc/{}/status", child.id());
    let start = Instant::now();
    while let Ok(status) = std::fs::read_to_string(&file) {
        if handles_ctrl_c(&status) || child.try_wait()?.is_some() {
            break;
        }
        ensure!(
            start.elapsed() < LIMIT,
            "Ctrl-C is not handled after {LIMIT:?}"
        );
        sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Whether Linux's status of a process says that it handles signal 2.
fn handles_ctrl_c(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (2 - 1)) != 0)
}

/// What Ctrl-C sends.
fn interrupt(child: &Child) -> Result<()> {
    let kill = format!("kill -INT {}", child.id());
    // A demo that has just ended is no error here.
    Command::new("sh").args(["-c", &kill]).output()?;
    Ok(())
}

/// Waits for the end; after the limit, ends the child by force and fails.
fn wait(child: &mut Child, limit: Duration) -> Result<ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        sleep(Duration::from_millis(20));
    }
    child.kill()?;
    child.wait()?;
    bail!("still running after {limit:?}")
}

/// An error unless the exit code is the expected one and the log has no panic.
fn verdict(name: &str, status: ExitStatus, expected: i32, log: &Path) -> Result<()> {
    let said = std::fs::read(log)?;
    let complaint = complaint(status.code(), expected, &String::from_utf8_lossy(&said));
    ensure!(
        complaint.is_none(),
        "{name}: {} (see {})",
        complaint.unwrap_or_default(),
        log.display()
    );
    Ok(())
}

/// What is wrong with an end. `code` is `None` if a signal ended the demo, which shells call 130,
/// too.
fn complaint(code: Option<i32>, expected: i32, said: &str) -> Option<String> {
    let is_wrong = |line: &&str| line.contains("panicked at") || line.contains(" ERROR ");
    if let Some(line) = said.lines().find(is_wrong) {
        return Some(line.to_owned());
    }
    match code {
        Some(code) if code == expected => None,
        Some(code) => Some(format!("exit code {code} instead of {expected}")),
        None => Some(format!("ended by a signal instead of exit code {expected}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_end_has_its_code_and_no_panic() {
        let quiet = "2026-01-01T00:00:00Z  WARN bevy_render::renderer: slow\n";
        assert_eq!(complaint(Some(130), 130, quiet), None);
        assert!(complaint(Some(139), 130, quiet).is_some_and(|text| text.contains("139")));
        assert!(complaint(Some(0), 130, "").is_some());
        assert!(complaint(None, 130, "").is_some_and(|text| text.contains("signal")));
        let panic = "thread 'main' (1) panicked at wgpu-core/src/device/queue.rs:208:29:\n";
        assert!(complaint(Some(130), 130, panic).is_some_and(|text| text.contains("queue.rs")));
        assert!(complaint(Some(0), 0, "2026-01-01T00:00:00Z ERROR orbs: no\n").is_some());
    }

    #[test]
    fn linux_tells_whether_ctrl_c_is_handled() {
        let status = |mask| format!("Name:\torbs\nSigIgn:\t0000000000000002\nSigCgt:\t{mask}\n");
        assert!(handles_ctrl_c(&status("0000000180000442")));
        assert!(!handles_ctrl_c(&status("0000000180000440")));
        assert!(!handles_ctrl_c(""));
    }

    #[cfg(unix)]
    #[test]
    fn a_child_that_does_not_end_is_ended() -> Result<()> {
        let mut child = Command::new("sleep").arg("60").spawn()?;
        assert!(wait(&mut child, Duration::from_millis(50)).is_err());
        // A program that does not handle Ctrl-C ends by it, too, but not with a code.
        let mut child = Command::new("sleep").arg("60").spawn()?;
        interrupt(&child)?;
        let code = wait(&mut child, LIMIT)?.code();
        assert!(complaint(code, INTERRUPTED, "").is_some(), "{code:?}");
        Ok(())
    }
}
