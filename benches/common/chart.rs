//! Draws a benchmark's results as an SVG: one or more panels beside each other, with lines on
//! shared logarithmic axes.

use anyhow::{Result, anyhow};
use plotters::prelude::*;
use std::path::Path;

/// Line colors that people with red-green color blindness can tell apart (Okabe and Ito).
const COLORS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 158, 115),
    RGBColor(230, 159, 0),
    RGBColor(204, 121, 167),
    RGBColor(120, 120, 120),
    RGBColor(0, 0, 0),
];
const HEIGHT: u32 = 620;

/// A chart of one or more panels.
pub struct Chart {
    /// Heading above the panels. It may have several lines.
    pub title: String,
    /// Labels of the x and y axes.
    pub axes: [&'static str; 2],
    /// Width of one panel in pixels.
    pub panel_width: u32,
    pub panels: Vec<Panel>,
}

pub struct Panel {
    pub caption: String,
    pub lines: Vec<Line>,
}

pub struct Line {
    pub name: String,
    /// Index of the line's color. The same index gives the same color in every panel.
    pub color: usize,
    /// Line width in pixels.
    pub width: u32,
    /// Points in any order. Both coordinates are above zero.
    pub points: Vec<(f64, f64)>,
}

impl Chart {
    /// Draws the chart to `path`. A chart without points is not drawn.
    pub fn write(self, path: &Path) -> Result<()> {
        let lines = || self.panels.iter().flat_map(|panel| &panel.lines);
        if lines().all(|line| line.points.is_empty()) {
            return Ok(());
        }
        let range = |of: fn(&(f64, f64)) -> f64| {
            let all = || lines().flat_map(|line| &line.points).map(of);
            all().fold(f64::INFINITY, f64::min) / 1.3..all().fold(0.0, f64::max) * 1.3
        };
        let (across, up) = (range(|point| point.0), range(|point| point.1));

        let failed = |error: &dyn core::fmt::Display| anyhow!("{}: {error}", path.display());
        let width = self.panel_width * self.panels.len() as u32;
        let area = SVGBackend::new(path, (width, HEIGHT)).into_drawing_area();
        area.fill(&WHITE).map_err(|error| failed(&error))?;
        let area = self.title.lines().try_fold(area, |area, line| {
            area.titled(line, ("sans-serif", 20))
                .map_err(|error| failed(&error))
        })?;
        let parts = area.split_evenly((1, self.panels.len()));
        for (part, panel) in parts.iter().zip(self.panels) {
            let mut chart = ChartBuilder::on(part)
                .caption(&panel.caption, ("sans-serif", 18))
                .margin(12)
                .x_label_area_size(44)
                .y_label_area_size(64)
                .build_cartesian_2d(across.clone().log_scale(), up.clone().log_scale())
                .map_err(|error| failed(&error))?;
            chart
                .configure_mesh()
                .x_desc(self.axes[0])
                .y_desc(self.axes[1])
                .x_labels(4)
                .max_light_lines(1)
                .x_label_formatter(&|count| format!("{count:.0e}"))
                .draw()
                .map_err(|error| failed(&error))?;
            for mut line in panel.lines {
                line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
                let style = COLORS[line.color % COLORS.len()].stroke_width(line.width);
                chart
                    .draw_series(LineSeries::new(line.points, style).point_size(4))
                    .map_err(|error| failed(&error))?
                    .label(line.name)
                    .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
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
}
