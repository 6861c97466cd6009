//! The field in the world: as instance sets, or as one entity per orb.

use super::{
    cli::{Cli, DrawOrder, Lods, Meshlets, Peer},
    field::{self, LAYERS, LayerSet, Shape},
    look::{self, Colors},
};
use bevy::{asset::RenderAssetUsages, prelude::*};
use bevy_gpu_culling::{
    instance::{InstanceError, InstanceSet, InstanceTransform},
    meshlet::MeshletError,
    prelude::{
        AggregateDetail, GpuInstances, InstanceLod, InstanceLods, LodSettings, MeshletMesh,
        MeshletMesh3d, MeshletSettings, NoInstanceSorting,
    },
};

/// The field that is drawn now.
#[derive(Resource, Clone, Debug)]
pub struct Field {
    pub count: u32,
    pub seed: u64,
    pub peer: Option<Peer>,
    /// How orbs of many triangles are drawn; `None` if orbs have few.
    pub meshlets: Option<Meshlets>,
    /// Whether each meshlet has its own color.
    pub colored: bool,
    /// The least number of sets to spread the orbs over.
    pub min_sets: u32,
    /// Number of point lights with shadows.
    pub lights: u32,
    /// Whether sets are dropped on the CPU once they are on the GPU.
    pub gpu_only: bool,
    pub order: DrawOrder,
    /// Whether far orbs are drawn at coarser levels of detail.
    pub lods: Lods,
    /// How long orbs fade from level to level.
    pub lod_fade: f32,
    /// The diameter below which orbs are thinned out, in pixels; 0 draws all.
    pub aggregate: f32,
    /// What orbs are colored by; `None` for their own looks.
    pub colors: Option<Colors>,
    /// Number of orbs that are drawn: all, or those that were kept.
    pub drawn: u64,
    /// Number of their sets.
    pub sets: usize,
    /// Size of all sets, in bytes.
    pub bytes: u64,
}

impl Field {
    pub fn new(cli: &Cli) -> Self {
        Self {
            count: cli.count,
            seed: cli.seed,
            peer: cli.peer,
            meshlets: cli.meshlets,
            colored: cli.color_meshlets,
            min_sets: cli.sets,
            lights: cli.lights,
            gpu_only: cli.gpu_only,
            order: cli.order,
            lods: cli.lods,
            lod_fade: cli.lod_fade,
            aggregate: cli.aggregate,
            colors: match (cli.color_lods, cli.color_occlusion) {
                (true, _) => Some(Colors::Levels),
                (_, true) => Some(Colors::Occlusion),
                _ => None,
            },
            drawn: 0,
            sets: 0,
            bytes: 0,
        }
    }

    pub fn radius(&self) -> f32 {
        field::radius(self.count)
    }

    /// Makes the sets. It is slow, and runs on any thread.
    pub fn generate(&self) -> Result<Vec<LayerSet>, InstanceError> {
        let mut sets = field::generate(self.count, self.seed)?;
        if self.min_sets > 0 {
            sets = field::split(sets, self.min_sets)?;
        }
        if self.order == DrawOrder::Nearest {
            let eye = field::EYE * self.radius();
            for layer in &mut sets {
                layer.set = field::nearest_first(&layer.set, eye)?;
            }
        }
        Ok(sets)
    }
}

/// The layers' looks, made once for all fields that are drawn one after the other.
#[derive(Resource)]
struct Palette(Vec<Look>);

/// Mesh and material of a layer.
#[derive(Clone)]
struct Look {
    mesh: Handle<Mesh>,
    material: Handle<StandardMaterial>,
    parts: Option<Parts>,
    levels: Levels,
}

/// The levels of detail of a layer's orbs, whether they are drawn or not.
#[derive(Component, Clone, Default)]
pub struct Levels(InstanceLods);

impl Levels {
    fn new(world: &mut World, shape: Shape, field: &Field) -> Self {
        let levels = look::levels(shape).unwrap_or_else(|error| {
            error!("{shape:?} has no levels of detail: {error}");
            Vec::new()
        });
        Self::from_meshes(world, levels, field)
    }

