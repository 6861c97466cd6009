//! A material that shows the number of each pixel's instance: the picture is an item buffer.

use bevy::{
    asset::uuid_handle, prelude::*, reflect::TypePath, render::render_resource::AsBindGroup,
    shader::ShaderRef,
};
use image::RgbaImage;

/// Each pixel of instance `i` has the color of the number `first + i`, at most [`LARGEST`].
#[derive(Asset, TypePath, AsBindGroup, Clone, Debug)]
pub struct Items {
    /// The number of instance 0, at least 1.
    #[uniform(0)]
    pub first: u32,
}

/// The largest number that a color can say: five bits per channel.
pub const LARGEST: u32 = (1 << 15) - 1;

// A channel has the byte `8 * bits + 4`. Writing and copying sRGB may round it by one.
const ITEMS: &str = "
#import bevy_pbr::forward_io::VertexOutput
@group(#{MATERIAL_BIND_GROUP}) @binding(0) var<uniform> first: u32;
@fragment
fn fragment(
    in: VertexOutput,
    @location(14) @interpolate(flat) instance: vec2<u32>,
) -> @location(0) vec4<f32> {
    let item = vec3(first + instance.y);
    let bytes = ((item >> vec3(0u, 5u, 10u)) & vec3(31u)) * 8u + 4u;
    let srgb = vec3<f32>(bytes) / 255.0;
    let linear = select(
        pow((srgb + 0.055) / 1.055, vec3(2.4)), srgb / 12.92, srgb <= vec3(0.04045));
    return vec4(linear, 1.0);
}";

const ITEMS_SHADER: Handle<Shader> = uuid_handle!("0c0f5be5-58c7-4f0e-8f4e-6a6b8d0e11d4");

impl Material for Items {
    fn fragment_shader() -> ShaderRef {
        ITEMS_SHADER.into()
    }
}

/// Registers the material and its shader.
pub fn add_items(app: &mut App) {
    app.add_plugins(MaterialPlugin::<Items>::default());
    let shader = Shader::from_wgsl(ITEMS, "items.wgsl");
    let mut shaders = app.world_mut().resource_mut::<Assets<Shader>>();
    shaders.insert(ITEMS_SHADER.id(), shader).unwrap();
}

/// The number that each pixel of a picture shows; `None` for black pixels, which other things than
/// instances must have.
///
/// # Panics
/// If a color is neither black nor the color of a number.
pub fn items_of(picture: &RgbaImage) -> Vec<Option<u32>> {
    let item = |pixel: &image::Rgba<u8>| {
        let [red, green, blue, _] = pixel.0;
        if [red, green, blue] == [0; 3] {
            return None;
        }
        let bits = [red, green, blue].map(|byte| {
            assert!((3..=5).contains(&(byte % 8)), "{pixel:?} is no number");
            u32::from(byte / 8)
        });
        Some(bits[0] | bits[1] << 5 | bits[2] << 10)
    };
    picture.pixels().map(item).collect()
}
