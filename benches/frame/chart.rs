//! Chart of the frames: one panel per scene, one line per peer, order, levels, expansion and
//! occlusion.

use crate::{
    common::chart::{Chart, Line, Panel},
    row::Row,
};
use anyhow::Result;
use std::path::Path;

/// Draws the rows to `path`.
pub fn write(path: &Path, rows: &[Row]) -> Result<()> {
    let Some(first) = rows.first() else {
        return Ok(());
    };
    let by = |row: &Row| {
        let order = row.order.iter().map(|order| format!(", {order}"));
        let lods = row.lods.iter().map(|lods| format!(", levels {lods}"));
        let expansion = row.expansion.iter().map(|by| format!(", {by}"));
        let occlusion = row.occlusion.iter().map(|how| format!(", occlusion {how}"));
        let details: String = order
            .chain(lods)
            .chain(expansion)
            .chain(occlusion)
            .collect();
        format!("{}{details}", row.peer)
    };
    let (scenes, names) = (
        distinct(rows.iter().map(|row| row.scene.clone())),
        distinct(rows.iter().map(by)),
    );
    let line = |scene: &str, color: usize, name: &str| Line {
        name: name.to_owned(),
        color,
        width: 2,
        points: rows
            .iter()
            .filter(|row| row.scene == scene && by(row) == name)
            .map(|row| (f64::from(row.count), row.frame_ms))
            .collect(),
    };
    let panel = |scene: &String| Panel {
        caption: scene.clone(),
        lines: names
            .iter()
            .enumerate()
            .map(|(color, name)| line(scene, color, name))
            .filter(|line| !line.points.is_empty())
            .collect(),
    };
    let [width, height] = first.size;
    Chart {
        title: format!(
            "Median frame, {width}x{height}\n{} ({})",
            first.adapter, first.driver
        ),
        axes: ["instances", "milliseconds"],
        panel_width: 450,
        panels: scenes.iter().map(panel).collect(),
    }
    .write(path)
}

/// The values without repetitions, in the order in which they come first.
fn distinct(values: impl Iterator<Item = String>) -> Vec<String> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}
