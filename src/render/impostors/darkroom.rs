//! Takes photographs, one job at a time: loads what they need, has them drawn, reads them back, and
//! develops them.

use super::{
    atlas::{ImpostorAtlas, Surface},
    calm::CalmFrames,
    develop::{Pictures, SAMPLES, develop},
    error::ImpostorError,
    grid::Grid,
    parts::{BakeKey, Part},
    photo::PhotoMaterial,
    queue::{ImpostorBakes, Job},
    stage::{Stage, Studio},
};
use crate::{
    cull::BoundingSphere,
    render::{compression::plain_values, names::AssetNames},
};
use bevy::{
    asset::{UntypedAssetId, VisitAssetDependencies},
    ecs::system::SystemParam,
    mesh::VertexAttributeValues,
    prelude::*,
    render::{
        gpu_readback::{Readback, ReadbackComplete},
        renderer::RenderDevice,
    },
    tasks::{AsyncComputeTaskPool, Task, futures::check_ready},
};

/// Frames without a new pipeline after which all copies are drawn: pipelines are asked for in the
/// second frame.
const CALM: u32 = 8;

/// Frames after which pictures that stay empty are an error.
const PATIENCE: u32 = 120;

/// Photographs that are being taken.
struct RunningBake {
    key: BakeKey,
    sphere: BoundingSphere,
    surface: Surface,
    step: BakeStep,
}

/// How far they are.
enum BakeStep {
    /// Cameras draw.
    Drawing(Drawing),
    /// The pictures become an atlas.
    Developing(Task<Option<[Vec<u8>; 2]>>),
}

/// Photographs that cameras draw.
struct Drawing {
    stage: Stage,
    /// Who reads the pictures.
    readers: Option<[Entity; 2]>,
    /// What was read last, and whether it was the same before.
    read: [Option<(Vec<u8>, bool)>; 2],
    /// Frames since pipelines were ready.
    frames: u32,
}

/// Where photographs are taken.
#[derive(Resource, Default)]
pub(super) struct Darkroom(Option<RunningBake>);

impl Darkroom {
    /// Takes a picture that was read back.
    fn take(&mut self, at: usize, bytes: &[u8]) {
        let Some(RunningBake {
            step: BakeStep::Drawing(Drawing { read, .. }),
            ..
        }) = &mut self.0
        else {
            return;
        };
        match &mut read[at] {
            Some((known, is_stable)) if known == bytes => *is_stable = true,
            slot => *slot = Some((bytes.to_vec(), false)),
        }
    }
}

/// What photographs are taken with.
#[derive(SystemParam)]
pub(super) struct Supplies<'w> {
    meshes: Res<'w, Assets<Mesh>>,
    materials: Res<'w, Assets<StandardMaterial>>,
    photos: ResMut<'w, Assets<PhotoMaterial>>,
    images: ResMut<'w, Assets<Image>>,
    atlases: ResMut<'w, Assets<ImpostorAtlas>>,
    calm: Res<'w, CalmFrames>,
    device: Option<Res<'w, RenderDevice>>,
    server: Option<Res<'w, AssetServer>>,
}

impl Supplies<'_> {
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

    fn begin(&mut self, commands: &mut Commands, job: &Job) -> Result<RunningBake, ImpostorError> {
        let grid = job.key.grid;
        let pixels = grid.width() * SAMPLES;
        let device = self.device.as_ref();
        let limit = device.map_or(MAX_PIXELS, |device| {
            device.limits().max_texture_dimension_2d.min(MAX_PIXELS)
        });
        if pixels > limit {
            return Err(ImpostorError::TooLarge { pixels, limit });
        }
        let sphere = self.sphere_of(&job.parts).ok_or(ImpostorError::NoSphere)?;
        let first = job.parts.first();
        let material = first.and_then(|part| self.materials.get(&part.material));
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
            key: job.key.clone(),
            sphere,
            surface,
            step: BakeStep::Drawing(Drawing {
                stage,
                readers: None,
                read: [None, None],
                frames: 0,
            }),
        })
    }
}

/// The most pixels per side of what a camera draws: 256 MiB, of which there are a few.
const MAX_PIXELS: u32 = 8192;

