//! `cargo xtask bench sets` in CI: a small city, as sets and as Bevy's entities.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::bench;
use crate::project::Project;
use crate::steps::Outcome;

/// The part of a row that CI looks at.
#[derive(Clone, Debug, Deserialize)]
struct Row {
    peer: String,
    seen: u64,
    cpu_ms: f64,
    frame_ms: f64,
    verified: Option<bool>,
}

/// Runs the benchmark and checks its rows.
pub fn check(project: &Project, variable: (&str, &str)) -> Result<Outcome> {
    let flags = ["--quick", "--json", "--lods", "--occlusion", "--lamps", "1"];
    let rows: Vec<Row> = bench::rows(project, bench::SETS, &flags, variable)?;
    rows_hold(&rows)?;
    Ok(Outcome::Passed)
}

/// What must hold on every adapter.
fn rows_hold(rows: &[Row]) -> Result<()> {
    let of = |peer: &str| {
        let row = rows.iter().find(|row| row.peer == peer);
        row.with_context(|| format!("no row of {peer}"))
    };
    let (sets, bevy) = (of("sets")?, of("bevy")?);
    ensure!(sets.verified == Some(true), "not verified: {sets:?}");
    for row in [sets, bevy] {
        ensure!(row.seen > 0, "nothing is seen: {row:?}");
        ensure!(
            row.cpu_ms > 0.0 && row.frame_ms > row.cpu_ms,
            "no times: {row:?}"
        );
    }
    ensure!(
        sets.seen < bevy.seen,
        "there are as many sets as entities: {sets:?}, {bevy:?}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Row> {
        let row = |peer: &str, seen, verified| Row {
            peer: peer.into(),
            seen,
            cpu_ms: 4.0,
            frame_ms: 9.0,
            verified,
        };
        vec![row("sets", 8, Some(true)), row("bevy", 90, None)]
    }

    #[test]
    fn rows_that_hold_pass() -> Result<()> {
        rows_hold(&rows())
    }

    #[test]
    fn rows_that_do_not_hold_are_seen() {
        let breaks: [fn(&mut Vec<Row>); 5] = [
            |rows| drop(rows.pop()),
            |rows| rows[0].verified = Some(false),
            |rows| rows[1].seen = 0,
            |rows| rows[0].frame_ms = 3.0,
            |rows| rows[0].seen = 90,
        ];
        for (number, break_it) in breaks.iter().enumerate() {
            let mut broken = rows();
            break_it(&mut broken);
            assert!(rows_hold(&broken).is_err(), "{number}");
        }
    }
}
