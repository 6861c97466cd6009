//! A wall of leaves: alpha-masked quads in several layers, which fills the view.

use crate::field::{PART, each_core};
use bevy::{
    asset::RenderAssetUsages,
    image::ImageSampler,
    math::ops,
    prelude::*,
    render::render_resource::{Extent3d, TextureDimension, TextureFormat},
};
use bevy_gpu_culling::instance::{InstanceError, InstanceSet, PackedInstance};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Layers, one behind the other.
const LAYERS: u32 = 8;
/// Distance of the last layer over the distance of the first.
const DEPTH: f32 = 1.25;
/// Share of a gap between layers in which the leaves of a layer lie, so that no two are in one
/// plane.
const THICKNESS: f32 = 0.5;
/// Leaves per square unit of the first layer. A leaf is one unit wide and high.
const DENSITY: f32 = 1.25;
/// Width of the wall over its height, as of most screens.
const ASPECT: f32 = 16.0 / 9.0;
/// Side of the texture in texels.
const TEXELS: u32 = 64;
const SEED: u64 = 5;

/// The lens of a camera that the wall fills.
pub fn lens(count: u32) -> PerspectiveProjection {
    let mut lens = PerspectiveProjection::default();
    lens.far = 2.0 * DEPTH * distance(count, &lens);
    lens
}

/// Distance of the first layer from the camera, in world units.
fn distance(count: u32, lens: &PerspectiveProjection) -> f32 {
    let area = count.max(LAYERS) as f32 / LAYERS as f32 / DENSITY;
    let height = (area / ASPECT).sqrt();
    height / 2.0 / ops::tan(lens.fov / 2.0)
}

/// Leaves in front of a camera at the origin that looks along -z, sorted along the Morton curve.
pub fn set(count: u32) -> Result<InstanceSet, InstanceError> {
    let lens = PerspectiveProjection::default();
    let (distance, up) = (distance(count, &lens), ops::tan(lens.fov / 2.0));
    let gap = (DEPTH - 1.0) / (LAYERS - 1) as f32;
    let mut instances = vec![PackedInstance::default(); count as usize];
    each_core(
        instances.chunks_mut(PART).enumerate(),
        |(part, instances)| {
            let mut dice = ChaCha8Rng::seed_from_u64(SEED);
            dice.set_stream(part as u64);
            for instance in instances {
                let layer = dice.random_range(0..LAYERS) as f32;
                let mut unit = || dice.random_range(-1.0f32..1.0);
                let away = distance * (1.0 + gap * (layer + THICKNESS * 0.5 * (1.0 + unit())));
                let place = Vec3::new(unit() * up * ASPECT, unit() * up, -1.0) * away;
                let roll = Quat::from_rotation_z(unit() * core::f32::consts::PI);
                let tilt = Quat::from_euler(EulerRot::XYZ, 0.6 * unit(), 0.6 * unit(), 0.0);
                *instance = PackedInstance::new(place, tilt * roll);
            }
        },
    );
    Ok(InstanceSet::from_packed(instances)?.sorted())
}

/// A quad that faces the camera.
pub fn mesh() -> Mesh {
    Rectangle::new(1.0, 1.0).into()
}

pub fn material(texture: Handle<Image>) -> StandardMaterial {
    StandardMaterial {
        base_color_texture: Some(texture),
        alpha_mode: AlphaMode::Mask(0.5),
        perceptual_roughness: 0.7,
        ..default()
    }
}

/// The picture of a leaf, with all its levels of detail.
pub fn texture() -> Image {
    let levels = TEXELS.ilog2() + 1;
    let mut texels = Vec::new();
    for side in (0..levels).map(|level| TEXELS >> level) {
        for texel in 0..side * side {
            let at = |i: u32| (i as f32 + 0.5) / side as f32 * 2.0 - 1.0;
            texels.extend(leaf(at(texel % side), at(texel / side), side as f32));
        }
    }
    let mut image = Image::new_uninit(
        Extent3d {
            width: TEXELS,
            height: TEXELS,
            depth_or_array_layers: 1,
        },
        TextureDimension::D2,
        TextureFormat::Rgba8UnormSrgb,
        RenderAssetUsages::RENDER_WORLD,
    );
    image.data = Some(texels);
    image.texture_descriptor.mip_level_count = levels;
    image.sampler = ImageSampler::linear();
    image
}

/// Color of a leaf at a place from -1 to 1, in a picture of `side` texels.
fn leaf(across: f32, along: f32, side: f32) -> [u8; 4] {
    let half_width = 0.55 * (1.0 - along * along) * (1.0 - 0.35 * along);
    // From inside to outside within a texel, so that every level has the same outline.
    let inside = (half_width - across.abs()) * side / 2.0;
    let vein = across.abs() < 0.04 || (ops::sin(14.0 * (along + across.abs())) > 0.93);
    let green = if vein { [120, 170, 70] } else { [64, 128, 44] };
    let alpha = ((inside + 0.5).clamp(0.0, 1.0) * 255.0) as u8;
    [green[0], green[1], green[2], alpha]
}
