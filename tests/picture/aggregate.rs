//! Aggregate detail: fewer and larger instances in place of many small ones.

use super::{eye, red};
use crate::scene::{How, SIZE, Stage, assert_same_picture, field};
use bevy::{
    camera::ShadowLodOrigin,
    core_pipeline::prepass::{DepthPrepass, MotionVectorPrepass, NormalPrepass},
    prelude::*,
};
use bevy_gpu_culling::{
    cull::reference::{thinned_scale, threshold_of},
    prelude::*,
};
use core::f32::consts::FRAC_PI_4;
use image::RgbaImage;

/// On the GPU and on the CPU. That the two tiers of the GPU keep the same instances is tested
/// elsewhere.
const TIERS: [CullingTier; 2] = [CullingTier::Subgroup, CullingTier::Cpu];

/// Pixels per world unit at distance 1.
fn pixels() -> f32 {
    SIZE.y as f32 / 2.0 / (FRAC_PI_4 / 2.0).tan()
}

/// A box, aside of the origin.
fn mesh() -> Mesh {
    Mesh::from(Cuboid::new(0.5, 0.4, 0.6)).translated_by(Vec3::new(0.1, 0.2, 0.0))
}

/// The share of instances like this one that is kept.
fn share_of(transform: &Transform, below: f32) -> f32 {
    let center = transform.transform_point(Vec3::new(0.1, 0.2, 0.0));
    let radius = Vec3::new(0.25, 0.2, 0.3).length() * transform.scale.x;
    let wide = 2.0 * radius * pixels() / center.distance(eye().translation);
    (wide / below).powi(2)
}

/// A camera from which all shadows are seen, with prepasses or without.
fn camera(stage: &mut Stage, has_prepasses: bool) {
    let camera = stage.camera(eye(), ShadowLodOrigin);
    if has_prepasses {
        let prepasses = (DepthPrepass, NormalPrepass, MotionVectorPrepass, Msaa::Off);
        stage.entity(camera).insert(prepasses);
    }
}

/// A set is drawn as the entities are that the twin keeps, each at its scale, in the picture and in
/// the shadow maps.
#[test]
fn a_set_is_drawn_as_the_instances_that_the_twin_keeps() {
    const BELOW: f32 = 22.0;
    let set = field(500, true);
    let place = Transform::from_xyz(0.5, -0.3, -1.0).with_scale(Vec3::splat(1.2));
    let mut stage = Stage::new(How::Entities);
    let expected = [false, true].map(|has_prepasses| {
        stage.clear();
        let mesh = stage.mesh(mesh());
        let material = stage.standard(red());
        let (mut gone, mut shrinks, mut grows) = (0, 0, 0);
        for (i, instance) in (0..).zip(set.iter()) {
            let mut transform = place * Transform::from(instance);
            let scale = thinned_scale(share_of(&transform, BELOW), threshold_of(i));
            gone += i32::from(scale == 0.0);
            shrinks += i32::from(scale > 0.0 && scale < 1.0);
            grows += i32::from(scale > 1.2);
            if scale > 0.0 {
                transform.scale *= scale;
                stage.spawn((Mesh3d(mesh.clone()), material.clone(), transform));
            }
        }
        let counts = [gone, shrinks, grows];
        assert!(
            counts.iter().all(|count| *count > 20),
            "gone, smaller, larger: {counts:?}"
        );
        stage.lights(true);
        camera(&mut stage, has_prepasses);
        stage.picture()
    });
    for tier in TIERS {
        let mut stage = Stage::new(How::Set(Some(tier)));
        for (has_prepasses, expected) in [false, true].into_iter().zip(&expected) {
            stage.clear();
            let parts = (stage.mesh(mesh()), stage.standard(red()));
            let entity = stage.spawn_set(&set, parts, place);
            let detail = AggregateDetail {
                below_pixels: BELOW,
            };
            stage.entity(entity).insert(detail);
            stage.lights(true);
            camera(&mut stage, has_prepasses);
            let picture = stage.picture();
            let name = format!("thinned on {tier}, prepasses: {has_prepasses}");
            assert_same_picture(&name, &picture, expected);
            stage.verify();
        }
    }
}

/// The mean of the linear light in each channel of a picture, in 0..1.
fn mean(picture: &RgbaImage) -> Vec3 {
    let sum = picture.pixels().fold(Vec3::ZERO, |sum, pixel| {
        let color = Color::srgb_u8(pixel[0], pixel[1], pixel[2]).to_linear();
        sum + color.to_vec3()
    });
    sum / (picture.width() * picture.height()) as f32
}

/// A far field of small boxes looks as bright with a part of them.
#[test]
fn a_far_field_keeps_its_color_with_far_fewer_instances() {
    let mut random = 1u32;
    let mut next = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 8) as f32 / (1 << 24) as f32
    };
    let places = (0..20_000).map(|_| {
        Transform::from_xyz(
            120.0 * (next() - 0.5),
            60.0 * (next() - 0.5),
            -120.0 * next(),
        )
    });
    let set = InstanceSet::from_transforms(places).unwrap().sorted();
    let mut stage = Stage::new(How::Set(None));
    let mut draw = |change: &dyn Fn(EntityWorldMut)| {
        stage.clear();
        let mesh = stage.mesh(Cuboid::from_length(0.25));
        let material = stage.standard(StandardMaterial {
            unlit: true,
            ..red()
        });
        let entity = stage.spawn_set(&set, (mesh, material), Transform::default());
        change(stage.entity(entity));
        let at = Transform::from_xyz(0.0, 0.0, 60.0).looking_at(Vec3::ZERO, Vec3::Y);
        stage.camera(at, ());
        let picture = stage.picture();
        (mean(&picture), stage.report().cameras().1)
    };
    let below = |below_pixels| {
        move |mut entity: EntityWorldMut| {
            entity.insert(AggregateDetail { below_pixels });
        }
    };
    let (all, every) = draw(&|_| ());
    let (thinned, kept) = draw(&below(3.0));
    let (_, whole) = draw(&below(0.0));
    let (empty, _) = draw(&|mut entity| {
        entity.insert(Visibility::Hidden);
    });
    assert_eq!(whole, every, "0 thins nothing out");
    assert!(every > 3000 && kept * 2 < every, "{kept} of {every}");
    let covered = (all - empty).length();
    assert!(covered > 0.01, "{all}: boxes are seen");
    let apart = (thinned - all).length();
    assert!(
        apart < 0.1 * covered,
        "{thinned} instead of {all}: {apart} of {covered}"
    );
}
