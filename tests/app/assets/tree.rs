//! A tree of some hundred triangles: a trunk with branches, leaves of two colors, and apples.

use super::{
    glb::{Glb, Material, Node, Primitive, Vertex},
    shape::{noise, random, sphere, tube},
};
use bevy::math::Vec3;

/// The file.
pub fn file() -> Vec<u8> {
    let mut glb = Glb::default();
    let bark = glb.material(Material::new("Bark", [0.19, 0.11, 0.06], 0.95));
    let shade = glb.material(Material::new(
        "Leaves in the shade",
        [0.09, 0.23, 0.05],
        0.85,
    ));
    let light = glb.material(Material::new(
        "Leaves in the light",
        [0.24, 0.42, 0.07],
        0.8,
    ));
    let apples = glb.material(Material::new("Apples", [0.62, 0.05, 0.03], 0.4));
    let wood = glb.mesh("Wood", vec![Primitive::new(bark, trunk())]);
    let leaves = glb.mesh(
        "Leaves",
        vec![
            Primitive::new(shade, blobs(&SHADE)),
            Primitive::new(light, blobs(&LIGHT)),
            Primitive::new(apples, fruit()),
        ],
    );
    let trunk = glb.node(Node::of_mesh("Trunk", wood));
    let crown = glb.node(Node {
        translation: Some([0.1, 3.0, -0.05]),
        scale: Some([1.25; 3]),
        ..Node::of_mesh("Crown", leaves)
    });
    let root = glb.node(Node {
        children: Some(vec![trunk, crown]),
        ..Node::new("Tree")
    });
    glb.into_bytes(root)
}

/// Center and radius of the blobs of leaves, in the crown's space.
const SHADE: [([f32; 3], f32); 3] = [
    ([0.75, 0.25, 0.2], 0.85),
    ([-0.6, 0.15, 0.55], 0.8),
    ([-0.25, 0.3, -0.75], 0.85),
];
const LIGHT: [([f32; 3], f32); 4] = [
    ([0.0, 1.15, 0.0], 1.0),
    ([0.55, 0.75, -0.6], 0.55),
    ([-0.75, 0.8, -0.1], 0.5),
    ([0.2, 0.75, 0.8], 0.55),
];

/// A bent trunk that widens into the ground, and three branches into the crown.
fn trunk() -> Vec<[Vertex; 3]> {
    let ring = |x: f32, y: f32, z: f32, radius: f32| (Vec3::new(x, y, z), radius);
    let mut triangles = tube(&[
        ring(0.0, -0.5, 0.0, 0.42),
        ring(0.0, 0.0, 0.0, 0.34),
        ring(0.02, 0.35, 0.0, 0.23),
        ring(0.08, 1.5, -0.02, 0.17),
        ring(0.05, 2.7, -0.06, 0.13),
        ring(0.1, 4.2, -0.05, 0.04),
    ]);
    for (from, to) in [
        ([0.07, 1.8, -0.03], [0.95, 3.2, 0.25]),
        ([0.06, 2.0, -0.03], [-0.7, 3.2, 0.6]),
        ([0.06, 2.2, -0.04], [-0.2, 3.4, -0.85]),
    ] {
        triangles.extend(tube(&[(from.into(), 0.09), (to.into(), 0.03)]));
    }
    // Lighter with the height.
    let shade = |point: Vec3| 0.6 + 0.4 * (point.y / 2.0).clamp(0.0, 1.0);
    flat(triangles, shade)
}

/// Uneven spheres, darker below, as if the leaves above cast shadows.
fn blobs(blobs: &[([f32; 3], f32)]) -> Vec<[Vertex; 3]> {
    let mut triangles = Vec::new();
    for (index, (center, radius)) in blobs.iter().enumerate() {
        let (points, faces) = sphere(u32::from(*radius > 0.6));
        let points: Vec<_> = points
            .iter()
            .map(|point| {
                let uneven = 1.0 + 0.22 * noise(*point * 1.7 + index as f32 * 9.3, 7);
                Vec3::from(*center) + *point * uneven * *radius * Vec3::new(1.0, 0.85, 1.0)
            })
            .collect();
        triangles.extend(faces.iter().map(|face| face.map(|at| points[at])));
    }
    flat(triangles, |point| {
        0.45 + 0.55 * ((point.y + 0.6) / 2.4).clamp(0.0, 1.0)
    })
}

/// Octahedra that hang out of the leaves.
fn fruit() -> Vec<[Vertex; 3]> {
    let mut triangles = Vec::new();
    for apple in 0..9u32 {
        let number = |use_of_it| random(apple * 3 + use_of_it) * 2.0 - 1.0;
        let aside = Vec3::new(number(0), 0.0, number(1)).normalize();
        let center = aside * 1.35 + Vec3::Y * (0.15 + 0.25 * number(2));
        let tip = |axis: Vec3| center + axis * 0.09;
        for (up, x, z) in [
            (1.0, 1.0, 1.0),
            (1.0, -1.0, 1.0),
            (1.0, -1.0, -1.0),
            (1.0, 1.0, -1.0),
            (-1.0, 1.0, 1.0),
            (-1.0, -1.0, 1.0),
            (-1.0, -1.0, -1.0),
            (-1.0, 1.0, -1.0),
        ] {
            let corners = [tip(Vec3::X * x), tip(Vec3::Y * up), tip(Vec3::Z * z)];
            // Each mirror turns the triangle around.
            let [a, b, c] = corners;
            triangles.push(if up * x * z > 0.0 {
                [a, b, c]
            } else {
                [a, c, b]
            });
        }
    }
    flat(triangles, |_| 1.0)
}

/// Triangles with one normal each, and a gray for each place that the material's color is
/// multiplied by.
fn flat(triangles: Vec<[Vec3; 3]>, gray: impl Fn(Vec3) -> f32) -> Vec<[Vertex; 3]> {
    let with_normal = |[a, b, c]: [Vec3; 3]| {
        let normal = (b - a).cross(c - a).normalize();
        [a, b, c].map(|position| Vertex {
            position: position.to_array(),
            normal: normal.to_array(),
            gray: (gray(position) * 255.0).round() as u8,
        })
    };
    triangles.into_iter().map(with_normal).collect()
}
