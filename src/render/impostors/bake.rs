//! Photographs of entities that ask for them, one after the other.

use super::{
    CalmFrames, SetPart,
    atlas::{Grid, ImpostorAtlas, Surface},
    cards::ImpostorAtlas3d,
    develop::{Pictures, SAMPLES, develop},
    error::ImpostorError,
    octahedron::ImpostorSides,
    photo::PhotoMaterial,
    stage::{Part, Stage, Studio},
};
use crate::{
    cull::BoundingSphere,
    render::{
        animation::InstanceAnimation,
        compression::plain_values,
        names::AssetNames,
        offset::{InstanceOffset, bits_of},
    },
};
use bevy::{
    asset::{UntypedAssetId, VisitAssetDependencies},
    ecs::{query::QueryData, system::SystemParam},
    math::Affine3A,
    mesh::VertexAttributeValues,
    platform::collections::HashMap,
    prelude::*,
    render::{
        gpu_readback::{Readback, ReadbackComplete},
        renderer::RenderDevice,
    },
    tasks::{AsyncComputeTaskPool, Task, futures::check_ready},
};

/// Photographs the entity's mesh from all sides on the GPU, and draws far instances as cards that
/// show the photographs. It needs [`ImpostorPlugin`](super::ImpostorPlugin).
///
/// An entity without a [`Mesh3d`] has its children photographed together, if they have
/// [`GpuInstances`]: the parts of an [`InstanceScene`](crate::render::InstanceScene), or entities
/// with the same set and no transform, such as bark and leaves. All of them become one card.
///
/// When meshes, materials and textures are loaded, the plugin takes the photographs in the frames
/// that follow, inserts an [`ImpostorAtlas3d`], and triggers [`ImpostorBaked`] on the entity. Until
/// then all instances are drawn as without it. Cards are lit, cast and receive shadows, are in
/// prepasses, and show what the three nearest photographs see where the line of sight meets it. With
/// [`InstanceLods::fade`](crate::render::InstanceLods::fade) of the meshes, these fade into them.
///
/// Entities with the same meshes, materials and settings share an [`ImpostorAtlas`]. Insert the
/// component again if they change later. To draw meshes only, remove this component and
/// [`ImpostorAtlas3d`].
///
/// ```
/// # use bevy::prelude::*;
/// # use bevy_gpu_culling::prelude::*;
/// // With `app.add_plugins(ImpostorPlugin)`.
/// fn spawn(
///     mut commands: Commands,
///     assets: Res<AssetServer>,
///     mut sets: ResMut<Assets<InstanceSet>>,
/// ) -> Result {
///     let row = (0..1000).map(|i| Transform::from_xyz(i as f32 * 2.0, 0.0, 0.0));
///     commands.spawn((
///         InstanceScene(assets.load("tree.glb#Scene0")),
///         BakeImpostor { sides: ImpostorSides::Above, ..default() },
///         GpuInstances(sets.add(InstanceSet::from_transforms(row)?)),
///     ));
///     Ok(())
/// }
/// ```
///
/// Only [`StandardMaterial`] is photographed: its base color with its texture, the mesh's vertex
/// colors, and normals with their map. What is less than half opaque is left out, emissive light
/// too. Roughness, metallic and reflectance are numbers of the first material.
#[derive(Component, Reflect, Clone, Copy, Debug, PartialEq)]
#[reflect(Component, Default, Clone, PartialEq)]
pub struct BakeImpostor {
    /// [`ImpostorAtlas3d::below_pixels`]. The default is 64.
    pub below_pixels: f32,
    /// From where it is photographed. The default is all sides.
    pub sides: ImpostorSides,
    /// Number of photographs per side of their square grid: 2 to 32. The default is 12, which is
    /// one per 16 degrees, or per 8 degrees from [above](ImpostorSides::Above).
    pub views: u32,
    /// Pixels per side of a photograph: a multiple of 32, up to 512. The default is 96.
    pub resolution: u32,
}

impl Default for BakeImpostor {
    fn default() -> Self {
        Self {
            below_pixels: 64.0,
            sides: ImpostorSides::All,
            views: 12,
            resolution: 96,
        }
    }
}