    fn from_meshes(world: &mut World, levels: Vec<(Mesh, f32)>, field: &Field) -> Self {
        let level = |(number, (mesh, error))| {
            let mesh = add(world, look::colored(mesh, number, field.colors));
            InstanceLod::new(mesh, error)
        };
        Self(InstanceLods {
            levels: (1..).zip(levels).map(level).collect(),
            fade: field.lod_fade,
            ..default()
        })
    }
}

/// The mesh cut into meshlets, in the layer's look and with one color per meshlet.
#[derive(Component, Clone)]
pub struct Parts {
    /// With its levels of detail.
    leveled: Cut,
    /// In full.
    full: Cut,
}

/// A mesh in the layer's look, and with one color per meshlet.
#[derive(Clone)]
struct Cut {
    plain: (Handle<MeshletMesh>, Handle<StandardMaterial>),
    colored: (Handle<MeshletMesh>, Handle<StandardMaterial>),
}

impl Parts {
    fn look(&self, field: &Field) -> (MeshletMesh3d, MeshMaterial3d<StandardMaterial>) {
        let cut = match field.lods {
            Lods::On => &self.leveled,
            Lods::Off => &self.full,
        };
        let (mesh, material) = match field.colored {
            true => cut.colored.clone(),
            false => cut.plain.clone(),
        };
        (MeshletMesh3d(mesh), MeshMaterial3d(material))
    }
}

/// A mesh of many triangles, ready to be drawn by meshlets, and whole to compare.
struct Dense {
    leveled: MeshletMesh,
    full: MeshletMesh,
    /// The triangles are in the order of the meshlets.
    whole: Mesh,
    /// The meshes of the levels, and their errors.
    levels: Vec<(Mesh, f32)>,
}

impl Dense {
    fn new(mesh: &Mesh) -> Result<Self, MeshletError> {
        let settings = |lods| MeshletSettings { lods, ..default() };
        // Down to about as few triangles as the coarsest levels of other orbs have.
        let lods = LodSettings {
            max_levels: LodSettings::MAX_LEVELS,
            kept: 0.4,
            ..default()
        };
        let leveled = MeshletMesh::from_mesh(mesh, &settings(Some(lods)))?;
        let errors = leveled.levels().iter().map(|level| level.error);
        let coarser = errors.enumerate().skip(1);
        Ok(Self {
            full: MeshletMesh::from_mesh(mesh, &settings(None))?,
            whole: leveled.level_to_mesh(0)?,
            levels: coarser
                .map(|(level, error)| Ok((leveled.level_to_mesh(level)?, error)))
                .collect::<Result<_, MeshletError>>()?,
            leveled,
        })
    }
}

impl Palette {
    /// A peer has neither meshlets nor levels.
    fn new(world: &mut World, field: &Field) -> Self {
        let (meshlets, cut) = (field.meshlets, field.peer.is_none());
        let neutral = add(world, look::neutral_material());
        let looks = LAYERS.iter().map(|layer| {
            let material = match field.colors {
                None => add(world, look::material(layer.finish)),
                Some(_) => neutral.clone(),
            };
            let (mesh, levels) = match meshlets {
                None if cut => {
                    let levels = Levels::new(world, layer.shape, field);
                    (look::mesh(layer.shape), levels)
                }
                None => (look::mesh(layer.shape), Levels::default()),
                Some(_) => (look::dense_mesh(layer.shape), Levels::default()),
            };
            let mesh = look::colored(mesh, 0, field.colors);
            let dense = meshlets.filter(|_| cut).and_then(|_| {
                let dense = Dense::new(&mesh);
                let dense = dense.inspect_err(|error| error!("{:?}: {error}", layer.shape));
                dense.ok()
            });
            let Some(dense) = dense else {
                return Look {
                    mesh: add(world, mesh),
                    parts: None,
                    material,
                    levels,
                };
            };
            let mut cut = |mesh: MeshletMesh| Cut {
                colored: (add(world, mesh.with_meshlet_colors()), neutral.clone()),
                plain: (add(world, mesh), material.clone()),
            };
            Look {
                parts: Some(Parts {
                    leveled: cut(dense.leveled),
                    full: cut(dense.full),
                }),
                levels: Levels::from_meshes(world, dense.levels, field),
                mesh: add(world, dense.whole),
                material,
            }
        });
        Self(looks.collect())
    }
}

