//! A kept tuning in an app: which compaction runs, and what the log says of it.
//!
//! Each case is a process, because the cache folder is a variable of the environment:
//! `XDG_CACHE_HOME` on Linux, the only system on which these tests run.

use crate::{
    common::{TestGpu, gpu_with},
    scene::{How, Stage, field},
};
use bevy::prelude::*;
use bevy_gpu_culling::{
    cull::{Tuning, tune},
    prelude::*,
};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Names the case to the process that runs it.
const CASE: &str = "GPU_CULLING_TEST_CASE";

/// The tuning of the best tier of the tests' adapter, in the folder that an app looks into.
struct Cache {
    home: tempfile::TempDir,
    file: PathBuf,
    tier: CullingTier,
    adapter: wgpu::AdapterInfo,
}

impl Cache {
    fn new() -> Self {
        // The app's device is of another instance, so nothing is shared.
        let TestGpu {
            device,
            queue,
            adapter,
        } = gpu_with(|_| ());
        let tier = CullingTier::supported(device.features(), &device.limits()).0;
        let home = tempfile::tempdir().unwrap();
        let options = tune::TuneOptions {
            folder: Some(Self::folder(home.path())),
            again: true,
        };
        let tuned = tune::tuning(&device, &queue, &adapter, tier, &options).unwrap();
        let file = tuned.file.unwrap();
        Self {
            home,
            file,
            tier,
            adapter,
        }
    }

    fn folder(home: &Path) -> PathBuf {
        home.join("bevy_gpu_culling")
    }

    /// What the rule says of few tests.
    fn rule(&self) -> String {
        Tuning::rule(self.tier).pick(100).to_string()
    }

    /// Edits the file.
    fn edit(&self, edit: impl Fn(&str) -> String) {
        let text = std::fs::read_to_string(&self.file).unwrap();
        std::fs::write(&self.file, edit(&text)).unwrap();
    }

    /// Whether a tuning is kept that can be used.
    fn is_usable(&self) -> bool {
        let folder = Self::folder(self.home.path());
        let kept = tune::kept(&self.adapter, self.tier, Some(&folder));
        kept.is_ok_and(|kept| kept.is_some())
    }

    /// Runs the test `name` of this module as `case`; returns the compactions and the lines that it
    /// printed.
    fn run(&self, name: &str, case: &str) -> (Vec<String>, Vec<String>) {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("tuned_app::{name}"), "--nocapture"])
            .env(CASE, case)
            .env("XDG_CACHE_HOME", self.home.path())
            // An app with Bevy's own log.
            .env("TEST_LOG", "1")
            .env("NO_COLOR", "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        println!("{case}:\n{text}");
        assert!(output.status.success(), "{case}");
        let after = |line: &str| line.strip_prefix("compaction: ").map(str::to_owned);
        let compactions = text.lines().filter_map(after).collect();
        let ours = |line: &&str| {
            line.contains("tuning") && (line.contains("INFO") || line.contains("WARN"))
        };
        let lines = text.lines().filter(ours).map(str::to_owned).collect();
        (compactions, lines)
    }
}

/// An app with the plugin as it is by default. The sources are set one after the other, at run
/// time.
fn draw(sources: &[TuningSource]) {
    let mut stage = Stage::with(How::Entities, |app| {
        app.add_plugins(GpuCullingPlugin::default());
    });
    let mesh = stage.mesh(Cuboid::from_length(0.3));
    let material = stage.standard(StandardMaterial::default());
    let set = GpuInstances(stage.add(field(100, false)));
    stage.spawn((Mesh3d(mesh), material, set));
    let eye = Transform::from_xyz(0.0, 5.0, 20.0).looking_at(Vec3::ZERO, Vec3::Y);
    stage.camera(eye, ());
    println!("compaction: {}", stage.report().compaction);
    for source in sources {
        let world = stage.app.world_mut();
        world.resource_mut::<GpuCullingSettings>().tuning = *source;
        println!("compaction: {}", stage.report().compaction);
    }
}

/// Runs `sources` if this process is a case; else says so.
fn is_case(sources: &[TuningSource]) -> bool {
    let is_case = std::env::var_os(CASE).is_some();
    if is_case {
        draw(sources);
    }
    is_case
}

/// The file with another compaction in every step.
fn with_compaction(file: &str, name: &str) -> String {
    let key = "\"compaction\": \"";
    let mut parts = file.split(key);
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        let (_, rest) = part.split_once('"').unwrap();
        text += &format!("{key}{name}\"{rest}");
    }
    text
}

#[test]
fn an_app_uses_the_kept_tuning_unless_it_asks_for_the_rule() {
    if is_case(&[TuningSource::Rule, TuningSource::Kept]) {
        return;
    }
    let name = "an_app_uses_the_kept_tuning_unless_it_asks_for_the_rule";
    let cache = Cache::new();
    let rule = cache.rule();
    assert_ne!(rule, "hillis-steele");
    cache.edit(|file| with_compaction(file, "hillis-steele"));
    let (compactions, lines) = cache.run(name, "kept");
    assert_eq!(compactions, ["hillis-steele", &*rule, "hillis-steele"]);
    assert_eq!(lines.len(), 1, "{lines:?}");
    let file = cache.file.to_str().unwrap();
    let says = ["INFO", file, ": hillis-steele"];
    assert!(says.iter().all(|part| lines[0].contains(part)), "{lines:?}");

    std::fs::remove_file(&cache.file).unwrap();
    let (compactions, lines) = cache.run(name, "none");
    assert_eq!(compactions, [&*rule; 3]);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("INFO") && lines[0].contains("no tuning is kept"));
    assert!(!cache.file.exists(), "nothing is measured unasked");
}

#[test]
fn a_file_that_cannot_be_used_is_ignored_with_one_warning_and_measured_when_asked_for() {
    if is_case(&[
        TuningSource::Rule,
        TuningSource::Kept,
        TuningSource::Measure,
    ]) {
        return;
    }
    let name = "a_file_that_cannot_be_used_is_ignored_with_one_warning_and_measured_when_asked_for";
    let cache = Cache::new();
    let rule = cache.rule();
    let good = with_compaction(
        &std::fs::read_to_string(&cache.file).unwrap(),
        "hillis-steele",
    );
    let foreign = good.replacen("\"driver\": \"", "\"driver\": \"older ", 1);
    for (case, content) in [("broken", "{"), ("foreign", &foreign)] {
        cache.edit(|_| content.to_owned());
        assert!(!cache.is_usable());
        let (compactions, lines) = cache.run(name, case);
        assert_eq!(compactions[..3], [&*rule; 3]);
        assert_eq!(compactions.len(), 4);
        let file = cache.file.to_str().unwrap();
        let [kept, measured, used] = &lines[..] else {
            panic!("{lines:?}");
        };
        let says = ["WARN", file, "is not used", "Delete the file"];
        assert!(says.iter().all(|part| kept.contains(part)), "{kept}");
        // The measurement reads the file, too.
        assert!(measured.contains("WARN") && measured.contains(file));
        assert!(used.contains("INFO") && used.contains("measured"));
        assert!(cache.is_usable(), "the measurement is kept");
    }
}
