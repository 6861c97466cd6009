//! The rates as an SVG: a panel for each distribution, a line for each expansion.

use crate::{input::Distribution, row::Row};
use anyhow::{Result, anyhow};
use plotters::prelude::*;
use std::path::Path;

const PANEL: u32 = 420;
const HEIGHT: u32 = 560;
/// Told apart also by those who do not see red and green apart (Okabe and Ito).
const COLOURS: [RGBColor; 8] = [
    RGBColor(120, 120, 120),
    RGBColor(86, 180, 233),
    RGBColor(204, 121, 167),
    RGBColor(0, 114, 178),
    RGBColor(0, 0, 0),
    RGBColor(230, 159, 0),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
];

/// Draws the rows of the first dispatch, buckets merged.
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
    let distributions: Vec<_> = Distribution::ALL.into_iter().filter(has).collect();
    let mut expansions: Vec<_> = shown.iter().map(|row| row.expansion).collect();
    expansions.sort_unstable();
    expansions.dedup();

    let failed = |error: &dyn core::fmt::Display| anyhow!("{}: {error}", path.display());
    let width = PANEL * distributions.len().max(1) as u32;
    let area = SVGBackend::new(path, (width, HEIGHT)).into_drawing_area();
    area.fill(&WHITE).map_err(|error| failed(&error))?;
    let title = format!("Items expanded, both passes. {adapter}");
    let area = area
        .titled(&title, ("sans-serif", 20))
        .map_err(|error| failed(&error))?;
    let range = |values: &dyn Fn(&Row) -> f64| {
        let all = || shown.iter().map(|row| values(row));
        all().fold(f64::INFINITY, f64::min) / 1.3..all().fold(0.0, f64::max) * 1.3
    };
    let (counts, rates) = (
        range(&|row| f64::from(row.sources)),
        range(&|row| row.gitems_s),
    );
    for (panel, distribution) in area
        .split_evenly((1, distributions.len()))
        .iter()
        .zip(&distributions)
    {
        let mut chart = ChartBuilder::on(panel)
            .caption(distribution.name(), ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(counts.clone().log_scale(), rates.clone().log_scale())
            .map_err(|error| failed(&error))?;
        chart
            .configure_mesh()
            .x_desc("sources")
            .y_desc("G items a second")
            .x_labels(4)
            .max_light_lines(1)
            .x_label_formatter(&|count| format!("{count:.0e}"))
            .draw()
            .map_err(|error| failed(&error))?;
        for (expansion, colour) in expansions.iter().zip(COLOURS.iter().cycle()) {
            let of = |row: &&&Row| row.expansion == *expansion && row.distribution == *distribution;
            let mut points: Vec<_> = shown
                .iter()
                .filter(of)
                .map(|row| (f64::from(row.sources), row.gitems_s))
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let line = LineSeries::new(points, colour.stroke_width(3)).point_size(4);
            let colour = *colour;
            chart
                .draw_series(line)
                .map_err(|error| failed(&error))?
                .label(expansion.name())
                .legend(move |(x, y)| {
                    Rectangle::new([(x, y - 4), (x + 16, y + 4)], colour.filled())
                });
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw()
            .map_err(|error| failed(&error))?;
    }
    area.present().map_err(|error| failed(&error))
}
