//! Finds the fastest compaction on this adapter: a short measurement, kept in a file in the user's
//! cache folder.
//!
//! ```no_run
//! # use bevy_gpu_culling::cull::{Compaction, Culler, CullerOptions, CullingTier, tune};
//! # fn example(device: &wgpu::Device, queue: &wgpu::Queue, adapter: &wgpu::AdapterInfo) {
//! let tuned = tune::tuning(device, queue, adapter, CullingTier::Subgroup, &tune::TuneOptions::default());
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
use std::path::PathBuf;
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
    /// The measurements; empty if the tuning was read from the file.
    pub measurements: Vec<Measurement>,
    /// The file, if there is a folder for it.
    pub file: Option<PathBuf>,
    /// Reasons why the file was not used or not written, worth a warning in a log. A missing file
    /// is not a problem.
    pub problems: Vec<String>,
}

/// The folder for tunings: `bevy_gpu_culling` in the user's cache folder, if the system has one.
#[must_use]
pub fn cache_folder() -> Option<PathBuf> {
    directories::ProjectDirs::from("", "", "bevy_gpu_culling")
        .map(|dirs| dirs.cache_dir().to_owned())
}

/// The tuning for this adapter and `tier`: read from the file, or measured and written to it. If
/// the file cannot be read, has another format, or belongs to another adapter, driver or version,
/// the measurement is repeated and replaces it.
///
/// A measurement takes at most about a second and waits for the GPU: call this when that does no
/// harm, for instance at startup. A file that cannot be written is not an error.
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
    if let Some(file) = file.as_ref().filter(|_| !options.again) {
        match store::read(file, &key) {
            Ok(Some(tuning)) => {
                let file = Some(file.clone());
                return Ok(Tuned {
                    tuning,
                    measurements: Vec::new(),
                    file,
                    problems,
                });
            }
            Ok(None) => {}
            Err(problem) => problems.push(format!("{} is not used: {problem}", file.display())),
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
