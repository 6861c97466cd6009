//! Meshes, materials, sky, lights and camera.

use super::{
    cli::Occlusion,
    field::{self, Finish, Shape},
};
use bevy::{
    asset::RenderAssetUsages,
    camera::Hdr,
    core_pipeline::{
        prepass::DepthPrepass,
        tonemapping::{DebandDither, Tonemapping},
    },
    image::ImageSampler,
    light::Skybox,
    math::ops,
    mesh::VertexAttributeValues,
    post_process::bloom::Bloom,
    prelude::*,
    render::occlusion_culling::OcclusionCulling,
    render::render_resource::{
        Extent3d, TextureDimension, TextureFormat, TextureViewDescriptor, TextureViewDimension,
    },
    render::renderer::RenderAdapterInfo,
};
use bevy_gpu_culling::{
    meshlet::MeshletError,
    prelude::{InstanceLods, InstanceOcclusion, LodSettings},
};
use wgpu::DeviceType;

/// Radius of an orb, a rock or a ring of scale 1.
const RADIUS: f32 = 0.5;
/// Color of the mist.
const MIST: Color = Color::srgb(0.035, 0.028, 0.075);

/// The mesh of a shape, of 80 to 200 triangles.
pub fn mesh(shape: Shape) -> Mesh {
    match shape {
        Shape::Orb => ball(2),
        Shape::Rock => rock(),
        Shape::Capsule => Capsule3d::new(0.17, 1.1)
            .mesh()
            .longitudes(8)
            .latitudes(6)
            .build(),
        Shape::Ring => Torus {
            minor_radius: 0.13,
            major_radius: RADIUS,
        }
        .mesh()
        .major_resolution(16)
        .minor_resolution(6)
        .build(),
    }
}

/// The coarser levels of a shape's mesh, with their errors.
pub fn levels(shape: Shape) -> Result<Vec<(Mesh, f32)>, MeshletError> {
    let settings = LodSettings::default();
    if shape != Shape::Rock {
        return InstanceLods::simplified_meshes(&mesh(shape), &settings);
    }
    // Flat faces share no vertex, so the smooth ball becomes coarser, and its faces flat.
    let mut levels = InstanceLods::simplified_meshes(&bumpy(1), &settings)?;
    for (mesh, _) in &mut levels {
        flatten(mesh);
    }
    Ok(levels)
}

/// Lets a camera hide orbs behind others.
pub fn equip(camera: &mut EntityWorldMut<'_>, occlusion: Occlusion) {
    match occlusion {
        Occlusion::Auto => camera.insert(InstanceOcclusion::auto()),
        Occlusion::On => camera.insert(InstanceOcclusion::default()),
        Occlusion::Prepass => camera.insert((DepthPrepass, OcclusionCulling)),
        Occlusion::Off => camera,
    };
}

/// The colors of levels of detail, the full mesh first.
const LEVEL_COLORS: [[f32; 4]; 6] = [
    [0.9, 0.9, 0.9, 1.0],
    [0.15, 0.75, 0.3, 1.0],
    [0.9, 0.8, 0.1, 1.0],
    [0.95, 0.4, 0.05, 1.0],
    [0.8, 0.05, 0.15, 1.0],
    [0.5, 0.1, 0.9, 1.0],
];

/// What colors orbs have instead of their looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colors {
    Levels,
    Occlusion,
}

/// The mesh of a level of detail with vertex colors: the level's color, or white, which
/// [`GpuCullingSettings::color_occlusion`] colors.
pub fn colored(mesh: Mesh, level: usize, colors: Option<Colors>) -> Mesh {
    let color = match colors {
        None => return mesh,
        Some(Colors::Levels) => LEVEL_COLORS[level.min(LEVEL_COLORS.len() - 1)],
        Some(Colors::Occlusion) => [1.0; 4],
    };
    let colors = vec![color; mesh.count_vertices()];
    mesh.with_inserted_attribute(Mesh::ATTRIBUTE_COLOR, colors)
}

