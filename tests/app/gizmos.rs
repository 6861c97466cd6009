//! The lines around sets, blocks and frozen frusta, in pictures.

use crate::scene::{How, Stage};
use bevy::{core_pipeline::tonemapping::Tonemapping, gizmos::config::GizmoConfigStore, prelude::*};
use bevy_gpu_culling::{prelude::*, render::CullingGizmoConfigGroup};
use image::RgbaImage;

/// Colors of bounds, blocks and frusta that nothing else in the picture has.
const COLORS: [[u8; 3]; 3] = [[0, 255, 255], [0, 255, 0], [255, 255, 0]];

/// A set of three blocks along x, and a camera that sees all of it.
fn stage() -> (Stage, Entity, Entity) {
    let mut stage = Stage::with(How::Set(None), |app| {
        app.add_plugins(CullingGizmosPlugin);
    });
    let mut store = stage.app.world_mut().resource_mut::<GizmoConfigStore>();
    let (config, group) = store.config_mut::<CullingGizmoConfigGroup>();
    config.line.width = 3.0;
    config.depth_bias = -1.0;
    let [set_color, block_color, frustum_color] = COLORS.map(|[r, g, b]| Color::srgb_u8(r, g, b));
    *group = CullingGizmoConfigGroup {
        set_color,
        block_color,
        frustum_color,
    };
    let places = (0..3 * 1024).map(|i| {
        let (block, i) = (i / 1024, i % 1024);
        let in_block = Vec3::new((i % 32) as f32, (i / 32) as f32, 0.0) / 8.0;
        in_block + Vec3::X * 6.0 * block as f32 - Vec3::new(8.0, 2.0, 0.0)
    });
    let set = InstanceSet::from_transforms(places).unwrap();
    let mesh = stage.mesh(Cuboid::from_length(0.05));
    let material = stage.standard(StandardMaterial::from(Color::srgb(0.9, 0.3, 0.2)));
    let set = stage.spawn_set(&set, (mesh, material), Transform::IDENTITY);
    let eye = Transform::from_xyz(0.0, 0.0, 16.0).looking_at(Vec3::ZERO, Vec3::Y);
    let camera = stage.camera(eye, ());
    stage.entity(camera).insert(Tonemapping::None);
    (stage, set, camera)
}

/// Numbers of pixels in the colors of bounds, blocks and frusta.
fn lines(picture: &RgbaImage) -> [usize; 3] {
    COLORS.map(|color| {
        let near = |pixel: &&image::Rgba<u8>| {
            let mut channels = pixel.0[..3].iter().zip(color);
            channels.all(|(a, b)| a.abs_diff(b) < 60)
        };
        picture.pixels().filter(near).count()
    })
}

#[test]
fn gizmos_show_sets_blocks_and_frozen_frusta() {
    let (mut stage, set, camera) = stage();
    assert_eq!(lines(&stage.picture()), [0; 3]);

    stage
        .entity(set)
        .insert(ShowCullingGizmos { max_blocks: 0 });
    let [bounds, blocks, frusta] = lines(&stage.picture());
    assert!(bounds > 300, "{bounds}");
    assert_eq!([blocks, frusta], [0; 2]);

    // Each block adds its own box.
    let mut before = 0;
    for max_blocks in 1..=3 {
        stage.entity(set).insert(ShowCullingGizmos { max_blocks });
        let [_, blocks, _] = lines(&stage.picture());
        assert!(blocks > before + 150, "{max_blocks}: {blocks}, {before}");
        before = blocks;
    }
    stage
        .entity(set)
        .insert(ShowCullingGizmos { max_blocks: 4 });
    let picture = stage.picture();
    assert_eq!(lines(&picture)[1], before, "there are three blocks");
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    picture.save(folder.join("gizmos-blocks.png")).unwrap();

    stage.entity(set).insert(Visibility::Hidden);
    assert_eq!(lines(&stage.picture()), [0; 3], "a hidden set");
    stage.entity(set).insert(Visibility::Inherited);
    stage.entity(set).remove::<ShowCullingGizmos>();
    stage.entity(camera).insert(FreezeCulling::default());
    stage.update(1);
    let away = Transform::from_xyz(20.0, 14.0, 34.0).looking_at(Vec3::new(0.0, 0.0, 8.0), Vec3::Y);
    stage.entity(camera).insert(away);
    let picture = stage.picture();
    let [bounds, blocks, frusta] = lines(&picture);
    assert!(frusta > 200, "{frusta}");
    assert_eq!([bounds, blocks], [0; 2]);
    picture.save(folder.join("gizmos-frustum.png")).unwrap();
    stage.entity(camera).remove::<FreezeCulling>();
    assert_eq!(lines(&stage.picture()), [0; 3]);
}
