//! Two cameras, one of which has its own detail: each half of the picture looks as if the settings
//! of both were its own.

use super::{eye, red};
use crate::scene::{How, SIZE, Stage, assert_same_picture, field_of};
use bevy::{
    camera::{Viewport, visibility::VisibilityRange},
    light::{CascadeShadowConfigBuilder, DirectionalLightShadowMap},
    prelude::*,
};
use bevy_gpu_culling::{
    prelude::*,
    render::{ViewKind, ViewReport},
};
use image::{RgbaImage, imageops::crop_imm};

/// The detail of one of the cameras.
const COARSE: CameraDetail = CameraDetail {
    lod_pixels: Some(6.0),
    shadow_lod_pixels: Some(9.0),
    min_pixels: Some(14.0),
};

/// Half the picture's width.
const HALF: UVec2 = UVec2::new(SIZE.x / 2, SIZE.y);

/// A field with levels above a ground, under a sun. The cameras stand at the same place.
fn stage(fade: f32, details: [Option<CameraDetail>; 2], settings: CameraDetail) -> Stage {
    let mut stage = Stage::new(How::Set(None));
    stage
        .app
        .insert_resource(DirectionalLightShadowMap { size: 256 });
    let mut of_app = stage.app.world_mut().resource_mut::<GpuCullingSettings>();
    of_app.lod_pixels = settings.lod_pixels.unwrap_or(of_app.lod_pixels);
    of_app.shadow_lod_pixels = (settings.shadow_lod_pixels).unwrap_or(of_app.shadow_lod_pixels);
    of_app.min_pixels = settings.min_pixels.unwrap_or(of_app.min_pixels);
    let full = stage.mesh(Sphere::new(0.3));
    let coarser = stage.mesh(Cuboid::new(0.4, 0.4, 0.4));
    let coarsest = stage.mesh(Cuboid::new(0.7, 0.2, 0.2));
    let material = stage.standard(red());
    let set = field_of(500, ScaleKind::NonUniform);
    let lods = InstanceLods {
        levels: vec![
            InstanceLod::new(coarser, 0.02),
            InstanceLod::new(coarsest, 0.12),
        ],
        fade,
        ..default()
    };
    let set = stage.spawn_set(&set, (full, material), Transform::IDENTITY);
    // Bevy's ranges fade in every camera.
    let range = VisibilityRange {
        end_margin: 12.0..17.0,
        ..default()
    };
    stage
        .entity(set)
        .insert((lods, InstanceVisibilityRange(range)));
    // Thinned out as the camera sees it, whatever its detail.
    let grass = stage.mesh(Cuboid::new(0.3, 0.8, 0.3));
    let green = stage.standard(StandardMaterial::from(Color::srgb(0.2, 0.6, 0.2)));
    let blades = stage.spawn_set(
        &field_of(700, ScaleKind::One),
        (grass, green),
        Transform::from_xyz(0.4, 0.2, 0.3),
    );
    stage
        .entity(blades)
        .insert(AggregateDetail { below_pixels: 40.0 });
    let ground = stage.mesh(Plane3d::new(Vec3::Y, Vec2::splat(12.0)));
    let gray = stage.standard(StandardMaterial::from(Color::srgb(0.5, 0.5, 0.55)));
    stage.spawn((Mesh3d(ground), gray, Transform::from_xyz(0.0, -4.5, 0.0)));
    let cascades = CascadeShadowConfigBuilder {
        num_cascades: 2,
        maximum_distance: 40.0,
        ..default()
    };
    let light = DirectionalLight {
        illuminance: 3_000.0,
        shadow_maps_enabled: true,
        ..default()
    };
    let at = Transform::from_xyz(4.0, 9.0, 3.0).looking_at(Vec3::ZERO, Vec3::Y);
    stage.spawn((light, cascades.build(), at));
    for (number, detail) in details.into_iter().enumerate() {
        let camera = stage.camera(eye(), ());
        let mut camera = stage.entity(camera);
        let mut own = camera.get_mut::<Camera>().unwrap();
        own.viewport = Some(Viewport {
            physical_position: UVec2::new(number as u32 * HALF.x, 0),
            physical_size: HALF,
            ..default()
        });
        own.order = number as isize;
        if number > 0 {
            own.clear_color = ClearColorConfig::None;
        }
        if let Some(detail) = detail {
            camera.insert(detail);
        }
    }
    stage
}

fn half(picture: &RgbaImage, number: u32) -> RgbaImage {
    crop_imm(picture, number * HALF.x, 0, HALF.x, HALF.y).to_image()
}

/// Instances of each level, of the cameras and then of all cascades.
fn levels(views: &[ViewReport]) -> Vec<Vec<u64>> {
    let of = |view: &ViewReport| view.levels.iter().map(|level| level.visible).collect();
    let cameras = views.iter().filter(|view| view.kind == ViewKind::Camera);
    let cascades = views.iter().filter(|view| view.kind == ViewKind::Cascade);
    cameras.chain(cascades).map(of).collect()
}

#[test]
fn each_camera_draws_in_its_own_detail() {
    let unset = CameraDetail::default();
    for fade in [0.0, 0.4] {
        let (fine, _) = stage(fade, [None; 2], unset).picture_and_report();
        // A camera with its own detail does not fade.
        let (coarse, _) = stage(0.0, [None; 2], COARSE).picture_and_report();
        let differ = half(&fine, 1) != half(&coarse, 1);
        assert!(differ, "both details look the same");
        for which in 0..2 {
            let mut details = [None; 2];
            details[which] = Some(COARSE);
            let mut both = stage(fade, details, unset);
            let picture = both.picture();
            for (number, detail) in details.iter().enumerate() {
                let wanted = match detail {
                    Some(_) => &coarse,
                    None => &fine,
                };
                let at = number as u32;
                let name = format!("detail of camera {number} of 2, fade {fade}, own {which}");
                assert_same_picture(&name, &half(&picture, at), &half(wanted, at));
            }
            both.verify();
        }
    }
}

#[test]
fn a_detail_comes_and_goes() {
    let unset = CameraDetail::default();
    let mut stage = stage(0.0, [None; 2], unset);
    let before = levels(&stage.report().views);
    let cameras: Vec<_> = {
        let world = stage.app.world_mut();
        let mut cameras = world.query_filtered::<Entity, With<Camera3d>>();
        cameras.iter(world).collect()
    };
    for &camera in &cameras {
        stage.entity(camera).insert(COARSE);
    }
    let coarse = levels(&stage.report().views);
    // Balls become boxes, small ones vanish, in cameras and in cascades.
    for (fine, coarse) in before.iter().zip(&coarse) {
        assert!(coarse[0] < fine[0] && coarse.iter().sum::<u64>() < fine.iter().sum());
    }
    // All at once as by the settings.
    let mut by_settings = self::stage(0.0, [None; 2], COARSE);
    assert_eq!(levels(&by_settings.report().views), coarse);
    for &camera in &cameras {
        stage.entity(camera).remove::<CameraDetail>();
    }
    assert_eq!(levels(&stage.report().views), before);
}
