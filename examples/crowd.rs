//! A crowd that walks, without a skeleton per figure: the poses of a stride are baked to a texture,
//! and a vertex shader (`assets/shaders/crowd.wesl`) looks them up. Each figure is at its own point
//! of the stride.

use bevy::{
    asset::RenderAssetUsages,
    light::CascadeShadowConfigBuilder,
    mesh::{MeshMergeError, VertexAttributeValues},
    pbr::{ExtendedMaterial, MaterialExtension},
    prelude::*,
    reflect::TypePath,
    render::render_resource::{AsBindGroup, Extent3d, TextureDimension, TextureFormat},
    shader::ShaderRef,
};
use bevy_gpu_culling::prelude::*;
use core::f32::consts::TAU;

const SHADER: &str = "shaders/crowd.wesl";
/// Poses of a stride.
const POSES: u32 = 32;
/// Strides per second, and length of a stride in world units.
const PACE: f32 = 0.85;
const STRIDE: f32 = 1.6;

/// Bevy's own material, and the poses that its vertices come from.
#[derive(Asset, TypePath, AsBindGroup, Clone)]
struct Walk {
    #[texture(100, sample_type = "float", filterable = false, visibility(vertex))]
    poses: Handle<Image>,
    #[uniform(101)]
    pace: f32,
}

impl MaterialExtension for Walk {
    fn vertex_shader() -> ShaderRef {
        SHADER.into()
    }

    // Shadow maps are drawn by it, too.
    fn prepass_vertex_shader() -> ShaderRef {
        SHADER.into()
    }

    fn deferred_vertex_shader() -> ShaderRef {
        SHADER.into()
    }
}

type Walking = ExtendedMaterial<StandardMaterial, Walk>;

/// Marks the entity of the set.
#[derive(Component)]
struct Crowd;

fn main() -> AppExit {
    App::new()
        .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), scene))
        .insert_resource(Count(5_000))
        .run()
}

/// Number of figures.
#[derive(Resource)]
pub struct Count(pub u32);

/// The example, as a plugin.
pub fn scene(app: &mut App) {
    app.add_plugins(MaterialPlugin::<Walking>::default())
        .insert_resource(ClearColor(Color::srgb(0.75, 0.7, 0.62)))
        .add_systems(Startup, (gather, spawn))
        .add_systems(Update, walk);
}

fn gather(
    mut commands: Commands,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut images: ResMut<Assets<Image>>,
    mut materials: ResMut<Assets<Walking>>,
    count: Res<Count>,
) -> Result {
    let count = count.0;
    let figure = figure()?;
    let (poses, radius) = bake(&figure);
    let tags = (0..count).map(|i| random(i, 0) as u32 | (random(i, 1) as u32) << 8);
    let set = InstanceSet::from_transforms(places(count, 0.0))?.with_tags(tags.collect())?;
    commands.spawn((
        Crowd,
        Mesh3d(meshes.add(figure)),
        MeshMaterial3d(materials.add(Walking {
            base: StandardMaterial {
                perceptual_roughness: 0.9,
                ..default()
            },
            extension: Walk {
                poses: images.add(poses),
                pace: PACE,
            },
        })),
        GpuInstances(sets.add(set)),
        CullingRadius(radius),
    ));
    Ok(())
}

fn spawn(
    mut commands: Commands,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) {
    for (mesh, height) in [
        (Mesh::from(Plane3d::new(Vec3::Y, Vec2::splat(80.0))), 0.0),
        (Cuboid::new(2.0, 9.0, 2.0).into(), 4.5),
    ] {
        commands.spawn((
            Mesh3d(meshes.add(mesh)),
            MeshMaterial3d(materials.add(Color::srgb(0.5, 0.45, 0.38))),
            Transform::from_xyz(0.0, height, 0.0),
        ));
    }
    commands.spawn((
        Camera3d::default(),
        Transform::from_xyz(0.0, 5.5, 19.0).looking_at(Vec3::new(0.0, 1.2, 0.0), Vec3::Y),
    ));
    let cascades = CascadeShadowConfigBuilder {
        num_cascades: 2,
        first_cascade_far_bound: 15.0,
        maximum_distance: 50.0,
        ..default()
    };
    commands.spawn((
        DirectionalLight {
            shadow_maps_enabled: true,
            ..default()
        },
        cascades.build(),
        Transform::default().looking_to(Vec3::new(1.0, -1.5, -0.7), Vec3::Y),
    ));
}

