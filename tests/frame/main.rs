//! The benchmark of frames: its scenes, its cases, and how rows are shown.
//!
//! Frames themselves are drawn by the step `frames` of `cargo xtask ci`. A separate program: the
//! files of the benchmark name each other from the root of the crate.
#![cfg(feature = "study")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(
    dead_code,
    unused_imports,
    reason = "the rest belongs to the benchmark and the demo"
)]

#[path = "../../benches/frame/case.rs"]
mod case;
#[path = "../../examples/orbs/cli.rs"]
mod cli;
#[path = "../../examples/orbs/end.rs"]
mod end;
#[path = "../../examples/orbs/failure.rs"]
mod failure;
#[path = "../../examples/orbs/field.rs"]
mod field;
#[path = "../../benches/frame/likeness.rs"]
mod likeness;
#[path = "../../examples/orbs/look.rs"]
mod look;
#[path = "../../examples/orbs/picture.rs"]
mod picture;
#[path = "../../benches/frame/row.rs"]
mod row;
#[path = "../../benches/frame/scenes/mod.rs"]
mod scenes;

use bevy::{
    camera::{CameraProjection, primitives::Sphere},
    prelude::*,
};
use bevy_gpu_culling::instance::InstanceSet;
use bevy_gpu_culling::prelude::MeshletExpansion;
use case::{Case, MAX_ENTITIES, Peer, Scene, Selection};
use clap::Parser;
use cli::{Cli, DrawOrder, Lods, Occlusion};
use failure::Failure;
use row::Row;
use scenes::{canyon, cube, demo, leaves};
use std::collections::BTreeMap;

/// Share of the instances that a camera at the origin sees in a picture of 16:9.
fn share_in_view(set: &InstanceSet, radius: f32, lens: &PerspectiveProjection, turn: Quat) -> f64 {
    let mut lens = lens.clone();
    lens.update(16.0, 9.0);
    let frustum = lens.compute_frustum(&GlobalTransform::from(Transform::from_rotation(turn)));
    let seen = set.iter().filter(|instance| {
        let sphere = Sphere {
            center: instance.translation.into(),
            radius,
        };
        frustum.intersects_sphere(&sphere, true)
    });
    seen.count() as f64 / set.len() as f64
}

#[test]
fn a_turning_camera_sees_a_fifteenth_of_the_spheres() {
    for scene in [Scene::Dense, Scene::Sparse, Scene::Meshlets] {
        let set = cube::set(scene, 40_000).unwrap();
        let lens = cube::lens(cube::side(scene, 40_000));
        let shares: Vec<f64> = (0..24)
            .map(|turn| share_in_view(&set, cube::RADIUS, &lens, cube::pose(turn as f32 / 24.0)))
            .collect();
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        assert!((0.06..0.085).contains(&mean), "{scene:?}: {mean}");
        assert!(
            shares.iter().all(|share| (0.04..0.11).contains(share)),
            "{scene:?}: {shares:?}"
        );
    }
}

#[test]
fn the_camera_sees_nearly_all_leaves() {
    let set = leaves::set(20_000).unwrap();
    let share = share_in_view(&set, 0.75, &leaves::lens(20_000), Quat::IDENTITY);
    assert!(share > 0.99, "{share}");
}

#[test]
fn leaves_lie_in_layers_in_front_of_the_camera() {
    let set = leaves::set(8000).unwrap();
    let away: Vec<f32> = set.iter().map(|leaf| -leaf.translation.z).collect();
    let nearest = away.iter().copied().fold(f32::INFINITY, f32::min);
    let farthest = away.iter().copied().fold(0.0, f32::max);
    assert!(nearest > 1.0, "{nearest}");
    assert!((1.2..1.4).contains(&(farthest / nearest)));
    assert!(farthest < leaves::lens(8000).far);
}

#[test]
fn scenes_are_the_same_every_time_and_have_their_count() {
    let make = |scene, count| match scene {
        Scene::Leaves => leaves::set(count).unwrap(),
        Scene::Canyon => canyon::set(count).unwrap(),
        _ => cube::set(scene, count).unwrap(),
    };
    for scene in [
        Scene::Dense,
        Scene::Sparse,
        Scene::Meshlets,
        Scene::Canyon,
        Scene::Leaves,
    ] {
        // The last one is made in two parts.
        for count in [1, 1000, field::PART as u32 + 5] {
            let set = make(scene, count);
            assert_eq!(set.len(), count as usize);
            assert!(set.packed() == make(scene, count).packed(), "{scene:?}");
        }
    }
}

