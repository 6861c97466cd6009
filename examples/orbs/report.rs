//! What was drawn and its cost: a table for people, a line of JSON for programs.

use crate::{
    cli::{Cli, Meshlets, Peer},
    scene::Field,
};
use bevy::{
    diagnostic::{DiagnosticPath, DiagnosticsStore},
    prelude::*,
    render::renderer::RenderAdapterInfo,
};
use bevy_gpu_culling::{
    diagnostics::{CPU_TOTAL, MESHLET_STAGE_GPU, STAGE_CPU, STAGE_GPU},
    instance::InstanceSet,
    prelude::CullingReport,
    render::{MeshletReport, ViewKind, ViewReport},
};
use clap::ValueEnum;
use serde::{Serialize, Serializer};
use std::fmt;

/// The report. The JSON line has its field names and their order.
#[derive(Serialize)]
pub struct Report {
    adapter: String,
    backend: String,
    tier: Option<String>,
    compaction: Option<String>,
    instances: u64,
    sets: usize,
    bytes_per_instance: Option<f64>,
    /// Bytes that the culling holds on the GPU.
    gpu_bytes: Option<u64>,
    /// Bytes that the sets hold on the CPU.
    cpu_bytes: u64,
    /// Compute passes of the culling per frame, and their dispatches.
    passes: Option<u32>,
    dispatches: Option<u32>,
    frames: usize,
    frame_ms_median: f64,
    frame_ms_max: f64,
    #[serde(serialize_with = "in_order")]
    start_ms: Vec<(&'static str, Option<f64>)>,
    #[serde(serialize_with = "in_order")]
    cpu_ms: Vec<(&'static str, Option<f64>)>,
    #[serde(serialize_with = "in_order")]
    gpu_ms: Vec<(&'static str, Option<f64>)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upload: Option<Upload>,
    views: Vec<View>,
    /// Triangles that the camera's main pass draws; `None` for a peer.
    triangles: Option<u64>,
    /// What the camera sees at each level of detail, the full meshes first.
    lods: Vec<Level>,
    /// With `--meshlets`: the camera's counters, and the GPU time of the main pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    meshlets: Option<Parts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<String>,
}

/// What a view sees at one level of detail.
#[derive(Serialize, Clone, Copy)]
pub struct Level {
    triangles: u64,
    visible: u64,
}

/// Counters of meshlets and triangles, and the cost of drawing them.
#[derive(Serialize, Default)]
pub struct Parts {
    /// `parts` if they are drawn by meshlets, else `whole`.
    by: &'static str,
    tested: u64,
    culled_by_frustum: u64,
    culled_by_cone: u64,
    culled_by_occlusion: u64,
    drawn: u64,
    triangles: u64,
    whole_triangles: u64,
    /// GPU time from survivors to the commands of meshlets, in milliseconds; `None` if it was not
    /// measured.
    cull_ms: Option<f64>,
    /// GPU time of the main pass, in milliseconds.
    draw_ms: Option<f64>,
}

impl Parts {
    fn new(how: Meshlets, counts: MeshletReport, diagnostics: &DiagnosticsStore) -> Self {
        let stages = MESHLET_STAGE_GPU.map(|(_, path)| diagnosed(diagnostics, &path));
        Self {
            by: match how {
                Meshlets::Parts => "parts",
                Meshlets::Whole => "whole",
            },
            tested: counts.tested,
            culled_by_frustum: counts.culled_by_frustum,
            culled_by_cone: counts.culled_by_cone,
            culled_by_occlusion: counts.culled_by_occlusion,
            drawn: counts.drawn,
            triangles: counts.triangles,
            whole_triangles: counts.whole_triangles,
            cull_ms: stages
                .into_iter()
                .sum::<Option<f64>>()
                .map(|sum| rounded(sum, 10_000.0)),
            draw_ms: diagnosed(diagnostics, &MAIN_PASS_GPU),
        }
    }
}

/// Bevy's own measurement of its main pass.
const MAIN_PASS_GPU: DiagnosticPath =
    DiagnosticPath::const_new("render/main_opaque_pass_3d/elapsed_gpu");

/// How the field streamed to the GPU.
#[derive(Serialize, Clone, Debug)]
pub struct Upload {
    pub bytes: u64,
    /// Number of frames in which some of it arrived.
    pub frames: usize,
    /// Time from the first of them to the last.
    pub ms: f64,
    pub frame_ms_median: f64,
    pub frame_ms_max: f64,
    /// The time of each of them.
    pub frame_ms: Vec<f64>,
    pub gb_s: f64,
    /// The rate of a plain buffer that is written in slices of the same size.
    pub plain_gb_s: f64,
}

/// Times of a start, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start {
    pub renderer: f64,
    pub generate: f64,
    pub warm_up: f64,
    /// From the start of the program to the first measured frame.
    pub total: f64,
}

/// What one view saw of all sets.
#[derive(Serialize, Default)]
pub struct View {
    pub name: String,
    pub tested: u64,
    pub visible: u64,
    /// Of a view that leaves out what is hidden.
    #[serde(flatten)]
    pub occlusion: Option<Occlusion>,
    /// Whether the survivors are the CPU twin's; `None` if they were not compared.
    pub verified: Option<bool>,
}

/// Numbers of orbs in a view that leaves out what is hidden.
#[derive(Serialize, Clone, Copy, Default)]
pub struct Occlusion {
    /// In the frustum, hidden or not.
    pub in_frustum: u64,
    /// Drawn first.
    pub early: u64,
    /// Drawn once the depth of the first was known.
    pub late: u64,
    /// In the frustum and hidden.
    pub hidden: u64,
    /// Of the hidden ones, those that reach no sample of the picture.
    pub too_small: u64,
}

impl View {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }
}

impl Report {
    /// `frames` are the frames' times in milliseconds.
    pub fn new(
        cli: &Cli,
        world: &World,
        mut frames: Vec<f64>,
        views: Vec<View>,
        (start, upload): (Start, Option<Upload>),
    ) -> Self {
        let drawn = frames.len();
        if drawn > 1 {
            // The first one also creates what the others reuse.
            frames.remove(0);
        }
        let adapter = world.resource::<RenderAdapterInfo>();
        let field = world.resource::<Field>();
        let culling = world.get_resource::<CullingReport>();
        let tier = culling.and_then(|report| report.tier);
        let diagnostics = world.resource::<DiagnosticsStore>();
        let counts = culling.map(|report| report.meshlets).unwrap_or_default();
        let parts = cli.meshlets == Some(Meshlets::Parts) && cli.peer.is_none();
        let camera = culling.and_then(|report| {
            let mut views = report.views.iter();
            views.find(|view| view.kind == ViewKind::Camera)
        });
        let lods: Vec<_> = camera
            .iter()
            .flat_map(|view| &view.levels)
            .map(|level| Level {
                triangles: level.triangles,
                visible: level.visible,
            })
            .collect();
        Self {
            adapter: adapter.name.clone(),
            backend: adapter.backend.to_string(),
            tier: tier.map(|tier| tier.to_string()),
            compaction: culling.map(|report| report.compaction.to_string()),
            instances: field.drawn,
            sets: field.sets,
            bytes_per_instance: (field.drawn > 0 && cli.peer.is_none())
                .then(|| rounded(field.bytes as f64 / field.drawn as f64, 100.0)),
            gpu_bytes: culling.map(|report| report.gpu_bytes),
            cpu_bytes: match world.get_resource::<Assets<InstanceSet>>() {
                Some(sets) => sets.iter().map(|(_, set)| cpu_bytes(set)).sum(),
                None => 0,
            },
            passes: culling.map(|report| report.passes),
            dispatches: culling.map(|report| report.dispatches),
            frames: drawn,
            frame_ms_max: rounded(frames.iter().copied().fold(0.0, f64::max), 1000.0),
            frame_ms_median: rounded(median(frames).unwrap_or(0.0), 1000.0),
            start_ms: [
                ("renderer", start.renderer),
                ("generate", start.generate),
                ("warm_up", start.warm_up),
                ("total", start.total),
            ]
            .map(|(what, time)| (what, Some(rounded(time, 10.0))))
            .to_vec(),
            cpu_ms: [("total", CPU_TOTAL)]
                .into_iter()
                .chain(STAGE_CPU.map(|(stage, path)| (stage.name(), path)))
                .map(|(stage, path)| (stage, diagnosed(diagnostics, &path)))
                .collect(),
            upload,
            gpu_ms: STAGE_GPU
                .iter()
                .chain(MESHLET_STAGE_GPU.iter().filter(|_| parts))
                .map(|(stage, path)| (*stage, diagnosed(diagnostics, path)))
                .collect(),
            views,
            triangles: match parts && counts.tested > 0 {
                true => Some(counts.triangles),
                false => camera.map(ViewReport::triangles),
            },
            lods,
            meshlets: cli.meshlets.map(|how| Parts::new(how, counts, diagnostics)),
            peer: cli.peer.map(name),
        }
    }

