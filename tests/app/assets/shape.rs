//! Numbers that look random, spheres and tubes of triangles.

use bevy::math::Vec3;

/// A number from 0 to 1 that depends on `seed` alone: PCG's output function.
pub fn random(seed: u32) -> f32 {
    let state = seed.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
    let word = ((state >> ((state >> 28) + 4)) ^ state).wrapping_mul(277_803_737);
    (((word >> 22) ^ word) >> 8) as f32 / 16_777_216.0
}

/// Numbers from -1 to 1 that change smoothly with the place, over a distance of about 1.
pub fn noise(place: Vec3, seed: u32) -> f32 {
    let (cell, within) = (place.floor(), place - place.floor());
    let weight = within * within * (Vec3::splat(3.0) - 2.0 * within);
    let corner = |x: i32, y: i32, z: i32| {
        let [cx, cy, cz] = cell.to_array().map(|value| value as i32);
        let hash = (cx + x)
            .wrapping_mul(73_856_093)
            .wrapping_add((cy + y).wrapping_mul(19_349_663))
            .wrapping_add((cz + z).wrapping_mul(83_492_791));
        random(hash.cast_unsigned() ^ seed) * 2.0 - 1.0
    };
    let mix = |a: f32, b: f32, share: f32| a + (b - a) * share;
    let edge = |y, z| mix(corner(0, y, z), corner(1, y, z), weight.x);
    let face = |z| mix(edge(0, z), edge(1, z), weight.y);
    mix(face(0), face(1), weight.z)
}

/// A unit sphere: an icosahedron, each of whose triangles is cut into four `cuts` times.
pub fn sphere(cuts: u32) -> (Vec<Vec3>, Vec<[usize; 3]>) {
    // The golden ratio.
    let (a, b) = (1.0, (1.0 + 5f32.sqrt()) / 2.0);
    let mut points: Vec<Vec3> = [
        [-a, b, 0.0],
        [a, b, 0.0],
        [-a, -b, 0.0],
        [a, -b, 0.0],
        [0.0, -a, b],
        [0.0, a, b],
        [0.0, -a, -b],
        [0.0, a, -b],
        [b, 0.0, -a],
        [b, 0.0, a],
        [-b, 0.0, -a],
        [-b, 0.0, a],
    ]
    .map(|point| Vec3::from(point).normalize())
    .to_vec();
    let mut triangles = vec![
        [0, 11, 5],
        [0, 5, 1],
        [0, 1, 7],
        [0, 7, 10],
        [0, 10, 11],
        [1, 5, 9],
        [5, 11, 4],
        [11, 10, 2],
        [10, 7, 6],
        [7, 1, 8],
        [3, 9, 4],
        [3, 4, 2],
        [3, 2, 6],
        [3, 6, 8],
        [3, 8, 9],
        [4, 9, 5],
        [2, 4, 11],
        [6, 2, 10],
        [8, 6, 7],
        [9, 8, 1],
    ];
    for _ in 0..cuts {
        let mut middles = std::collections::BTreeMap::new();
        let mut middle = |a: usize, b: usize| {
            *middles.entry((a.min(b), a.max(b))).or_insert_with(|| {
                points.push((points[a] + points[b]).normalize());
                points.len() - 1
            })
        };
        triangles = triangles
            .iter()
            .flat_map(|&[a, b, c]| {
                let [ab, bc, ca] = [middle(a, b), middle(b, c), middle(c, a)];
                [[a, ab, ca], [ab, b, bc], [ca, bc, c], [ab, bc, ca]]
            })
            .collect();
    }
    (points, triangles)
}

/// The corners of a regular hexagon.
const HEXAGON: [(f32, f32); 6] = {
    // The height of an equilateral triangle.
    let h = 0.866_025_4;
    [
        (1.0, 0.0),
        (0.5, h),
        (-0.5, h),
        (-1.0, 0.0),
        (-0.5, -h),
        (0.5, -h),
    ]
};

/// A tube of six sides through these centers, with these radii, as triangles.
pub fn tube(rings: &[(Vec3, f32)]) -> Vec<[Vec3; 3]> {
    let along = (rings[rings.len() - 1].0 - rings[0].0).normalize();
    let aside = along.any_orthonormal_vector();
    let across = along.cross(aside);
    let corner = |ring: usize, side: usize| {
        let (center, radius) = rings[ring];
        let (x, y) = HEXAGON[side % 6];
        center + (aside * x + across * y) * radius
    };
    let mut triangles = Vec::new();
    for ring in 1..rings.len() {
        for side in 0..6 {
            let [a, b] = [corner(ring - 1, side), corner(ring - 1, side + 1)];
            let [c, d] = [corner(ring, side + 1), corner(ring, side)];
            triangles.extend([[a, b, c], [a, c, d]]);
        }
    }
    triangles
}