/// Everyone takes a step. All of the set changes, which uploads 16 bytes per figure.
fn walk(
    time: Res<Time>,
    crowd: Single<&GpuInstances, With<Crowd>>,
    mut sets: ResMut<Assets<InstanceSet>>,
) -> Result {
    let Some(mut set) = sets.get_mut(&crowd.0) else {
        return Ok(());
    };
    let count = set.len() as u32;
    // A refused edit is logged. An error without a severity would end the app.
    set.set_range(0, places(count, time.elapsed_secs()))
        .with_severity(Severity::Error)?;
    Ok(())
}

/// The figures at a time: in rings, every second of which walks the other way.
fn places(count: u32, time: f32) -> impl Iterator<Item = Transform> {
    let rings = (0u32..).flat_map(|ring| {
        let radius = 4.0 + 1.3 * ring as f32;
        let places = (radius * TAU / 1.2) as u32;
        (0..places).map(move |place| (ring, radius, place as f32 / places as f32))
    });
    (0..count)
        .zip(rings)
        .map(move |(i, (ring, radius, share))| {
            let way = if ring % 2 == 0 { 1.0 } else { -1.0 };
            let radius = radius + 0.002 * random(i, 2);
            let angle =
                share * TAU + 0.002 * random(i, 3) / radius + way * PACE * STRIDE * time / radius;
            let out = Vec3::new(angle.cos(), 0.0, angle.sin());
            Transform::from_translation(out * radius)
                .looking_to(way * Vec3::new(-out.z, 0.0, out.x), Vec3::Y)
        })
}

/// A number from 0 to 255 for each figure and use.
fn random(figure: u32, use_of_it: u32) -> f32 {
    let seed = figure.wrapping_mul(4).wrapping_add(use_of_it);
    let state = seed.wrapping_mul(747_796_405);
    ((state ^ (state >> 15)).wrapping_mul(277_803_737) >> 24) as f32
}

/// The parts of a figure: size, and what it hangs from. A color with alpha 0 is the figure's own.
const PARTS: [(Vec3, [f32; 4]); 8] = [
    (Vec3::new(0.38, 0.6, 0.22), [0.0; 4]),
    (Vec3::new(0.2, 0.26, 0.22), [0.55, 0.36, 0.26, 1.0]),
    (Vec3::new(0.11, 0.62, 0.12), [0.0; 4]),
    (Vec3::new(0.11, 0.62, 0.12), [0.0; 4]),
    (Vec3::new(0.16, 0.46, 0.18), [0.05, 0.06, 0.1, 1.0]),
    (Vec3::new(0.16, 0.46, 0.18), [0.05, 0.06, 0.1, 1.0]),
    (Vec3::new(0.13, 0.46, 0.15), [0.05, 0.06, 0.1, 1.0]),
    (Vec3::new(0.13, 0.46, 0.15), [0.05, 0.06, 0.1, 1.0]),
];

