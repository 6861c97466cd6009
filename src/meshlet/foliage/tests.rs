use super::*;
use crate::meshlet::{LodSettings, MeshletError, SimplifiedMesh, cut::tests::grid};
use std::collections::{BTreeMap, BTreeSet};

/// [`VertexAttribute::id`] of the numbers that leaves have here.
const NUMBER: u64 = 77;
/// The number of what is no leaf.
const TRUNK: u32 = u32::MAX;

const ON: LodSettings = LodSettings {
    max_levels: 5,
    kept: 0.5,
    min_triangles: 4,
    foliage: true,
};
const OFF: LodSettings = LodSettings {
    foliage: false,
    ..ON
};

/// Gives each vertex a number.
fn numbered(points: &[Vec3], indices: Vec<u32>, numbers: &[u32]) -> MeshData {
    let mut mesh = MeshData::from_positions(points, Some(indices));
    mesh.attributes.push(VertexAttribute {
        id: NUMBER,
        format: 1,
        stride: 4,
        bytes: numbers.iter().flat_map(|one| one.to_le_bytes()).collect(),
    });
    mesh
}

/// Squares of this width, each with its own number, in a cube of side 4. They face all directions.
fn crown(count: u32, width: f32) -> MeshData {
    let (mut points, mut indices, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    for leaf in 0..count {
        // Multiples of these are evenly spread.
        let at = |step: f32| (leaf as f32 * step).fract() * 4.0;
        let middle = Vec3::new(at(0.819_172_5), at(0.671_043_6), at(0.549_700_5));
        let across = Vec3::new(at(0.414_2) - 2.0, at(0.236_1) - 2.0, 0.5).normalize();
        let along = across
            .cross(Vec3::new(0.3, 0.2, at(0.732_1) - 2.0))
            .normalize();
        let first = points.len() as u32;
        for [x, y] in [[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]] {
            points.push(middle + (across * x + along * y) * width);
            numbers.push(leaf);
        }
        indices.extend([0, 1, 2, 0, 2, 3].map(|corner| first + corner));
    }
    numbered(&points, indices, &numbers)
}

/// A crown over a bumpy sheet of 800 triangles.
fn tree() -> MeshData {
    let (sheet, crown) = (grid(20), crown(800, 0.2));
    let mut points = positions(&sheet.attributes).unwrap_or_default();
    let mut indices = sheet.indices.unwrap_or_default();
    let mut numbers = vec![TRUNK; points.len()];
    let first = points.len() as u32;
    let over = positions(&crown.attributes).unwrap_or_default();
    points.extend(over.iter().map(|point| *point + Vec3::Y * 5.0));
    indices.extend(crown.indices.iter().flatten().map(|index| first + index));
    numbers.extend((0..800).flat_map(|leaf| [leaf; 4]));
    numbered(&points, indices, &numbers)
}

fn points_of(mesh: &MeshData) -> Vec<Vec3> {
    positions(&mesh.attributes).unwrap_or_default()
}

/// Number and corners of each triangle.
fn numbered_triangles(mesh: &MeshData) -> Vec<(u32, [Vec3; 3])> {
    let numbers = mesh.attributes.iter().find(|one| one.id == NUMBER);
    let numbers = numbers.map(|one| bytemuck::pod_collect_to_vec::<u8, u32>(&one.bytes));
    let numbers = numbers.unwrap_or_default();
    let indices = mesh.indices.as_deref().unwrap_or_default();
    let corners = triangles(&points_of(mesh), indices).collect::<Vec<_>>();
    let first = indices.chunks_exact(3).map(|one| numbers[one[0] as usize]);
    first.zip(corners).collect()
}

fn leaf_area(mesh: &MeshData) -> f32 {
    let leaves = numbered_triangles(mesh).into_iter();
    let leaves = leaves.filter(|(number, _)| *number != TRUNK);
    leaves.map(|(_, corners)| area_of(corners)).sum()
}

/// Number of triangles of each leaf.
fn leaves_of(mesh: &MeshData) -> BTreeMap<u32, usize> {
    let mut leaves = BTreeMap::new();
    for (number, _) in numbered_triangles(mesh) {
        *leaves.entry(number).or_default() += 1;
    }
    leaves.remove(&TRUNK);
    leaves
}

fn box_of(mesh: &MeshData) -> Box3 {
    Box3::around(points_of(mesh).into_iter())
}

fn is_inside(level: &MeshData, full: &MeshData) -> bool {
    let (own, all) = (box_of(level), box_of(full));
    own.min.cmpge(all.min).all() && own.max.cmple(all.max).all()
}

fn triangle_count(mesh: &MeshData) -> usize {
    mesh.indices.as_ref().map_or(0, Vec::len) / 3
}

#[test]
fn levels_have_half_the_leaves_and_all_of_their_area() -> Result<(), MeshletError> {
    let full = crown(1000, 0.1);
    let levels = full.simplified(&ON)?;
    assert_eq!(levels.len(), 5);
    let wanted = leaf_area(&full);
    let mut finer = (leaves_of(&full), 0.0);
    for SimplifiedMesh { data, error } in &levels {
        let leaves = leaves_of(data);
        assert_eq!(leaves.len(), finer.0.len() / 2);
        assert!(leaves.values().all(|count| *count == 2), "whole leaves");
        let of_finer: BTreeSet<_> = finer.0.keys().collect();
        assert!(leaves.keys().all(|leaf| of_finer.contains(leaf)), "nested");
        let area = leaf_area(data);
        assert!((area / wanted - 1.0).abs() < 0.01, "{area} of {wanted}");
        assert!(is_inside(data, &full));
        assert!(*error > finer.1, "{error} after {}", finer.1);
        finer = (leaves, *error);
    }
    Ok(())
}

/// Points of a square whose side grows by d move by d / sqrt(6), root mean square, and those of
/// leaves that are left out lie a gap away.
#[test]
fn the_error_is_the_growth_or_the_gap() -> Result<(), MeshletError> {
    for factor in [1.0, 100.0] {
        // Wide leaves are near each other; tiny ones are far apart.
        for (width, is_growth) in [(0.3, true), (1e-3, false)] {
            let plain = crown(1000, width);
            let points: Vec<_> = points_of(&plain).iter().map(|one| *one * factor).collect();
            let full = MeshData::from_positions(&points, plain.indices);
            let levels = full.simplified(&ON)?;
            let last = levels.last().map_or(0.0, |level| level.error / factor);
            let share: f32 = 31.0 / 1000.0;
            let growth = width * (share.powf(-0.5) - 1.0) / 6f32.sqrt();
            if is_growth {
                // Leaves at the border are pushed back, too.
                assert!(
                    (growth * 0.99..growth * 2.0).contains(&last),
                    "{last}, {growth}"
                );
            } else {
                // The mean distance of the nearest of n random points is 0.55 n^(-1/3).
                let gap = 0.55 * 4.0 / 31f32.cbrt();
                assert!((gap * 0.7..gap * 1.6).contains(&last), "{last}, {gap}");
            }
        }
    }
    Ok(())
}

#[test]
fn kept_leaves_are_spread_evenly() -> Result<(), MeshletError> {
    let full = crown(1600, 0.05);
    let levels = full.simplified(&ON)?;
    for SimplifiedMesh { data, .. } in &levels {
        let mut octants = [0; 8];
        let mut sum = Vec3::ZERO;
        let corners = points_of(data);
        for leaf in corners.chunks_exact(4) {
            let middle = leaf.iter().sum::<Vec3>() / 4.0;
            let axes = [0, 1, 2].map(|axis| usize::from(middle[axis] > 2.0) << axis);
            octants[axes.iter().sum::<usize>()] += 1;
            sum += middle;
        }
        let count = corners.len() / 4;
        let even = count as f32 / 8.0;
        for octant in octants {
            let share = octant as f32 / even;
            assert!((0.4..1.7).contains(&share), "{octants:?}");
        }
        let middle = sum / count as f32;
        let off = middle.distance(Vec3::splat(2.0));
        assert!(off < 0.4, "{count} leaves around {middle}");
    }
    Ok(())
}

#[test]
fn the_trunk_is_simplified_as_ever() -> Result<(), MeshletError> {
    let full = tree();
    let levels = full.simplified(&ON)?;
    assert_eq!(levels.len(), 5);
    let wanted = leaf_area(&full);
    let mut before = triangle_count(&full);
    let mut trunk_before = 800;
    for SimplifiedMesh { data, .. } in &levels {
        let all = triangle_count(data);
        assert!(all <= before / 2 + 2, "{all} of {before}");
        let leaves: usize = leaves_of(data).values().sum();
        let trunk = all - leaves;
        assert!(trunk > 0 && trunk <= trunk_before / 2 + 2, "{trunk}");
        let area = leaf_area(data);
        assert!((area / wanted - 1.0).abs() < 0.01, "{area} of {wanted}");
        (before, trunk_before) = (all, trunk);
        let used: BTreeSet<_> = data.indices.iter().flatten().collect();
        assert_eq!(used.len(), data.vertex_count as usize);
    }
    Ok(())
}

#[test]
fn the_same_mesh_has_the_same_levels() -> Result<(), MeshletError> {
    assert_eq!(tree().simplified(&ON)?, tree().simplified(&ON)?);
    Ok(())
}

#[test]
fn without_leaves_or_with_few_the_setting_changes_nothing() -> Result<(), MeshletError> {
    for mesh in [grid(16), grid(1), crown(31, 0.1)] {
        assert_eq!(mesh.simplified(&ON)?, mesh.simplified(&OFF)?);
    }
    Ok(())
}

/// Blades are as tall as the whole tuft. They grow wider, not taller.
#[test]
fn grass_stays_as_low_as_it_is() -> Result<(), MeshletError> {
    let (mut points, mut indices) = (Vec::new(), Vec::new());
    for blade in 0..400u32 {
        let foot = Vec3::new((blade % 20) as f32 * 0.1, 0.0, (blade / 20) as f32 * 0.1);
        let turn = blade as f32 * 2.4;
        let across = Vec3::new(turn.cos(), 0.0, turn.sin()) * 0.01;
        points.extend([foot - across, foot + across, foot + Vec3::Y]);
        indices.extend([0, 1, 2].map(|corner| 3 * blade + corner));
    }
    let full = numbered(&points, indices, &vec![0; points.len()]);
    let levels = full.simplified(&ON)?;
    assert!(levels.len() >= 4, "{}", levels.len());
    for SimplifiedMesh { data, .. } in &levels {
        assert!(is_inside(data, &full));
        let (area, wanted) = (leaf_area(data), leaf_area(&full));
        assert!((area / wanted - 1.0).abs() < 0.01, "{area} of {wanted}");
    }
    Ok(())
}

#[test]
fn triangles_share_a_component_by_place_not_by_index() {
    let points = [
        Vec3::ZERO,
        Vec3::X,
        Vec3::Y,
        // -0, the same place as 0.
        Vec3::new(-0.0, -0.0, -0.0),
        Vec3::Z,
        Vec3::NEG_X,
        Vec3::splat(5.0),
        Vec3::splat(6.0),
        Vec3::splat(7.0),
    ];
    let found = components(&points, &[6, 7, 8, 0, 1, 2, 3, 4, 5]);
    assert_eq!(found, [vec![6, 7, 8], vec![0, 1, 2, 3, 4, 5]]);
}

#[test]
fn bad_meshes_are_refused_and_leaves_without_area_are_no_leaves() -> Result<(), MeshletError> {
    let mut bad = crown(100, 0.1);
    bad.attributes[0].bytes[4..8].copy_from_slice(&f32::NAN.to_le_bytes());
    let error = bad.simplified(&ON).err();
    assert!(
        matches!(
            error,
            Some(MeshletError::NonFinitePosition { vertex: 0, .. })
        ),
        "{error:?}"
    );
    let mut none = crown(100, 0.1);
    none.indices = Some(Vec::new());
    let error = none.simplified(&ON).err();
    assert_eq!(error, Some(MeshletError::NoTriangles { indices: 0 }));
    // All corners of each leaf at one place.
    let [on, off] = [ON, OFF].map(|settings| crown(100, 0.0).simplified(&settings));
    assert_eq!(on?.len(), off?.len());
    let mut some = crown(100, 0.1);
    some.attributes[0].bytes.copy_within(0..12, 12);
    some.attributes[0].bytes.copy_within(0..24, 24);
    for level in some.simplified(&ON)? {
        assert!(points_of(&level.data).iter().all(|point| point.is_finite()));
        assert!(level.error.is_finite());
    }
    Ok(())
}
