//! The times: a panel for each order, a line for each share with and without classification.

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
    let line = |order: Order, colour: usize, share: f64, classify: bool| {
        let with = if classify { "" } else { ", without classify" };
        Line {
            name: format!("{:.0} % visible{with}", share * 100.0),
            colour,
            width: if classify { 3 } else { 1 },
            points: shown
                .iter()
                .filter(|row| row.order == order && row.visible == share)
                .filter(|row| row.classify == classify)
                .map(|row| (f64::from(row.count), row.total_us))
                .collect(),
        }
    };
    let panel = |order: Order| Panel {
        caption: order.name().to_owned(),
        lines: shares
            .iter()
            .enumerate()
            .flat_map(|(colour, share)| {
                [true, false].map(|classify| line(order, colour, *share, classify))
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