/// The camera stands in a gap between the boulders, and walls rise on both sides.
#[test]
fn the_canyon_surrounds_its_camera() {
    let set = canyon::set(40_000).unwrap();
    let eye = canyon::eye().translation;
    let near = set.iter().map(|boulder| {
        let away = boulder.translation - eye;
        (away, away.length() - boulder.scale.max_element())
    });
    let near: Vec<_> = near.filter(|(_, gap)| *gap < 60.0).collect();
    assert!(near.iter().all(|(_, gap)| *gap > 0.5));
    for side in [-1.0, 1.0] {
        let above = near
            .iter()
            .filter(|(away, _)| away.x * side > 25.0 && away.y > 25.0);
        assert!(above.count() > 100);
    }
    let mesh = canyon::mesh();
    assert_eq!(mesh.indices().map(|indices| indices.len() / 3), Some(5120));
    let points = mesh.attribute(Mesh::ATTRIBUTE_POSITION).unwrap();
    let points = points.as_float3().unwrap().iter().copied().map(Vec3::from);
    let radii: Vec<_> = points.map(Vec3::length).collect();
    assert!(radii.iter().all(|radius| (0.6..=1.0).contains(radius)));
}

#[test]
fn spheres_fill_their_cube_evenly() {
    for scene in [Scene::Dense, Scene::Sparse] {
        let set = cube::set(scene, 8000).unwrap();
        let half = cube::side(scene, 8000) / 2.0;
        let places: Vec<Vec3> = set.iter().map(|one| one.translation).collect();
        assert!(places.iter().all(|place| place.abs().max_element() <= half));
        let in_corner = places.iter().filter(|place| place.min_element() > 0.0);
        assert!((900..1100).contains(&in_corner.count()), "{scene:?}");
    }
    assert_eq!(cube::side(Scene::Dense, 8000), 30.0);
    assert_eq!(cube::side(Scene::Sparse, 8000), 80.0);
    let triangles = cube::mesh().indices().map(|indices| indices.len() / 3);
    assert_eq!(triangles, Some(80));
}

#[test]
fn every_level_of_the_leaf_shows_part_of_the_quad() {
    let image = leaves::texture();
    let texels = image.data.unwrap();
    let (mut at, mut side) = (0, image.texture_descriptor.size.width as usize);
    while side >= 4 {
        let level = &texels[at..at + side * side * 4];
        let kept = level.chunks(4).filter(|texel| texel[3] >= 128).count();
        let share = kept as f64 / (side * side) as f64;
        assert!((0.2..0.6).contains(&share), "{side}: {share}");
        (at, side) = (at + side * side * 4, side / 2);
    }
}

fn selection<'a>(counts: &'a [u32], peers: &'a [Peer]) -> Selection<'a> {
    Selection {
        scenes: &[Scene::Demo, Scene::Dense],
        counts,
        orders: &[DrawOrder::NearFirst, DrawOrder::Set],
        lods: &[Lods::On, Lods::Off],
        expansions: &[MeshletExpansion::Auto],
        occlusion: &[Occlusion::Off],
        peers,
    }
}

#[test]
fn sets_have_a_case_per_order_and_entities_have_one() {
    let (cases, left_out) = selection(&[1000, 2000], &[Peer::Sets, Peer::Bevy]).cases();
    // The demo with levels and without.
    assert_eq!(cases.len(), 2 * (5 + 3));
    assert!(left_out.is_empty());
    let of_bevy = cases.iter().filter(|case| case.peer == Peer::Bevy);
    assert!(of_bevy.into_iter().all(|case| case.order.is_none()));
}

