//! Custom and extended materials look the same on a set as on entities.

use super::{box_mesh, eye, moved, red};
use crate::scene::{How, Stage, assert_same_picture, field};
use bevy::{
    asset::uuid_handle,
    pbr::{ExtendedMaterial, MaterialExtension},
    prelude::*,
    reflect::TypePath,
    render::render_resource::AsBindGroup,
    shader::ShaderRef,
};

#[derive(Asset, TypePath, AsBindGroup, Clone, Debug)]
pub struct Stripes {
    #[uniform(0)]
    pub color: LinearRgba,
}

const STRIPES: &str = "
import bevy_pbr::render::forward_io::VertexOutput;
@group(constants::MATERIAL_BIND_GROUP) @binding(0) var<uniform> color: vec4<f32>;
@fragment
fn fragment(in: VertexOutput) -> @location(0) vec4<f32> {
    let stripe = step(0.5, fract(in.world_position.y * 2.0));
    return vec4(color.rgb * (0.4 + 0.6 * stripe) * (0.5 + 0.5 * in.world_normal.y), 1.0);
}";

const STRIPES_SHADER: Handle<Shader> = uuid_handle!("7f0f4f6e-4df0-4c43-9a7c-6a7c1f7f0b01");

impl Material for Stripes {
    fn fragment_shader() -> ShaderRef {
        STRIPES_SHADER.into()
    }
}

/// Registers the material and its shader.
pub fn add_stripes(app: &mut App) {
    app.add_plugins(MaterialPlugin::<Stripes>::default());
    let shader = Shader::from_wesl(STRIPES, "stripes.wesl");
    app.world_mut()
        .resource_mut::<Assets<Shader>>()
        .insert(STRIPES_SHADER.id(), shader)
        .unwrap();
}

#[test]
fn a_custom_material_looks_the_same() {
    let draw = |how| {
        let mut stage = Stage::with(how, add_stripes);
        let mesh = stage.mesh(Torus::new(0.15, 0.4));
        let material = stage.add(Stripes {
            color: LinearRgba::rgb(0.2, 0.8, 0.9),
        });
        stage.spawn_set(
            &field(300, false),
            (mesh, MeshMaterial3d(material)),
            moved(),
        );
        stage.camera(eye(), ());
        stage.picture()
    };
    assert_same_picture("custom", &draw(How::Set(None)), &draw(How::Entities));
}

#[derive(Asset, TypePath, AsBindGroup, Clone, Debug, Default)]
struct Nothing {
    #[uniform(100)]
    unused: Vec4,
}

impl MaterialExtension for Nothing {}

#[test]
fn an_extended_material_looks_the_same() {
    let draw = |how| {
        type Extended = ExtendedMaterial<StandardMaterial, Nothing>;
        let mut stage = Stage::with(how, |app| {
            app.add_plugins(MaterialPlugin::<Extended>::default());
        });
        let mesh = stage.mesh(box_mesh());
        let material = stage.add(Extended {
            base: red(),
            extension: Nothing::default(),
        });
        stage.spawn_set(&field(300, true), (mesh, MeshMaterial3d(material)), moved());
        stage.lights(false);
        stage.camera(eye(), ());
        stage.picture()
    };
    assert_same_picture("extended", &draw(How::Set(None)), &draw(How::Entities));
}
