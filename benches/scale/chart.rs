//! The times as an SVG: a panel for each order, a line for each share with and without classification.

use crate::{points::Order, row::Row};
use anyhow::{Result, anyhow};
use plotters::prelude::*;
use std::path::Path;

/// Told apart also by those who do not see red and green apart (Okabe and Ito).
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// Draws the rows with the fewest views.
pub fn write(path: &Path, adapter: &str, rows: &[Row]) -> Result<()> {
    let Some(views) = rows.iter().map(|row| row.views).min() else {
        return Ok(());
    };
    let shown: Vec<_> = rows.iter().filter(|row| row.views == views).collect();
    let orders = [Order::Sorted, Order::Random];
    let orders: Vec<_> = orders
        .into_iter()
        .filter(|order| shown.iter().any(|row| row.order == *order))
        .collect();
    let mut shares: Vec<_> = shown.iter().map(|row| row.visible).collect();
    shares.sort_by(f64::total_cmp);
    shares.dedup();

    let failed = |error: &dyn core::fmt::Display| anyhow!("{}: {error}", path.display());
    let area = SVGBackend::new(path, (1300, 620)).into_drawing_area();
    area.fill(&WHITE).map_err(|error| failed(&error))?;
    let title = format!("Time of all stages, {views} view(s). {adapter}");
    let area = area
        .titled(&title, ("sans-serif", 20))
        .map_err(|error| failed(&error))?;
    let range = |values: &dyn Fn(&Row) -> f64| {
        let all = shown.iter().map(|row| values(row));
        let (low, high) = all.fold((f64::INFINITY, 0.0f64), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        low / 1.3..high * 1.3
    };
    let (counts, times) = (
        range(&|row| f64::from(row.count)),
        range(&|row| row.total_us),
    );
    for (panel, order) in area.split_evenly((1, orders.len())).iter().zip(&orders) {
        let mut chart = ChartBuilder::on(panel)
            .caption(order.name(), ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(counts.clone().log_scale(), times.clone().log_scale())
            .map_err(|error| failed(&error))?;
        chart
            .configure_mesh()
            .x_desc("instances")
            .y_desc("microseconds")
            .x_label_formatter(&|count| format!("{count:.0e}"))
            .draw()
            .map_err(|error| failed(&error))?;
        for (share, colour) in shares.iter().zip(COLOURS.iter().cycle()) {
            for classify in [true, false] {
                let of = |row: &&&Row| {
                    row.order == *order && row.visible == *share && row.classify == classify
                };
                let mut points: Vec<_> = shown
                    .iter()
                    .filter(of)
                    .map(|row| (f64::from(row.count), row.total_us))
                    .collect();
                if points.is_empty() {
                    continue;
                }
                points.sort_by(|a, b| a.0.total_cmp(&b.0));
                let width = if classify { 3 } else { 1 };
                let style = colour.stroke_width(width);
                let with = if classify { "" } else { ", without classify" };
                let name = format!("{:.0} % visible{with}", share * 100.0);
                chart
                    .draw_series(LineSeries::new(points, style).point_size(4))
                    .map_err(|error| failed(&error))?
                    .label(name)
                    .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
            }
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
