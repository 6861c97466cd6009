//! Which images can be maps, and their values on the CPU.

use crate::cull::reference::texel_value;
use bevy::{
    asset::RenderAssetUsages,
    image::Image,
    prelude::*,
    render::render_resource::{
        TextureDimension, TextureFormat, TextureUsages, TextureViewDescriptor, TextureViewDimension,
    },
};

/// Why nothing grows with a [`Scatter`](crate::render::Scatter).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ScatterError {
    /// A map, or the rule, is not loaded.
    #[error(
        "the {map} is not loaded: check its path, and that Bevy's feature for its format is on"
    )]
    NotLoaded {
        /// The field of the component.
        map: &'static str,
    },
    /// Its data is on the GPU alone.
    #[error("the {map} has no data on the CPU: give it RenderAssetUsages::default()")]
    NoData {
        /// The field of the component.
        map: &'static str,
    },
    /// Its data is on the CPU alone.
    #[error("the {map} is not on the GPU: give it RenderAssetUsages::default()")]
    NotOnGpu {
        /// The field of the component.
        map: &'static str,
    },
    /// Its colors are encoded.
    #[error(
        "the {map} has the format {format:?}, whose values are encoded as colors: load it with is_srgb = false, or use {plain:?}"
    )]
    Srgb {
        /// The field of the component.
        map: &'static str,
        /// Its format.
        format: TextureFormat,
        /// The format without an encoding.
        plain: TextureFormat,
    },
    /// Its format has no fractions, or is compressed.
    #[error(
        "the {map} has the format {format:?}: use R8Unorm, R16Unorm, R16Float, R32Float, or one of them with more channels"
    )]
    Format {
        /// The field of the component.
        map: &'static str,
        /// Its format.
        format: TextureFormat,
    },
    /// It is no flat texture that shaders can read.
    #[error(
        "the {map} must be a texture of two dimensions, with one layer, one sample per pixel, no texture_view_descriptor and TextureUsages::TEXTURE_BINDING"
    )]
    Shape {
        /// The field of the component.
        map: &'static str,
    },
    /// Its rule is not WGSL.
    #[error("the rule is no WGSL: load a file that ends in .wgsl, or use Shader::from_wgsl")]
    Rule,
    /// It has a rule, which only the GPU can follow.
    #[error("it has a rule, which the CPU cannot follow")]
    RuleOnCpu,
    /// A field of the component is not valid.
    #[error("{field} is {value}, which must be {wanted}")]
    Field {
        /// The field of the component.
        field: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        wanted: String,
    },
}

/// How the first channel of a texel is stored.
#[derive(Clone, Copy)]
enum Channel {
    Unorm8,
    Unorm16,
    Float16,
    Float32,
}

/// The first channel of a format: how it is stored, where in a texel, and the texel's bytes.
fn first_channel(format: TextureFormat) -> Option<(Channel, usize, usize)> {
    use TextureFormat as Format;
    Some(match format {
        Format::R8Unorm => (Channel::Unorm8, 0, 1),
        Format::Rg8Unorm => (Channel::Unorm8, 0, 2),
        Format::Rgba8Unorm => (Channel::Unorm8, 0, 4),
        Format::Bgra8Unorm => (Channel::Unorm8, 2, 4),
        Format::R16Unorm => (Channel::Unorm16, 0, 2),
        Format::Rg16Unorm => (Channel::Unorm16, 0, 4),
        Format::Rgba16Unorm => (Channel::Unorm16, 0, 8),
        Format::R16Float => (Channel::Float16, 0, 2),
        Format::Rg16Float => (Channel::Float16, 0, 4),
        Format::Rgba16Float => (Channel::Float16, 0, 8),
        Format::R32Float => (Channel::Float32, 0, 4),
        Format::Rg32Float => (Channel::Float32, 0, 8),
        Format::Rgba32Float => (Channel::Float32, 0, 16),
        _ => return None,
    })
}

/// Whether an image can be a map.
pub(super) fn check_map(map: &'static str, image: &Image) -> Result<(), ScatterError> {
    let texture = &image.texture_descriptor;
    let format = texture.format;
    if format.is_srgb() {
        let plain = format.remove_srgb_suffix();
        return Err(ScatterError::Srgb { map, format, plain });
    }
    if first_channel(format).is_none() {
        return Err(ScatterError::Format { map, format });
    }
    let is_flat = texture.dimension == TextureDimension::D2
        && texture.size.depth_or_array_layers == 1
        && texture.sample_count == 1
        && image.texture_view_descriptor.as_ref().is_none_or(is_whole)
        && texture.usage.contains(TextureUsages::TEXTURE_BINDING);
    is_flat.then_some(()).ok_or(ScatterError::Shape { map })
}

