//! The city: towers with many meshes, each mesh in its district and the districts around it.

use crate::Peer;
use anyhow::Result;
use bevy::{
    camera::visibility::NoCpuCulling,
    light::CascadeShadowConfigBuilder,
    prelude::*,
    render::{batching::NoAutomaticBatching, renderer::RenderAdapterInfo},
};
use bevy_gpu_culling::{
    instance::InstanceSet,
    prelude::{GpuInstances, InstanceLod, InstanceLods, InstanceOcclusion},
};
use core::f32::consts::{PI, TAU};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use wgpu::DeviceType;

/// What stands in the city.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct City {
    /// Number of meshes.
    pub meshes: u32,
    /// Number of instances per mesh.
    pub per: u32,
    /// Number of materials.
    pub materials: u32,
    /// Number of point lights with shadow maps.
    pub lamps: u32,
    /// Number of cascades of the sun's shadows; 0 for none.
    pub cascades: u32,
    /// Whether each mesh has a coarser level.
    pub lods: bool,
    /// Whether the camera hides instances of sets.
    pub occlusion: bool,
    /// Whether each set has its own transform, in the middle of its towers.
    pub tiles: bool,
}

/// Side of the square that one tower has for itself, on average.
const PLOT: f32 = 14.0;
/// The instances of a mesh are spread over a square of this number of districts a side.
const SPREAD: f32 = 3.0;
/// The camera's height, and the radius of the circle on which it moves.
const EYE: [f32; 2] = [40.0, 150.0];
/// The farthest shadow of the sun.
const SHADOWS: f32 = 1000.0;
/// The distance to which lamps shine.
const LAMP: f32 = 40.0;
const SEED: u64 = 44;

/// What moves with the frames.
#[derive(Component)]
pub struct Moves {
    home: Vec3,
}

impl City {
    /// Spawns the camera and the lights. Returns the camera, which has no target yet.
    pub fn furnish(&self, world: &mut World, peer: Peer) -> Entity {
        let mut sun = world.spawn((
            DirectionalLight::default(),
            Transform::default().looking_to(Vec3::new(-0.5, -0.8, -0.6), Vec3::Y),
        ));
        if self.cascades > 0 {
            let cascades = CascadeShadowConfigBuilder {
                num_cascades: self.cascades as usize,
                maximum_distance: SHADOWS,
                ..default()
            };
            sun.insert(cascades.build());
            if let Some(mut sun) = sun.get_mut::<DirectionalLight>() {
                sun.shadow_maps_enabled = true;
            }
        }
        for lamp in 0..self.lamps {
            let turn = TAU * lamp as f32 / self.lamps as f32;
            let at = Quat::from_rotation_y(turn) * Vec3::X * EYE[1];
            world.spawn((
                PointLight {
                    range: LAMP,
                    intensity: 2e6,
                    shadow_maps_enabled: true,
                    ..default()
                },
                Transform::from_translation(at + Vec3::Y * 20.0),
            ));
        }
        // Four samples per pixel make a software renderer four times as slow.
        let is_software = world.resource::<RenderAdapterInfo>().device_type == DeviceType::Cpu;
        let samples = if is_software {
            Msaa::Off
        } else {
            Msaa::Sample4
        };
        let mut camera = world.spawn((Camera3d::default(), samples, pose(0.0)));
        if self.occlusion && peer == Peer::Sets {
            camera.insert(InstanceOcclusion::default());
        }
        camera.id()
    }

    /// Spawns all towers. The first `moving` sets, or entities of the peer, can be moved.
    pub fn fill(&self, world: &mut World, peer: Peer, moving: u32) -> Result<()> {
        let mut dice = ChaCha8Rng::seed_from_u64(SEED);
        let materials: Vec<_> = (0..self.materials)
            .map(|material| {
                let hue = 360.0 * material as f32 / self.materials as f32;
                let color = Color::hsl(hue, 0.3, 0.6);
                let mut materials = world.resource_mut::<Assets<StandardMaterial>>();
                MeshMaterial3d(materials.add(color))
            })
            .collect();
        let side = self.meshes.isqrt().max(1);
        let district = (self.per as f32).sqrt() * PLOT;
        let mut left = moving;
        for index in 0..self.meshes {
            let material = materials[(index % self.materials) as usize].clone();
            let place = Vec2::new((index % side) as f32, (index / side) as f32);
            let middle = (place - side as f32 / 2.0) * district;
            let home = match self.tiles && peer == Peer::Sets {
                true => middle.extend(0.0).xzy(),
                false => Vec3::ZERO,
            };
            let radius = dice.random_range(2.0f32..6.0);
            let height = dice.random_range(6.0f32..40.0);
            let tower = |corners| Cylinder::new(radius, height).mesh().resolution(corners);
            let fine = Mesh::from(tower(8 + index % 24));
            let coarse = self.lods.then(|| Mesh::from(tower(4)));
            let mut meshes = world.resource_mut::<Assets<Mesh>>();
            let mesh = Mesh3d(meshes.add(fine));
            // A regular polygon of four corners in a circle.
            let error = radius * (1.0 - (PI / 4.0).cos());
            let coarse = coarse.map(|coarse| InstanceLod::new(meshes.add(coarse), error));
            let reach = district * SPREAD / 2.0;
            let towers: Vec<_> = (0..self.per)
                .map(|_| {
                    let at = Vec2::from([(); 2].map(|()| dice.random_range(-reach..reach)));
                    let at = (middle + at).extend(height / 2.0).xzy();
                    let turn = Quat::from_rotation_y(dice.random_range(0.0..TAU));
                    Transform::from_translation(at - home).with_rotation(turn)
                })
                .collect();
            if peer == Peer::Sets {
                let set = InstanceSet::from_transforms(towers)?;
                let set = world.resource_mut::<Assets<InstanceSet>>().add(set);
                let place = Transform::from_translation(home);
                let mut entity = world.spawn((mesh, material, GpuInstances(set), place));
                if let Some(coarse) = coarse {
                    entity.insert(InstanceLods {
                        levels: vec![coarse],
                        ..default()
                    });
                }
                if left > 0 {
                    entity.insert(Moves { home });
                    left -= 1;
                }
                continue;
            }
            for tower in towers {
                let mut entity = world.spawn((mesh.clone(), material.clone(), tower));
                match peer {
                    Peer::BevyGpuCulled => drop(entity.insert(NoCpuCulling)),
                    Peer::BevyUnbatched => drop(entity.insert(NoAutomaticBatching)),
                    Peer::Sets | Peer::Bevy => {}
                }
                if left > 0 {
                    let home = tower.translation;
                    entity.insert(Moves { home });
                    left -= 1;
                }
            }
        }
        Ok(())
    }
}

/// The camera after a share of the measured frames.
pub fn pose(share: f32) -> Transform {
    let turn = Quat::from_rotation_y(share * TAU);
    let [height, radius] = EYE;
    let at = turn * Vec3::new(radius, height, 0.0);
    let ahead = turn * Vec3::new(0.0, -0.15, -1.0);
    Transform::from_translation(at).looking_to(ahead, Vec3::Y)
}

/// Moves all that [`Moves`].
pub fn step(mut moving: Query<(&mut Transform, &Moves)>, mut steps: Local<u32>) {
    *steps += 1;
    let aside = Vec3::X * (*steps as f32 * 0.1).sin();
    for (mut place, moves) in &mut moving {
        place.translation = moves.home + aside;
    }
}
