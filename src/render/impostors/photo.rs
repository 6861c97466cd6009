//! The material of what is photographed: Bevy's standard material without light.

use super::{grid::Grid, octahedron::ImpostorSides};
use bevy::{
    material::OpaqueRendererMethod,
    pbr::{ExtendedMaterial, MaterialExtension},
    prelude::*,
    render::{
        render_asset::RenderAssets,
        render_resource::{AsBindGroup, AsBindGroupShaderType, ShaderType},
        texture::GpuImage,
    },
    shader::ShaderRef,
};

const PHOTO: &str = "embedded://bevy_gpu_culling/impostor_photo.wesl";

pub(super) type PhotoMaterial = ExtendedMaterial<StandardMaterial, Photo>;

/// What a picture shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// Base colors.
    Colors,
    /// Normals and heights.
    Shapes,
}

/// Writes base colors, or normals and heights.
#[derive(Asset, AsBindGroup, TypePath, Clone, Debug)]
#[uniform(100, PhotoUniform)]
pub(super) struct Photo {
    pub grid: Grid,
    /// Half the width of a copy's place in the grid.
    pub radius: f32,
    pub subject: Subject,
}

/// `Photo` in `shaders/draw/impostor_photo.wesl`.
#[derive(Clone, Copy, ShaderType)]
struct PhotoUniform {
    radius: f32,
    side: f32,
    is_above: u32,
    is_of_shape: u32,
}

impl AsBindGroupShaderType<PhotoUniform> for Photo {
    fn as_bind_group_shader_type(&self, _images: &RenderAssets<GpuImage>) -> PhotoUniform {
        PhotoUniform {
            radius: self.radius,
            side: self.grid.side as f32,
            is_above: u32::from(self.grid.sides == ImpostorSides::Above),
            is_of_shape: u32::from(self.subject == Subject::Shapes),
        }
    }
}

impl MaterialExtension for Photo {
    fn fragment_shader() -> ShaderRef {
        PHOTO.into()
    }

    fn enable_prepass() -> bool {
        false
    }

    fn enable_shadows() -> bool {
        false
    }
}

/// A material for photographs: with holes or without, but nothing shines through.
pub(super) fn photographed(material: &StandardMaterial) -> StandardMaterial {
    StandardMaterial {
        alpha_mode: match material.alpha_mode {
            AlphaMode::Opaque => AlphaMode::Opaque,
            AlphaMode::Mask(cutoff) => AlphaMode::Mask(cutoff),
            _ => AlphaMode::Mask(0.5),
        },
        opaque_render_method: OpaqueRendererMethod::Forward,
        specular_transmission: 0.0,
        diffuse_transmission: 0.0,
        ..material.clone()
    }
}
