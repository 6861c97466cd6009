//! Random scenes of 24 frames, with and without occlusion: each frame has the same picture.
//!
//! A run draws [`FEW`] scenes, from scene 0 on. `SCENES=20` draws that number of them, `SCENE=7`
//! draws scene 7 alone, and both draw 20 scenes from scene 7 on. NVIDIA's driver 580 finds no GPU
//! after 60 to 120 apps in one process, two per scene: draw more than 20 scenes in several runs.

use super::{Way, compare, sum_of};
use crate::scene::{
    How, SIZE, Stage,
    normals::{Normals, Ties, add_normals},
};
use bevy::{
    camera::{ScalingMode, Viewport},
    prelude::*,
};
use bevy_gpu_culling::{prelude::*, render::ViewKind};
use image::RgbaImage;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::f32::consts::TAU;

/// Number of scenes of a run.
const FEW: u64 = 2;
const FRAMES: usize = 24;
/// Half the side of the cube in which everything is.
const SIDE: f32 = 10.0;

/// Random choices. Both runs of a scene make the same ones.
struct Dice(ChaCha8Rng);

impl Dice {
    /// Other choices for the same scene.
    fn details(&self) -> Self {
        let mut details = self.0.clone();
        details.set_stream(1);
        Self(details)
    }

    /// A number from `-size` to `size`.
    fn around(&mut self, size: f32) -> f32 {
        self.0.random_range(-size..=size)
    }

    fn between(&mut self, min: f32, max: f32) -> f32 {
        self.0.random_range(min..=max)
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.0.random_range(0..100) < percent
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.0.random_range(0..all.len())].clone()
    }

    fn place(&mut self, size: f32) -> Vec3 {
        Vec3::from_array([(); 3].map(|()| self.around(size)))
    }

    fn turn(&mut self) -> Quat {
        Quat::from_euler(
            EulerRot::XYZ,
            self.around(3.0),
            self.around(3.0),
            self.around(3.0),
        )
    }

    /// Instances in a box around `center`.
    fn instances(
        &mut self,
        count: usize,
        center: Vec3,
        size: Vec3,
        is_scaled: bool,
    ) -> Vec<Transform> {
        let mut one = || Transform {
            translation: center + self.place(1.0) * size,
            rotation: self.turn(),
            scale: match is_scaled {
                true => Vec3::splat(self.between(0.2, 2.0)),
                false => Vec3::ONE,
            },
        };
        (0..count).map(|_| one()).collect()
    }
}

/// What a run of a scene is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    Hiding,
    Plain,
    /// Plain, but of surfaces with the same depth the first one is seen.
    FirstOfTies,
}

/// A scene, whose frames come one after another.
struct Scene {
    dice: Dice,
    /// Choices that other choices do not depend on.
    details: Dice,
    stage: Stage,
    run: Run,
    way: Way,
    cameras: Vec<Entity>,
    eyes: Vec<Eye>,
    sets: Vec<Entity>,
    walls: Vec<Entity>,
    msaa: Msaa,
}

/// The place of a camera, and its way.
#[derive(Clone, Copy)]
struct Eye {
    at: Vec3,
    speed: Vec3,
    towards: Vec3,
}

impl Eye {
    fn new(dice: &mut Dice) -> Self {
        Self {
            at: dice.place(1.2 * SIDE),
            speed: dice.place(0.6),
            towards: dice.place(0.4 * SIDE),
        }
    }

    fn transform(&self) -> Transform {
        Transform::from_translation(self.at).looking_at(self.towards, Vec3::Y)
    }
}

impl Scene {
    fn new(seed: u64, run: Run) -> Self {
        let mut dice = Dice(ChaCha8Rng::seed_from_u64(seed));
        let tier = dice.one_of(&[CullingTier::Subgroup, CullingTier::Workgroup]);
        let mut scene = Self {
            stage: Stage::with(How::Set(Some(tier)), add_normals),
            run,
            way: dice.one_of(&[Way::Forward, Way::Forward, Way::Prepass, Way::Shadows]),
            cameras: Vec::new(),
            eyes: Vec::new(),
            sets: Vec::new(),
            walls: Vec::new(),
            msaa: Msaa::Off,
            details: dice.details(),
            dice,
        };
        for _ in 0..scene.dice.0.random_range(1..=4) {
            scene.add_set();
        }
        for _ in 0..scene.dice.0.random_range(1..=3) {
            scene.add_wall();
        }
        scene.add_cameras();
        if scene.way == Way::Shadows {
            scene.add_lights();
        }
        scene
    }