    /// One line of JSON.
    pub fn json(&self) -> String {
        // Numbers and strings always serialize.
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    }
}

/// A JSON object with its fields in the stages' order.
fn in_order<S: Serializer>(
    stages: &[(&'static str, Option<f64>)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(stages.iter().copied())
}

fn name(peer: Peer) -> String {
    peer.to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Bytes that a set holds on the CPU.
fn cpu_bytes(set: &InstanceSet) -> u64 {
    let channels = set.scales().map_or(0, <[f32]>::len) + set.data_words().len();
    (size_of_val(set.packed()) + 4 * channels) as u64
}

/// Median of the measurements that Bevy keeps of a path.
fn diagnosed(diagnostics: &DiagnosticsStore, path: &DiagnosticPath) -> Option<f64> {
    let times = diagnostics.get(path)?.values().copied().collect();
    median(times).map(|time| rounded(time, 10_000.0))
}

pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 {
        upper
    } else {
        f64::midpoint(values[middle - 1], upper)
    })
}

pub fn rounded(value: f64, steps: f64) -> f64 {
    (value * steps).round() / steps
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |what: &str, value: String| writeln!(f, "{what:<10} {value}");
        row("adapter", format!("{} ({})", self.adapter, self.backend))?;
        match (&self.peer, &self.tier) {
            (Some(peer), _) => row("drawn by", format!("{peer}, one entity per orb"))?,
            (None, tier) => {
                let tier = tier.as_deref().unwrap_or("none: this device cannot cull");
                row(
                    "tier",
                    format!("{tier}, {}", self.compaction.as_deref().unwrap_or_default()),
                )?;
            }
        }
        let bytes = self
            .bytes_per_instance
            .map_or_else(String::new, |bytes| format!(", {bytes} bytes each"));
        let sets = if self.sets == 1 { "set" } else { "sets" };
        let spread = format!("{} in {} {sets}{bytes}", self.instances, self.sets);
        row("instances", spread)?;
        if let Some(gpu) = self.gpu_bytes {
            let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
            let bytes = format!(
                "{:.1} MiB on the GPU, {:.1} on the CPU",
                mib(gpu),
                mib(self.cpu_bytes)
            );
            row("memory", bytes)?;
        }
        for view in &self.views {
            let share = 100.0 * view.visible as f64 / view.tested.max(1) as f64;
            let drawn = view.occlusion.map_or_else(String::new, |of| {
                format!(
                    ", drawn {} early and {} late, {} of {} in the frustum hidden, {} of them too \
                     small",
                    of.early, of.late, of.hidden, of.in_frustum, of.too_small
                )
            });
            let verified = match view.verified {
                None => "",
                Some(true) => ", verified",
                Some(false) => ", DIFFERS FROM THE CPU TWIN",
            };
            row(
                &view.name,
                format!(
                    "{} of {} visible ({share:.1} %){drawn}{verified}",
                    view.visible, view.tested
                ),
            )?;
        }
        if let Some(triangles) = self.triangles {
            let levels = self.lods.iter().map(|level| level.visible.to_string());
            let levels: Vec<_> = levels.collect();
            let levels = match levels.len() {
                0 | 1 => String::new(),
                _ => format!(", orbs per level {}", levels.join(", ")),
            };
            row("triangles", format!("{triangles}{levels}"))?;
        }
        row(
            "frame",
            format!("{} ms (median of {})", self.frame_ms_median, self.frames),
        )?;
        if let Some(upload) = &self.upload {
            let Upload {
                bytes,
                frames,
                ms,
                gb_s,
                plain_gb_s,
                ..
            } = upload;
            let rates = format!("{gb_s} GB/s, a plain buffer {plain_gb_s} GB/s");
            row(
                "upload",
                format!("{bytes} bytes in {frames} frames, {ms} ms: {rates}"),
            )?;
        }
        for (what, times) in [
            ("start", &self.start_ms),
            ("CPU", &self.cpu_ms),
            ("GPU", &self.gpu_ms),
        ] {
            let times = times
                .iter()
                .filter_map(|(part, time)| Some(format!("{part} {} ms", (*time)?)));
            let times: Vec<_> = times.collect();
            if !times.is_empty() {
                row(what, times.join(", "))?;
            }
        }
        if let (Some(passes), Some(dispatches)) = (self.passes, self.dispatches) {
            row("passes", format!("{passes}, {dispatches} dispatches"))?;
        }
        if let Some(parts) = &self.meshlets {
            let share = |part: u64| 100.0 * part as f64 / parts.tested.max(1) as f64;
            if parts.tested > 0 {
                row(
                    "meshlets",
                    format!(
                        "{} tested, {:.1} % rejected by the frustum, {:.1} % by cone, {:.1} % by occlusion; {} of {} triangles drawn",
                        parts.tested,
                        share(parts.culled_by_frustum),
                        share(parts.culled_by_cone),
                        share(parts.culled_by_occlusion),
                        parts.triangles,
                        parts.whole_triangles
                    ),
                )?;
            }
            if let Some(time) = parts.draw_ms {
                row("main pass", format!("{time} ms on the GPU"))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0]), Some(3.0));
        assert_eq!(median(vec![9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 100.0]), Some(3.0));
    }

