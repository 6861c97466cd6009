//! Features of Bevy that are no axis of the combinations: a scene for each.

use super::{
    build::{eye, ground, lamp, moved, sun},
    materials, stage,
};
use crate::scene::{How, SIZE, Stage, Stages, different_pixels, field};
use bevy::{
    asset::RenderAssetUsages,
    camera::{CameraOutputMode, Hdr, SubCameraView},
    core_pipeline::{
        oit::OrderIndependentTransparencySettings,
        prepass::{DeferredPrepass, DepthPrepass},
    },
    light::{
        EnvironmentMapLight, FogVolume, IrradianceVolume, RectLight, VolumetricFog, VolumetricLight,
    },
    material::OpaqueRendererMethod,
    mesh::{Indices, PrimitiveTopology},
    pbr::{ContactShadows, ScreenSpaceReflections},
    post_process::dof::{DepthOfField, DepthOfFieldMode},
    prelude::*,
    render::render_resource::{BlendState, Extent3d, TextureDimension, TextureFormat},
};

/// Area and name of a feature, and a function that builds its scene.
type Feature = (&'static str, &'static str, fn(&mut Stage));

#[rustfmt::skip]
pub const FEATURES: &[Feature] = &[
    ("Pass", "order-independent transparency", transparent),
    ("Material", "clearcoat and anisotropy", coated),
    ("Mesh", "lists and strips of lines, points, strips of triangles", topologies),
    ("Mesh", "meshes that are added later, and make the shared vertex buffers of drawn ones grow", grown),
    ("Light", "`EnvironmentMapLight` of a camera", surrounded),
    ("Light", "`IrradianceVolume`", irradiated),
    ("Light", "`RectLight`, without the textures of Bevy's feature `area_light_luts`", rect),
    ("Light", "`Visibility::Hidden` on lights with shadow maps", hidden_lights),
    ("Camera", "`sub_camera_view`", part),
    ("Camera", "`invert_culling`", inverted),
    ("Camera", "two cameras on one whole target, the second with `CameraOutputMode::Write` and a blend state", stacked),
    ("Camera", "HDR switched on and MSAA off while it draws", switched),
    ("Effect", "volumetric fog", misty),
    ("Effect", "depth of field", focused),
    ("Effect", "screen-space reflections", reflecting),
    ("Effect", "contact shadows", touching),
];

fn red() -> StandardMaterial {
    StandardMaterial {
        base_color: Color::srgb(0.9, 0.4, 0.3),
        perceptual_roughness: 0.4,
        ..default()
    }
}

/// Spawns instances.
fn spawn(stage: &mut Stage, count: usize, mesh: impl Into<Mesh>, material: StandardMaterial) {
    let parts = (stage.mesh(mesh), stage.standard(material));
    stage.spawn_set(&field(count, true), parts, moved());
}

/// Boxes, a ground, and the sun with its shadows.
fn boxes(stage: &mut Stage) -> Entity {
    spawn(stage, 150, Cuboid::new(0.5, 0.4, 0.6), red());
    ground(stage);
    sun(stage)
}

fn camera(stage: &mut Stage, more: impl Bundle) -> Entity {
    let camera = stage.camera(eye(), ());
    stage.entity(camera).insert(more);
    camera
}

fn transparent(stage: &mut Stage) {
    // Each set is sorted by itself, so only a material that takes part looks right between both.
    for (count, color) in [
        (60, Color::srgba(0.9, 0.4, 0.3, 0.5)),
        (75, Color::srgba(0.2, 0.5, 0.9, 0.6)),
    ] {
        let glass = StandardMaterial {
            base_color: color,
            alpha_mode: AlphaMode::Blend,
            ..default()
        };
        spawn(stage, count, Cuboid::new(0.9, 0.7, 1.1), glass);
    }
    ground(stage);
    sun(stage);
    camera(stage, OrderIndependentTransparencySettings::default());
}

fn coated(stage: &mut Stage) {
    let coated = StandardMaterial {
        clearcoat: 0.9,
        clearcoat_perceptual_roughness: 0.2,
        anisotropy_strength: 0.7,
        anisotropy_rotation: 0.4,
        metallic: 0.8,
        ..red()
    };
    let ball = Sphere::new(0.4).mesh().uv(24, 16);
    let ball = ball.with_generated_tangents().unwrap();
    spawn(stage, 150, ball, coated);
    ground(stage);
    sun(stage);
    lamp(stage);
    camera(stage, ());
}

