//! A tuning and its file: measured, kept, believed only if it is whole and for this adapter.

use crate::common::{TestGpu, test_gpu};
use bevy_gpu_culling::cull::{
    Compaction, Culler, CullerOptions, CullingTier,
    tune::{TuneOptions, Tuned, cache_folder, kept, tuning},
};
use std::path::Path;

fn tuned(gpu: &TestGpu, folder: &Path, again: bool) -> Tuned {
    let tier = CullingTier::Subgroup;
    let options = TuneOptions {
        folder: Some(folder.to_owned()),
        again,
    };
    tuning(&gpu.device, &gpu.queue, &gpu.adapter, tier, &options).unwrap()
}

fn files(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn a_tuning_is_measured_once_and_then_read() {
    let (gpu, folder) = (test_gpu(), tempfile::tempdir().unwrap());
    let folder = folder.path().join("not/yet/there");
    let first = tuned(gpu, &folder, false);
    assert!(
        first.measurements.len() >= 2 && first.problems.is_empty(),
        "{first:?}"
    );
    assert!(first.measurements.iter().all(|measured| measured.us > 0.0));
    assert_eq!(files(&folder), 1, "nothing is left beside the file");
    let second = tuned(gpu, &folder, false);
    assert!(second.measurements.is_empty(), "read from the file");
    assert_eq!((second.tuning, second.file), (first.tuning, first.file));
    assert!(
        !tuned(gpu, &folder, true).measurements.is_empty(),
        "asked to measure again"
    );
}

#[test]
fn what_is_kept_is_read_without_a_measurement() {
    let (gpu, folder) = (test_gpu(), tempfile::tempdir().unwrap());
    let read = || kept(&gpu.adapter, CullingTier::Subgroup, Some(folder.path()));
    assert_eq!(read(), Ok(None));
    assert_eq!(files(folder.path()), 0);
    let tuned = tuned(gpu, folder.path(), false);
    let file = tuned.file.unwrap();
    assert_eq!(read(), Ok(Some((tuned.tuning, file.clone()))));
    std::fs::write(&file, "{").unwrap();
    let error = read().unwrap_err();
    assert_eq!(error.file, file);
    assert!(error.to_string().contains("corrupt"), "{error}");
}

/// The file with another name for its first compaction, whatever was the fastest here.
fn with_compaction(file: &str, name: &str) -> String {
    let key = "\"compaction\": \"";
    let (before, after) = file.split_once(key).unwrap();
    let (_, rest) = after.split_once('"').unwrap();
    format!("{before}{key}{name}\"{rest}")
}

#[test]
fn a_corrupt_or_foreign_file_is_ignored_and_rewritten() {
    let (gpu, folder) = (test_gpu(), tempfile::tempdir().unwrap());
    let file = tuned(gpu, folder.path(), false).file.unwrap();
    let good = std::fs::read_to_string(&file).unwrap();
    let other_driver = good.replacen("\"driver\": \"", "\"driver\": \"older ", 1);
    let other_version = good.replacen(env!("CARGO_PKG_VERSION"), "0.0.0", 1);
    let unordered = with_compaction(&good, "naive-atomic");
    let unknown = with_compaction(&good, "bubble-sort");
    for bad in [
        "",
        "{",
        "[1, 2]",
        &good[..good.len() / 2],
        &other_driver,
        &other_version,
        &unordered,
        &unknown,
    ] {
        assert_ne!(bad, good);
        std::fs::write(&file, bad).unwrap();
        let tuned_again = tuned(gpu, folder.path(), false);
        assert_eq!(tuned_again.problems.len(), 1, "{bad}");
        assert!(!tuned_again.measurements.is_empty());
        let now = tuned(gpu, folder.path(), false);
        assert!(
            now.problems.is_empty() && now.measurements.is_empty(),
            "rewritten after {bad}"
        );
    }
    std::fs::write(&file, [0xff, 0x00, 0xfe]).unwrap();
    assert_eq!(
        tuned(gpu, folder.path(), false).problems.len(),
        1,
        "not even text"
    );
}

#[test]
fn a_folder_that_cannot_be_written_is_a_problem_but_no_error() {
    let (gpu, folder) = (test_gpu(), tempfile::tempdir().unwrap());
    let file = folder.path().join("a file");
    std::fs::write(&file, "").unwrap();
    let tuned = tuned(gpu, &file, false);
    assert!(!tuned.measurements.is_empty());
    assert!(
        tuned
            .problems
            .iter()
            .any(|problem| problem.contains("not written")),
        "{:?}",
        tuned.problems
    );
}

#[test]
fn a_culler_takes_the_tuning() {
    let (gpu, folder) = (test_gpu(), tempfile::tempdir().unwrap());
    let tuning = tuned(gpu, folder.path(), false).tuning;
    assert!(
        tuning
            .compactions()
            .iter()
            .all(|compaction| compaction.is_ordered())
    );
    let options = CullerOptions {
        compaction: Compaction::Auto,
        tuning: Some(tuning.clone()),
        ..CullerOptions::default()
    };
    let (culler, reason) = Culler::new(&gpu.device, options).unwrap();
    assert_eq!(reason, None);
    assert!(tuning.compactions().contains(&culler.compaction()));
    assert!(cache_folder().is_none_or(|folder| folder.ends_with("bevy_gpu_culling")));
}