    /// A material: without lights, unless the scene is about shadows.
    fn paint(&mut self, entity: Entity) {
        let [red, green, blue] = [(); 3].map(|()| self.dice.between(0.2, 0.9));
        if self.way == Way::Shadows {
            let color = Color::linear_rgb(red, green, blue);
            let material = self.stage.standard(StandardMaterial::from(color));
            self.stage.entity(entity).insert(material);
        } else {
            let color = LinearRgba::rgb(red, green, blue);
            let ties = match self.run {
                Run::FirstOfTies => Ties::First,
                _ => Ties::Last,
            };
            let material = MeshMaterial3d(self.stage.add(Normals { color, ties }));
            self.stage.entity(entity).insert(material);
        }
    }

    fn add_set(&mut self) {
        let dice = &mut self.dice;
        let (mesh, coarser): (Mesh, Mesh) = match dice.0.random_range(0..4) {
            0 => (
                Cuboid::new(0.3, 0.25, 0.2).into(),
                Cuboid::new(0.2, 0.2, 0.2).into(),
            ),
            1 => (
                Sphere::new(0.2).mesh().ico(1).unwrap(),
                Cuboid::new(0.25, 0.25, 0.25).into(),
            ),
            2 => (
                Cuboid::new(1.5, 2.0, 0.1).into(),
                Cuboid::new(1.5, 2.0, 0.05).into(),
            ),
            // Its center is not the mesh's origin.
            _ => (
                Mesh::from(Cuboid::new(0.2, 0.8, 0.2)).translated_by(Vec3::new(0.3, 0.5, 0.0)),
                Mesh::from(Cuboid::new(0.1, 0.8, 0.1)).translated_by(Vec3::new(0.3, 0.5, 0.0)),
            ),
        };
        let count = dice.one_of(&[1, 30, 33, 700, 2500]);
        let center = dice.place(0.5 * SIDE);
        let size = Vec3::from_array([(); 3].map(|()| dice.between(0.5, 0.8 * SIDE)));
        let is_scaled = dice.chance(50);
        let mut instances = dice.instances(count, center, size, is_scaled);
        if is_scaled && self.details.chance(50) {
            for instance in &mut instances {
                let sides = [(); 3].map(|()| self.details.between(0.4, 1.6));
                instance.scale *= Vec3::from_array(sides);
            }
        }
        let mut set = InstanceSet::from_transforms(instances).unwrap();
        if dice.chance(60) {
            set = set.sorted();
        }
        let has_levels = dice.chance(40);
        let at = match dice.chance(30) {
            true => Transform::from_rotation(dice.turn()).with_scale(Vec3::new(1.0, 1.3, 0.8)),
            false => Transform::IDENTITY,
        };
        let (mesh, set) = (self.stage.mesh(mesh), self.stage.add(set));
        let entity = self.stage.spawn((Mesh3d(mesh), GpuInstances(set), at));
        self.paint(entity);
        if has_levels {
            let levels = vec![InstanceLod::new(self.stage.mesh(coarser), 0.03)];
            let fade = self.dice.one_of(&[0.0, 0.3]);
            let lods = InstanceLods {
                levels,
                fade,
                ..default()
            };
            self.stage.entity(entity).insert(lods);
        } else if self.details.chance(40) {
            #[cfg(feature = "meshlets")]
            self.draw_balls_by_meshlets(entity);
        }
        self.sets.push(entity);
    }

    /// Lets a set draw balls of several meshlets instead of its mesh.
    #[cfg(feature = "meshlets")]
    fn draw_balls_by_meshlets(&mut self, entity: Entity) {
        let ball = Sphere::new(0.25).mesh().ico(4).unwrap();
        let ball = MeshletMesh::from_mesh(&ball, &MeshletSettings::default()).unwrap();
        let ball = MeshletMesh3d(self.stage.add(ball));
        self.stage.entity(entity).remove::<Mesh3d>().insert(ball);
    }

    fn add_wall(&mut self) {
        let size = Vec3::new(
            self.dice.between(1.0, 8.0),
            self.dice.between(1.0, 8.0),
            0.2,
        );
        let mesh = self.stage.mesh(Cuboid::from_size(size));
        let wall = self.stage.spawn(Mesh3d(mesh));
        self.paint(wall);
        self.walls.push(wall);
    }

