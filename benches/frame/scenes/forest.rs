//! The hills of the example `gltf_forest`, with a tree of 20,000 triangles on each place: bark and
//! masked leaves, which are two parts. Both have coarser levels: fewer leaves and branches, which
//! are wider. `LodSettings::foliage` makes the levels of the leaves. The levels of the bark are
//! such as generators of trees make. The camera turns.

#[path = "../../../examples/gltf_forest.rs"]
#[allow(dead_code, reason = "the app of the example is not run here")]
mod example;

use super::{Part, leaves::texture};
use anyhow::Result;
use bevy::{
    asset::RenderAssetUsages,
    mesh::{Indices, PrimitiveTopology},
    prelude::*,
};
use bevy_gpu_culling::{
    instance::{InstanceError, InstanceSet},
    prelude::{InstanceLods, LodSettings},
};
use core::f32::consts::TAU;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use example::{from_glade, glade, ground as floor, ground_material, height, places, side};

/// Leaves of a tree in full detail, two triangles each.
const LEAVES: u32 = 8_000;
/// Width of such a leaf, in meters.
const LEAF: f32 = 0.2;
/// Coarser levels of the leaves. Each has a quarter of the leaves, which are twice as wide.
const LEAF_LEVELS: u32 = 4;
/// The height of the trunk, in meters.
const TRUNK: f32 = 6.0;
/// The center of the crown, an ellipsoid, and its half axes.
const CROWN: [Vec3; 2] = [Vec3::new(0.0, 5.5, 0.0), Vec3::new(2.6, 3.2, 2.6)];
const BRANCHES: u32 = 44;
const SEED: u64 = 6;

/// Parts of a tree: bark and leaves.
pub const PARTS: u32 = 2;
/// The most meshes of a tree, with all levels of its parts.
pub const MAX_MESHES: u32 = PARTS * (1 + LEAF_LEVELS);

/// The trees, sorted along the Morton curve. None stands in the glade.
pub fn set(count: u32) -> Result<InstanceSet, InstanceError> {
    let trees = places(count, 0)
        .filter(|place| from_glade(place.translation) > 6.0)
        .take(count as usize);
    Ok(InstanceSet::from_transforms(trees)?.sorted())
}

/// Bark and leaves, with their coarser levels.
pub fn parts(world: &mut World) -> Result<[Part; PARTS as usize]> {
    let texture = world.resource_mut::<Assets<Image>>().add(texture());
    let leaves = leaves();
    let settings = LodSettings {
        max_levels: LEAF_LEVELS,
        kept: 0.25,
        foliage: true,
        ..default()
    };
    Ok([
        Part {
            mesh: bark(&BARK[0]),
            levels: BARK[1..]
                .iter()
                .map(|level| (bark(level), level.error))
                .collect(),
            meshlets: None,
            material: StandardMaterial {
                base_color: Color::srgb(0.35, 0.27, 0.2),
                perceptual_roughness: 0.9,
                ..default()
            },
        },
        Part {
            levels: InstanceLods::simplified_meshes(&leaves, &settings)?,
            mesh: leaves,
            meshlets: None,
            material: StandardMaterial {
                base_color_texture: Some(texture),
                alpha_mode: AlphaMode::Mask(0.5),
                perceptual_roughness: 0.7,
                // Both sides are lit the same, as if from outside the crown.
                cull_mode: None,
                ..default()
            },
        },
    ])
}

/// The land under the trees.
pub fn ground(world: &mut World, count: u32) {
    let mesh = world.resource_mut::<Assets<Mesh>>().add(floor(count));
    let mut materials = world.resource_mut::<Assets<StandardMaterial>>();
    let material = materials.add(ground_material());
    world.spawn((Mesh3d(mesh), MeshMaterial3d(material)));
}

/// The lens of a camera that sees to the end of the land.
pub fn lens(count: u32) -> PerspectiveProjection {
    PerspectiveProjection {
        far: 1.5 * side(count),
        ..default()
    }
}

/// The camera, over the glade.
pub fn eye() -> Transform {
    let [eye, ahead] = [(60.0, 6.0), (20.0, 2.0)].map(|(z, above)| {
        let x = glade(z);
        Vec3::new(x, height(x, z) + above, z)
    });
    Transform::from_translation(eye).looking_at(ahead, Vec3::Y)
}

/// The camera's rotation after a share of one turn.
pub fn pose(share: f32) -> Quat {
    Quat::from_rotation_y(share * TAU) * eye().rotation
}

/// A level of the bark. Simplification of the whole mesh would keep all branches until their
/// length, not their width, is as small as a pixel.
struct Bark {
    /// Sides and segments of the trunk.
    trunk: [u32; 2],
    /// Number of branches, the sides and the segments of each, and their width over the full one.
    branches: u32,
    branch: [u32; 2],
    width: f32,
    /// Half the width of what is left out, in meters.
    error: f32,
}