/// The closed mesh of a shape, of more than 10,000 triangles, for meshlets.
pub fn dense_mesh(shape: Shape) -> Mesh {
    match shape {
        Shape::Orb => ball(22),
        Shape::Rock => {
            let mut mesh = bumpy(22);
            mesh.compute_smooth_normals();
            mesh
        }
        Shape::Capsule => Capsule3d::new(0.17, 1.1)
            .mesh()
            .longitudes(80)
            .latitudes(64)
            .build(),
        Shape::Ring => Torus {
            minor_radius: 0.13,
            major_radius: RADIUS,
        }
        .mesh()
        .major_resolution(128)
        .minor_resolution(42)
        .build(),
    }
}

/// The material that shows the colors of meshlets.
pub fn neutral_material() -> StandardMaterial {
    StandardMaterial {
        perceptual_roughness: 0.6,
        ..default()
    }
}

fn ball(subdivisions: u32) -> Mesh {
    match Sphere::new(RADIUS).mesh().ico(subdivisions) {
        Ok(mesh) => mesh,
        // Only a ball with more vertices than a `u32` counts is refused.
        Err(_) => Sphere::new(RADIUS).mesh().uv(16, 8),
    }
}

/// A ball with bumps and flat faces.
fn rock() -> Mesh {
    let mut mesh = bumpy(1);
    flatten(&mut mesh);
    mesh
}

/// Gives each triangle one normal.
fn flatten(mesh: &mut Mesh) {
    mesh.duplicate_vertices();
    mesh.compute_flat_normals();
}

/// A ball with bumps and the normals of a smooth one.
fn bumpy(subdivisions: u32) -> Mesh {
    let mut mesh = ball(subdivisions);
    if let Some(VertexAttributeValues::Float32x3(places)) =
        mesh.attribute_mut(Mesh::ATTRIBUTE_POSITION)
    {
        for place in places {
            // The bump is a function of the place, so that equal vertices stay equal.
            let [x, y, z] = *place;
            let bump =
                ops::sin(7.0 * x + 1.0) + ops::sin(9.0 * y + 2.0) + ops::sin(8.0 * z + 5.0 * x);
            *place = (Vec3::from(*place) * (0.9 + 0.11 * bump)).to_array();
        }
    }
    mesh
}

/// The material of a finish.
pub fn material(finish: Finish) -> StandardMaterial {
    let base = |color: Color, metallic: f32, perceptual_roughness: f32| StandardMaterial {
        base_color: color,
        metallic,
        perceptual_roughness,
        ..default()
    };
    // Brighter than white, so that it blooms without a light.
    let glow = |color: Color| StandardMaterial {
        unlit: true,
        ..base(color, 0.0, 1.0)
    };
    match finish {
        Finish::Ice => base(Color::srgb(0.58, 0.73, 0.93), 0.2, 0.16),
        Finish::Amethyst => base(Color::srgb(0.55, 0.30, 0.85), 0.85, 0.28),
        Finish::Ember => StandardMaterial {
            emissive: LinearRgba::rgb(1.5, 0.42, 0.06),
            ..base(Color::srgb(1.0, 0.55, 0.2), 0.0, 0.4)
        },
        Finish::Plasma => glow(Color::linear_rgb(0.6, 4.2, 6.0)),
        Finish::Basalt => base(Color::srgb(0.30, 0.27, 0.28), 0.1, 0.6),
        Finish::Gold => base(Color::srgb(1.0, 0.72, 0.32), 1.0, 0.34),
        Finish::Copper => base(Color::srgb(0.96, 0.50, 0.34), 1.0, 0.25),
        Finish::Jade => base(Color::srgb(0.10, 0.62, 0.52), 0.0, 0.2),
        Finish::Chrome => base(Color::srgb(0.86, 0.88, 0.92), 1.0, 0.1),
    }
}

