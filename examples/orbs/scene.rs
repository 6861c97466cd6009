//! The field in the world: as instance sets, or as one entity an orb.

use crate::{
    cli::{Cli, Peer},
    field::{self, LAYERS, LayerSet},
    look,
};
use bevy::{asset::RenderAssetUsages, prelude::*};
use bevy_gpu_culling::{
    instance::{InstanceError, InstanceSet, InstanceTransform},
    prelude::GpuInstances,
};

/// What is drawn at the moment.
#[derive(Resource, Clone, Debug)]
pub struct Field {
    pub count: u32,
    pub seed: u64,
    pub peer: Option<Peer>,
    /// Sets to spread the orbs over, at least.
    pub least_sets: u32,
    /// Point lights with shadows.
    pub lights: u32,
    /// The sets are dropped on the CPU once they are on the GPU.
    pub gpu_only: bool,
    /// Orbs that are drawn: all, or those that were kept.
    pub drawn: u64,
    /// Sets that they are in.
    pub sets: usize,
    /// Bytes of all sets.
    pub bytes: u64,
}

impl Field {
    pub fn new(cli: &Cli) -> Self {
        Self {
            count: cli.count,
            seed: cli.seed,
            peer: cli.peer,
            least_sets: cli.sets,
            lights: cli.lights,
            gpu_only: cli.gpu_only,
            drawn: 0,
            sets: 0,
            bytes: 0,
        }
    }

    pub fn radius(&self) -> f32 {
        field::radius(self.count)
    }

    /// Makes the sets: the slow part, for any thread.
    pub fn generate(&self) -> Result<Vec<LayerSet>, InstanceError> {
        let sets = field::generate(self.count, self.seed)?;
        if self.least_sets == 0 {
            return Ok(sets);
        }
        field::split(sets, self.least_sets)
    }
}

/// The layers' meshes and materials: made once, shared by all fields that are drawn after each other.
#[derive(Resource)]
struct Palette(Vec<(Handle<Mesh>, Handle<StandardMaterial>)>);

impl FromWorld for Palette {
    fn from_world(world: &mut World) -> Self {
        let handles = LAYERS.iter().map(|layer| {
            let mesh = world
                .resource_mut::<Assets<Mesh>>()
                .add(look::mesh(layer.shape));
            let material = world
                .resource_mut::<Assets<StandardMaterial>>()
                .add(look::material(layer.finish));
            (mesh, material)
        });
        Self(handles.collect())
    }
}

/// An entity that draws orbs: a set, or one of the peer's.
#[derive(Component)]
pub struct Orbs;

/// Replaces what is drawn by `sets`, and the lights by those of this size of field.
pub fn show(world: &mut World, mut field: Field, sets: Vec<LayerSet>) {
    let old: Vec<Entity> = world
        .query_filtered::<Entity, Or<(With<Orbs>, With<look::Mood>)>>()
        .iter(world)
        .collect();
    for entity in old {
        world.despawn(entity);
    }
    world.init_resource::<Palette>();
    let radius = field.radius();
    field.bytes = sets.iter().map(|layer| bytes(&layer.set)).sum();
    field.drawn = sets.iter().map(|layer| layer.set.len() as u64).sum();
    field.sets = sets.len();
    for LayerSet { layer, set } in sets {
        let Some(index) = LAYERS.iter().position(|one| one.finish == layer.finish) else {
            continue;
        };
        let (mesh, material) = world.resource::<Palette>().0[index].clone();
        match field.peer {
            None => {
                let set = match field.gpu_only {
                    true => set.with_asset_usage(RenderAssetUsages::RENDER_WORLD),
                    false => set,
                };
                let set = world.resource_mut::<Assets<InstanceSet>>().add(set);
                world.spawn((
                    Orbs,
                    Mesh3d(mesh),
                    MeshMaterial3d(material),
                    GpuInstances(set),
                ));
            }
            // Decoded from the packed set, so that both draw the very same rotations.
            Some(Peer::Bevy) => {
                let orbs: Vec<_> = set
                    .iter()
                    .map(|orb| {
                        (
                            Orbs,
                            Mesh3d(mesh.clone()),
                            MeshMaterial3d(material.clone()),
                            transform(orb),
                        )
                    })
                    .collect();
                world.spawn_batch(orbs);
            }
        }
    }
    look::spawn_lights(world, radius);
    look::spawn_shadow_lights(world, radius, field.lights);
    world.insert_resource(field);
}

fn transform(orb: InstanceTransform) -> Transform {
    Transform {
        translation: orb.translation,
        rotation: orb.rotation,
        scale: orb.scale,
    }
}

fn bytes(set: &InstanceSet) -> u64 {
    let each = 16 + 4 * u64::from(set.scales().is_some()) + 4 * u64::from(set.tags().is_some());
    each * set.len() as u64
}
