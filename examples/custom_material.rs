//! A material with its own fragment shader, which knows nothing of instances.

mod common;

use bevy::{
    asset::{load_internal_asset, uuid_handle},
    prelude::*,
    reflect::TypePath,
    render::render_resource::AsBindGroup,
    shader::ShaderRef,
};
use bevy_gpu_culling::prelude::*;

const SHADER: Handle<Shader> = uuid_handle!("5b1e6b0e-6a2e-4f0c-9f7e-0c5b8c1d0001");

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
    common::run(|app| {
        load_internal_asset!(app, SHADER, "shaders/bands.wgsl", Shader::from_wgsl);
        app.add_plugins(MaterialPlugin::<Bands>::default())
            .add_systems(Startup, spawn);
    })
}

fn spawn(
    mut commands: Commands,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<Bands>>,
) -> Result {
    let set = InstanceSet::from_transforms(common::waves(120, 1.2))?.sorted();
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
