//! `cargo xtask bench edit` in CI: a small set, edited in each way.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::bench;
use crate::project::Project;
use crate::steps::Outcome;

/// Bytes of an instance without scale.
const INSTANCE: u64 = 16;

/// The part of a row that CI looks at.
#[derive(Clone, Debug, Deserialize)]
struct Row {
    places: String,
    scales: bool,
    edited: u64,
    uploaded_bytes: u64,
    floor_bytes: u64,
    verified: bool,
}

/// Runs the benchmark and checks its rows.
pub fn check(project: &Project, variable: (&str, &str)) -> Result<Outcome> {
    let flags = ["--quick", "--json"];
    let rows: Vec<Row> = bench::rows(project, bench::EDIT, &flags, variable)?;
    rows_hold(&rows)?;
    Ok(Outcome::Passed)
}

/// What must hold on every adapter.
fn rows_hold(rows: &[Row]) -> Result<()> {
    let row = |places: &str, scales: bool| {
        let mut rows = rows.iter();
        rows.find(|row| row.places == places && row.scales == scales)
            .with_context(|| format!("no row of {places} with scales {scales}"))
    };
    for places in ["random", "runs"] {
        let [plain, scaled] = [row(places, false)?, row(places, true)?];
        ensure!(
            plain.uploaded_bytes >= plain.edited * INSTANCE,
            "{places}: not all that was edited is uploaded: {plain:?}"
        );
        ensure!(
            scaled.uploaded_bytes > plain.uploaded_bytes,
            "{places}: scales are not uploaded: {scaled:?}"
        );
    }
    for row in rows {
        ensure!(row.verified, "not verified: {row:?}");
        ensure!(
            row.floor_bytes < row.uploaded_bytes,
            "a frame without an edit uploads as much as one with edits: {row:?}"
        );
    }
    let [runs, random] = [row("runs", false)?, row("random", false)?];
    ensure!(
        runs.uploaded_bytes < random.uploaded_bytes,
        "runs upload as much as instances anywhere: {runs:?}, {random:?}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Row> {
        let row = |places: &str, scales, uploaded_bytes| Row {
            places: places.into(),
            scales,
            edited: 200,
            uploaded_bytes,
            floor_bytes: 0,
            verified: true,
        };
        vec![
            row("random", false, 295_424),
            row("random", true, 369_280),
            row("runs", false, 8_192),
            row("runs", true, 10_240),
        ]
    }

    #[test]
    fn rows_that_hold_pass() -> Result<()> {
        rows_hold(&rows())
    }

    #[test]
    fn rows_that_do_not_hold_are_seen() {
        let breaks: [fn(&mut Vec<Row>); 6] = [
            |rows| drop(rows.pop()),
            |rows| rows[0].verified = false,
            |rows| rows[1].uploaded_bytes = 295_424,
            |rows| rows[2].uploaded_bytes = 3_000,
            |rows| rows[2].uploaded_bytes = 300_000,
            |rows| rows[3].floor_bytes = 10_240,
        ];
        for (number, break_it) in breaks.iter().enumerate() {
            let mut broken = rows();
            break_it(&mut broken);
            assert!(rows_hold(&broken).is_err(), "{number}");
        }
    }
}