    fn add_cameras(&mut self) {
        // Bevy's own pyramid is wrong in viewports, so entities would be missing there.
        let may_divide = self.way != Way::Prepass;
        let count = if self.dice.chance(30) && may_divide {
            2
        } else {
            1
        };
        let wanted = self
            .dice
            .one_of(&[Msaa::Off, Msaa::Sample2, Msaa::Sample4, Msaa::Sample8]);
        let msaa = match self.stage.has_samples(wanted.samples()) {
            true => wanted,
            false => Msaa::Sample4,
        };
        self.msaa = msaa;
        let is_flat = self.dice.chance(20);
        let has_margin = self.dice.chance(40) && may_divide;
        for number in 0..count {
            let eye = Eye::new(&mut self.dice);
            let camera = self.stage.camera(eye.transform(), msaa);
            let mut entity = self.stage.entity(camera);
            self.way.equip(&mut entity, self.way == Way::Prepass);
            if is_flat {
                let lens = OrthographicProjection {
                    scaling_mode: ScalingMode::FixedVertical {
                        viewport_height: self.dice.between(5.0, 20.0),
                    },
                    ..OrthographicProjection::default_3d()
                };
                entity.insert(Projection::from(lens));
            } else {
                let lens = PerspectiveProjection {
                    fov: self.dice.between(0.3, 1.8),
                    ..default()
                };
                entity.insert(Projection::from(lens));
            }
            if count > 1 || has_margin {
                let margin = if has_margin {
                    UVec2::new(13, 7)
                } else {
                    UVec2::ZERO
                };
                let width = SIZE.x / count;
                let viewport = Viewport {
                    physical_position: margin + UVec2::new(number * width, 0),
                    physical_size: UVec2::new(width, SIZE.y) - 2 * margin,
                    ..default()
                };
                let mut own = entity.get_mut::<Camera>().unwrap();
                own.viewport = Some(viewport);
                own.order = number as isize;
                if number > 0 {
                    own.clear_color = ClearColorConfig::None;
                }
            }
            if self.run != Run::Hiding {
                entity.remove::<InstanceOcclusion>();
            }
            self.cameras.push(camera);
            self.eyes.push(eye);
        }
    }

    /// A sun, and perhaps a lamp and a spot light. Their maps are small: a software driver draws
    /// them faster.
    fn add_lights(&mut self) {
        super::shadows::small_maps(&mut self.stage);
        super::shadows::sun(&mut self.stage);
        if self.dice.chance(50) {
            super::shadows::lamp(&mut self.stage);
        }
        if self.details.chance(50) {
            super::shadows::spot(&mut self.stage);
        }
        if self.run == Run::Hiding {
            super::shadows::equip_lights(&mut self.stage);
        }
    }

    /// Changes the scene, and returns the picture of the next frame.
    fn next(&mut self) -> RgbaImage {
        for (camera, eye) in self.cameras.iter().zip(&mut self.eyes) {
            if self.dice.chance(12) {
                *eye = Eye::new(&mut self.dice);
            } else if self.dice.chance(80) {
                eye.at += eye.speed;
                eye.towards += self.dice.place(0.2);
            }
            *self.stage.entity(*camera).get_mut::<Transform>().unwrap() = eye.transform();
        }
        for wall in &self.walls {
            if self.dice.chance(25) {
                let place = Transform::from_translation(self.dice.place(SIDE));
                let place = place.with_rotation(Quat::from_rotation_y(self.dice.around(TAU)));
                *self.stage.entity(*wall).get_mut::<Transform>().unwrap() = place;
            }
        }
        for number in 0..self.sets.len() {
            self.change_set(self.sets[number]);
        }
        if self.dice.chance(10) {
            self.switch();
        }
        self.stage.picture_now()
    }

    /// Moves a set, edits it, or neither.
    fn change_set(&mut self, entity: Entity) {
        let dice = &mut self.dice;
        if dice.chance(15) {
            let turn = Quat::from_rotation_y(dice.around(0.3));
            let mut place = self.stage.entity(entity);
            place.get_mut::<Transform>().unwrap().rotate(turn);
        }
        if !dice.chance(20) {
            return;
        }
        let set = self.stage.entity(entity).get::<GpuInstances>().cloned();
        let mut sets = self
            .stage
            .app
            .world_mut()
            .resource_mut::<Assets<InstanceSet>>();
        let mut set = sets.get_mut(&set.unwrap().0).unwrap();
        let len = set.len();
        let center = dice.place(0.5 * SIDE);
        match dice.0.random_range(0..3) {
            0 => set.truncate(len - len / 8),
            1 => {
                let more = dice.instances(40, center, Vec3::splat(3.0), true);
                set.extend(more).unwrap();
            }
            _ => {
                for index in (0..len as u32).step_by(5) {
                    let place = Transform::from_translation(dice.place(0.8 * SIDE));
                    set.set(index, place).unwrap();
                }
            }
        }
    }

