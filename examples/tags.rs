//! A million instances with their own colors. The set has a tag per instance, which the fragment
//! shader (`assets/shaders/tags.wesl`) looks up in a palette, a storage buffer.

use bevy::{
    pbr::{ExtendedMaterial, MaterialExtension},
    prelude::*,
    reflect::TypePath,
    render::{render_resource::AsBindGroup, storage::ShaderBuffer},
    shader::ShaderRef,
};
use bevy_gpu_culling::prelude::*;

const SHADER: &str = "shaders/tags.wesl";
const COLORS: u32 = 48;

/// Bevy's own material with a base color from the palette.
#[derive(Asset, TypePath, AsBindGroup, Clone)]
struct Palette {
    #[storage(100, read_only)]
    colors: Handle<ShaderBuffer>,
}

impl MaterialExtension for Palette {
    fn fragment_shader() -> ShaderRef {
        SHADER.into()
    }
}

type Tagged = ExtendedMaterial<StandardMaterial, Palette>;

fn main() -> AppExit {
    App::new()
        .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), scene))
        .insert_resource(Count(1_000_000))
        .run()
}

/// Number of instances.
#[derive(Resource)]
pub struct Count(pub u32);

/// The example, as a plugin.
pub fn scene(app: &mut App) {
    app.add_plugins(MaterialPlugin::<Tagged>::default())
        .add_systems(Startup, spawn);
}

fn spawn(
    mut commands: Commands,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<Tagged>>,
    mut buffers: ResMut<Assets<ShaderBuffer>>,
    count: Res<Count>,
) -> Result {
    let side = count.0.isqrt();
    // Rings of colors, from the instance's place in the grid.
    let ring = |i: u32| {
        let place = Vec2::new((i % side) as f32, (i / side) as f32) - side as f32 / 2.0;
        (place.length() * 0.4) as u32 % COLORS
    };
    // A square grid, in gentle waves.
    let places = (0..side * side).map(|i| {
        let middle = side as f32 / 2.0;
        let (x, z) = ((i % side) as f32 - middle, (i / side) as f32 - middle);
        let height = (x * 0.15).sin() + (z * 0.11).cos();
        Transform::from_xyz(x, height, z).with_rotation(Quat::from_rotation_y(i as f32))
    });
    let set = InstanceSet::from_transforms(places)?
        .with_tags((0..side * side).map(ring).collect::<Vec<_>>())?;
    let set = set.sorted();
    let color = |i| {
        let hue = i as f32 * 360.0 / COLORS as f32;
        LinearRgba::from(Hsla::hsl(hue, 0.7, 0.5)).to_vec4()
    };
    let colors: Vec<Vec4> = (0..COLORS).map(color).collect();
    let colors = buffers.add(ShaderBuffer::from(colors));
    commands.spawn((
        Mesh3d(meshes.add(Cuboid::from_length(0.6))),
        MeshMaterial3d(materials.add(Tagged {
            base: StandardMaterial::default(),
            extension: Palette { colors },
        })),
        GpuInstances(sets.add(set)),
    ));
    commands.spawn((
        Camera3d::default(),
        Transform::from_xyz(0.0, 22.0, 36.0).looking_at(Vec3::ZERO, Vec3::Y),
    ));
    commands.spawn((
        DirectionalLight {
            shadow_maps_enabled: true,
            ..default()
        },
        Transform::default().looking_to(Vec3::new(1.0, -1.5, -0.7), Vec3::Y),
    ));
    Ok(())
}
