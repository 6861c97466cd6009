//! Chart of the rates: one panel per distribution, one line per expansion.

use crate::{
    common::chart::{Chart, Line, Panel},
    input::Distribution,
    row::Row,
};
use anyhow::Result;
use std::path::Path;

/// Draws the rows of the first dispatch with merged buckets.
pub fn write(path: &Path, adapter: &str, rows: &[Row]) -> Result<()> {
    let Some(first) = rows.first() else {
        return Ok(());
    };
    let shown: Vec<_> = rows
        .iter()
        .filter(|row| row.dispatch == first.dispatch && row.merged != Some(false))
        .collect();
    let has =
        |distribution: &Distribution| shown.iter().any(|row| row.distribution == *distribution);
    let mut expansions: Vec<_> = shown.iter().map(|row| row.expansion).collect();
    expansions.sort_unstable();
    expansions.dedup();
    let panel = |distribution: Distribution| Panel {
        caption: distribution.name().to_owned(),
        lines: expansions
            .iter()
            .enumerate()
            .map(|(color, expansion)| Line {
                name: expansion.name().to_owned(),
                color,
                width: 3,
                points: shown
                    .iter()
                    .filter(|row| row.expansion == *expansion && row.distribution == distribution)
                    .map(|row| (f64::from(row.sources), row.gitems_s))
                    .collect(),
            })
            .collect(),
    };
    Chart {
        title: format!("Items expanded, both passes\n{adapter}"),
        axes: ["sources", "G items per second"],
        panel_width: 420,
        panels: Distribution::ALL
            .into_iter()
            .filter(has)
            .map(panel)
            .collect(),
    }
    .write(path)
}
