//! One result, as a line of the table or as JSON.

use crate::{common::stats::Times, input::Distribution};
use bevy_gpu_culling::cull::{CullingTier, Expansion, expand::ExpandDispatch};
use core::fmt::Write as _;
use serde::{Serialize, Serializer};

/// The result of one expansion in one case. All its runs were verified.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    #[serde(serialize_with = "crate::common::text")]
    pub expansion: Expansion,
    #[serde(serialize_with = "distribution")]
    pub distribution: Distribution,
    pub sources: u32,
    pub items: u64,
    /// Median of pass 1 in microseconds.
    pub pass1_us: f64,
    /// Median of pass 2 in microseconds.
    pub pass2_us: f64,
    /// Distance from the 10th to the 90th percentile of the runs, as a share of the median.
    pub pass1_spread: f64,
    pub pass2_spread: f64,
    /// Billions of items per second of both passes.
    pub gitems_s: f64,
    /// Bytes of all buffers of the expansion, without the counts.
    pub bytes: u64,
    /// `bytes` divided by the bytes of `prefix-search`.
    pub vs_prefix_bytes: Option<f64>,
    /// Time of both passes of `prefix-search`, divided by this expansion's.
    pub vs_prefix: Option<f64>,
    #[serde(serialize_with = "crate::common::text")]
    pub tier: CullingTier,
    #[serde(serialize_with = "dispatch")]
    pub dispatch: ExpandDispatch,
    /// Whether one dispatch handles all buckets; `null` if the expansion has no buckets.
    pub merged: Option<bool>,
    pub verified: bool,
}

fn distribution<S: Serializer>(value: &Distribution, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(value.name())
}

fn dispatch<S: Serializer>(value: &ExpandDispatch, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(value.name())
}

/// The settings that a row belongs to.
#[derive(Clone, Copy)]
pub struct Case {
    pub expansion: Expansion,
    pub tier: CullingTier,
    pub dispatch: ExpandDispatch,
    pub merged: bool,
}

impl Row {
    /// A row without ratios, which need the other rows of the case ([`fill_ratios`]).
    pub fn new(
        case: Case,
        (distribution, sources, items): (Distribution, u32, u64),
        [first, second]: [Times; 2],
        bytes: u64,
    ) -> Self {
        Self {
            expansion: case.expansion,
            distribution,
            sources,
            items,
            pass1_us: first.median,
            pass2_us: second.median,
            pass1_spread: first.spread,
            pass2_spread: second.spread,
            gitems_s: items as f64 / (first.median + second.median) / 1e3,
            bytes,
            vs_prefix_bytes: None,
            vs_prefix: None,
            tier: case.tier,
            dispatch: case.dispatch,
            merged: case.expansion.has_buckets().then_some(case.merged),
            verified: true,
        }
    }

    pub fn us(&self) -> f64 {
        self.pass1_us + self.pass2_us
    }
}

/// Fills the ratios of the rows from `first` on if `prefix-search` was measured with the same
/// dispatch. All these rows have the same input.
pub fn fill_ratios(rows: &mut [Row], first: usize) {
    let prefix: Vec<_> = rows[first..]
        .iter()
        .filter(|row| row.expansion == Expansion::PrefixSearch)
        .map(|row| (row.dispatch, row.us(), row.bytes))
        .collect();
    for row in &mut rows[first..] {
        let same = prefix
            .iter()
            .find(|(dispatch, ..)| *dispatch == row.dispatch);
        row.vs_prefix = same.map(|(_, us, _)| us / row.us());
        row.vs_prefix_bytes = same.map(|(_, _, bytes)| row.bytes as f64 / *bytes as f64);
    }
}

/// The rows as a Markdown table, in the order of the cases.
pub fn table(rows: &[Row]) -> String {
    let mut table = String::from(
        "| distribution | sources | items | expansion | dispatch | pass 1 us | pass 2 us | G items/s | KB | x prefix-search | x its bytes |\n\
         | --- | --: | --: | --- | --- | --: | --: | --: | --: | --: | --: |\n",
    );
    let ratio = |ratio: Option<f64>| ratio.map_or("-".into(), |ratio| format!("{ratio:.2}"));
    for row in rows {
        let separate = if row.merged == Some(false) {
            ", separate"
        } else {
            ""
        };
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {}{separate} | {:.1} | {:.1} | {:.2} | {:.0} | {} | {} |",
            row.distribution.name(),
            row.sources,
            row.items,
            row.expansion,
            row.dispatch.name(),
            row.pass1_us,
            row.pass2_us,
            row.gitems_s,
            row.bytes as f64 / 1e3,
            ratio(row.vs_prefix),
            ratio(row.vs_prefix_bytes),
        );
    }
    table
}
