//! Cameras, lights, and what else is around the sets of a random app.

use super::acts::Thing;
use crate::{
    batch_sets::sun,
    scene::{How, SIZE, Stage},
};
use bevy::{
    camera::{ScalingMode, Viewport},
    core_pipeline::prepass::{DepthPrepass, NormalPrepass},
    prelude::*,
};
use bevy_gpu_culling::prelude::*;
use core::f32::consts::TAU;

/// Where the sun, the lamp and the spot light are at first.
const LIGHTS: [Vec3; 3] = [
    Vec3::new(4.0, 8.0, 3.0),
    Vec3::new(-5.0, 6.0, 3.0),
    Vec3::new(6.0, 7.0, -4.0),
];

fn angle(turn: u8) -> f32 {
    f32::from(turn) / 256.0 * TAU
}

/// Camera number `turn` of a ring around the origin.
fn look(turn: u8) -> Transform {
    let angle = angle(turn);
    let eye = Vec3::new(angle.sin() * 12.0, 4.0, angle.cos() * 12.0);
    Transform::from_translation(eye).looking_at(Vec3::ZERO, Vec3::Y)
}

/// The place of a light that went around the origin as far as `turn`.
fn light_at(first: Vec3, turn: u8) -> Transform {
    let place = Quat::from_rotation_y(angle(turn)) * first;
    Transform::from_translation(place).looking_at(Vec3::ZERO, Vec3::Y)
}

/// Cameras, lights, and what else is around the sets.
#[derive(Clone)]
pub struct Around {
    things: Vec<Thing>,
    /// Where the first camera is, and where the lights are.
    turns: [u8; 2],
    cameras: Vec<Entity>,
    /// As many of [`LIGHTS`] as there are.
    lights: Vec<Entity>,
    others: Vec<Entity>,
}

impl Around {
    /// What is to be there. It is not spawned yet.
    pub fn new(things: Vec<Thing>) -> Self {
        Self {
            things,
            turns: [0; 2],
            cameras: Vec::new(),
            lights: Vec::new(),
            others: Vec::new(),
        }
    }

    fn has(&self, thing: Thing) -> bool {
        self.things.contains(&thing)
    }

    /// Spawns all of it in a stage that has nothing of it.
    pub fn spawn(&mut self, stage: &mut Stage) {
        let samples = match self.has(Thing::Samples) {
            true => Msaa::Sample4,
            false => Msaa::Off,
        };
        self.cameras = self.spawn_cameras(stage, samples);
        self.lights = self.spawn_lights(stage);
        // So that each picture shows something.
        let (ball, gray) = (stage.mesh(Sphere::new(1.0)), StandardMaterial::default());
        let gray = stage.standard(gray);
        self.others = vec![stage.spawn((Mesh3d(ball), gray))];
        if self.has(Thing::Interface) {
            let [camera, panel] = stage.interface(2);
            // As the cameras that draw into the same target.
            stage.entity(camera).insert(samples);
            self.others.extend([camera, panel]);
        }
    }

    fn spawn_cameras(&self, stage: &mut Stage, samples: Msaa) -> Vec<Entity> {
        let turns = self.camera_turns();
        let mut cameras = vec![stage.camera(look(turns[0]), samples)];
        if self.has(Thing::Viewport) {
            let part = Viewport {
                physical_position: SIZE / 8,
                physical_size: SIZE / 2 + 31,
                ..default()
            };
            stage.entity(cameras[0]).insert(Camera {
                viewport: Some(part),
                ..default()
            });
        }
        if self.has(Thing::SecondCamera) {
            let corner = Viewport {
                physical_size: SIZE / 3,
                ..default()
            };
            let camera = Camera {
                order: 1,
                viewport: Some(corner),
                ..default()
            };
            cameras.push(stage.camera(look(turns[1]), (camera, samples)));
        }
        let may_hide = stage.how != How::Entities;
        for camera in &cameras {
            let mut camera = stage.entity(*camera);
            if self.has(Thing::Prepass) {
                camera.insert((DepthPrepass, NormalPrepass));
            }
            if self.has(Thing::Orthographic) {
                camera.insert(Projection::Orthographic(OrthographicProjection {
                    scaling_mode: ScalingMode::FixedVertical {
                        viewport_height: 14.0,
                    },
                    ..OrthographicProjection::default_3d()
                }));
            }
            if self.has(Thing::Occlusion) && may_hide {
                camera.insert(InstanceOcclusion {
                    near_pixels: 60.0,
                    may_pause: turns[0] % 2 == 1,
                });
            }
        }
        cameras
    }

    fn spawn_lights(&self, stage: &mut Stage) -> Vec<Entity> {
        let sun = stage.spawn(sun(2, 40.0));
        let mut light = stage.entity(sun);
        light
            .get_mut::<DirectionalLight>()
            .unwrap()
            .shadow_maps_enabled = self.has(Thing::SunShadows);
        let lamp = PointLight {
            intensity: 2_000_000.0,
            range: 25.0,
            color: Color::srgb(0.5, 0.7, 1.0),
            shadow_maps_enabled: self.has(Thing::LampShadows),
            ..default()
        };
        let mut lights = vec![sun, stage.spawn(lamp)];
        if self.has(Thing::Spot) {
            let spot = SpotLight {
                intensity: 4_000_000.0,
                range: 25.0,
                color: Color::srgb(1.0, 0.8, 0.5),
                outer_angle: 0.6,
                shadow_maps_enabled: true,
                ..default()
            };
            lights.push(stage.spawn(spot));
        }
        place_lights(stage, &lights, self.turns[1]);
        lights
    }

    /// The turns of both cameras, also if there is only one.
    fn camera_turns(&self) -> [u8; 2] {
        let first = self.turns[0];
        [first, first.wrapping_add(90)]
    }

    /// The places of the cameras that there are.
    pub fn eyes(&self) -> impl Iterator<Item = Vec3> {
        let turns = self.camera_turns().into_iter();
        let turns = turns.take(self.cameras.len());
        turns.map(|turn| look(turn).translation)
    }

    /// Moves the cameras.
    pub fn look(&mut self, stage: &mut Stage, turn: u8) {
        self.turns[0] = turn;
        for (camera, turn) in self.cameras.iter().zip(self.camera_turns()) {
            stage.entity(*camera).insert(look(turn));
        }
    }

    /// Moves the lights.
    pub fn shine(&mut self, stage: &mut Stage, turn: u8) {
        self.turns[1] = turn;
        place_lights(stage, &self.lights, turn);
    }

    /// Adds a thing, or takes it away. All cameras and lights are others then.
    pub fn switch(&mut self, stage: &mut Stage, thing: Thing) {
        match self.things.iter().position(|known| *known == thing) {
            Some(at) => drop(self.things.swap_remove(at)),
            None => self.things.push(thing),
        }
        let Self {
            cameras,
            lights,
            others,
            ..
        } = self;
        for entity in [cameras, lights, others].into_iter().flatten() {
            stage.entity(*entity).despawn();
        }
        self.spawn(stage);
    }
}

fn place_lights(stage: &mut Stage, lights: &[Entity], turn: u8) {
    for (light, first) in lights.iter().zip(LIGHTS) {
        stage.entity(*light).insert(light_at(first, turn));
    }
}
