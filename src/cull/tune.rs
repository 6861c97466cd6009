//! Finds the fastest compaction on this adapter: a short measurement, kept in a file in the user's
//! cache folder.
//!
//! ```no_run
//! # use bevy_gpu_culling::cull::{Compaction, Culler, CullerOptions, CullingTier, tune};
//! # fn example(device: &wgpu::Device, queue: &wgpu::Queue, adapter: &wgpu::AdapterInfo) {
//! let settings = tune::TuneOptions::default();
//! let tuned = tune::tuning(device, queue, adapter, CullingTier::Subgroup, &settings);
//! let options = CullerOptions {
//!     compaction: Compaction::Auto,
//!     tuning: tuned.map(|tuned| tuned.tuning).ok(),
//!     ..CullerOptions::default()
//! };
//! # }
//! ```

mod measure;
mod store;

pub use measure::{Measurement, measure};

use crate::cull::{CullError, CullingTier, Tuning};
use std::path::{Path, PathBuf};
use wgpu::{AdapterInfo, Device, Queue};

/// The folder of tunings, and whether an existing one is used.
#[derive(Clone, Debug, Default)]
pub struct TuneOptions {
    /// The folder; [`cache_folder`] if `None`.
    pub folder: Option<PathBuf>,
    /// Whether to measure even if the file has a tuning for this adapter.
    pub again: bool,
}

/// A tuning, and how it was obtained.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// The value for [`CullerOptions::tuning`](crate::cull::CullerOptions::tuning).
    pub tuning: Tuning,
    /// The times of each compaction; empty if the tuning was read from the file.
    pub measurements: Vec<Measurement>,
    /// The file, if there is a folder for it.
    pub file: Option<PathBuf>,
    /// Reasons why the file was not used or not written, for a log. A missing file is no problem.
    pub problems: Vec<String>,
}

/// A kept tuning that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not used: {problem}", file.display())]
pub struct UnusableTuning {
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub problem: String,
}

/// The folder for such files: `bevy_gpu_culling` in the user's cache folder, if the system has one.
#[must_use]
pub fn cache_folder() -> Option<PathBuf> {
    directories::ProjectDirs::from("", "", "bevy_gpu_culling")
        .map(|dirs| dirs.cache_dir().to_owned())
}

/// The tuning that is kept for this adapter and `tier` in `folder` (`None` is [`cache_folder`]),
/// with its file; `None` if none is kept. It reads one small file and measures nothing.
///
/// # Errors
/// [`UnusableTuning`], if the file cannot be read, is corrupt, or belongs to another adapter,
/// driver or version.
pub fn kept(
    adapter: &AdapterInfo,
    tier: CullingTier,
    folder: Option<&Path>,
) -> Result<Option<(Tuning, PathBuf)>, UnusableTuning> {
    let Some(folder) = folder.map(Path::to_owned).or_else(cache_folder) else {
        return Ok(None);
    };
    let key = store::Key::new(adapter, tier);
    let file = folder.join(key.file_name());
    match store::read(&file, &key) {
        Ok(tuning) => Ok(tuning.map(|tuning| (tuning, file))),
        Err(problem) => Err(UnusableTuning { file, problem }),
    }
}

/// The tuning for this adapter and `tier`: from the file, or measured and written to it. A file
/// that cannot be read, is corrupt, or belongs to another adapter, driver or version is replaced by
/// a new measurement.
///
/// A measurement takes about a second and waits for the GPU: call it when that does no harm, as at
/// the start. A file that cannot be written is no error.
///
/// # Errors
/// Same as [`measure`].
pub fn tuning(
    device: &Device,
    queue: &Queue,
    adapter: &AdapterInfo,
    tier: CullingTier,
    options: &TuneOptions,
) -> Result<Tuned, CullError> {
    let folder = options.folder.clone().or_else(cache_folder);
    let key = store::Key::new(adapter, tier);
    let file = folder.as_ref().map(|folder| folder.join(key.file_name()));
    let mut problems = Vec::new();
    if !options.again {
        match kept(adapter, tier, folder.as_deref()) {
            Ok(Some((tuning, file))) => {
                return Ok(Tuned {
                    tuning,
                    measurements: Vec::new(),
                    file: Some(file),
                    problems,
                });
            }
            Ok(None) => {}
            Err(problem) => problems.push(problem.to_string()),
        }
    }
    let measurements = measure(device, queue, tier)?;
    let tuning = measure::fastest(&measurements);
    match (&folder, &file) {
        (Some(folder), Some(file)) => {
            if let Err(error) = store::write(folder, file, &key, &tuning) {
                problems.push(format!("{} is not written: {error}", file.display()));
            }
        }
        _ => problems.push("this system has no cache folder: the tuning is not kept".into()),
    }
    Ok(Tuned {
        tuning,
        measurements,
        file,
        problems,
    })
}
