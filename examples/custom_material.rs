//! A material with its own fragment shader, `assets/shaders/bands.wesl`, which knows nothing of
//! instances.

use bevy::{
    prelude::*, reflect::TypePath, render::render_resource::AsBindGroup, shader::ShaderRef,
};
use bevy_gpu_culling::prelude::*;

const SHADER: &str = "shaders/bands.wesl";
/// Instances along a side of the field.
const SIDE: u32 = 120;

/// Bands of two colors by height.
#[derive(Asset, TypePath, AsBindGroup, Clone)]
struct Bands {
    #[uniform(0)]
    low: LinearRgba,
    #[uniform(1)]
    high: LinearRgba,
}

impl Material for Bands {
    fn fragment_shader() -> ShaderRef {
        SHADER.into()
    }
}

fn main() -> AppExit {
    App::new()
        .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), scene))
        .run()
}

/// The example, as a plugin.
pub fn scene(app: &mut App) {
    app.add_plugins(MaterialPlugin::<Bands>::default())
        .add_systems(Startup, spawn);
}

fn spawn(
    mut commands: Commands,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<Bands>>,
) -> Result {
    // A square grid, in gentle waves.
    let places = (0..SIDE * SIDE).map(|i| {
        let middle = SIDE as f32 / 2.0;
        let (x, z) = ((i % SIDE) as f32 - middle, (i / SIDE) as f32 - middle);
        let height = (x * 0.15).sin() + (z * 0.11).cos();
        Transform::from_xyz(x * 1.2, height, z * 1.2).with_rotation(Quat::from_rotation_y(i as f32))
    });
    let set = InstanceSet::from_transforms(places)?.sorted();
    commands.spawn((
        Mesh3d(meshes.add(Torus::new(0.2, 0.5))),
        MeshMaterial3d(materials.add(Bands {
            low: LinearRgba::rgb(0.05, 0.1, 0.5),
            high: LinearRgba::rgb(1.0, 0.8, 0.2),
        })),
        GpuInstances(sets.add(set)),
    ));
    commands.spawn((
        Camera3d::default(),
        Transform::from_xyz(0.0, 8.0, 20.0).looking_at(Vec3::ZERO, Vec3::Y),
    ));
    Ok(())
}
