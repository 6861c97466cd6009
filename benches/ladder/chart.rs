//! The rates as an SVG: a panel for each encoding, a line for each compaction.

use crate::row::Row;
use anyhow::{Result, anyhow};
use plotters::prelude::*;
use std::path::Path;

const WIDTH: u32 = 1500;
const HEIGHT: u32 = 620;
/// Told apart also by those who do not see red and green apart (Okabe and Ito).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(86, 180, 233),
    RGBColor(0, 158, 115),
    RGBColor(230, 159, 0),
    RGBColor(204, 121, 167),
    RGBColor(120, 120, 120),
    RGBColor(213, 94, 0),
];

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

    let failed = |error: &dyn core::fmt::Display| anyhow!("{}: {error}", path.display());
    let area = SVGBackend::new(path, (WIDTH, HEIGHT)).into_drawing_area();
    area.fill(&WHITE).map_err(|error| failed(&error))?;
    let title = format!(
        "Instances culled and compacted: {:.0} % visible, {} order. {adapter}",
        share * 100.0,
        last.order.name()
    );
    let area = area
        .titled(&title, ("sans-serif", 20))
        .map_err(|error| failed(&error))?;
    let range = |values: &dyn Fn(&Row) -> f64| {
        let low = shown
            .iter()
            .map(|row| values(row))
            .fold(f64::INFINITY, f64::min);
        let high = shown.iter().map(|row| values(row)).fold(0.0, f64::max);
        low / 1.3..high * 1.3
    };
    let (counts, rates) = (
        range(&|row| f64::from(row.count)),
        range(&|row| row.ginst_s),
    );
    for (panel, encoding) in area
        .split_evenly((1, encodings.len()))
        .iter()
        .zip(&encodings)
    {
        let caption = format!("{}, {} bytes", encoding.name(), encoding.bytes());
        let mut chart = ChartBuilder::on(panel)
            .caption(caption, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(counts.clone().log_scale(), rates.clone().log_scale())
            .map_err(|error| failed(&error))?;
        chart
            .configure_mesh()
            .x_desc("instances")
            .y_desc("G instances a second")
            .x_label_formatter(&|count| format!("{count:.0e}"))
            .draw()
            .map_err(|error| failed(&error))?;
        for (strategy, colour) in strategies.iter().zip(COLOURS.iter().cycle()) {
            let of = |row: &&&Row| row.strategy == *strategy && row.encoding == *encoding;
            let mut points: Vec<_> = shown
                .iter()
                .filter(of)
                .map(|row| (f64::from(row.count), row.ginst_s))
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let line = LineSeries::new(points, colour.stroke_width(3)).point_size(4);
            let colour = *colour;
            chart
                .draw_series(line)
                .map_err(|error| failed(&error))?
                .label(strategy.name())
                .legend(move |(x, y)| {
                    Rectangle::new([(x, y - 4), (x + 16, y + 4)], colour.filled())
                });
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw()
            .map_err(|error| failed(&error))?;
    }
    area.present().map_err(|error| failed(&error))
}