impl BakeImpostor {
    fn grid(&self) -> Result<Grid, ImpostorError> {
        let Self {
            below_pixels,
            sides,
            views: side,
            resolution: pixels,
        } = *self;
        let bad = [
            (
                !(below_pixels > 0.0 && below_pixels.is_finite()),
                "below_pixels",
                below_pixels.to_string(),
                "finite and above 0",
            ),
            (
                !Grid::SIDE.contains(&side),
                "views",
                side.to_string(),
                "2 to 32",
            ),
            (
                !Grid::PIXELS.contains(&pixels) || !pixels.is_multiple_of(Grid::STEP),
                "resolution",
                pixels.to_string(),
                "a multiple of 32, from 32 to 512",
            ),
        ];
        match bad.into_iter().find(|(is_bad, ..)| *is_bad) {
            Some((_, setting, value, expected)) => Err(ImpostorError::Setting {
                setting,
                value,
                expected,
            }),
            None => Ok(Grid {
                side,
                pixels,
                sides,
            }),
        }
    }
}

/// An entity was photographed, or could not be.
#[derive(EntityEvent, Reflect, Clone, Debug)]
#[reflect(opaque, Event, Clone, Debug)]
pub struct ImpostorBaked {
    /// The entity with [`BakeImpostor`].
    pub entity: Entity,
    /// The photographs, or what is wrong.
    pub result: Result<Handle<ImpostorAtlas>, ImpostorError>,
}

/// A mesh, its material, and its offset in what is photographed.
type PartKey = (AssetId<Mesh>, AssetId<StandardMaterial>, [u32; 12]);

/// What photographs are made of.
#[derive(Clone, Debug, PartialEq)]
struct BakeKey {
    parts: Vec<PartKey>,
    grid: Grid,
}

impl BakeKey {
    fn is_of(&self, id: UntypedAssetId) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|(mesh, material, _)| mesh.untyped() == id || material.untyped() == id)
    }
}

/// On an entity that has what it asked for, or was refused.
#[derive(Component)]
pub(super) struct Answered;

/// Photographs that are to be taken.
struct Job {
    key: BakeKey,
    parts: Vec<Part>,
}

/// Photographs that are being taken.
struct RunningBake {
    job: Job,
    sphere: BoundingSphere,
    surface: Surface,
    step: BakeStep,
}

/// How far they are.
enum BakeStep {
    /// Cameras draw.
    Drawing {
        stage: Stage,
        /// Who reads the pictures.
        readers: Option<[Entity; 2]>,
        /// What was read last, and whether it was the same before.
        read: [Option<(Vec<u8>, bool)>; 2],
        /// Frames since pipelines were ready.
        frames: u32,
    },
    /// The pictures become an atlas.
    Developing(Task<Option<[Vec<u8>; 2]>>),
}

/// Frames without a new pipeline after which all copies are drawn: pipelines are asked for in the
/// second frame.
const CALM: u32 = 8;

/// Frames after which pictures that stay empty are an error.
const PATIENCE: u32 = 120;

/// Frames in which an entity may get its material after its mesh.
const MATERIAL_PATIENCE: u32 = 30;

/// What was photographed, and what will be.
#[derive(Resource, Default)]
pub(super) struct ImpostorBakes {
    waiting: Vec<Job>,
    running: Option<RunningBake>,
    baked: Vec<(BakeKey, AssetId<ImpostorAtlas>)>,
    /// Results of the last frame: the handles of new atlases keep them until entities have them.
    results: Vec<(BakeKey, BakeResult)>,
}

type BakeResult = Result<Handle<ImpostorAtlas>, ImpostorError>;

impl ImpostorBakes {
    fn has(&self, key: &BakeKey) -> bool {
        let running = self.running.iter().map(|running| &running.job);
        self.waiting
            .iter()
            .chain(running)
            .any(|job| job.key == *key)
    }

    /// What is known of photographs; `None` if they are still to be taken.
    fn result_of(&self, key: &BakeKey, atlases: &mut Assets<ImpostorAtlas>) -> Option<BakeResult> {
        if let Some((_, result)) = self.results.iter().find(|(known, _)| known == key) {
            return Some(result.clone());
        }
        let (_, id) = self.baked.iter().find(|(known, _)| known == key)?;
        atlases.get_strong_handle(*id).map(Ok)
    }