/// A patch of the nebula: direction, width (1 is a quarter of the sky) and color.
const NEBULA: [(Vec3, f32, Vec3); 7] = [
    (
        Vec3::new(-0.9, 0.05, -0.55),
        0.22,
        Vec3::new(0.95, 0.42, 0.20),
    ),
    (
        Vec3::new(-0.6, 0.35, -0.9),
        0.5,
        Vec3::new(0.42, 0.10, 0.36),
    ),
    (Vec3::new(0.2, 0.3, -1.0), 0.45, Vec3::new(0.08, 0.16, 0.52)),
    (Vec3::new(-1.0, -0.3, 0.3), 0.4, Vec3::new(0.04, 0.26, 0.30)),
    (Vec3::new(1.0, 0.4, 0.1), 0.4, Vec3::new(0.05, 0.25, 0.40)),
    (Vec3::new(0.4, 0.1, 1.0), 0.35, Vec3::new(0.60, 0.22, 0.10)),
    (Vec3::new(0.1, -1.0, 0.0), 0.6, Vec3::new(0.05, 0.03, 0.14)),
];

/// The nebula's light from a direction, blurred for a rough surface.
fn nebula(direction: Vec3, blur: f32) -> Vec3 {
    let dark = Vec3::new(0.010, 0.010, 0.026);
    NEBULA.iter().fold(dark, |light, (towards, width, color)| {
        let wide = width + 1.2 * blur * blur;
        let lobe = ops::exp((direction.dot(towards.normalize()) - 1.0) / (wide * wide));
        // A blurred patch is wider, and dimmer by the same factor.
        light + color * lobe * (width * width / (wide * wide))
    })
}

/// The sky as a cube map. Surfaces reflect the level of detail of their roughness.
fn sky_map(side: u32, levels: u32, first_blur: f32) -> Image {
    let mut texels = Vec::new();
    for face in 0..6 {
        for level in 0..levels {
            let (side, blur) = (
                side >> level,
                first_blur + level as f32 / levels.max(2) as f32,
            );
            for texel in 0..side * side {
                let at = |i: u32| (i as f32 + 0.5) / side as f32 * 2.0 - 1.0;
                let direction = face_direction(face, at(texel % side), at(texel / side));
                texels.extend(shared_exponent(nebula(direction, blur)).to_le_bytes());
            }
        }
    }
    let mut image = Image::new_uninit(
        Extent3d {
            width: side,
            height: side,
            depth_or_array_layers: 6,
        },
        TextureDimension::D2,
        TextureFormat::Rgb9e5Ufloat,
        RenderAssetUsages::RENDER_WORLD,
    );
    image.data = Some(texels);
    image.texture_descriptor.mip_level_count = levels;
    image.texture_view_descriptor = Some(TextureViewDescriptor {
        dimension: Some(TextureViewDimension::Cube),
        ..default()
    });
    image.sampler = ImageSampler::linear();
    image
}

/// The direction in the world of a point on a cube map's face. Cube maps are left-handed, so z is
/// mirrored.
fn face_direction(face: u32, right: f32, down: f32) -> Vec3 {
    let direction = match face {
        0 => Vec3::new(1.0, -down, -right),
        1 => Vec3::new(-1.0, -down, right),
        2 => Vec3::new(right, 1.0, down),
        3 => Vec3::new(right, -1.0, -down),
        4 => Vec3::new(right, -down, 1.0),
        _ => Vec3::new(-right, -down, -1.0),
    };
    (direction * Vec3::new(1.0, 1.0, -1.0)).normalize()
}

/// A color as three mantissas of 9 bits and one exponent of 5.
fn shared_exponent(color: Vec3) -> u32 {
    let largest = color.max_element().clamp(1e-6, 65_000.0);
    let exponent = (ops::log2(largest).floor() as i32 + 1).max(-15);
    let unit = ops::exp2((9 - exponent) as f32);
    let mantissa = |value: f32| ((value * unit).round() as u32).min(511);
    mantissa(color.x)
        | mantissa(color.y) << 9
        | mantissa(color.z) << 18
        | ((exponent + 15) as u32) << 27
}

