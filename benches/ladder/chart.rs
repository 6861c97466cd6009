//! Chart of the rates: one panel per encoding, one line per compaction.

use crate::{
    common::chart::{Chart, Line, Panel},
    row::Row,
};
use anyhow::Result;
use std::path::Path;

/// Draws the rows of the middle share and the last order.
pub fn write(path: &Path, adapter: &str, rows: &[Row]) -> Result<()> {
    let Some(last) = rows.last() else {
        return Ok(());
    };
    let mut shares: Vec<_> = rows.iter().map(|row| row.visible).collect();
    shares.sort_by(f64::total_cmp);
    shares.dedup();
    let share = shares[shares.len() / 2];
    let shown: Vec<_> = rows
        .iter()
        .filter(|row| row.visible == share && row.order == last.order)
        .collect();
    let mut encodings: Vec<_> = shown.iter().map(|row| row.encoding).collect();
    encodings.dedup();
    let mut strategies: Vec<_> = shown.iter().map(|row| row.strategy).collect();
    strategies.sort_unstable();
    strategies.dedup();
    let panels = encodings.into_iter().map(|encoding| Panel {
        caption: format!("{}, {} bytes", encoding.name(), encoding.bytes()),
        lines: strategies
            .iter()
            .enumerate()
            .map(|(color, strategy)| Line {
                name: strategy.name().to_owned(),
                color,
                width: 3,
                points: shown
                    .iter()
                    .filter(|row| row.strategy == *strategy && row.encoding == encoding)
                    .map(|row| (f64::from(row.count), row.ginst_s))
                    .collect(),
            })
            .collect(),
    });
    Chart {
        title: format!(
            "Instances tested and compacted: {:.0} % visible, {} order\n{adapter}",
            share * 100.0,
            last.order.name()
        ),
        axes: ["instances", "G instances per second"],
        panel_width: 500,
        panels: panels.collect(),
    }
    .write(path)
}
