//! A material that shows normals and places. On a software driver, Bevy's lights cost more than all
//! else that a picture needs, so scenes that are not about light have none.

use bevy::{
    asset::uuid_handle,
    mesh::MeshVertexBufferLayoutRef,
    pbr::{MaterialPipeline, MaterialPipelineKey},
    prelude::*,
    reflect::TypePath,
    render::render_resource::{
        AsBindGroup, CompareFunction, RenderPipelineDescriptor, SpecializedMeshPipelineError,
    },
    shader::ShaderRef,
};

/// Each pixel shows its normal, its place in the world, and the material's color.
#[derive(Asset, TypePath, AsBindGroup, Clone, Debug)]
#[bind_group_data(Ties)]
pub struct Normals {
    #[uniform(0)]
    pub color: LinearRgba,
    pub ties: Ties,
}

/// Which of two surfaces with the same depth is seen.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ties {
    /// The one that is drawn last, as in Bevy's own materials.
    #[default]
    Last,
    First,
}

impl Normals {
    pub fn new(color: LinearRgba) -> Self {
        Self {
            color,
            ties: Ties::default(),
        }
    }
}

impl From<&Normals> for Ties {
    fn from(normals: &Normals) -> Self {
        normals.ties
    }
}

const NORMALS: &str = "
import bevy_pbr::render::forward_io::VertexOutput;
@group(constants::MATERIAL_BIND_GROUP) @binding(0) var<uniform> color: vec4<f32>;
@fragment
fn fragment(in: VertexOutput) -> @location(0) vec4<f32> {
    let place = 0.75 + 0.25 * sin(in.world_position.xyz);
    return vec4(color.rgb * place * (0.6 + 0.4 * normalize(in.world_normal)), 1.0);
}";

const NORMALS_SHADER: Handle<Shader> = uuid_handle!("7f0f4f6e-4df0-4c43-9a7c-6a7c1f7f0b51");

impl Material for Normals {
    fn fragment_shader() -> ShaderRef {
        NORMALS_SHADER.into()
    }

    fn specialize(
        _: &MaterialPipeline,
        descriptor: &mut RenderPipelineDescriptor,
        _: &MeshVertexBufferLayoutRef,
        key: MaterialPipelineKey<Self>,
    ) -> Result<(), SpecializedMeshPipelineError> {
        if let (Ties::First, Some(depth)) = (key.bind_group_data, &mut descriptor.depth_stencil) {
            depth.depth_compare = Some(CompareFunction::Greater);
        }
        Ok(())
    }
}

/// Registers the material and its shader.
pub fn add_normals(app: &mut App) {
    app.add_plugins(MaterialPlugin::<Normals>::default());
    let shader = Shader::from_wesl(NORMALS, "normals.wesl");
    let mut shaders = app.world_mut().resource_mut::<Assets<Shader>>();
    shaders.insert(NORMALS_SHADER.id(), shader).unwrap();
}
