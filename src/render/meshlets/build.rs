//! Cutting an entity's mesh off the main thread.

use super::component::MeshletMesh3d;
use crate::meshlet::{LodSettings, MeshData, MeshletError, MeshletMesh, MeshletSettings};
use bevy::{
    platform::collections::HashMap,
    prelude::*,
    tasks::{AsyncComputeTaskPool, Task, futures::check_ready},
};
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

/// Cuts the entity's [`Mesh3d`] into meshlets in the background.
///
/// Until then the entity is drawn as it is. At the end, [`MeshletMesh3d`] is inserted if the build
/// succeeded, this component is removed, and [`MeshletsBuilt`] is triggered on the entity. Entities
/// with the same mesh and settings share a build. [`MeshletBuilds`] has its progress.
///
/// ```
/// # use bevy::prelude::*;
/// # use bevy_gpu_culling::prelude::*;
/// fn spawn(
///     mut commands: Commands,
///     mut sets: ResMut<Assets<InstanceSet>>,
///     mut meshes: ResMut<Assets<Mesh>>,
///     mut materials: ResMut<Assets<StandardMaterial>>,
/// ) -> Result {
///     let row = (0..1000).map(|i| Transform::from_xyz(i as f32 * 2.0, 0.0, 0.0));
///     commands.spawn((
///         Mesh3d(meshes.add(Sphere::new(0.5).mesh().ico(30)?)),
///         BuildMeshlets::default(),
///         MeshMaterial3d(materials.add(StandardMaterial::default())),
///         GpuInstances(sets.add(InstanceSet::from_transforms(row)?)),
///     ));
///     Ok(())
/// }
/// ```
#[derive(Component, Reflect, Clone, Copy, Debug, Default, PartialEq)]
#[reflect(Component, Default, Clone, PartialEq)]
pub struct BuildMeshlets(pub MeshletSettings);

/// The meshlets of an entity's mesh were built, or could not be.
#[derive(EntityEvent, Clone, Debug)]
pub struct MeshletsBuilt {
    /// The entity with [`BuildMeshlets`].
    pub entity: Entity,
    /// The mesh of meshlets, or what is wrong with the mesh or the settings.
    pub result: Result<Handle<MeshletMesh>, MeshletError>,
}

/// The running builds of [`BuildMeshlets`].
#[derive(Resource, Default)]
pub struct MeshletBuilds {
    running: Vec<RunningBuild>,
    built: HashMap<BuildKey, Handle<MeshletMesh>>,
}

/// What a build is made from.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct BuildKey {
    mesh: AssetId<Mesh>,
    max_vertices: u32,
    max_triangles: u32,
    /// The bits of an `f32`.
    cone_weight: u32,
    lods: Option<LodsKey>,
}

/// [`LodSettings`], comparable.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct LodsKey {
    max_levels: u32,
    /// The bits of an `f32`.
    kept: u32,
    least_triangles: u32,
}

impl From<LodSettings> for LodsKey {
    fn from(settings: LodSettings) -> Self {
        Self {
            max_levels: settings.max_levels,
            kept: settings.kept.to_bits(),
            least_triangles: settings.least_triangles,
        }
    }
}

/// A build that has not ended.
struct RunningBuild {
    key: BuildKey,
    task: Task<Result<MeshletMesh, MeshletError>>,
    /// The share that is done, from 0 to 1, as the bits of an `f32`.
    done: Arc<AtomicU32>,
}

impl MeshletBuilds {
    /// Number of meshes that are being cut.
    #[must_use]
    pub fn len(&self) -> usize {
        self.running.len()
    }

    /// Whether no mesh is being cut.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// The share of a mesh's build that is done, from 0 to 1; `None` if it is not being cut.
    #[must_use]
    pub fn progress(&self, mesh: AssetId<Mesh>) -> Option<f32> {
        let running = self
            .running
            .iter()
            .find(|running| running.key.mesh == mesh)?;
        Some(f32::from_bits(running.done.load(Ordering::Relaxed)))
    }
}

impl BuildKey {
    fn new(mesh: AssetId<Mesh>, settings: &MeshletSettings) -> Self {
        let MeshletSettings {
            max_vertices,
            max_triangles,
            cone_weight,
            lods,
        } = *settings;
        Self {
            mesh,
            max_vertices,
            max_triangles,
            cone_weight: cone_weight.to_bits(),
            lods: lods.map(LodsKey::from),
        }
    }
}

/// Starts builds, and gives entities what has been built.
pub(super) fn build_meshlets(
    mut commands: Commands,
    asking: Query<(Entity, &Mesh3d, &BuildMeshlets)>,
    meshes: Res<Assets<Mesh>>,
    mut events: MessageReader<AssetEvent<Mesh>>,
    mut assets: ResMut<Assets<MeshletMesh>>,
    mut builds: ResMut<MeshletBuilds>,
) {
    for event in events.read() {
        if let AssetEvent::Modified { id } | AssetEvent::Removed { id } = event {
            builds.built.retain(|key, _| key.mesh != *id);
        }
    }
    if asking.is_empty() && builds.running.is_empty() {
        return;
    }
    let mut finished: HashMap<BuildKey, Result<Handle<MeshletMesh>, MeshletError>> = default();
    let MeshletBuilds { running, built } = &mut *builds;
    running.retain_mut(|running| match check_ready(&mut running.task) {
        Some(result) => {
            let result = result.map(|mesh| assets.add(mesh));
            if let Ok(handle) = &result {
                built.insert(running.key, handle.clone());
            }
            finished.insert(running.key, result);
            false
        }
        None => true,
    });
    for (entity, mesh, BuildMeshlets(settings)) in &asking {
        let key = BuildKey::new(mesh.id(), settings);
        let done = built.get(&key).cloned().map(Ok);
        if let Some(result) = done.or_else(|| finished.get(&key).cloned()) {
            let mut entity = commands.entity(entity);
            match &result {
                Ok(handle) => {
                    entity.try_insert(MeshletMesh3d(handle.clone()));
                }
                Err(error) => error!("{}: no meshlets: {error}", entity.id()),
            }
            entity.try_remove::<BuildMeshlets>();
            entity.trigger(|entity| MeshletsBuilt { entity, result });
            continue;
        }
        if running.iter().any(|running| running.key == key) {
            continue;
        }
        // A mesh that is not loaded yet is looked up again in the next frame.
        let Some(data) = meshes.get(mesh.id()).map(MeshData::try_from) else {
            continue;
        };
        let (settings, done) = (*settings, Arc::new(AtomicU32::new(0)));
        let report = done.clone();
        let task = AsyncComputeTaskPool::get().spawn(async move {
            MeshletMesh::build_with_progress(&data?, &settings, |share| {
                report.store(share.to_bits(), Ordering::Relaxed);
            })
        });
        running.push(RunningBuild { key, task, done });
    }
}
