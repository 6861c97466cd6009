//! Which compaction is the fastest on this adapter: a short measurement, kept in a file of the user's cache folder.
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

/// Where a tuning is kept, and whether a kept one will do.
#[derive(Clone, Debug, Default)]
pub struct TuneOptions {
    /// The folder; `None` is [`cache_folder`].
    pub folder: Option<PathBuf>,
    /// Measures also when a tuning for this adapter is there.
    pub again: bool,
}

/// A tuning, and how it came about.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// What [`CullerOptions::tuning`](crate::cull::CullerOptions::tuning) takes.
    pub tuning: Tuning,
    /// What was measured; empty if the tuning was read from the file.
    pub measurements: Vec<Measurement>,
    /// The file, if there is a folder for it.
    pub file: Option<PathBuf>,
    /// Why the file was not used or not written, worth a line in a log. A file that is not there is no problem.
    pub problems: Vec<String>,
}

/// The folder for such files: `bevy_gpu_culling` in the user's cache folder, if the system has one.
#[must_use]
pub fn cache_folder() -> Option<PathBuf> {
    directories::ProjectDirs::from("", "", "bevy_gpu_culling")
        .map(|dirs| dirs.cache_dir().to_owned())
}

/// The tuning for this adapter and `tier`: from the file, or measured and written to it. A file that cannot be
/// read, that is not ours, or that belongs to another adapter, driver or version is measured anew and replaced.
///
/// A measurement takes about a second at most and waits for the GPU: call it where that does no harm, as at the start.
/// A file that cannot be written is no error.
///
/// # Errors
/// Those of [`measure`].
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