/// A camera without its target.
pub fn camera(world: &mut World, radius: f32) -> impl Bundle {
    // Four samples per pixel make a software renderer four times as slow.
    let smooth = world.resource::<RenderAdapterInfo>().device_type != DeviceType::Cpu;
    let mut images = world.resource_mut::<Assets<Image>>();
    let glossy = images.add(sky_map(64, 6, 0.0));
    let diffuse = images.add(sky_map(8, 1, 0.9));
    (
        Camera3d::default(),
        start(radius),
        lens(radius),
        Hdr,
        if smooth { Msaa::Sample4 } else { Msaa::Off },
        Tonemapping::TonyMcMapface,
        DebandDither::Enabled,
        Bloom {
            intensity: 0.16,
            ..Bloom::NATURAL
        },
        fog(start(radius).translation, radius),
        Skybox {
            image: Some(glossy.clone()),
            brightness: 55.0,
            ..default()
        },
        EnvironmentMapLight {
            diffuse_map: diffuse,
            specular_map: glossy,
            intensity: 380.0,
            ..default()
        },
    )
}

/// The camera's first transform.
pub fn start(radius: f32) -> Transform {
    let tilted = Vec3::new(0.10, 1.0, -0.06);
    Transform::from_translation(field::EYE * radius).looking_at(field::TARGET * radius, tilted)
}

/// The far plane does not cull. It is the end of a frozen frustum that is drawn as a gizmo.
pub fn lens(radius: f32) -> Projection {
    Projection::Perspective(PerspectiveProjection {
        fov: 34f32.to_radians(),
        far: 1.3 * radius,
        ..default()
    })
}

/// Mist that hides distant orbs. It is thinner for a camera outside the field, which sees the whole
/// field.
pub fn fog(eye: Vec3, radius: f32) -> DistanceFog {
    let outside = (eye.length() / radius).max(1.0);
    DistanceFog {
        color: MIST,
        falloff: FogFalloff::Exponential {
            density: 0.7 / (radius * outside * outside),
        },
        ..default()
    }
}

/// A light: place in the unit disc, strength and color.
const LIGHTS: [(Vec3, f32, Color); 13] = [
    (Vec3::new(0.0, 0.05, 0.0), 5.0, Color::srgb(1.0, 0.62, 0.28)),
    (
        Vec3::new(0.05, 0.22, -0.1),
        3.0,
        Color::srgb(1.0, 0.40, 0.30),
    ),
    (
        Vec3::new(0.30, 0.22, 0.00),
        2.4,
        Color::srgb(0.25, 0.75, 1.0),
    ),
    (
        Vec3::new(0.30, -0.10, 0.36),
        0.8,
        Color::srgb(0.95, 0.30, 0.75),
    ),
    (
        Vec3::new(0.10, 0.12, 0.50),
        1.6,
        Color::srgb(0.40, 0.45, 1.0),
    ),
    (
        Vec3::new(-0.40, 0.10, 0.42),
        2.2,
        Color::srgb(0.20, 0.85, 0.80),
    ),
    (
        Vec3::new(-0.62, 0.06, 0.05),
        2.4,
        Color::srgb(0.90, 0.28, 0.60),
    ),
    (
        Vec3::new(-0.42, -0.12, -0.40),
        2.2,
        Color::srgb(0.35, 0.40, 1.0),
    ),
    (
        Vec3::new(0.02, 0.18, -0.62),
        2.4,
        Color::srgb(0.25, 0.65, 1.0),
    ),
    (
        Vec3::new(0.48, -0.05, -0.36),
        2.0,
        Color::srgb(0.80, 0.35, 1.0),
    ),
    (
        Vec3::new(0.78, 0.12, 0.10),
        2.0,
        Color::srgb(0.25, 0.90, 0.90),
    ),
    (
        Vec3::new(0.42, 0.14, 0.72),
        1.6,
        Color::srgb(1.0, 0.55, 0.25),
    ),
    (
        Vec3::new(-0.80, 0.25, -0.50),
        2.6,
        Color::srgb(0.95, 0.45, 0.35),
    ),
];

