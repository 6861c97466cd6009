//! One result, as a line of the table or as JSON.

use core::fmt::Write as _;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The result of one case. Times are in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub scene: String,
    pub count: u32,
    /// The order of the sets' instances; `None` for Bevy's entities.
    pub order: Option<String>,
    /// Whether the sets have levels of detail; `None` for scenes and entities that have none.
    pub lods: Option<String>,
    /// How instances were expanded to meshlets; `None` for scenes and entities without meshlets.
    pub expansion: Option<String>,
    /// Whether the camera hides instances; `None` for entities, and for sets by meshlets.
    pub occlusion: Option<String>,
    /// Whether the sun casts shadows, and of what; `None` for the demo, which has its own lights.
    #[serde(default)]
    pub shadows: Option<String>,
    pub peer: String,
    /// Median time of a frame, the GPU's part included.
    pub frame_ms: f64,
    /// Longest measured frame.
    pub worst_ms: f64,
    /// Median time of a frame in which the camera turned around; `None` if it hides nothing.
    pub cut_ms: Option<f64>,
    /// Median time of the frames of the same views that follow.
    pub after_cut_ms: Option<f64>,
    /// Median time of a frame of the same scene without an instance.
    pub floor_ms: f64,
    /// Median GPU time of each pass, by its name in Bevy's diagnostics.
    pub passes_ms: BTreeMap<String, f64>,
    /// Median number of triangles of instances in the camera's main pass; `None` if the adapter
    /// does not count them.
    pub triangles: Option<u64>,
    /// Median number of instances that the camera keeps.
    pub visible: u64,
    /// Median CPU time of the plugin's systems; `None` for Bevy's entities.
    pub cpu_ms: Option<f64>,
    /// Whether the survivors of the last view are the CPU twin's; `None` for Bevy's entities. A
    /// difference is an error and never becomes a row.
    pub verified: Option<bool>,
    /// Number of instances kept in the last view, over the number of those that own a pixel; `None`
    /// for cases that hide nothing.
    #[serde(default)]
    pub kept_over_seen: Option<f64>,
    /// Peak signal-to-noise ratio of the last view, in decibels, against the same view in full
    /// detail; `None` if both are equal, and for cases without levels of detail.
    pub psnr: Option<f64>,
    /// Share of its pixels that differ by more than 8/255 in a channel, from 0 to 1; `None` for
    /// cases without levels of detail.
    pub differing: Option<f64>,
    pub adapter: String,
    pub driver: String,
    /// Width and height of the picture in pixels.
    pub size: [u32; 2],
    /// Number of measured frames.
    pub frames: u32,
}

impl Row {
    /// GPU time of the camera's main pass, with the near levels before it and the draws of what is
    /// late after it.
    pub fn main_pass_ms(&self) -> Option<f64> {
        let ours = OUR_MAIN_PASSES.iter();
        let ours: f64 = ours.filter_map(|pass| self.passes_ms.get(*pass)).sum();
        Some(self.passes_ms.get(MAIN_PASS)? + ours)
    }

    /// GPU time of all passes of the culling; `None` if there are none.
    pub fn culling_ms(&self) -> Option<f64> {
        let stages = self.passes_ms.iter();
        let stages = stages.filter(|(pass, _)| pass.starts_with(CULLING));
        stages.map(|(_, ms)| *ms).reduce(|sum, ms| sum + ms)
    }
}

/// Bevy's name of the camera's main pass.
pub const MAIN_PASS: &str = "main_opaque_pass_3d";
/// The names of the passes that draw near levels right before the main pass, and what is late right
/// after it.
pub const OUR_MAIN_PASSES: [&str; 2] = ["gpu_culling near levels", "gpu_culling late"];
/// What the names of the culling's passes begin with.
const CULLING: &str = "gpu_culling/";

/// A column: its heading, whether it has numbers, and its text in a row.
type Column = (&'static str, bool, fn(&Row) -> String);

/// The table from left to right. A new column is one more line.
const COLUMNS: [Column; 21] = [
    ("scene", false, |row| row.scene.clone()),
    ("count", true, |row| row.count.to_string()),
    ("drawn by", false, |row| row.peer.clone()),
    ("order", false, |row| or_dash(row.order.clone())),
    ("levels", false, |row| or_dash(row.lods.clone())),
    ("expansion", false, |row| or_dash(row.expansion.clone())),
    ("occlusion", false, |row| or_dash(row.occlusion.clone())),
    ("shadows", false, |row| or_dash(row.shadows.clone())),
    ("frame ms", true, |row| format!("{:.2}", row.frame_ms)),
    ("worst ms", true, |row| format!("{:.2}", row.worst_ms)),
    ("cut ms", true, |row| match (row.cut_ms, row.after_cut_ms) {
        (Some(cut), Some(after)) => format!("{cut:.2} ({after:.2})"),
        _ => or_dash(None::<f64>),
    }),
    ("floor ms", true, |row| format!("{:.2}", row.floor_ms)),
    ("main pass ms", true, |row| milliseconds(row.main_pass_ms())),
    ("culling ms", true, |row| milliseconds(row.culling_ms())),
    ("CPU ms", true, |row| milliseconds(row.cpu_ms)),
    ("triangles", true, |row| or_dash(row.triangles)),
    ("visible", true, |row| row.visible.to_string()),
    ("kept / seen", true, |row| {
        or_dash(row.kept_over_seen.map(|ratio| format!("{ratio:.2}")))
    }),
    ("PSNR dB", true, |row| match (row.psnr, row.differing) {
        (None, Some(_)) => "equal".into(),
        (psnr, _) => or_dash(psnr.map(|psnr| format!("{psnr:.1}"))),
    }),
    ("differing", true, |row| {
        or_dash(row.differing.map(|share| format!("{:.2} %", share * 100.0)))
    }),
    ("verified", false, |row| {
        or_dash(row.verified.map(|is| if is { "yes" } else { "no" }))
    }),
];

/// The rows as a Markdown table.
pub fn table(rows: &[Row]) -> String {
    let mut table = String::new();
    let mut line = |cells: &mut dyn Iterator<Item = String>| {
        let cells: Vec<_> = cells.collect();
        let _ = writeln!(table, "| {} |", cells.join(" | "));
    };
    line(&mut COLUMNS.iter().map(|(heading, ..)| (*heading).to_owned()));
    line(
        &mut COLUMNS
            .iter()
            .map(|(_, is_number, _)| if *is_number { "--:" } else { "---" }.to_owned()),
    );
    for row in rows {
        line(&mut COLUMNS.iter().map(|(.., text)| text(row)));
    }
    table
}

fn milliseconds(time: Option<f64>) -> String {
    or_dash(time.map(|time| format!("{time:.3}")))
}

fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".into(), |value| value.to_string())
}