/// Whether the GPU gets an image.
pub(super) fn check_on_gpu(map: &'static str, image: &Image) -> Result<(), ScatterError> {
    let is_on_gpu = image.asset_usage.contains(RenderAssetUsages::RENDER_WORLD);
    is_on_gpu
        .then_some(())
        .ok_or(ScatterError::NotOnGpu { map })
}

/// Whether a view shows a flat texture unchanged.
fn is_whole(view: &TextureViewDescriptor<'static>) -> bool {
    let is_flat = view
        .dimension
        .is_none_or(|all| all == TextureViewDimension::D2);
    is_flat && view.format.is_none() && view.base_mip_level == 0
}

/// The values of a map as the kernel reads them, row after row.
pub(super) fn map_values(map: &'static str, image: &Image) -> Result<Vec<u16>, ScatterError> {
    check_map(map, image)?;
    let data = image.data.as_ref().ok_or(ScatterError::NoData { map })?;
    let format = image.texture_descriptor.format;
    let (channel, at, stride) =
        first_channel(format).ok_or(ScatterError::Format { map, format })?;
    let texels = image.width() as usize * image.height() as usize;
    let value = |texel: &[u8]| {
        let bytes = &texel[at..];
        match channel {
            Channel::Unorm8 => u16::from(bytes[0]) * 257,
            Channel::Unorm16 => u16::from_le_bytes([bytes[0], bytes[1]]),
            Channel::Float16 => texel_value(half_to_f32(u16::from_le_bytes([bytes[0], bytes[1]]))),
            Channel::Float32 => {
                texel_value(f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            }
        }
    };
    // Coarser levels may follow.
    let values = data.chunks_exact(stride).take(texels).map(value);
    let values: Vec<_> = values.collect();
    match values.len() == texels {
        true => Ok(values),
        false => Err(ScatterError::NoData { map }),
    }
}

/// A number of 16 bits; what is not finite stays so.
fn half_to_f32(bits: u16) -> f32 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let size = match exponent {
        0 => fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + fraction) * 2f32.powi(exponent - 25),
    };
    sign * size
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use bevy::{asset::RenderAssetUsages, render::render_resource::Extent3d};

    fn image(format: TextureFormat, data: &[u8], width: u32) -> Image {
        let size = Extent3d { width, ..default() };
        let usage = RenderAssetUsages::default();
        Image::new(size, TextureDimension::D2, data.to_vec(), format, usage)
    }

    #[test]
    fn the_first_channel_of_each_format_is_read() {
        use TextureFormat as Format;
        let read = |format, data: &[u8], width| map_values("map", &image(format, data, width));
        assert_eq!(
            read(Format::R8Unorm, &[0, 255, 128], 3).unwrap(),
            [0, 65535, 32896]
        );
        assert_eq!(read(Format::Rgba8Unorm, &[1, 2, 3, 4], 1).unwrap(), [257]);
        assert_eq!(
            read(Format::Bgra8Unorm, &[1, 2, 3, 4], 1).unwrap(),
            [3 * 257]
        );
        assert_eq!(read(Format::R16Unorm, &[2, 1], 1).unwrap(), [258]);
        let floats: Vec<_> = [0.5f32, -1.0, 7.0, f32::NAN]
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        assert_eq!(
            read(Format::R32Float, &floats, 4).unwrap(),
            [32768, 0, 65535, 0]
        );
        // One half, one, and the smallest number.
        let halves = [0x00, 0x38, 0x00, 0x3c, 0x01, 0x00];
        assert_eq!(
            read(Format::R16Float, &halves, 3).unwrap(),
            [32768, 65535, 0]
        );
        assert_eq!(half_to_f32(0xfc00), f32::NEG_INFINITY);
        assert!(half_to_f32(0x7e00).is_nan());
    }

    #[test]
    fn images_that_cannot_be_maps_say_why() {
        let mut encoded = image(TextureFormat::Rgba8UnormSrgb, &[0; 4], 1);
        let said = check_map("density_map", &encoded).unwrap_err().to_string();
        assert!(
            said.contains("Rgba8UnormSrgb") && said.contains("use Rgba8Unorm"),
            "{said}"
        );
        let numbers = image(TextureFormat::R32Uint, &[0; 4], 1);
        let said = check_map("height_map", &numbers).unwrap_err().to_string();
        assert!(
            said.contains("R32Uint") && said.contains("height_map"),
            "{said}"
        );
        encoded.texture_descriptor.format = TextureFormat::Rgba8Unorm;
        assert_eq!(check_map("map", &encoded), Ok(()));
        encoded.data = None;
        let none = ScatterError::NoData { map: "map" };
        assert_eq!(map_values("map", &encoded), Err(none));
        encoded.texture_descriptor.sample_count = 4;
        let shape = ScatterError::Shape { map: "map" };
        assert_eq!(check_map("map", &encoded), Err(shape));
    }
}
