//! The ground truth of occlusion: an item buffer. Each pixel shows the number of its instance, so
//! that the instances that own a pixel are known one by one.
//!
//! With occlusion, each instance that owns a pixel without it must own the same pixels. How many
//! more are kept than own a pixel says how sharp the test is.

use super::{Way, camera_report};
use crate::scene::{
    How, Stage,
    items::{BITS, Items, add_items, item_of},
    normals::{Normals, add_normals},
};
use bevy::{
    camera::ScalingMode,
    core_pipeline::tonemapping::{DebandDither, Tonemapping},
    prelude::*,
};
use bevy_gpu_culling::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::HashSet;

const FRAMES: usize = 10;
/// Number of cells of the field per axis. An instance is in each. No two touch each other, so no
/// pixel has two surfaces of the same depth.
const CELLS: UVec3 = UVec3::new(24, 14, 24);
const _: () = assert!(CELLS.x * CELLS.y * CELLS.z <= ((1 << BITS) - 1));
/// Half the side of the largest box. Turned, it reaches 0.45 from its center.
const HALF: f32 = 0.26;
/// What an instance is at most away from the center of its cell, per axis.
const JITTER: f32 = 0.02;
/// How many instances may be kept per instance that owns a pixel.
const MAX_KEPT: f64 = 1.6;

/// A dense field, whose instances all differ, and walls between its cells.
struct Scene {
    dice: ChaCha8Rng,
    stage: Stage,
    camera: Entity,
    walls: Vec<Entity>,
    eye: Vec3,
    towards: Vec3,
}

/// The lens of a scene's camera.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lens {
    Perspective,
    Orthographic,
}

impl Lens {
    fn projection(self) -> Projection {
        match self {
            Self::Perspective => PerspectiveProjection::default().into(),
            Self::Orthographic => OrthographicProjection {
                scaling_mode: ScalingMode::FixedVertical {
                    viewport_height: 14.0,
                },
                ..OrthographicProjection::default_3d()
            }
            .into(),
        }
    }
}

fn place(dice: &mut ChaCha8Rng, size: f32) -> Vec3 {
    Vec3::from_array([(); 3].map(|()| dice.random_range(-size..=size)))
}

impl Scene {
    fn new(seed: u64, way: Way, lens: Lens, is_hiding: bool, tier: CullingTier) -> Self {
        let mut dice = ChaCha8Rng::seed_from_u64(seed);
        let mut stage = Stage::with(How::Set(Some(tier)), |app| {
            add_normals(app);
            add_items(app);
        });
        stage.app.insert_resource(ClearColor(Color::BLACK));
        let boxes = stage.mesh(Cuboid::from_size(Vec3::splat(2.0 * HALF)));
        let balls = stage.mesh(Sphere::new(1.5 * HALF).mesh().ico(1).unwrap());
        // Two sets share the field.
        let mut sets = [Vec::new(), Vec::new()];
        for cell in 0..CELLS.element_product() {
            let cell = UVec3::new(
                cell % CELLS.x,
                cell / CELLS.x % CELLS.y,
                cell / (CELLS.x * CELLS.y),
            );
            let center = cell.as_vec3() + 0.5 - CELLS.as_vec3() / 2.0;
            let [a, b, c] = place(&mut dice, 3.0).to_array();
            sets[dice.random_range(0..2_usize)].push(Transform {
                translation: center + place(&mut dice, JITTER),
                rotation: Quat::from_euler(EulerRot::XYZ, a, b, c),
                scale: Vec3::splat(dice.random_range(0.5..=1.0)),
            });
        }
        let mut first = 1;
        for (instances, mesh) in sets.into_iter().zip([boxes, balls]) {
            let items = MeshMaterial3d(stage.add(Items { first, shift: 0 }));
            first += instances.len() as u32;
            let set = InstanceSet::from_transforms(instances).unwrap().sorted();
            let set = stage.add(set);
            stage.spawn((Mesh3d(mesh), items, GpuInstances(set)));
        }
        let wall = stage.mesh(Cuboid::new(7.0, 6.0, 0.04));
        let black = stage.add(Normals::new(LinearRgba::BLACK));
        let wall = (Mesh3d(wall), MeshMaterial3d(black));
        let walls = (0..3).map(|_| stage.spawn(wall.clone())).collect();
        let camera = stage.camera(Transform::IDENTITY, (Msaa::Off, lens.projection()));
        let mut entity = stage.entity(camera);
        entity.insert((Tonemapping::None, DebandDither::Disabled));
        let with_prepass = way == Way::Prepass;
        let way = if is_hiding { way } else { Way::Off };
        way.equip(&mut entity, with_prepass);
        Self {
            dice,
            stage,
            camera,
            walls,
            eye: Vec3::ZERO,
            towards: Vec3::ZERO,
        }
    }

