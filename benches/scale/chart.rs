//! Chart of the times: one panel per order, one line per share and compaction.

use crate::{
    common::chart::{Chart, Line, Panel},
    points::Order,
    row::Row,
};
use anyhow::Result;
use std::path::Path;

/// Draws the rows with the fewest views.
pub fn write(path: &Path, adapter: &str, rows: &[Row]) -> Result<()> {
    let Some(views) = rows.iter().map(|row| row.views).min() else {
        return Ok(());
    };
    let shown: Vec<_> = rows.iter().filter(|row| row.views == views).collect();
    let mut shares: Vec<_> = shown.iter().map(|row| row.visible).collect();
    shares.sort_by(f64::total_cmp);
    shares.dedup();
    let mut compactions: Vec<_> = shown.iter().map(|row| row.compaction).collect();
    compactions.sort_unstable();
    compactions.dedup();
    let line = |order: Order, color: usize, share: f64, compaction: usize| Line {
        name: format!(
            "{:.0} % visible, {}",
            share * 100.0,
            compactions[compaction]
        ),
        color,
        width: 1 + compaction as u32,
        points: shown
            .iter()
            .filter(|row| row.order == order && row.visible == share)
            .filter(|row| row.compaction == compactions[compaction])
            .map(|row| (f64::from(row.count), row.total_us))
            .collect(),
    };
    let panel = |order: Order| Panel {
        caption: order.name().to_owned(),
        lines: shares
            .iter()
            .enumerate()
            .flat_map(|(color, share)| {
                (0..compactions.len()).map(move |at| line(order, color, *share, at))
            })
            .filter(|line| !line.points.is_empty())
            .collect(),
    };
    let has = |order: &Order| shown.iter().any(|row| row.order == *order);
    Chart {
        title: format!("Time of all stages, {views} view(s)\n{adapter}"),
        axes: ["instances", "microseconds"],
        panel_width: 650,
        panels: [Order::Sorted, Order::Random]
            .into_iter()
            .filter(has)
            .map(panel)
            .collect(),
    }
    .write(path)
}