fn topologies(stage: &mut Stage) {
    let corner = |i: u32| {
        let angle = i as f32 * 0.9;
        [0.5 * angle.sin(), 0.1 * i as f32 - 0.4, 0.5 * angle.cos()]
    };
    for topology in [
        PrimitiveTopology::LineList,
        PrimitiveTopology::LineStrip,
        PrimitiveTopology::PointList,
        PrimitiveTopology::TriangleStrip,
    ] {
        let corners: Vec<_> = (0..10).map(corner).collect();
        let mesh = Mesh::new(topology, RenderAssetUsages::default())
            .with_inserted_attribute(Mesh::ATTRIBUTE_POSITION, corners);
        // Strips with and without indices have other pipelines.
        let mesh = match topology {
            PrimitiveTopology::TriangleStrip => {
                mesh.with_inserted_indices(Indices::U16((0..10).collect()))
            }
            PrimitiveTopology::LineStrip => {
                mesh.with_inserted_indices(Indices::U32((0..10).rev().collect()))
            }
            _ => mesh,
        };
        let unlit = StandardMaterial {
            unlit: true,
            cull_mode: None,
            ..red()
        };
        spawn(stage, 40 + topology as usize, mesh, unlit);
    }
    ground(stage);
    sun(stage);
    camera(stage, ());
}

fn grown(stage: &mut Stage) {
    boxes(stage);
    camera(stage, ());
    stage.update(3);
    // More than a megabyte, which is the first size of the buffers.
    let ball = stage.mesh(Sphere::new(0.8).mesh().uv(250, 200));
    let gray = stage.standard(StandardMaterial::default());
    stage.spawn((Mesh3d(ball), gray, Transform::from_xyz(2.0, -1.0, 2.0)));
}

fn surrounded(stage: &mut Stage) {
    boxes(stage);
    let map = stage.add(materials::cubemap());
    camera(
        stage,
        EnvironmentMapLight {
            diffuse_map: map.clone(),
            specular_map: map,
            intensity: 3000.0,
            ..default()
        },
    );
}

fn irradiated(stage: &mut Stage) {
    spawn(stage, 150, Cuboid::new(0.5, 0.4, 0.6), red());
    ground(stage);
    // Four by four by four voxels, with six directions: halves of y, thirds of z.
    let (width, height, depth) = (4, 8, 12);
    let voxels = (0..width * height * depth)
        .flat_map(|i| [(i % 4) * 60, (i / 4 % 8) * 30, (i / 32) * 20, 255].map(|byte| byte as u8));
    let size = Extent3d {
        width,
        height,
        depth_or_array_layers: depth,
    };
    let voxels = stage.add(Image::new(
        size,
        TextureDimension::D3,
        voxels.collect(),
        TextureFormat::Rgba8Unorm,
        RenderAssetUsages::default(),
    ));
    stage.spawn((
        IrradianceVolume {
            voxels,
            intensity: 2000.0,
            ..default()
        },
        Transform::from_scale(Vec3::splat(14.0)),
    ));
    camera(stage, ());
}

fn rect(stage: &mut Stage) {
    spawn(stage, 150, Cuboid::new(0.5, 0.4, 0.6), red());
    ground(stage);
    stage.spawn((
        RectLight {
            intensity: 2_000_000.0,
            range: 30.0,
            width: 4.0,
            height: 2.0,
            ..default()
        },
        Transform::from_xyz(2.0, 6.0, 3.0).looking_at(Vec3::ZERO, Vec3::Y),
    ));
    camera(stage, ());
}

fn hidden_lights(stage: &mut Stage) {
    let lights = [boxes(stage), lamp(stage)];
    stage.spawn((
        DirectionalLight {
            illuminance: 2_000.0,
            shadow_maps_enabled: true,
            ..default()
        },
        Transform::from_xyz(-4.0, 5.0, 3.0).looking_at(Vec3::ZERO, Vec3::Y),
    ));
    camera(stage, ());
    stage.update(3);
    for light in lights {
        stage.entity(light).insert(Visibility::Hidden);
    }
}

