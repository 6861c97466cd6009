//! Materials, textures and meshes of the oracle's scenes.

use bevy::{
    asset::{RenderAssetUsages, uuid_handle},
    image::{ImageAddressMode, ImageSampler, ImageSamplerDescriptor},
    mesh::VertexAttributeValues,
    pbr::{ExtendedMaterial, MaterialExtension},
    prelude::*,
    reflect::TypePath,
    render::render_resource::{
        AsBindGroup, Extent3d, TextureDimension, TextureFormat, TextureViewDescriptor,
        TextureViewDimension,
    },
    shader::ShaderRef,
};

pub type Extended = ExtendedMaterial<StandardMaterial, Tint>;

/// Changes the base color before Bevy's own shader lights it: by a tint, and by the second word of
/// an instance's data.
#[derive(Asset, TypePath, AsBindGroup, Clone, Debug)]
pub struct Tint {
    #[uniform(100)]
    pub tint: LinearRgba,
}

impl MaterialExtension for Tint {
    fn fragment_shader() -> ShaderRef {
        TINT.into()
    }
}

/// Unlit stripes.
#[derive(Asset, TypePath, AsBindGroup, Clone, Debug)]
pub struct Stripes {
    #[uniform(0)]
    pub color: LinearRgba,
}

impl Material for Stripes {
    fn fragment_shader() -> ShaderRef {
        STRIPES.into()
    }
}

/// Stripes on vertices that a custom vertex shader moves, as far as the fourth word of an
/// instance's data says.
#[derive(Asset, TypePath, AsBindGroup, Clone, Debug)]
pub struct Swollen {
    #[uniform(0)]
    pub color: LinearRgba,
}

impl Material for Swollen {
    fn vertex_shader() -> ShaderRef {
        SWOLLEN.into()
    }
    fn fragment_shader() -> ShaderRef {
        STRIPES.into()
    }
}

/// Waves from a vertex shader for ordinary meshes.
#[derive(Asset, TypePath, AsBindGroup, Clone, Debug, Default)]
pub struct Wavy {}

impl Material for Wavy {
    fn vertex_shader() -> ShaderRef {
        WAVY.into()
    }
    fn fragment_shader() -> ShaderRef {
        BANDS.into()
    }
    fn prepass_vertex_shader() -> ShaderRef {
        WAVY_PREPASS.into()
    }
}

pub type Tagged = ExtendedMaterial<StandardMaterial, ByTag>;

/// A base color that depends on `get_tag`.
#[derive(Asset, TypePath, AsBindGroup, Clone, Debug, Default)]
pub struct ByTag {
    #[uniform(100)]
    unused: Vec4,
}

impl MaterialExtension for ByTag {
    fn fragment_shader() -> ShaderRef {
        TAGGED.into()
    }
}

/// Shows the prepasses' textures.
#[derive(Asset, TypePath, AsBindGroup, Clone, Debug, Default)]
pub struct ShowPrepass {}

impl Material for ShowPrepass {
    fn fragment_shader() -> ShaderRef {
        SHOW_PREPASS.into()
    }
    fn alpha_mode(&self) -> AlphaMode {
        AlphaMode::Blend
    }
}

const TINT: Handle<Shader> = uuid_handle!("7f0f4f6e-4df0-4c43-9a7c-6a7c1f7f0c01");
const STRIPES: Handle<Shader> = uuid_handle!("7f0f4f6e-4df0-4c43-9a7c-6a7c1f7f0c02");
pub const SWOLLEN: Handle<Shader> = uuid_handle!("7f0f4f6e-4df0-4c43-9a7c-6a7c1f7f0c03");
const WAVY: Handle<Shader> = uuid_handle!("7f0f4f6e-4df0-4c43-9a7c-6a7c1f7f0c05");
const WAVY_PREPASS: Handle<Shader> = uuid_handle!("7f0f4f6e-4df0-4c43-9a7c-6a7c1f7f0c08");
const BANDS: Handle<Shader> = uuid_handle!("7f0f4f6e-4df0-4c43-9a7c-6a7c1f7f0c06");
const TAGGED: Handle<Shader> = uuid_handle!("7f0f4f6e-4df0-4c43-9a7c-6a7c1f7f0c07");
const SHOW_PREPASS: Handle<Shader> = uuid_handle!("7f0f4f6e-4df0-4c43-9a7c-6a7c1f7f0c04");