    /// Takes a picture that was read back.
    fn take(&mut self, at: usize, bytes: &[u8]) {
        let Some(RunningBake {
            step: BakeStep::Drawing { read, .. },
            ..
        }) = &mut self.running
        else {
            return;
        };
        match &mut read[at] {
            Some((known, is_stable)) if known == bytes => *is_stable = true,
            slot => *slot = Some((bytes.to_vec(), false)),
        }
    }
}

/// Forgets what was photographed of meshes and materials that have changed since.
pub(super) fn forget_changed(
    mut bakes: ResMut<ImpostorBakes>,
    mut meshes: MessageReader<AssetEvent<Mesh>>,
    mut materials: MessageReader<AssetEvent<StandardMaterial>>,
) {
    let meshes = meshes.read().filter_map(|event| match event {
        AssetEvent::Modified { id } | AssetEvent::Removed { id } => Some(id.untyped()),
        _ => None,
    });
    let materials = materials.read().filter_map(|event| match event {
        AssetEvent::Modified { id } | AssetEvent::Removed { id } => Some(id.untyped()),
        _ => None,
    });
    if bakes.baked.is_empty() {
        return;
    }
    for id in meshes.chain(materials) {
        bakes.baked.retain(|(key, _)| !key.is_of(id));
    }
}

/// A mesh that may be photographed.
#[derive(QueryData)]
pub(super) struct PartItem {
    mesh: Option<&'static Mesh3d>,
    material: Option<&'static MeshMaterial3d<StandardMaterial>>,
    offset: Option<&'static InstanceOffset>,
    part: SetPart,
    is_animated: Has<InstanceAnimation>,
}

/// An entity that asks.
#[derive(QueryData)]
pub(super) struct AskingItem {
    entity: Entity,
    bake: Ref<'static, BakeImpostor>,
    is_answered: Has<Answered>,
    has_mesh: Has<Mesh3d>,
    children: Option<&'static Children>,
}

/// The entity's own mesh, or those of its children. `None` while there is nothing to photograph; an
/// error if something there cannot be.
fn parts_of(
    item: &AskingItemItem,
    all: &Query<PartItem>,
) -> Option<Result<Vec<Part>, ImpostorError>> {
    let own = item.has_mesh.then_some(item.entity);
    let children = item.children.into_iter().flatten().copied();
    let is_part =
        |child: &Entity| !item.has_mesh && all.get(*child).is_ok_and(|child| child.part.is_part());
    let mut parts = Vec::new();
    for part in own.into_iter().chain(children.filter(is_part)) {
        let part = all.get(part).ok()?;
        let mesh = part.mesh?.0.clone();
        let Some(material) = part.material else {
            return Some(Err(ImpostorError::Material));
        };
        if part.is_animated {
            return Some(Err(ImpostorError::Animated));
        }
        let offset = part.offset.filter(|_| !item.has_mesh);
        parts.push(Part {
            mesh,
            material: material.0.clone(),
            offset: offset.map_or(Affine3A::IDENTITY, |offset| offset.0),
        });
    }
    (!parts.is_empty()).then_some(Ok(parts))
}

fn key_of(parts: &[Part], grid: Grid) -> BakeKey {
    let key = |part: &Part| (part.mesh.id(), part.material.id(), bits_of(&part.offset));
    BakeKey {
        parts: parts.iter().map(key).collect(),
        grid,
    }
}

/// Frames in which entities have had a mesh without a material.
#[derive(Default)]
pub(super) struct Waiting(HashMap<Entity, u32>);

impl Waiting {
    /// Counts a frame. Returns whether there were too many.
    fn is_over(&mut self, entity: Entity) -> bool {
        let frames = self.0.entry(entity).or_default();
        *frames += 1;
        *frames > MATERIAL_PATIENCE
    }
}

