//! One result, as a line of the table or as JSON.

use core::fmt::Write as _;
use serde::{Serialize, Serializer};

/// The medians of a case. Times are in microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub count: u64,
    pub sets: usize,
    pub levels: u32,
    pub samples: u32,
    /// Degrees by which the camera turns from frame to frame.
    pub turn: f32,
    /// Instances that the frustum keeps, and of these, those that are visible.
    pub in_frustum: u64,
    pub visible: u64,
    /// GPU time of each stage with the frustum alone.
    #[serde(serialize_with = "in_order")]
    pub frustum_us: Vec<(&'static str, f64)>,
    /// GPU time of each stage of the view that hides.
    #[serde(serialize_with = "in_order")]
    pub hiding_us: Vec<(&'static str, f64)>,
    /// CPU time of preparing and of recording a frame with the frustum alone.
    pub frustum_cpu_us: [f64; 2],
    /// The same of the view that hides.
    pub hiding_cpu_us: [f64; 2],
}

fn in_order<S: Serializer>(pairs: &[(&'static str, f64)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(pairs.iter().copied())
}

/// The rows as a Markdown table.
pub fn table(rows: &[Row]) -> String {
    let mut table = String::from(
        "| count | sets | levels | samples | in frustum | visible | frustum alone, us | hiding, us | more, us | CPU, us | hiding: CPU, us | more, us |\n\
         | --: | --: | --: | --: | --: | --: | --- | --- | --: | --- | --- | --: |\n",
    );
    for row in rows {
        let stages = |stages: &[(&'static str, f64)]| {
            let each = stages.iter().map(|(stage, us)| format!("{stage} {us:.1}"));
            each.collect::<Vec<_>>().join(", ")
        };
        let sum = |stages: &[(&'static str, f64)]| stages.iter().map(|stage| stage.1).sum::<f64>();
        let cpu = |[prepare, record]: [f64; 2]| format!("{prepare:.1} + {record:.1}");
        let cpu_sum = |both: [f64; 2]| both.iter().sum::<f64>();
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {:.1} | {} | {} | {:.1} |",
            row.count,
            row.sets,
            row.levels,
            row.samples,
            row.in_frustum,
            row.visible,
            stages(&row.frustum_us),
            stages(&row.hiding_us),
            sum(&row.hiding_us) - sum(&row.frustum_us),
            cpu(row.frustum_cpu_us),
            cpu(row.hiding_cpu_us),
            cpu_sum(row.hiding_cpu_us) - cpu_sum(row.frustum_cpu_us),
        );
    }
    table
}
