//! A measured case, as a line of the table or as JSON.

use crate::{
    common::{encoding::Encoding, stats::Times},
    input::{Order, Shape},
};
use bevy_gpu_culling::cull::{Compaction, CullingTier};
use core::fmt::Write as _;
use serde::{Serialize, Serializer};

/// One compaction in one case. All of its runs were verified.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    #[serde(serialize_with = "text")]
    pub strategy: Compaction,
    #[serde(serialize_with = "encoding")]
    pub encoding: Encoding,
    #[serde(serialize_with = "text")]
    pub tier: CullingTier,
    pub count: u32,
    /// The share that was asked for.
    pub visible: f64,
    #[serde(serialize_with = "order")]
    pub order: Order,
    /// Survivors of the first input set.
    pub survivors: u32,
    /// Median.
    pub us: f64,
    /// From the tenth to the ninetieth hundredth of the runs, as a share of the median.
    pub spread: f64,
    pub ginst_s: f64,
    /// Bytes that the strategy moves at least.
    pub bytes: u64,
    /// Time of a plain read of the same instances over the strategy's.
    pub read_fraction: f64,
    /// How many times faster than `naive-atomic` in the same case.
    pub vs_naive: Option<f64>,
    /// How many times faster than the article's first rung (`hillis-steele` over matrices) in the same case.
    pub vs_first: Option<f64>,
    pub verified: bool,
}

fn text<T: core::fmt::Display, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

fn encoding<S: Serializer>(encoding: &Encoding, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(encoding.name())
}

fn order<S: Serializer>(order: &Order, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(order.name())
}

impl Row {
    /// `before` are the rows that the ratios refer to.
    pub fn new(
        (strategy, tier): (Compaction, CullingTier),
        shape: &Shape,
        (visible, survivors): (f64, u32),
        (times, read): (Times, Times),
        before: &[Self],
    ) -> Self {
        let same_case = |row: &&Self| {
            (row.count, row.order) == (shape.count, shape.order) && row.visible == visible
        };
        let ratio_to = |compaction, encoding| {
            if (strategy, shape.encoding) == (compaction, encoding) {
                return Some(1.0);
            }
            let of = |row: &&Self| row.strategy == compaction && row.encoding == encoding;
            before
                .iter()
                .filter(same_case)
                .find(of)
                .map(|row| row.us / times.median)
        };
        let count = u64::from(shape.count);
        let stride = shape.encoding.bytes() as u64;
        Self {
            strategy,
            encoding: shape.encoding,
            tier,
            count: shape.count,
            visible,
            order: shape.order,
            survivors,
            us: times.median,
            spread: times.spread,
            ginst_s: count as f64 / times.median / 1e3,
            bytes: strategy.traffic(count, stride, u64::from(survivors)),
            read_fraction: read.median / times.median,
            vs_naive: ratio_to(Compaction::NaiveAtomic, shape.encoding),
            vs_first: ratio_to(Compaction::HillisSteele, Encoding::Matrix),
            verified: true,
        }
    }
}

/// The rows as a Markdown table, case after case.
pub fn table(rows: &[Row]) -> String {
    let mut table = String::from(
        "| count | visible | order | encoding | strategy | us | spread | G inst/s | MB | of a plain read | x naive | x first rung |\n\
         | --: | --: | --- | --- | --- | --: | --: | --: | --: | --: | --: | --: |\n",
    );
    let ratio = |ratio: Option<f64>| ratio.map_or("-".into(), |ratio| format!("{ratio:.2}"));
    for row in rows {
        let _ = writeln!(
            table,
            "| {} | {:.0} % | {} | {} | {} | {:.1} | {:.0} % | {:.3} | {:.1} | {:.2} | {} | {} |",
            row.count,
            row.visible * 100.0,
            row.order.name(),
            row.encoding.name(),
            row.strategy,
            row.us,
            row.spread * 100.0,
            row.ginst_s,
            row.bytes as f64 / 1e6,
            row.read_fraction,
            ratio(row.vs_naive),
            ratio(row.vs_first),
        );
    }
    table
}
