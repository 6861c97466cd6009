//! A million instances with their own colors. The set has a tag per instance, which the fragment
//! shader looks up in a palette, a storage buffer.
//!
//! `--count N` draws more or fewer.

mod common;

use bevy::{
    asset::{load_internal_asset, uuid_handle},
    pbr::{ExtendedMaterial, MaterialExtension},
    prelude::*,
    reflect::TypePath,
    render::{render_resource::AsBindGroup, storage::ShaderBuffer},
    shader::ShaderRef,
};
use bevy_gpu_culling::prelude::*;

const SHADER: Handle<Shader> = uuid_handle!("5b1e6b0e-6a2e-4f0c-9f7e-0c5b8c1d0002");
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
    common::run(|app| {
        load_internal_asset!(app, SHADER, "shaders/tags.wgsl", Shader::from_wgsl);
        app.add_plugins(MaterialPlugin::<Tagged>::default())
            .add_systems(Startup, spawn);
    })
}

fn spawn(
    mut commands: Commands,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<Tagged>>,
    mut buffers: ResMut<Assets<ShaderBuffer>>,
    count: Res<common::Count>,
) -> Result {
    let side = count.or(1_000_000).isqrt();
    // Rings of colors, from the instance's place in the grid.
    let ring = |i: u32| {
        let place = Vec2::new((i % side) as f32, (i / side) as f32) - side as f32 / 2.0;
        (place.length() * 0.4) as u32 % COLORS
    };
    let set = InstanceSet::from_transforms(common::waves(side, 1.0))?
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
    commands.spawn(common::sun(true));
    Ok(())
}
