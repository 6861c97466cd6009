//! The material of cards: what the nearest views saw, lit as Bevy's standard material.

use super::{
    atlas::{ImpostorAtlas, Surface},
    develop::CUTOFF,
    grid::Grid,
    octahedron::ImpostorSides,
};
use crate::cull::BoundingSphere;
use bevy::{
    pbr::{ExtendedMaterial, MaterialExtension},
    prelude::*,
    render::render_resource::{AsBindGroup, AsBindGroupShaderType, ShaderType},
    render::{render_asset::RenderAssets, texture::GpuImage},
    shader::ShaderRef,
};

/// All stages of cards.
const IMPOSTOR: &str = "embedded://bevy_gpu_culling/impostor.wesl";

/// The material of cards that show an [`ImpostorAtlas`]. Its base is for all that is not
/// photographed, such as roughness, and tints the cards by its base color.
pub type ImpostorMaterial = ExtendedMaterial<StandardMaterial, ImpostorCard>;

/// Turns cards of a set to the viewer, and shows what is photographed.
/// [`ImpostorAtlas3d`](super::ImpostorAtlas3d) gives its child a material with it.
#[derive(Asset, AsBindGroup, Reflect, Clone, Debug)]
#[uniform(100, CardUniform)]
#[reflect(opaque, Clone, Debug)]
pub struct ImpostorCard {
    sphere: BoundingSphere,
    grid: Grid,
    #[texture(101)]
    #[sampler(102)]
    colors: Handle<Image>,
    #[texture(103)]
    shapes: Handle<Image>,
}

/// `Impostor` in `shaders/draw/impostor.wesl`.
#[derive(Clone, Copy, ShaderType)]
struct CardUniform {
    center: Vec3,
    radius: f32,
    side: f32,
    pixels: f32,
    is_above: u32,
    cutoff: f32,
}

impl AsBindGroupShaderType<CardUniform> for ImpostorCard {
    fn as_bind_group_shader_type(&self, _images: &RenderAssets<GpuImage>) -> CardUniform {
        CardUniform {
            center: self.sphere.center,
            radius: self.sphere.radius,
            side: self.grid.side as f32,
            pixels: self.grid.pixels as f32,
            is_above: u32::from(self.grid.sides == ImpostorSides::Above),
            cutoff: CUTOFF,
        }
    }
}

impl MaterialExtension for ImpostorCard {
    fn vertex_shader() -> ShaderRef {
        IMPOSTOR.into()
    }

    fn fragment_shader() -> ShaderRef {
        IMPOSTOR.into()
    }

    fn prepass_vertex_shader() -> ShaderRef {
        IMPOSTOR.into()
    }

    fn prepass_fragment_shader() -> ShaderRef {
        IMPOSTOR.into()
    }

    fn deferred_vertex_shader() -> ShaderRef {
        IMPOSTOR.into()
    }

    fn deferred_fragment_shader() -> ShaderRef {
        IMPOSTOR.into()
    }

    /// Has prepasses and shadow maps run the fragment stage.
    fn alpha_mode() -> Option<AlphaMode> {
        Some(AlphaMode::Mask(CUTOFF))
    }
}

impl ImpostorAtlas {
    /// The material of its cards.
    pub(super) fn material(&self, images: &mut Assets<Image>) -> ImpostorMaterial {
        let [colors, shapes] = self.images().map(|image| images.add(image));
        let Surface {
            perceptual_roughness,
            metallic,
            reflectance,
        } = self.surface;
        ImpostorMaterial {
            base: StandardMaterial {
                alpha_mode: AlphaMode::Mask(CUTOFF),
                // A card faces the viewer, whichever way its corners go.
                cull_mode: None,
                perceptual_roughness,
                metallic,
                reflectance,
                ..default()
            },
            extension: ImpostorCard {
                sphere: self.sphere,
                grid: self.grid,
                colors,
                shapes,
            },
        }
    }
}