/// 4,000 triangles, and the coarser levels.
const BARK: [Bark; 5] = [
    Bark {
        trunk: [12, 20],
        branches: BRANCHES,
        branch: [8, 5],
        width: 1.0,
        error: 0.0,
    },
    Bark {
        trunk: [8, 8],
        branches: BRANCHES,
        branch: [4, 3],
        width: 1.1,
        error: 0.026,
    },
    Bark {
        trunk: [6, 4],
        branches: BRANCHES,
        branch: [3, 2],
        width: 1.2,
        error: 0.045,
    },
    Bark {
        trunk: [4, 4],
        branches: BRANCHES / 2,
        branch: [3, 1],
        width: 2.0,
        error: 0.09,
    },
    Bark {
        trunk: [4, 2],
        branches: 0,
        branch: [3, 1],
        width: 1.0,
        error: 0.18,
    },
];

/// Trunk and branches.
fn bark(level: &Bark) -> Mesh {
    let mut mesh = Tubes::default();
    mesh.add(level.trunk, |along| {
        let bend = Vec3::new((along * 5.0).sin(), 0.0, (along * 4.0).cos()) * 0.15;
        (Vec3::Y * along * TRUNK + bend, 0.32 * (1.0 - along) + 0.05)
    });
    for branch in 0..level.branches {
        let mut dice = ChaCha8Rng::seed_from_u64(SEED);
        dice.set_stream(u64::from(branch));
        // Spread over the trunk, whatever their number.
        let from = 0.35 + 0.6 * (branch as f32 * 0.618_034).fract();
        let angle = branch as f32 * 2.399_963; // the golden angle
        let outward = Vec3::new(angle.cos(), dice.random_range(0.3..0.9), angle.sin());
        let reach = dice.random_range(1.4..2.2);
        mesh.add(level.branch, |along| {
            let rise = Vec3::Y * (from * TRUNK + 0.3 * along * along);
            let radius = 0.09 * (1.0 - along) * (1.2 - from) + 0.015;
            (rise + outward * along * reach, radius * level.width)
        });
    }
    triangles(mesh.positions, mesh.normals, mesh.indices)
}

/// Tubes whose triangles share their vertices.
#[derive(Default)]
struct Tubes {
    positions: Vec<Vec3>,
    normals: Vec<Vec3>,
    indices: Vec<u32>,
}

impl Tubes {
    /// Adds a tube with a number of sides and segments. `at` returns its middle and its radius for
    /// places along it, from 0 to 1.
    fn add(&mut self, [sides, segments]: [u32; 2], at: impl Fn(f32) -> (Vec3, f32)) {
        let first = self.positions.len() as u32;
        for ring in 0..=segments {
            let along = ring as f32 / segments as f32;
            let (middle, radius) = at(along);
            let ahead = at(along + 0.01).0 - at(along - 0.01).0;
            let turn = Quat::from_rotation_arc(Vec3::Y, ahead.normalize());
            for side in 0..sides {
                let angle = side as f32 / sides as f32 * TAU;
                let normal = turn * Vec3::new(angle.cos(), 0.0, angle.sin());
                self.positions.push(middle + normal * radius);
                self.normals.push(normal);
            }
        }
        for ring in 0..segments {
            for side in 0..sides {
                let [here, next] = [side, (side + 1) % sides].map(|s| first + ring * sides + s);
                let [above, above_next] = [here, next].map(|vertex| vertex + sides);
                self.indices
                    .extend([here, above, next, next, above, above_next]);
            }
        }
    }
}

/// A list of triangles.
fn triangles(positions: Vec<Vec3>, normals: Vec<Vec3>, indices: Vec<u32>) -> Mesh {
    Mesh::new(
        PrimitiveTopology::TriangleList,
        RenderAssetUsages::default(),
    )
    .with_inserted_attribute(Mesh::ATTRIBUTE_POSITION, positions)
    .with_inserted_attribute(Mesh::ATTRIBUTE_NORMAL, normals)
    .with_inserted_indices(Indices::U32(indices))
}

/// The leaves of the full tree.
fn leaves() -> Mesh {
    let half = 0.5 * LEAF;
    let mut dice = ChaCha8Rng::seed_from_u64(SEED + 1);
    let (mut positions, mut normals) = (Vec::new(), Vec::new());
    let (mut uvs, mut indices) = (Vec::new(), Vec::new());
    for leaf in 0..LEAVES {
        let outward = unit_vector(&mut dice);
        // Most leaves are near the surface.
        let middle = CROWN[0] + CROWN[1] * outward * dice.random_range(0.1f32..1.0).sqrt();
        let turn = Quat::from_rotation_arc(Vec3::Z, unit_vector(&mut dice));
        for corner in [[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]] {
            positions.push(middle + turn * Vec3::new(corner[0], corner[1], 0.0) * half);
            normals.push(outward);
            uvs.push(corner.map(|side| 0.5 + 0.5 * side));
        }
        indices.extend([0, 1, 2, 0, 2, 3].map(|corner| 4 * leaf + corner));
    }
    triangles(positions, normals, indices).with_inserted_attribute(Mesh::ATTRIBUTE_UV_0, uvs)
}

/// A direction; all are equally likely.
fn unit_vector(dice: &mut ChaCha8Rng) -> Vec3 {
    let y: f32 = dice.random_range(-1.0..1.0);
    let angle: f32 = dice.random_range(0.0..TAU);
    let across = (1.0 - y * y).sqrt();
    Vec3::new(angle.cos() * across, y, angle.sin() * across)
}