    /// Switches the occlusion of cameras without a prepass in the run that hides.
    fn switch(&mut self) {
        let near_pixels = self.dice.one_of(&[1e9, 256.0, 20.0]);
        if self.run != Run::Hiding || self.way != Way::Forward {
            return;
        }
        for camera in self.cameras.clone() {
            let mut camera = self.stage.entity(camera);
            if camera.contains::<InstanceOcclusion>() {
                camera.remove::<InstanceOcclusion>();
            } else {
                camera.insert(InstanceOcclusion {
                    near_pixels,
                    ..default()
                });
            }
        }
    }

    /// Number of instances that are drawn in the views that may hide.
    fn drawn(&mut self) -> u64 {
        let of_lights = self.way == Way::Shadows;
        sum_of(&mut self.stage, |view| {
            (view.kind != ViewKind::Camera) == of_lights
        })
        .0
    }
}

/// Number of frames before the first picture: the first ones draw nothing until pipelines and
/// meshes are there, and lights need some more.
const WARM_UP: usize = 8;

/// Checks that each pixel that differs shows surfaces with the same depth, of which the one that is
/// drawn last is seen: what is late comes later than without occlusion. They meet in a line, and in
/// millions of pixels some samples lie on it to the last bit.
fn only_ties_differ(
    seed: u64,
    frame: usize,
    hiding: &RgbaImage,
    plain: &RgbaImage,
) -> Result<(), String> {
    let mut scene = Scene::new(seed, Run::FirstOfTies);
    // A prepass has the same order with and without occlusion in the main pass.
    if scene.way != Way::Forward {
        return Err("only pictures of forward cameras may differ by ties".into());
    }
    scene.stage.update(WARM_UP);
    let first_of_ties = (0..=frame).map(|_| scene.next()).last().unwrap();
    let of_ties = plain.pixels().zip(first_of_ties.pixels());
    let of_ties: Vec<_> = of_ties.map(|(last, first)| last != first).collect();
    let ties = of_ties.iter().filter(|is_tie| **is_tie).count();
    if ties > of_ties.len() / 1000 {
        return Err(format!("{ties} ties would explain too much"));
    }
    let pixels = hiding.pixels().zip(plain.pixels()).zip(of_ties);
    let differing = pixels.filter(|((hiding, plain), _)| hiding != plain);
    let (explained, others): (Vec<_>, Vec<_>) = differing.partition(|(_, is_tie)| *is_tie);
    if !others.is_empty() {
        return Err(format!("{} pixels differ and are no ties", others.len()));
    }
    let excused = explained.len();
    println!("SCENE={seed}, frame {frame}: {excused} pixels differ, all of them among {ties} ties");
    Ok(())
}

/// The number of instances drawn in the last frame, with and without occlusion.
fn play(seed: u64) -> Result<[u64; 2], String> {
    let mut scenes = [Run::Hiding, Run::Plain].map(|run| Scene::new(seed, run));
    for scene in &mut scenes {
        scene.stage.update(WARM_UP);
    }
    for frame in 0..FRAMES {
        let [hiding, plain] = scenes.each_mut().map(Scene::next);
        let name = format!("random-{seed}-{frame}");
        if let Err(error) = compare(&name, &hiding, &plain)
            && let Err(reason) = only_ties_differ(seed, frame, &hiding, &plain)
        {
            let way = scenes[0].way;
            return Err(format!("SCENE={seed}, {way:?}: {error}: {reason}"));
        }
    }
    let [Scene { way, msaa, .. }, _] = &scenes;
    println!("SCENE={seed}: {way:?}, {msaa:?}");
    Ok(scenes.each_mut().map(Scene::drawn))
}

#[test]
fn random_scenes_draw_the_same_pictures() {
    let number = |name| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse::<u64>().unwrap())
    };
    let (first, count) = (number("SCENE"), number("SCENES"));
    let count = count.unwrap_or(if first.is_some() { 1 } else { FEW });
    let first = first.unwrap_or(0);
    let seeds = first..first + count;
    let (mut played, mut drawn, mut wrong) = (0, [0; 2], Vec::new());
    for seed in seeds {
        played += 1;
        match play(seed) {
            Ok([hiding, plain]) => drawn = [drawn[0] + hiding, drawn[1] + plain],
            Err(error) => wrong.push(error),
        }
    }
    let [hiding, plain] = drawn;
    println!("{played} scenes: {hiding} of {plain} instances drawn in the last frames");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(
        played < FEW || hiding * 10 < plain * 9,
        "nothing is hidden: {drawn:?}"
    );
}
