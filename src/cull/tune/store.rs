//! The file: written completely or not at all, and used only if it is for this adapter.

use crate::cull::{Compaction, CullingTier, Tuning};
use serde::{Deserialize, Serialize};
use std::{
    io::{ErrorKind, Write},
    path::Path,
};
use wgpu::AdapterInfo;

/// What a tuning is for. With another driver or another version of this crate, another compaction
/// may be the fastest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Key {
    version: String,
    adapter: String,
    vendor: u32,
    device: u32,
    backend: String,
    driver: String,
    tier: String,
}

#[derive(Serialize, Deserialize)]
struct File {
    key: Key,
    steps: Vec<Step>,
}

#[derive(Serialize, Deserialize)]
struct Step {
    max_tests: u64,
    compaction: String,
}

impl Key {
    pub fn new(adapter: &AdapterInfo, tier: CullingTier) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            adapter: adapter.name.clone(),
            vendor: adapter.vendor,
            device: adapter.device,
            backend: adapter.backend.to_string(),
            driver: format!("{} {}", adapter.driver, adapter.driver_info),
            tier: tier.to_string(),
        }
    }

    /// File name: one file per adapter, backend and tier.
    pub fn file_name(&self) -> String {
        format!(
            "compaction-{:04x}-{:04x}-{}-{}.json",
            self.vendor, self.device, self.backend, self.tier
        )
    }
}

/// The tuning in `file`; `None` if there is no file. The error says why the file cannot be used.
pub(super) fn read(file: &Path, key: &Key) -> Result<Option<Tuning>, String> {
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let stored: File =
        serde_json::from_slice(&bytes).map_err(|error| format!("it is corrupt ({error})"))?;
    if stored.key != *key {
        return Err("it is for another adapter, driver or version".into());
    }
    let mut steps = Vec::new();
    for step in stored.steps {
        let compaction: Compaction = step.compaction.parse()?;
        if !compaction.is_ordered() {
            return Err(format!("\"{compaction}\" does not keep the order"));
        }
        steps.push((step.max_tests, compaction));
    }
    if steps.is_empty() {
        return Err("it has no steps".into());
    }
    Ok(Some(Tuning::new(steps)))
}

/// Writes a temporary file beside `file` and renames it, so that no reader sees a half-written
/// file.
pub(super) fn write(folder: &Path, file: &Path, key: &Key, tuning: &Tuning) -> std::io::Result<()> {
    let step = |(max_tests, compaction): &(u64, Compaction)| Step {
        max_tests: *max_tests,
        compaction: compaction.to_string(),
    };
    let stored = File {
        key: key.clone(),
        steps: tuning.steps().iter().map(step).collect(),
    };
    std::fs::create_dir_all(folder)?;
    let mut beside = tempfile::NamedTempFile::new_in(folder)?;
    serde_json::to_writer_pretty(&mut beside, &stored)?;
    beside.write_all(b"\n")?;
    beside.persist(file)?;
    Ok(())
}