/// Gives entities what was photographed, and takes their wishes.
pub(super) fn ask_for_bakes(
    mut commands: Commands,
    asking: Query<AskingItem>,
    all: Query<PartItem>,
    mut atlases: ResMut<Assets<ImpostorAtlas>>,
    mut bakes: ResMut<ImpostorBakes>,
    mut without_material: Local<Waiting>,
) {
    for item in &asking {
        let entity = item.entity;
        if item.is_answered && !item.bake.is_changed() {
            continue;
        }
        let result = match parts_of(&item, &all) {
            None => continue,
            Some(Err(ImpostorError::Material)) if !without_material.is_over(entity) => continue,
            Some(Err(error)) => Err(error),
            Some(Ok(parts)) => match item.bake.grid() {
                Err(error) => Err(error),
                Ok(grid) => {
                    let key = key_of(&parts, grid);
                    let Some(result) = bakes.result_of(&key, &mut atlases) else {
                        if !bakes.has(&key) {
                            bakes.waiting.push(Job { key, parts });
                        }
                        continue;
                    };
                    result
                }
            },
        };
        without_material.0.remove(&entity);
        let mut commands = commands.entity(entity);
        match &result {
            Ok(atlas) => {
                commands.try_insert(ImpostorAtlas3d {
                    atlas: atlas.clone(),
                    below_pixels: item.bake.below_pixels,
                });
            }
            Err(error) => error!("BakeImpostor on {entity}: no impostor: {error}"),
        }
        commands.try_insert(Answered);
        commands.trigger(|entity| ImpostorBaked { entity, result });
    }
    bakes.results.clear();
}

/// What photographs are taken with.
#[derive(SystemParam)]
pub(super) struct Darkroom<'w> {
    meshes: Res<'w, Assets<Mesh>>,
    materials: Res<'w, Assets<StandardMaterial>>,
    photos: ResMut<'w, Assets<PhotoMaterial>>,
    images: ResMut<'w, Assets<Image>>,
    atlases: ResMut<'w, Assets<ImpostorAtlas>>,
    calm: Res<'w, CalmFrames>,
    device: Option<Res<'w, RenderDevice>>,
    server: Option<Res<'w, AssetServer>>,
}