/// Sets by meshlets with and without levels, and entities with the same sphere.
#[test]
fn meshlets_have_levels_if_the_case_has_them() {
    let (cases, _) = Selection {
        scenes: &[Scene::Meshlets],
        ..selection(&[1000], &[Peer::Sets, Peer::Bevy])
    }
    .cases();
    assert_eq!(cases.len(), 5);
    for case in cases {
        let meshlets = scenes::meshlets::meshlets(&case).unwrap();
        let levels = meshlets.as_ref().map(|mesh| mesh.levels().len());
        let expected = case.lods.map(|lods| if lods == Lods::On { 6 } else { 1 });
        assert_eq!(levels, expected, "{case}");
        let full = meshlets.map(|mesh| mesh.triangle_count());
        assert!(full.is_none_or(|full| full == 9680));
    }
    let triangles = scenes::meshlets::sphere().indices().map(|at| at.len() / 3);
    assert_eq!(triangles, Some(9680));
}

#[test]
fn sets_have_a_case_with_occlusion_and_one_without() {
    let (cases, _) = Selection {
        scenes: &[Scene::Sparse, Scene::Meshlets, Scene::Canyon],
        orders: &[DrawOrder::NearFirst],
        lods: &[Lods::On],
        occlusion: &[Occlusion::On, Occlusion::Off],
        ..selection(&[1000], &[Peer::Sets, Peer::Bevy])
    }
    .cases();
    let occlusion: Vec<_> = cases.iter().map(|case| case.occlusion).collect();
    let [on, off] = [Occlusion::On, Occlusion::Off].map(Some);
    // Meshlets are never hidden, and neither are entities by this crate. In the canyon, Bevy hides
    // them.
    assert_eq!(occlusion, [on, off, None, None, None, on, off, on, off]);
    assert!(
        cases[0]
            .flags()
            .ends_with(&["--occlusion".into(), "on".into()])
    );
}

#[test]
fn sets_by_meshlets_have_a_case_per_expansion() {
    let expansions: Vec<_> = MeshletExpansion::all().collect();
    let (cases, _) = Selection {
        scenes: &[Scene::Meshlets, Scene::Dense],
        expansions: &expansions,
        ..selection(&[1000], &[Peer::Sets, Peer::Bevy])
    }
    .cases();
    let by_meshlets = 2 * 2 * expansions.len();
    assert_eq!(cases.len(), by_meshlets + 1 + 2 + 1);
    for case in cases {
        let flag = case.expansion.map(|expansion| expansion.to_string());
        assert_eq!(
            case.flags().contains(&"--expansion".to_owned()),
            flag.is_some()
        );
        assert!(
            flag.is_none_or(|flag| case.flags().contains(&flag)),
            "{case}"
        );
    }
}

#[test]
fn too_many_entities_are_left_out() {
    let counts = [MAX_ENTITIES, MAX_ENTITIES + 1];
    let (cases, left_out) = selection(&counts, &[Peer::Sets, Peer::Bevy]).cases();
    assert_eq!((cases.len(), left_out.len()), (14, 2));
    let too_many = |case: &Case| case.peer == Peer::Bevy && case.count > MAX_ENTITIES;
    assert!(left_out.iter().all(too_many) && !cases.iter().any(too_many));
}

#[test]
fn the_demo_takes_the_flags_of_its_cases() {
    let (cases, _) = selection(&[1000], &[Peer::Sets, Peer::Bevy]).cases();
    for case in cases {
        let cli = Cli::try_parse_from(demo::flags(&case)).unwrap();
        assert_eq!(cli.count, 1000);
        assert_eq!(cli.peer.is_some(), case.peer == Peer::Bevy);
        assert_eq!(cli.order, case.order.unwrap_or_default());
    }
    assert_eq!(cli::parse_size("320x180"), Ok(UVec2::new(320, 180)));
}

fn sample() -> Row {
    Row {
        scene: "dense".into(),
        count: 1000,
        order: Some("near-first".into()),
        lods: Some("on".into()),
        expansion: Some("division".into()),
        occlusion: Some("on".into()),
        shadows: Some("off".into()),
        peer: "sets".into(),
        frame_ms: 1.25,
        worst_ms: 2.5,
        cut_ms: Some(1.75),
        after_cut_ms: Some(1.5),
        floor_ms: 0.5,
        passes_ms: BTreeMap::from([
            ("gpu_culling/compact".into(), 0.25),
            ("gpu_culling/scan".into(), 0.5),
            (row::MAIN_PASS.into(), 0.125),
            (row::OUR_MAIN_PASSES[0].into(), 0.03125),
            (row::OUR_MAIN_PASSES[1].into(), 0.03125),
        ]),
        triangles: Some(5280),
        visible: 66,
        cpu_ms: Some(0.05),
        verified: Some(true),
        kept_over_seen: Some(2.5),
        psnr: Some(24.8125),
        differing: Some(0.125),
        adapter: "a".into(),
        driver: "d".into(),
        size: [1920, 1080],
        frames: 150,
    }
}

