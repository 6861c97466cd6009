//! One result, as a line of the table or as JSON.

use crate::{
    common::{encoding::Encoding, stats::Times},
    input::{Order, Shape},
};
use bevy_gpu_culling::cull::{Compaction, CullingTier};
use core::fmt::Write as _;
use serde::{Serialize, Serializer};

/// The result of one compaction in one case. All its runs were verified.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    #[serde(serialize_with = "crate::common::text")]
    pub strategy: Compaction,
    #[serde(serialize_with = "encoding")]
    pub encoding: Encoding,
    #[serde(serialize_with = "crate::common::text")]
    pub tier: CullingTier,
    pub count: u32,
    /// Share of the instances that the case asks for.
    pub visible: f64,
    #[serde(serialize_with = "order")]
    pub order: Order,
    /// Survivors of the first input set.
    pub survivors: u32,
    /// Median in microseconds.
    pub us: f64,
    /// Distance from the 10th to the 90th percentile of the runs, as a share of the median.
    pub spread: f64,
    pub ginst_s: f64,
    /// Least number of bytes that the strategy moves.
    pub bytes: u64,
    /// Time of a plain read of the same instances, divided by the strategy's.
    pub read_fraction: f64,
    /// Time of `naive-atomic` in the same case, divided by the strategy's.
    pub vs_naive: Option<f64>,
    /// Time of the first rung of Giordano (2019), `hillis-steele` over matrices, in the same case,
    /// divided by the strategy's.
    pub vs_first: Option<f64>,
    pub verified: bool,
}

fn encoding<S: Serializer>(encoding: &Encoding, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(encoding.name())
}

fn order<S: Serializer>(order: &Order, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(order.name())
}

impl Row {
    /// A row without ratios, which need the other rows of the case ([`fill_ratios`]).
    pub fn new(
        (strategy, tier): (Compaction, CullingTier),
        shape: &Shape,
        (visible, survivors): (f64, u32),
        (times, read): (Times, Times),
    ) -> Self {
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
            vs_naive: None,
            vs_first: None,
            verified: true,
        }
    }

    fn same_case(&self, other: &Self) -> bool {
        (self.count, self.order, self.visible) == (other.count, other.order, other.visible)
    }
}

/// Fills the ratios of the rows from `first` on if the strategies that they refer to were measured.
pub fn fill_ratios(rows: &mut [Row], first: usize) {
    for index in first..rows.len() {
        let row = &rows[index];
        let us = |strategy, encoding| {
            let of = |other: &&Row| {
                other.same_case(row) && (other.strategy, other.encoding) == (strategy, encoding)
            };
            rows.iter().find(of).map(|other| other.us / row.us)
        };
        let naive = us(Compaction::NaiveAtomic, row.encoding);
        let first_rung = us(Compaction::HillisSteele, Encoding::Matrix);
        (rows[index].vs_naive, rows[index].vs_first) = (naive, first_rung);
    }
}

/// The rows as a Markdown table, in the order of the cases.
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