impl Darkroom<'_> {
    /// Whether all that a job needs is loaded; an error if something never will be.
    fn is_loaded(&self, job: &Job) -> Result<bool, ImpostorError> {
        let server = self.server.as_deref();
        let failed = |id: UntypedAssetId| {
            server.is_some_and(|server| {
                server
                    .get_load_state(id)
                    .is_some_and(|state| state.is_failed())
            })
        };
        let loading = |id: UntypedAssetId| {
            server.is_some_and(|server| {
                server
                    .get_load_state(id)
                    .is_some_and(|state| state.is_loading())
            })
        };
        for part in &job.parts {
            let (mesh, material) = (part.mesh.id(), part.material.id());
            if failed(mesh.untyped()) {
                return Err(ImpostorError::NotLoaded(
                    AssetNames(server).of(mesh).to_string(),
                ));
            }
            if failed(material.untyped()) {
                let name = AssetNames(server).of(material).to_string();
                return Err(ImpostorError::NotLoaded(name));
            }
            let Some(material) = self.materials.get(material) else {
                return Ok(false);
            };
            if self.meshes.get(mesh).is_none() {
                return Ok(false);
            }
            let mut is_waiting = false;
            // A texture that fails is drawn white, as everywhere.
            material.visit_dependencies(&mut |id| is_waiting |= loading(id));
            if is_waiting {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The sphere around all parts, with a little room.
    fn sphere_of(&self, parts: &[Part]) -> Option<BoundingSphere> {
        let mut points: Vec<Vec3> = Vec::new();
        for part in parts {
            let mesh = self.meshes.get(&part.mesh)?;
            let values = plain_values(mesh, Mesh::ATTRIBUTE_POSITION)?;
            let VertexAttributeValues::Float32x3(own) = &*values else {
                return None;
            };
            let own = own.iter().map(|point| Vec3::from_array(*point));
            points.extend(own.map(|point| part.offset.transform_point3(point)));
        }
        let sphere = BoundingSphere::around_points(points.iter().copied())?;
        let radius = sphere.radius * MARGIN;
        (radius > 0.0 && radius.is_finite()).then_some(BoundingSphere { radius, ..sphere })
    }

    fn begin(
        &mut self,
        commands: &mut Commands,
        job: Job,
    ) -> Result<RunningBake, (BakeKey, ImpostorError)> {
        let grid = job.key.grid;
        let pixels = grid.width() * SAMPLES;
        let limit = self
            .device
            .as_ref()
            .map_or(u32::MAX, |device| device.limits().max_texture_dimension_2d);
        if pixels > limit {
            return Err((job.key, ImpostorError::TooLarge { pixels, limit }));
        }
        let Some(sphere) = self.sphere_of(&job.parts) else {
            return Err((job.key, ImpostorError::NoSphere));
        };
        let material = job
            .parts
            .first()
            .and_then(|part| self.materials.get(&part.material));
        let surface = Surface::of(material.unwrap_or(&StandardMaterial::default()));
        let stage = Studio {
            commands,
            images: &mut self.images,
            materials: &self.materials,
            photos: &mut self.photos,
        }
        .set_up(&job.parts, sphere, grid);
        self.calm.reset();
        Ok(RunningBake {
            job,
            sphere,
            surface,
            step: BakeStep::Drawing {
                stage,
                readers: None,
                read: [None, None],
                frames: 0,
            },
        })
    }
}

/// Of the radius of what is photographed, so that no filter cuts off its edge.
const MARGIN: f32 = 1.03;

/// Takes photographs, one job at a time.
pub(super) fn run_bakes(
    mut commands: Commands,
    mut room: Darkroom,
    mut bakes: ResMut<ImpostorBakes>,
) {
    let bakes = &mut *bakes;
    if bakes.running.is_none() {
        let mut at = 0;
        while at < bakes.waiting.len() && bakes.running.is_none() {
            match room.is_loaded(&bakes.waiting[at]) {
                Ok(false) => at += 1,
                Ok(true) => {
                    let job = bakes.waiting.remove(at);
                    match room.begin(&mut commands, job) {
                        Ok(running) => bakes.running = Some(running),
                        Err((key, error)) => bakes.results.push((key, Err(error))),
                    }
                }
                Err(error) => {
                    let job = bakes.waiting.remove(at);
                    bakes.results.push((job.key, Err(error)));
                }
            }
        }
        return;
    }
    let Some(mut running) = bakes.running.take() else {
        return;
    };
    let grid = running.job.key.grid;
    match running.step {
        BakeStep::Drawing {
            stage,
            mut readers,
            mut read,
            mut frames,
        } => {
            if room.calm.get() >= CALM {
                frames += 1;
                if readers.is_none() {
                    readers = Some([0, 1].map(|at| read_back(&mut commands, &stage, at)));
                }
            }
            let is_seen = |(bytes, is_stable): &(Vec<u8>, bool)| {
                *is_stable && bytes.as_chunks::<4>().0.iter().any(|[.., seen]| *seen > 0)
            };
            let is_done = read.iter().all(|read| read.as_ref().is_some_and(is_seen));
            let is_over = frames > PATIENCE;
            if is_done || is_over {
                commands.entity(stage.root).despawn();
                for reader in readers.iter().flatten() {
                    commands.entity(*reader).despawn();
                }
            }
            if is_done {
                let [colors, shapes] = read
                    .each_mut()
                    .map(|read| read.take().map(|(bytes, _)| bytes).unwrap_or_default());
                let pictures = Pictures { colors, shapes };
                let pool = AsyncComputeTaskPool::get();
                running.step =
                    BakeStep::Developing(pool.spawn(async move { develop(&pictures, grid) }));
            } else if is_over {
                let error = ImpostorError::Empty(PATIENCE);
                bakes.results.push((running.job.key, Err(error)));
                return;
            } else {
                running.step = BakeStep::Drawing {
                    stage,
                    readers,
                    read,
                    frames,
                };
            }
            bakes.running = Some(running);
        }
        BakeStep::Developing(mut task) => match check_ready(&mut task) {
            None => {
                running.step = BakeStep::Developing(task);
                bakes.running = Some(running);
            }
            Some(None) => {
                let error = ImpostorError::Empty(PATIENCE);
                bakes.results.push((running.job.key, Err(error)));
            }
            Some(Some([colors, shapes])) => {
                let atlas = room.atlases.add(ImpostorAtlas {
                    sphere: running.sphere,
                    grid,
                    surface: running.surface,
                    colors,
                    shapes,
                });
                let key = running.job.key;
                bakes.baked.push((key.clone(), atlas.id()));
                bakes.results.push((key, Ok(atlas)));
            }
        },
    }
}

/// Reads a picture of a stage in each frame.
fn read_back(commands: &mut Commands, stage: &Stage, at: usize) -> Entity {
    let picture = stage.pictures[at].clone();
    let mut reader = commands.spawn(Readback::texture(picture));
    reader.observe(
        move |event: On<ReadbackComplete>, mut bakes: ResMut<ImpostorBakes>| {
            bakes.take(at, &event.data);
        },
    );
    reader.id()
}
