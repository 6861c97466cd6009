//! One result, as a line of the table or as JSON.

use crate::points::Order;
use bevy_gpu_culling::cull::Compaction;
use core::fmt::Write as _;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// The result of one case. All its runs were verified.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub count: u32,
    /// Share of the instances that the case asks for.
    pub visible: f64,
    #[serde(serialize_with = "order")]
    pub order: Order,
    /// N, if every N-th instance is hidden; 0 if none is.
    pub hide: u32,
    /// Blocks that some view crosses, if the compaction lists them.
    pub crossed_blocks: Option<u32>,
    pub views: u32,
    /// Primitives that the instances are drawn with.
    pub primitives: usize,
    /// Requests that they are divided into: 1 if they share one culling.
    pub requests: usize,
    /// Levels of detail, the full mesh included.
    pub levels: u32,
    /// Whether near instances are drawn first; otherwise the set's order.
    pub near_first: bool,
    /// Whether survivors are sorted far first.
    pub far_first: bool,
    #[serde(serialize_with = "crate::common::text")]
    pub compaction: Compaction,
    /// Whether blocks are tested before instances.
    #[serde(serialize_with = "on_or_off")]
    pub classify: bool,
    pub tier: String,
    /// Survivors of all views.
    pub survivors: u64,
    /// Median of each stage in microseconds, in a separate pass.
    #[serde(serialize_with = "in_order")]
    pub stage_us: Vec<(&'static str, f64)>,
    /// Median of all stages in one pass in microseconds, after other data has filled the cache.
    pub total_us: f64,
    /// Median in microseconds of the same pass directly after another one like it.
    pub again_us: f64,
    /// A tenth of the median of ten repetitions in one pass, in microseconds. Code and tables are
    /// in the caches.
    pub repeated_us: f64,
    /// Distance from the 10th to the 90th percentile of the runs, as a share of the median.
    pub spread: f64,
    /// Time of a plain read of the same instances, divided by the total.
    pub read_fraction: f64,
    pub dispatches: u32,
    /// CPU milliseconds of a frame: the plugin's systems in the demo, or the engine alone without
    /// the demo.
    pub cpu_ms: BTreeMap<String, Option<f64>>,
    /// Bytes of GPU memory per instance, without the survivors' arena.
    pub bytes_per_instance: f64,
    /// Bytes of CPU memory per instance that the caller keeps (0 if it drops the instances after
    /// their upload).
    pub cpu_bytes_per_instance: f64,
    /// Bytes of the arena: 4 per survivor that fits.
    pub survivor_bytes: u64,
    /// Milliseconds of each part of a start, for the count and order.
    #[serde(serialize_with = "in_order")]
    pub start_ms: Vec<(&'static str, f64)>,
    /// Rate of the upload in gigabytes per second.
    pub upload_gb_s: f64,
    pub verified: bool,
}

fn order<S: Serializer>(order: &Order, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(order.name())
}

fn on_or_off<S: Serializer>(on: &bool, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(if *on { "on" } else { "off" })
}

fn in_order<S: Serializer>(pairs: &[(&'static str, f64)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(pairs.iter().copied())
}

/// The rows as a Markdown table.
pub fn table(rows: &[Row]) -> String {
    let mut table = String::from(
        "| count | visible | order | hidden | views | primitives | levels | compaction | crossed blocks | stages, us | total us | again us | repeated us | spread | of a plain read | CPU ms | bytes per instance |\n\
         | --: | --: | --- | --- | --: | --- | --: | --- | --: | --- | --: | --: | --: | --: | --: | --: | --: |\n",
    );
    for row in rows {
        let stages = row
            .stage_us
            .iter()
            .map(|(stage, us)| format!("{stage} {us:.1}"));
        let stages: Vec<_> = stages.collect();
        let cpu = row.cpu_ms.get("total").copied().flatten();
        let _ = writeln!(
            table,
            "| {} | {:.0} % | {} | {} | {} | {} | {} | {} | {} | {} | {:.1} | {:.1} | {:.1} | {:.0} % | {:.2} | {} | {:.2} |",
            row.count,
            row.visible * 100.0,
            row.order.name(),
            match row.hide {
                0 => "none".into(),
                hide => format!("1 in {hide}"),
            },
            row.views,
            match row.requests {
                1 => row.primitives.to_string(),
                _ => format!("{} apart", row.primitives),
            },
            row.levels,
            row.compaction,
            (row.crossed_blocks).map_or("-".into(), |crossed| crossed.to_string()),
            stages.join(", "),
            row.total_us,
            row.again_us,
            row.repeated_us,
            row.spread * 100.0,
            row.read_fraction,
            cpu.map_or("-".into(), |cpu| format!("{cpu:.3}")),
            row.bytes_per_instance,
        );
    }
    table
}

/// The result of the same scene in the demo, drawn as sets or as entities.
#[derive(Clone, Debug, Serialize)]
pub struct Peer {
    pub count: u32,
    pub peer: &'static str,
    pub frame_ms: Option<f64>,
    pub cpu_ms: Option<f64>,
    pub start_ms: Option<f64>,
    pub visible: Option<u64>,
}

/// The peers as a Markdown table.
pub fn peer_table(rows: &[Peer]) -> String {
    let mut table = String::from(
        "| orbs | drawn by | frame ms | CPU ms of the culling | start ms | visible |\n| --: | --- | --: | --: | --: | --: |\n",
    );
    let number = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.3}"));
    for row in rows {
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} | {} |",
            row.count,
            row.peer,
            number(row.frame_ms),
            number(row.cpu_ms),
            number(row.start_ms),
            row.visible
                .map_or("-".into(), |visible| visible.to_string()),
        );
    }
    table
}