    /// Moves camera and walls, and returns the instance of each pixel of the next frame. The camera
    /// goes on by a step, or anywhere around the field.
    fn next(&mut self, frame: usize) -> Vec<Option<u32>> {
        let dice = &mut self.dice;
        if frame.is_multiple_of(4) {
            let direction = place(dice, 1.0).normalize_or(Vec3::X);
            let distance: f32 = dice.random_range(15.0..=24.0);
            self.eye = direction * distance;
            self.towards = place(dice, 4.0);
        } else {
            self.eye += place(dice, 1.5);
            self.towards += place(dice, 0.5);
        }
        let camera = Transform::from_translation(self.eye).looking_at(self.towards, Vec3::Y);
        for wall in &self.walls {
            // Between two layers of cells, across one of two axes.
            let at = place(dice, 9.0).round();
            let turn = match dice.random_range(0..2) {
                0 => Quat::IDENTITY,
                _ => Quat::from_rotation_y(std::f32::consts::FRAC_PI_2),
            };
            let mut wall = self.stage.entity(*wall);
            *wall.get_mut::<Transform>().unwrap() =
                Transform::from_translation(at).with_rotation(turn);
        }
        let mut entity = self.stage.entity(self.camera);
        *entity.get_mut::<Transform>().unwrap() = camera;
        if frame == 0 {
            // The first frames draw nothing until pipelines and meshes are there.
            self.stage.update(4);
        }
        let picture = self.stage.picture_now();
        let item = |pixel: &image::Rgba<u8>| {
            let [red, green, blue, _] = pixel.0;
            item_of([red, green, blue]).unwrap()
        };
        picture.pixels().map(item).collect()
    }
}

/// Compares the item buffers of all frames, then what is kept in the last with what owns a pixel.
fn compare_items(seed: u64, way: Way, lens: Lens, tier: CullingTier) {
    let name = format!("scene {seed}, {way:?}, {lens:?}, {tier}");
    let [mut hiding, mut plain] =
        [true, false].map(|is_hiding| Scene::new(seed, way, lens, is_hiding, tier));
    let count = CELLS.element_product();
    let (mut seen, mut largest) = (0, 0);
    for frame in 0..FRAMES {
        let [with, without] = [&mut hiding, &mut plain].map(|scene| scene.next(frame));
        let owners = |items: &[Option<u32>]| -> HashSet<u32> {
            let owners: HashSet<_> = items.iter().flatten().copied().collect();
            assert!(
                owners.iter().all(|id| (1..=count).contains(id)),
                "{name}: an id that no instance has"
            );
            owners
        };
        let [drawn, visible] = [owners(&with), owners(&without)];
        let missing: Vec<_> = visible.difference(&drawn).collect();
        assert!(
            missing.is_empty(),
            "{name}, frame {frame}: {} of {} visible instances are not drawn, such as {:?}",
            missing.len(),
            visible.len(),
            &missing[..missing.len().min(8)],
        );
        let differing = with.iter().zip(&without).filter(|(a, b)| a != b).count();
        assert_eq!(differing, 0, "{name}, frame {frame}: pixels differ");
        seen = visible.len();
        largest = largest.max(seen);
    }
    assert!(
        largest > 300,
        "{name}: {largest} instances are seen at most"
    );
    let (kept, lists) = camera_report(&mut hiding.stage);
    let (in_frustum, _) = camera_report(&mut plain.stage);
    let ratio = kept as f64 / seen as f64;
    println!("{name}: {in_frustum} in the frustum, {kept} kept, {seen} seen, ratio {ratio:.2}");
    let lists = lists.unwrap();
    assert_eq!(lists.late, 0, "{name}: nothing moves");
    // An instance that owns a pixel is kept.
    assert!(kept >= seen as u64, "{name}: {kept} kept, {seen} seen");
    assert!(ratio <= MAX_KEPT, "{name}: {kept} kept, {seen} seen");
}

#[test]
fn what_owns_a_pixel_is_drawn_by_a_forward_camera() {
    compare_items(1, Way::Forward, Lens::Perspective, CullingTier::Subgroup);
    compare_items(2, Way::Forward, Lens::Orthographic, CullingTier::Workgroup);
}

#[test]
fn what_owns_a_pixel_is_drawn_by_a_camera_with_a_prepass() {
    compare_items(3, Way::Prepass, Lens::Perspective, CullingTier::Workgroup);
    compare_items(4, Way::Prepass, Lens::Orthographic, CullingTier::Subgroup);
}