/// Marks the lights, so that they can be replaced.
#[derive(Component)]
pub struct Mood;

/// Lights with shadows, around the first view.
pub fn spawn_shadow_lights(world: &mut World, radius: f32, count: u32) {
    for light in 0..count {
        let (sin, cos) = ops::sin_cos(light as f32 / count as f32 * core::f32::consts::TAU);
        let away = Vec3::new(cos, 0.3, sin) * 0.12;
        let light = PointLight {
            intensity: 200.0 * radius * radius,
            range: 0.3 * radius,
            shadow_maps_enabled: true,
            ..default()
        };
        let place = Transform::from_translation((field::EYE + away) * radius);
        world.spawn((Mood, light, place));
    }
}

/// A dozen colored lights in the field and a dim one from afar, all without shadows.
pub fn spawn_lights(world: &mut World, radius: f32) {
    // Light falls off with the square of the distance, and distances grow with the field.
    let unit = 1500.0 * radius * radius;
    for (place, strength, color) in LIGHTS {
        let light = PointLight {
            color,
            intensity: strength * unit,
            range: radius * 0.3 * strength.sqrt(),
            radius: 0.01 * radius,
            ..default()
        };
        world.spawn((Mood, light, Transform::from_translation(place * radius)));
    }
    world.spawn((
        Mood,
        DirectionalLight {
            illuminance: 260.0,
            color: Color::srgb(0.65, 0.75, 1.0),
            ..default()
        },
        Transform::from_xyz(0.6, 1.0, 0.8).looking_at(Vec3::ZERO, Vec3::Y),
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meshes_are_small_enough_for_a_software_renderer() {
        for shape in [Shape::Orb, Shape::Rock, Shape::Capsule, Shape::Ring] {
            let mesh = mesh(shape);
            let corners = mesh
                .indices()
                .map_or(mesh.count_vertices(), |indices| indices.len());
            assert!(
                (80..=320).contains(&(corners / 3)),
                "{shape:?}: {} triangles",
                corners / 3
            );
        }
    }

    #[test]
    fn dense_meshes_have_ten_thousand_triangles() {
        for shape in [Shape::Orb, Shape::Rock, Shape::Capsule, Shape::Ring] {
            let triangles = dense_mesh(shape).indices().map(|indices| indices.len() / 3);
            assert!(
                triangles.is_some_and(|triangles| (10_000..13_000).contains(&triangles)),
                "{shape:?}: {triangles:?}"
            );
        }
    }

    #[test]
    fn every_face_looks_its_own_way() {
        let middles: Vec<_> = (0..6).map(|face| face_direction(face, 0.0, 0.0)).collect();
        assert_eq!(middles.iter().copied().sum::<Vec3>(), Vec3::ZERO);
        assert_eq!(middles[0], Vec3::X);
        assert_eq!(middles[4], Vec3::NEG_Z);
    }

    #[test]
    fn shared_exponents_decode_to_the_color() {
        for color in [
            Vec3::new(0.01, 0.02, 0.5),
            Vec3::new(7.0, 0.3, 1.0),
            Vec3::ZERO,
        ] {
            let bits = shared_exponent(color);
            let unit = ops::exp2((bits >> 27) as f32 - 15.0 - 9.0);
            let decoded = Vec3::new(
                (bits & 511) as f32,
                (bits >> 9 & 511) as f32,
                (bits >> 18 & 511) as f32,
            ) * unit;
            assert!(
                decoded.abs_diff_eq(color, color.max_element() / 256.0 + 1e-6),
                "{color} {decoded}"
            );
        }
    }
}
