//! Runs the demo, which shows what a frame costs on the CPU in Bevy.

use crate::row::Peer;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

/// Milliseconds of each part of a frame, and bytes per orb on the CPU.
type CpuCost = (BTreeMap<String, Option<f64>>, f64);

/// The demo's program and the results that are known so far.
pub struct Demo {
    path: PathBuf,
    /// Costs by the numbers of instances and views.
    cpu: BTreeMap<(u32, u32), CpuCost>,
}

impl Demo {
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            cpu: BTreeMap::new(),
        }
    }

    /// CPU times of a frame with `count` orbs and `views` views, and bytes per orb on the CPU after
    /// the upload of all orbs. The picture is small and shows few orbs, because drawing is not
    /// measured.
    pub fn cpu(&mut self, count: u32, views: u32) -> Result<CpuCost> {
        if let Some(known) = self.cpu.get(&(count, views)) {
            return Ok(known.clone());
        }
        let (count_flag, views_flag) = (count.to_string(), views.to_string());
        let flags = ["--count", &count_flag, "--views", &views_flag];
        let small = [
            "--size",
            "64x64",
            "--visible",
            "1000",
            "--frames",
            "24",
            "--gpu-only",
        ];
        let report = self.run(&[&flags[..], &small[..]].concat())?;
        let times = report["cpu_ms"].as_object().context("no cpu_ms")?;
        let times = times
            .iter()
            .map(|(part, time)| (part.clone(), time.as_f64()));
        let bytes = report["cpu_bytes"].as_f64().unwrap_or(f64::NAN) / f64::from(count);
        let found = (times.collect(), bytes);
        self.cpu.insert((count, views), found.clone());
        Ok(found)
    }

    /// Results for the same scene drawn as sets and as entities.
    pub fn peers(&self, count: u32) -> Result<[Peer; 2]> {
        let count_flag = count.to_string();
        let flags = ["--count", &count_flag, "--frames", "12"];
        let ours = self.run(&flags)?;
        let theirs = self.run(&[&flags[..], &["--peer", "bevy"]].concat())?;
        let peer = |peer, report: &Value| Peer {
            count,
            peer,
            frame_ms: report["frame_ms_median"].as_f64(),
            cpu_ms: report["cpu_ms"]["total"].as_f64(),
            start_ms: report["start_ms"]["total"].as_f64(),
            visible: report["views"][0]["visible"].as_u64(),
        };
        Ok([peer("sets", &ours), peer("bevy", &theirs)])
    }

    fn run(&self, flags: &[&str]) -> Result<Value> {
        let output = Command::new(&self.path)
            .args(["--headless", "--json"])
            .args(flags)
            .output()
            .with_context(|| format!("cannot start {}", self.path.display()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!(
                "orbs {}: {}",
                flags.join(" "),
                said.lines().last().unwrap_or("failed")
            );
        }
        let said = String::from_utf8_lossy(&output.stdout);
        let line = said.lines().last().context("the demo printed nothing")?;
        serde_json::from_str(line).context("the demo's last line is not JSON")
    }
}
