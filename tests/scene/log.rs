//! The warnings and errors that the app logs, as lines.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic, and not every test uses every helper"
)]

use bevy::log::{tracing, tracing_subscriber};
use std::{
    io,
    sync::{Mutex, MutexGuard, OnceLock},
};

static TEXT: Mutex<String> = Mutex::new(String::new());
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The log of one test. Tests that read the log run one after the other.
pub struct Log(#[expect(dead_code, reason = "held, not read")] MutexGuard<'static, ()>);

impl Drop for Log {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("The log:\n{}", self.text());
        }
    }
}

struct Writer;

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        TEXT.lock()
            .unwrap()
            .push_str(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Starts to capture. A process has only one log, so Bevy's must not be installed.
    pub fn start() -> Self {
        static INSTALLED: OnceLock<()> = OnceLock::new();
        INSTALLED.get_or_init(|| {
            let subscriber = tracing_subscriber::fmt()
                .with_max_level(tracing::Level::WARN)
                .with_writer(|| Writer)
                .with_ansi(false)
                .without_time()
                .finish();
            tracing::subscriber::set_global_default(subscriber).unwrap();
        });
        // A failed test must not affect the next one.
        let guard = ONE_AT_A_TIME
            .lock()
            .unwrap_or_else(|error| error.into_inner());
        TEXT.lock().unwrap().clear();
        Self(guard)
    }

    /// This crate's warnings and errors since the start.
    pub fn lines(&self) -> Vec<String> {
        let text = TEXT.lock().unwrap();
        // With RUST_BACKTRACE, lines of a backtrace follow some messages.
        let levels = ["ERROR ", "WARN ", "INFO ", "DEBUG "];
        let is_message = |line: &&str| {
            let line = line.trim_start();
            levels.iter().any(|level| line.starts_with(level))
        };
        let ours = text
            .lines()
            .filter(is_message)
            .filter(|line| line.contains("bevy_gpu_culling"));
        ours.map(str::to_owned).collect()
    }

    /// All text since the start.
    pub fn text(&self) -> String {
        TEXT.lock().unwrap().clone()
    }

    /// The only line of this crate that contains all of `parts`. Panics if there is not exactly
    /// one.
    pub fn assert_once(&self, parts: &[&str]) -> String {
        let lines = self.lines();
        let has_all = |line: &&String| parts.iter().all(|part| line.contains(part));
        let found: Vec<_> = lines.iter().filter(has_all).collect();
        assert_eq!(found.len(), 1, "{parts:?} in {lines:#?}");
        found[0].clone()
    }
}
