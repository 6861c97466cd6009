//! Sets that come and go while others stay.

use super::{batch_sets::sun, red};
use crate::scene::{How, Stage, assert_same_picture, field};
use bevy::{light::DirectionalLightShadowMap, prelude::*};
use bevy_gpu_culling::{prelude::*, render::FrameWork};
use core::f32::consts::TAU;
use std::collections::VecDeque;

/// Number of sets at a time. From 64 on, small ones have rows that rest.
const SETS: u32 = 80;
const MESHES: u32 = 5;
/// Number of sets that come and go at a time.
const STREAM: u32 = 4;
const STEPS: u32 = 6;

struct Stream {
    stage: Stage,
    camera: Entity,
    meshes: Vec<Handle<Mesh>>,
    materials: [MeshMaterial3d<StandardMaterial>; 2],
    /// The sets that are there, the oldest first.
    sets: VecDeque<Entity>,
    /// Number of sets that came so far.
    came: u32,
}

impl Stream {
    fn new(how: How) -> Self {
        let mut stage = Stage::new(how);
        stage
            .app
            .insert_resource(DirectionalLightShadowMap { size: 256 });
        let camera = stage.camera(Transform::from_xyz(0.0, 1.0, 0.0), ());
        stage.spawn(sun(1, 9.0));
        let blue = StandardMaterial {
            base_color: Color::srgb(0.2, 0.3, 0.9),
            ..red()
        };
        let side = |number: u32| 0.2 + 0.05 * number as f32;
        let mut stream = Self {
            camera,
            meshes: (0..MESHES)
                .map(|number| stage.mesh(Cuboid::new(side(number), 0.2, side(MESHES - number))))
                .collect(),
            materials: [red(), blue].map(|material| stage.standard(material)),
            stage,
            sets: VecDeque::new(),
            came: 0,
        };
        (0..SETS).for_each(|_| stream.come());
        stream.stage.settle();
        stream
    }

    /// Spawns a set on a ring, of one to three granules.
    fn come(&mut self) {
        let number = self.came;
        self.came += 1;
        let turn = TAU * (number * 7 % SETS) as f32 / SETS as f32;
        let at = Transform::from_xyz(turn.sin() * 8.0, -0.5, turn.cos() * 8.0)
            .with_scale(Vec3::splat(0.2));
        // Some meshes come and go with their sets.
        let mesh = match number % 4 {
            3 => self.stage.mesh(Cuboid::new(0.3, 0.1, 0.2)),
            _ => self.meshes[(number % MESHES) as usize].clone(),
        };
        let material = self.materials[number as usize % 2].clone();
        let len = [20, 150, 300][number as usize % 3];
        let set = self
            .stage
            .spawn_set(&field(len, false), (mesh, material), at);
        self.sets.push_back(set);
    }

    /// Old sets go, new ones come, and one gets a component.
    fn step(&mut self, step: u32) {
        let turn = Quat::from_rotation_y(step as f32 * 0.4);
        let at = Transform::from_xyz(0.0, 1.0, 0.0).with_rotation(turn);
        self.stage.entity(self.camera).insert(at);
        let gone: Vec<_> = self.sets.drain(..STREAM as usize).collect();
        for (set, index) in gone.into_iter().zip(0..) {
            // The last of them stays as one mesh of Bevy's, without instances.
            match (index + 1 < STREAM, self.stage.how) {
                (true, _) | (_, How::Entities) => self.stage.entity(set).despawn(),
                _ => {
                    self.stage.entity(set).remove::<(GpuInstances, Mesh3d)>();
                }
            }
        }
        (0..STREAM).for_each(|_| self.come());
        self.stage.entity(self.sets[7]).insert(NoOcclusionCulling);
    }

    /// The work of some frames.
    fn works(&mut self, frames: usize) -> Vec<FrameWork> {
        let frames = (0..frames).map(|_| {
            self.stage.update(1);
            self.stage.app.world().resource::<CullingReport>().work
        });
        frames.collect()
    }
}

/// Old sets go and others come, into the room of those, while the camera turns. No other set is read
/// again, and there is no other plan.
#[test]
fn sets_that_come_and_go_look_like_bevys_entities() {
    let run = |how| {
        let mut stream = Stream::new(how);
        let mut works = Vec::new();
        let pictures = (0..STEPS).map(|step| {
            stream.step(step);
            if how != How::Entities {
                works.push(stream.works(6));
            }
            stream.stage.picture()
        });
        let pictures: Vec<_> = pictures.collect();
        if how != How::Entities {
            stream.stage.verify();
        }
        (pictures, works)
    };
    let (entities, _) = run(How::Entities);
    let (sets, works) = run(How::Set(None));
    for (step, (sets, entities)) in sets.iter().zip(&entities).enumerate() {
        assert_same_picture(&format!("streams {step}"), sets, entities);
    }
    for works in &works {
        let sum = |of: fn(&FrameWork) -> u64| works.iter().map(of).sum::<u64>();
        assert_eq!(sum(|work| work.plans), 0, "{works:?}");
        // Those that came, and the one with another component.
        assert_eq!(
            sum(|work| work.entities),
            u64::from(STREAM) + 1,
            "{works:?}"
        );
    }
    let (alone, _) = run(How::Set(Some(CullingTier::Cpu)));
    for (step, (sets, alone)) in sets.iter().zip(&alone).enumerate() {
        assert_same_picture(&format!("streams alone {step}"), sets, alone);
    }
}

/// The same entity may lose its set and get it again; all may go, and come again.
#[test]
fn sets_that_come_back_are_drawn() {
    let mut stream = Stream::new(How::Set(None));
    let whole = stream.stage.picture();
    let some: Vec<_> = stream.sets.iter().copied().step_by(3).collect();
    let all: Vec<_> = stream.sets.iter().copied().collect();
    for entities in [&some[..5], &some, &all] {
        let mut lost = Vec::new();
        for entity in entities {
            lost.extend(stream.stage.entity(*entity).take::<GpuInstances>());
        }
        // Bevy draws each of them as one mesh.
        let without = stream.stage.picture();
        assert!(without != whole);
        for (entity, set) in entities.iter().zip(lost) {
            stream.stage.entity(*entity).insert(set);
        }
        assert_same_picture("streams back", &stream.stage.picture(), &whole);
        stream.stage.verify();
    }
}