fn add<A: Asset>(world: &mut World, asset: A) -> Handle<A> {
    world.resource_mut::<Assets<A>>().add(asset)
}

/// Switches between colored meshlets and the orbs' own looks.
pub fn toggle_colors(
    mut commands: Commands,
    mut field: ResMut<Field>,
    orbs: Query<(Entity, &Parts)>,
) {
    field.colored = !field.colored;
    for (entity, parts) in &orbs {
        commands.entity(entity).insert(parts.look(&field));
    }
}

/// Switches levels of detail on and off.
pub fn toggle_lods(
    mut commands: Commands,
    mut field: ResMut<Field>,
    orbs: Query<(Entity, &Levels, Option<&Parts>)>,
) {
    field.lods = match field.lods {
        Lods::On => Lods::Off,
        Lods::Off => Lods::On,
    };
    for (entity, levels, parts) in &orbs {
        let mut entity = commands.entity(entity);
        match (parts, field.lods) {
            (Some(parts), _) => entity.insert(parts.look(&field)),
            (None, Lods::On) => entity.insert(levels.0.clone()),
            (None, Lods::Off) => entity.remove::<InstanceLods>(),
        };
    }
}

/// Marks an entity that draws orbs: a set, or an orb of the peer.
#[derive(Component)]
pub struct Orbs;

/// Replaces what is drawn by `sets`, and the lights by those for a field of this size.
pub fn show(world: &mut World, mut field: Field, sets: Vec<LayerSet>) {
    let old: Vec<Entity> = world
        .query_filtered::<Entity, Or<(With<Orbs>, With<look::Mood>)>>()
        .iter(world)
        .collect();
    for entity in old {
        world.despawn(entity);
    }
    if !world.contains_resource::<Palette>() {
        let palette = Palette::new(world, &field);
        world.insert_resource(palette);
    }
    let radius = field.radius();
    field.bytes = sets.iter().map(|layer| bytes(&layer.set)).sum();
    field.drawn = sets.iter().map(|layer| layer.set.len() as u64).sum();
    field.sets = sets.len();
    for LayerSet { layer, set } in sets {
        let Some(index) = LAYERS.iter().position(|one| one.finish == layer.finish) else {
            continue;
        };
        let Look {
            mesh,
            material,
            parts,
            levels,
        } = world.resource::<Palette>().0[index].clone();
        match field.peer {
            None => {
                let set = match field.gpu_only {
                    true => set.with_asset_usage(RenderAssetUsages::RENDER_WORLD),
                    false => set,
                };
                let set = GpuInstances(add(world, set));
                let parts = parts.filter(|_| field.meshlets == Some(Meshlets::Parts));
                let has_own_levels = parts.is_some();
                let mut spawned = match parts {
                    Some(parts) => {
                        let look = parts.look(&field);
                        world.spawn((Orbs, look, parts, set))
                    }
                    None => world.spawn((Orbs, Mesh3d(mesh), MeshMaterial3d(material), set)),
                };
                if field.order != DrawOrder::NearFirst {
                    spawned.insert(NoInstanceSorting);
                }
                if field.aggregate > 0.0 {
                    spawned.insert(AggregateDetail {
                        below_pixels: field.aggregate,
                    });
                }
                if field.lods == Lods::On && !has_own_levels {
                    spawned.insert(levels.0.clone());
                }
                spawned.insert(levels);
            }
            // Decoded from the packed set, so that both draw exactly the same rotations.
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
    let each = 16 + 4 * u64::from(set.scales().is_some()) + set.data_size() as u64;
    each * set.len() as u64
}