/// Registers the materials and their shaders.
pub fn register(app: &mut App) {
    app.add_plugins((
        MaterialPlugin::<Extended>::default(),
        MaterialPlugin::<Stripes>::default(),
        MaterialPlugin::<Swollen>::default(),
        MaterialPlugin::<ShowPrepass>::default(),
        MaterialPlugin::<Wavy>::default(),
        MaterialPlugin::<Tagged>::default(),
    ));
    let mut shaders = app.world_mut().resource_mut::<Assets<Shader>>();
    for (handle, source, name) in [
        (TINT, include_str!("shaders/tint.wesl"), "tint.wesl"),
        (
            STRIPES,
            include_str!("shaders/stripes.wesl"),
            "stripes.wesl",
        ),
        (
            SWOLLEN,
            include_str!("shaders/swollen.wesl"),
            "swollen.wesl",
        ),
        (WAVY, include_str!("shaders/wavy.wesl"), "wavy.wesl"),
        (
            WAVY_PREPASS,
            include_str!("shaders/wavy_prepass.wesl"),
            "wavy_prepass.wesl",
        ),
        (BANDS, include_str!("shaders/bands.wesl"), "bands.wesl"),
        (TAGGED, include_str!("shaders/tagged.wesl"), "tagged.wesl"),
        (
            SHOW_PREPASS,
            include_str!("shaders/show_prepass.wesl"),
            "show_prepass.wesl",
        ),
    ] {
        shaders
            .insert(handle.id(), Shader::from_wesl(source, name))
            .unwrap();
    }
}

/// A texture whose texels are a function of their coordinates.
pub fn texture(srgb: bool, texel: impl Fn(u32, u32) -> [u8; 4]) -> Image {
    const SIZE: u32 = 16;
    let data = (0..SIZE * SIZE)
        .flat_map(|i| texel(i % SIZE, i / SIZE))
        .collect();
    let format = if srgb {
        TextureFormat::Rgba8UnormSrgb
    } else {
        TextureFormat::Rgba8Unorm
    };
    let size = Extent3d {
        width: SIZE,
        height: SIZE,
        depth_or_array_layers: 1,
    };
    let mut image = Image::new(
        size,
        TextureDimension::D2,
        data,
        format,
        RenderAssetUsages::default(),
    );
    image.sampler = ImageSampler::Descriptor(ImageSamplerDescriptor {
        address_mode_u: ImageAddressMode::Repeat,
        address_mode_v: ImageAddressMode::Repeat,
        ..ImageSamplerDescriptor::linear()
    });
    image
}

/// A checkerboard of two colors. The darker squares are half transparent.
pub fn checker() -> Image {
    texture(true, |x, y| {
        if (x / 4 + y / 4) % 2 == 0 {
            [230, 200, 90, 255]
        } else {
            [90, 120, 200, 110]
        }
    })
}

/// A sky whose six faces have different colors.
pub fn cubemap() -> Image {
    const SIZE: u32 = 16;
    let data = (0..6 * SIZE * SIZE)
        .flat_map(|i| {
            let (face, y) = (i / (SIZE * SIZE), i / SIZE % SIZE);
            [40 * face as u8, 4 * y as u8 + 60, 180, 255]
        })
        .collect();
    let size = Extent3d {
        width: SIZE,
        height: SIZE,
        depth_or_array_layers: 6,
    };
    let mut image = Image::new(
        size,
        TextureDimension::D2,
        data,
        TextureFormat::Rgba8UnormSrgb,
        RenderAssetUsages::default(),
    );
    image.texture_view_descriptor = Some(TextureViewDescriptor {
        dimension: Some(TextureViewDimension::Cube),
        ..default()
    });
    image
}

/// Gives each vertex a color that depends on its position. Some colors are half transparent.
pub fn colored(mesh: Mesh) -> Mesh {
    let Some(VertexAttributeValues::Float32x3(positions)) =
        mesh.attribute(Mesh::ATTRIBUTE_POSITION)
    else {
        return mesh;
    };
    let colors: Vec<[f32; 4]> = positions
        .iter()
        .map(|p| [0.5 + p[0], 0.5 + p[1], 0.5 + p[2], 0.75 + p[1]])
        .collect();
    mesh.with_inserted_attribute(Mesh::ATTRIBUTE_COLOR, colors)
}

/// Adds a second UV set with twice the scale.
pub fn with_second_uvs(mesh: Mesh) -> Mesh {
    let Some(VertexAttributeValues::Float32x2(uvs)) = mesh.attribute(Mesh::ATTRIBUTE_UV_0) else {
        return mesh;
    };
    let second: Vec<[f32; 2]> = uvs
        .iter()
        .map(|uv| [uv[0] * 2.0 + 0.1, uv[1] * 2.0])
        .collect();
    mesh.with_inserted_attribute(Mesh::ATTRIBUTE_UV_1, second)
}
