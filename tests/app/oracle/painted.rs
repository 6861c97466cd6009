//! Data per entity, which Bevy's component arrays hold: on a set it belongs to the whole set.

use super::build::{eye, sun};
use crate::scene::{How, Stage, different_pixels, field};
use bevy::{
    asset::uuid_handle,
    pbr::{ExtendedMaterial, MaterialExtension},
    prelude::*,
    reflect::TypePath,
    render::{
        gpu_component_array_buffer::{
            GpuComponentArray, GpuComponentArrayBuffer, GpuComponentArrayBufferPlugin,
        },
        render_resource::AsBindGroup,
        storage::ShaderBuffer,
    },
    shader::ShaderRef,
};
use image::RgbaImage;

/// The color of an entity, beside its material.
#[derive(Component)]
struct Paint(LinearRgba);

impl GpuComponentArrayBuffer for Paint {
    type QueryData = &'static Paint;
    type QueryFilter = ();
    type Out = [f32; 4];

    fn extract_component(Paint(color): &Paint) -> Option<[f32; 4]> {
        Some(color.to_f32_array())
    }
}

const SHADER: Handle<Shader> = uuid_handle!("7f0f4f6e-4df0-4c43-9a7c-6a7c1f7f0c09");

/// Looks its color up by the entity's `MeshTag`.
#[derive(Asset, TypePath, AsBindGroup, Clone, Debug)]
struct ByEntity {
    #[storage(100, read_only, visibility(fragment))]
    paints: Handle<ShaderBuffer>,
}

impl MaterialExtension for ByEntity {
    fn fragment_shader() -> ShaderRef {
        SHADER.into()
    }
}

type Painted = ExtendedMaterial<StandardMaterial, ByEntity>;

fn register(app: &mut App) {
    app.add_plugins((
        MaterialPlugin::<Painted>::default(),
        GpuComponentArrayBufferPlugin::<Paint>::default(),
    ));
    let mut shaders = app.world_mut().resource_mut::<Assets<Shader>>();
    let source = include_str!("shaders/painted.wesl");
    let shader = Shader::from_wesl(source, "painted.wesl");
    shaders.insert(SHADER.id(), shader).unwrap();
}

/// Two sets of one mesh: their colors from one material and a paint of each, or from two materials.
fn draw(is_painted: bool) -> RgbaImage {
    let mut stage = Stage::with(How::Set(None), register);
    let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
    let world = stage.app.world();
    let paints = world.resource::<GpuComponentArray<Paint>>().buffer.clone();
    let painted = stage.add(Painted {
        base: StandardMaterial::default(),
        extension: ByEntity { paints },
    });
    for (count, color) in [
        (90, Color::srgb(0.9, 0.4, 0.3)),
        (120, Color::srgb(0.2, 0.6, 0.9)),
    ] {
        let plain = stage.standard(StandardMaterial::from(color));
        let set = field(count, true);
        let set = stage.spawn_set(&set, (mesh.clone(), plain), Transform::IDENTITY);
        if is_painted {
            let mut set = stage.entity(set);
            set.remove::<MeshMaterial3d<StandardMaterial>>();
            set.insert((MeshMaterial3d(painted.clone()), Paint(color.into())));
        }
    }
    sun(&mut stage);
    stage.camera(eye(), ());
    stage.picture()
}

#[test]
fn component_arrays_hold_data_of_a_sets_entity() {
    let result = different_pixels("painted", &draw(true), &draw(false));
    assert!(result.is_ok(), "{result:?}");
}