/// Of the radius of what is photographed, so that no filter cuts off its edge.
const MARGIN: f32 = 1.03;

/// Takes photographs, one job at a time.
pub(super) fn run_bakes(
    mut commands: Commands,
    mut supplies: Supplies,
    mut bakes: ResMut<ImpostorBakes>,
    mut room: ResMut<Darkroom>,
) {
    let bakes = &mut *bakes;
    let Some(RunningBake {
        key,
        sphere,
        surface,
        step,
    }) = room.0.take()
    else {
        room.0 = next_bake(&mut commands, &mut supplies, bakes);
        return;
    };
    let grid = key.grid;
    let step = match step {
        BakeStep::Drawing(drawing) => drawing.go_on(&mut commands, supplies.calm.get(), grid),
        BakeStep::Developing(mut task) => match check_ready(&mut task) {
            None => Ok(BakeStep::Developing(task)),
            Some(None) => Err(ImpostorError::Empty(PATIENCE)),
            Some(Some([colors, shapes])) => {
                let atlas = supplies.atlases.add(ImpostorAtlas {
                    sphere,
                    grid,
                    surface,
                    colors,
                    shapes,
                });
                bakes.finish(key, Ok(atlas));
                return;
            }
        },
    };
    match step {
        Err(error) => bakes.finish(key, Err(error)),
        Ok(step) => {
            room.0 = Some(RunningBake {
                key,
                sphere,
                surface,
                step,
            });
        }
    }
}

/// Begins with the first job of which all is loaded.
fn next_bake(
    commands: &mut Commands,
    supplies: &mut Supplies,
    bakes: &mut ImpostorBakes,
) -> Option<RunningBake> {
    let mut at = 0;
    while let Some(job) = bakes.waiting.get(at) {
        let begun = match supplies.is_loaded(job) {
            Ok(false) => {
                at += 1;
                continue;
            }
            Ok(true) => supplies.begin(commands, job),
            Err(error) => Err(error),
        };
        let Job { key, .. } = bakes.waiting.remove(at);
        match begun {
            Ok(running) => {
                bakes.in_work = Some(key);
                return Some(running);
            }
            Err(error) => bakes.finish(key, Err(error)),
        }
    }
    None
}

impl Drawing {
    /// What follows a frame.
    fn go_on(
        mut self,
        commands: &mut Commands,
        calm: u32,
        grid: Grid,
    ) -> Result<BakeStep, ImpostorError> {
        if calm >= CALM {
            self.frames += 1;
            if self.readers.is_none() {
                self.readers = Some([0, 1].map(|at| read_back(commands, &self.stage, at)));
            }
        }
        let is_seen = |(bytes, is_stable): &(Vec<u8>, bool)| {
            *is_stable && bytes.as_chunks::<4>().0.iter().any(|[.., seen]| *seen > 0)
        };
        let is_done = (self.read.iter()).all(|read| read.as_ref().is_some_and(is_seen));
        if !is_done && self.frames <= PATIENCE {
            return Ok(BakeStep::Drawing(self));
        }
        commands.entity(self.stage.root).despawn();
        for reader in self.readers.iter().flatten() {
            commands.entity(*reader).despawn();
        }
        if !is_done {
            return Err(ImpostorError::Empty(PATIENCE));
        }
        let [colors, shapes] = self
            .read
            .map(|read| read.map_or(Vec::new(), |(bytes, _)| bytes));
        let pictures = Pictures { colors, shapes };
        let pool = AsyncComputeTaskPool::get();
        let task = pool.spawn(async move { develop(&pictures, grid) });
        Ok(BakeStep::Developing(task))
    }
}

/// Reads a picture of a stage in each frame.
fn read_back(commands: &mut Commands, stage: &Stage, at: usize) -> Entity {
    let picture = stage.pictures[at].clone();
    let mut reader = commands.spawn(Readback::texture(picture));
    reader.observe(
        move |event: On<ReadbackComplete>, mut room: ResMut<Darkroom>| {
            room.take(at, &event.data);
        },
    );
    reader.id()
}