#[test]
fn json_has_the_fields_of_the_contract() {
    let line = serde_json::to_string(&sample()).unwrap();
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    for field in [
        "scene",
        "count",
        "order",
        "lods",
        "expansion",
        "occlusion",
        "shadows",
        "peer",
        "frame_ms",
        "worst_ms",
        "cut_ms",
        "after_cut_ms",
        "floor_ms",
        "passes_ms",
        "triangles",
        "visible",
        "cpu_ms",
        "verified",
        "psnr",
        "differing",
        "adapter",
        "driver",
        "size",
    ] {
        assert!(value.get(field).is_some(), "{field}");
    }
    assert_eq!(value["passes_ms"][row::MAIN_PASS], 0.125);
    // The process of a case sends its row as JSON.
    assert_eq!(serde_json::from_str::<Row>(&line).unwrap(), sample());
}

#[test]
fn every_line_of_the_table_has_every_column() {
    let entities = Row {
        order: None,
        lods: None,
        expansion: None,
        occlusion: None,
        shadows: None,
        cut_ms: None,
        after_cut_ms: None,
        peer: "bevy".into(),
        cpu_ms: None,
        kept_over_seen: None,
        verified: None,
        psnr: None,
        differing: None,
        triangles: None,
        passes_ms: BTreeMap::new(),
        ..sample()
    };
    let table = row::table(&[sample(), entities]);
    let lines: Vec<_> = table.lines().collect();
    assert_eq!(lines.len(), 4);
    let bars = |line: &str| line.matches('|').count();
    assert!(lines.iter().all(|line| bars(line) == bars(lines[0])));
    assert_eq!(
        lines[2],
        "| dense | 1000 | sets | near-first | on | division | on | off | 1.25 | 2.50 | 1.75 (1.50) | 0.50 | 0.188 | 0.750 | 0.050 | 5280 | 66 | 2.50 | 24.8 | 12.50 % | yes |"
    );
    assert_eq!(
        lines[3],
        "| dense | 1000 | bevy | - | - | - | - | - | 1.25 | 2.50 | - | 0.50 | - | - | - | - | 66 | - | - | - | - |"
    );
}

#[test]
fn equal_pictures_have_no_noise() {
    let picture = image::RgbImage::from_fn(20, 10, |x, y| [x as u8, y as u8, 7].into());
    let likeness = likeness::of(&picture, &picture).unwrap();
    assert_eq!((likeness.psnr, likeness.differing), (None, 0.0));
    let row = Row {
        psnr: likeness.psnr,
        differing: Some(likeness.differing),
        ..sample()
    };
    let table = row::table(&[row]);
    assert!(table.contains("| equal | 0.00 % |"), "{table}");
    let smaller = image::RgbImage::new(20, 9);
    assert!(likeness::of(&picture, &smaller).is_err());
}

#[test]
fn what_differs_by_more_than_8_counts() {
    let picture = image::RgbImage::from_pixel(20, 10, [100; 3].into());
    // 25 of 200 pixels differ by 9 in one channel, and 25 by 8, which does not count.
    let mut other = picture.clone();
    for (number, pixel) in (0..50u8).zip(other.pixels_mut()) {
        pixel.0[1] += if number < 25 { 9 } else { 8 };
    }
    let likeness = likeness::of(&picture, &other).unwrap();
    assert_eq!(likeness.differing, 0.125);
    let mean: f64 = 25.0 * (81.0 + 64.0) / 600.0;
    let psnr = 20.0 * 255f64.log10() - 10.0 * mean.log10();
    assert!(
        likeness
            .psnr
            .is_some_and(|found| (found - psnr).abs() < 1e-9)
    );
}
