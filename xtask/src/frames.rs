//! `cargo xtask bench frame` in CI: small frames of every scene, drawn as sets and as Bevy's
//! entities.

use std::ops::Range;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::bench;
use crate::project::Project;
use crate::steps::Outcome;

/// The scenes, each of which must have its rows.
const SCENES: [&str; 7] = [
    "demo", "dense", "sparse", "meshlets", "canyon", "leaves", "forest",
];

/// Share of the entities' triangles that sets draw. Sets are tested by spheres around vertices,
/// Bevy's entities by boxes: of long meshes, sets draw more. Of balls, they draw fewer. In the scene
/// `dense`, 132 centers are in the view. Next to its planes, which are about 233 square units large,
/// balls are kept up to their radius of 0.5, boxes up to about 0.67. With 0.3 balls per cubic unit,
/// that is 166 balls and 178 boxes. (154 and 176 are kept.)
const SHARE: Range<f64> = 0.85..1.1;

/// Least share of the triangles that sets draw by meshlets: about half of a sphere faces away, and
/// meshlets at its edge are drawn whole.
const MIN_OF_MESHLETS: f64 = 0.4;

/// The part of a row that CI looks at.
#[derive(Clone, Debug, Deserialize)]
struct Row {
    scene: String,
    peer: String,
    frame_ms: f64,
    floor_ms: f64,
    visible: u64,
    /// `None` on adapters that do not count them.
    triangles: Option<u64>,
    verified: Option<bool>,
}

/// Runs the benchmark and checks its rows.
pub fn check(project: &Project, variable: (&str, &str)) -> Result<Outcome> {
    // Levels of detail draw fewer triangles than entities do.
    let flags = [
        "--quick",
        "--json",
        "--order",
        "near-first",
        "--lods",
        "off",
    ];
    let rows: Vec<Row> = bench::rows(project, bench::FRAME, &flags, variable)?;
    SCENES
        .iter()
        .try_for_each(|scene| check_scene(scene, &rows))?;
    Ok(Outcome::Passed)
}

/// Holds if the scene was drawn as sets and as entities, and both drew about the same.
fn check_scene(scene: &str, rows: &[Row]) -> Result<()> {
    let of = |peer: &str| {
        let mut rows = rows.iter().filter(|row| row.scene == scene);
        rows.find(|row| row.peer == peer)
            .with_context(|| format!("scene {scene}: no row of {peer}"))
    };
    let (sets, bevy) = (of("sets")?, of("bevy")?);
    ensure!(
        sets.verified == Some(true),
        "scene {scene}: the survivors were not verified"
    );
    for row in [sets, bevy] {
        ensure!(
            row.visible > 0 && row.triangles != Some(0),
            "scene {scene}: {} draws nothing",
            row.peer
        );
        ensure!(
            row.frame_ms > 0.0 && row.floor_ms > 0.0,
            "scene {scene}: {} has no times",
            row.peer
        );
    }
    if let (Some(ours), Some(theirs)) = (sets.triangles, bevy.triangles) {
        let share = ours as f64 / theirs as f64;
        let allowed = match scene {
            "meshlets" => MIN_OF_MESHLETS..1.0,
            _ => SHARE,
        };
        ensure!(
            allowed.contains(&share),
            "scene {scene}: sets draw {ours} triangles, entities {theirs}"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(peer: &str) -> Row {
        Row {
            scene: "dense".into(),
            peer: peer.into(),
            frame_ms: 2.0,
            floor_ms: 1.0,
            visible: 100,
            triangles: Some(8000),
            verified: (peer == "sets").then_some(true),
        }
    }

    fn fails(change: impl FnOnce(&mut [Row; 2])) -> bool {
        let mut rows = [row("sets"), row("bevy")];
        change(&mut rows);
        let scene = rows[0].scene.clone();
        check_scene(&scene, &rows).is_err()
    }

    #[test]
    fn a_scene_that_both_draw_passes() {
        assert!(!fails(|_| ()));
        assert!(!fails(|rows| rows[0].triangles = Some(8400)));
        assert!(!fails(|rows| rows[0].triangles = None));
    }

    #[test]
    fn meshlets_draw_fewer_triangles() {
        let draws = |triangles| {
            !fails(|rows| {
                rows[0].triangles = Some(triangles);
                rows.iter_mut()
                    .for_each(|row| row.scene = "meshlets".into());
            })
        };
        assert!(draws(5200) && !draws(8000) && !draws(2000));
    }

    #[test]
    fn what_is_wrong_with_a_scene_is_seen() {
        assert!(fails(|rows| rows[0].verified = None));
        assert!(fails(|rows| rows[0].triangles = Some(6600)));
        assert!(fails(|rows| rows[0].triangles = Some(8900)));
        assert!(fails(|rows| rows[1].triangles = Some(0)));
        assert!(fails(|rows| rows[1].visible = 0));
        assert!(fails(|rows| rows[0].frame_ms = 0.0));
        assert!(fails(|rows| rows[1].scene = "sparse".into()));
    }
}