/// The place of each part at a point of the stride, from 0 to 1.
fn pose(stride: f32) -> [Transform; PARTS.len()] {
    let swing = (stride * TAU).sin();
    let sway = (stride * TAU).cos();
    let body = Transform::from_xyz(0.0, 0.03 * (2.0 * stride * TAU).cos(), 0.0);
    let joint = |x: f32, y: f32, angle: f32| {
        Transform::from_xyz(x, y, 0.0).with_rotation(Quat::from_rotation_x(angle))
    };
    // A limb hangs down from its joint.
    let hangs = |length: f32| Transform::from_xyz(0.0, -0.5 * length, 0.0);
    let legs = [(-0.1, swing, sway), (0.1, -swing, -sway)];
    let thighs = legs.map(|(x, swing, _)| body * joint(x, 0.9, 0.5 * swing));
    // A knee bends while its leg swings forward.
    let shin = |leg: usize| {
        let bend = 0.15 + 0.75 * legs[leg].2.max(0.0);
        thighs[leg] * joint(0.0, -0.44, -bend) * hangs(0.44)
    };
    [
        body * Transform::from_xyz(0.0, 1.17, 0.0),
        body * Transform::from_xyz(0.0, 1.62, 0.0),
        body * joint(-0.26, 1.42, -0.55 * swing) * hangs(0.6),
        body * joint(0.26, 1.42, 0.55 * swing) * hangs(0.6),
        thighs[0] * hangs(0.44),
        thighs[1] * hangs(0.44),
        shin(0),
        shin(1),
    ]
}

/// All parts, at the origin. The texture coordinates are the number of the vertex and of its part.
fn figure() -> Result<Mesh, MeshMergeError> {
    let mut figure: Option<Mesh> = None;
    for (number, (size, color)) in PARTS.iter().enumerate() {
        let part = Mesh::from(Cuboid::from_size(*size));
        let count = part.count_vertices();
        let coordinates = (0..count).map(|i| [(number * count + i) as f32, number as f32]);
        let coordinates: Vec<_> = coordinates.collect();
        let part = part
            .with_inserted_attribute(Mesh::ATTRIBUTE_COLOR, vec![*color; count])
            .with_inserted_attribute(Mesh::ATTRIBUTE_UV_0, coordinates);
        match &mut figure {
            Some(figure) => figure.merge(&part)?,
            None => figure = Some(part),
        }
    }
    Ok(figure.unwrap_or(Mesh::from(Cuboid::default())))
}

/// The texture of all poses, and the radius of the sphere around the origin that holds them.
fn bake(figure: &Mesh) -> (Image, f32) {
    let values = |attribute| match figure.attribute(attribute) {
        Some(VertexAttributeValues::Float32x3(values)) => values.as_slice(),
        _ => &[],
    };
    let points = values(Mesh::ATTRIBUTE_POSITION);
    let normals = values(Mesh::ATTRIBUTE_NORMAL);
    let corners = points.len() / PARTS.len();
    let poses: Vec<_> = (0..POSES).map(|i| pose(i as f32 / POSES as f32)).collect();
    let mut texels: Vec<[f32; 4]> = Vec::new();
    for pose in &poses {
        let posed = points.iter().enumerate();
        let posed = posed.map(|(i, point)| pose[i / corners].transform_point(Vec3::from(*point)));
        texels.extend(posed.map(|point| point.extend(1.0).to_array()));
    }
    let lengths = texels
        .iter()
        .map(|[x, y, z, _]| Vec3::new(*x, *y, *z).length());
    let radius = lengths.fold(0.0, f32::max);
    for pose in &poses {
        let turned = normals.iter().enumerate();
        let turned = turned.map(|(i, normal)| pose[i / corners].rotation * Vec3::from(*normal));
        texels.extend(turned.map(|normal| normal.extend(0.0).to_array()));
    }
    let size = Extent3d {
        width: points.len() as u32,
        height: 2 * POSES,
        depth_or_array_layers: 1,
    };
    let bytes = texels
        .as_flattened()
        .iter()
        .flat_map(|value| value.to_le_bytes());
    let image = Image::new(
        size,
        TextureDimension::D2,
        bytes.collect(),
        TextureFormat::Rgba32Float,
        RenderAssetUsages::RENDER_WORLD,
    );
    (image, radius)
}