fn part(stage: &mut Stage) {
    boxes(stage);
    let view = SubCameraView {
        full_size: SIZE,
        offset: Vec2::new(70.0, 40.0),
        size: SIZE / 2,
    };
    camera(
        stage,
        Camera {
            sub_camera_view: Some(view),
            ..default()
        },
    );
}

fn inverted(stage: &mut Stage) {
    boxes(stage);
    camera(
        stage,
        Camera {
            invert_culling: true,
            ..default()
        },
    );
}

fn stacked(stage: &mut Stage) {
    boxes(stage);
    camera(stage, ());
    let away = Transform::from_xyz(-7.0, 2.0, 3.0).looking_at(Vec3::ZERO, Vec3::Y);
    let above = stage.camera(away, ());
    stage.entity(above).insert(Camera {
        order: 1,
        clear_color: ClearColorConfig::Custom(Color::srgba(0.0, 0.0, 0.0, 0.3)),
        output_mode: CameraOutputMode::Write {
            blend_state: Some(BlendState::ALPHA_BLENDING),
            clear_color: ClearColorConfig::None,
        },
        ..default()
    });
}

fn switched(stage: &mut Stage) {
    boxes(stage);
    let camera = stage.camera(eye(), Msaa::Sample4);
    stage.update(3);
    stage.entity(camera).insert(Hdr);
    stage.update(2);
    stage.entity(camera).insert(Msaa::Off);
}

fn misty(stage: &mut Stage) {
    let sun = boxes(stage);
    stage.entity(sun).insert(VolumetricLight);
    let fog = FogVolume {
        density_factor: 0.05,
        ..default()
    };
    stage.spawn((fog, Transform::from_scale(Vec3::splat(20.0))));
    camera(
        stage,
        VolumetricFog {
            ambient_intensity: 0.0,
            step_count: 16,
            ..default()
        },
    );
}

fn focused(stage: &mut Stage) {
    boxes(stage);
    camera(
        stage,
        DepthOfField {
            mode: DepthOfFieldMode::Gaussian,
            focal_distance: 7.0,
            aperture_f_stops: 0.02,
            ..default()
        },
    );
}

fn reflecting(stage: &mut Stage) {
    let mirror = StandardMaterial {
        metallic: 1.0,
        perceptual_roughness: 0.1,
        opaque_render_method: OpaqueRendererMethod::Deferred,
        ..red()
    };
    spawn(stage, 150, Cuboid::new(0.5, 0.4, 0.6), mirror.clone());
    let plane = stage.mesh(Plane3d::new(Vec3::Y, Vec2::splat(12.0)));
    let mirror = stage.standard(mirror);
    stage.spawn((Mesh3d(plane), mirror, Transform::from_xyz(0.0, -3.0, 0.0)));
    sun(stage);
    let reflections = ScreenSpaceReflections::default();
    camera(stage, (DepthPrepass, DeferredPrepass, reflections));
}

fn touching(stage: &mut Stage) {
    let sun = boxes(stage);
    let mut sun = stage.entity(sun);
    sun.get_mut::<DirectionalLight>()
        .unwrap()
        .contact_shadows_enabled = true;
    let shadows = ContactShadows {
        length: 1.0,
        ..default()
    };
    camera(stage, (DepthPrepass, shadows));
}

#[test]
fn every_feature_looks_like_bevys_entities() {
    let only = std::env::var("ORACLE").unwrap_or_default();
    let stages = Stages::new(&stage);
    let mut failures = Vec::new();
    for (_, name, build) in FEATURES.iter().filter(|(_, name, _)| name.contains(&only)) {
        let begun = std::time::Instant::now();
        let pictures = [How::Set(None), How::Entities].map(|how| stages.draw(how, *build));
        let file: String = name
            .chars()
            .filter(char::is_ascii_alphabetic)
            .take(30)
            .collect();
        let result = different_pixels(&format!("feature-{file}"), &pictures[0], &pictures[1]);
        println!("{name}: {result:?}, {:.1?}", begun.elapsed());
        failures.extend(result.err());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