    #[test]
    fn the_json_line_has_the_contracts_fields() -> Result<(), serde_json::Error> {
        let report = Report {
            adapter: "a \"quoted\" name".into(),
            backend: "vulkan".into(),
            tier: Some("cpu".into()),
            compaction: Some("vote-scan-compact".into()),
            instances: 7,
            sets: 1,
            bytes_per_instance: Some(16.0),
            gpu_bytes: Some(112),
            cpu_bytes: 112,
            passes: Some(0),
            dispatches: Some(0),
            frames: 2,
            frame_ms_median: 1.5,
            frame_ms_max: 1.6,
            start_ms: vec![("generate", Some(2.0))],
            cpu_ms: vec![("extract", Some(0.01))],
            upload: None,
            gpu_ms: vec![("vote", Some(0.1)), ("scan", None)],
            views: vec![View {
                tested: 7,
                visible: 3,
                verified: Some(true),
                ..View::new("camera")
            }],
            triangles: Some(240),
            lods: vec![Level {
                triangles: 240,
                visible: 3,
            }],
            meshlets: None,
            peer: None,
        };
        let line = report.json();
        assert!(!line.contains('\n'));
        assert!(
            line.contains(r#""gpu_ms":{"vote":0.1,"scan":null}"#),
            "{line}"
        );
        let value: serde_json::Value = serde_json::from_str(&line)?;
        let keys: Vec<_> = value
            .as_object()
            .into_iter()
            .flat_map(|object| object.keys())
            .collect();
        let mut expected = vec![
            "adapter",
            "backend",
            "tier",
            "compaction",
            "instances",
            "sets",
            "bytes_per_instance",
            "gpu_bytes",
            "cpu_bytes",
            "passes",
            "dispatches",
            "frames",
            "frame_ms_median",
            "frame_ms_max",
            "start_ms",
            "cpu_ms",
            "gpu_ms",
            "views",
            "triangles",
            "lods",
        ];
        expected.sort_unstable();
        assert_eq!(keys, expected);
        assert_eq!(value["views"][0]["verified"], true);
        Ok(())
    }
}
