//! A material that shows the number of each pixel's instance: the picture is an item buffer.

use bevy::{
    asset::uuid_handle, prelude::*, reflect::TypePath, render::render_resource::AsBindGroup,
    shader::ShaderRef,
};

/// Each pixel of instance `i` has the color of 15 bits of the number `first + i`. Black if `first`
/// is 0.
#[derive(Asset, TypePath, AsBindGroup, Clone, Debug)]
pub struct Items {
    /// The number of instance 0.
    #[uniform(0)]
    pub first: u32,
    /// The lowest bit of the number that the color says.
    #[uniform(0)]
    pub shift: u32,
}

/// Bits of a number that a color says: five per channel.
pub const BITS: u32 = 15;

// A channel has the byte `8 * bits + 4`. Writing and copying sRGB may round it by one.
const ITEMS: &str = "
import bevy_pbr::render::forward_io::VertexOutput;
struct Items {
    first: u32,
    shift: u32,
}
@group(constants::MATERIAL_BIND_GROUP) @binding(0) var<uniform> items: Items;
@fragment
fn fragment(
    in: VertexOutput,
    @location(14) @interpolate(flat) instance: vec2<u32>,
) -> @location(0) vec4<f32> {
    if items.first == 0u {
        return vec4(0.0, 0.0, 0.0, 1.0);
    }
    let item = vec3((items.first + instance.y) >> items.shift);
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
    let shader = Shader::from_wesl(ITEMS, "items.wesl");
    let mut shaders = app.world_mut().resource_mut::<Assets<Shader>>();
    let _ = shaders.insert(ITEMS_SHADER.id(), shader);
}

/// The bits that a color says; `None` for black, which other things than instances must have.
///
/// # Errors
/// A text if the color is neither black nor the color of bits.
pub fn item_of(color: [u8; 3]) -> Result<Option<u32>, String> {
    if color == [0; 3] {
        return Ok(None);
    }
    if !color.iter().all(|byte| (3..=5).contains(&(byte % 8))) {
        return Err(format!("{color:?} is no number"));
    }
    let [red, green, blue] = color.map(|byte| u32::from(byte / 8));
    Ok(Some(red | green << 5 | blue << 10))
}
