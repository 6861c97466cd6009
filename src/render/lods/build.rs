//! Levels of an entity's mesh, made off the main thread.

use super::{
    InstanceLods,
    simplify::{MeshStyle, level_meshes},
};
use crate::{
    meshlet::{LodSettings, MeshData, MeshletError},
    render::{
        builds::{BuildKey, Builds},
        names::AssetNames,
    },
};
use bevy::prelude::*;

/// Makes levels of detail of the entity's [`Mesh3d`] in the background (feature `lods`).
///
/// Until then the set is drawn in full detail. At the end, [`InstanceLods`] and [`BuiltLods`] are
/// inserted if the build succeeded, this component is removed, and [`LodsBuilt`] is triggered on
/// the entity. The `fade` of an [`InstanceLods`] that the entity has stays.
/// Entities with the same mesh and settings share a build and the meshes of its levels.
/// [`LodBuilds`] has its progress. Insert the component again if the mesh changes later.
///
/// ```
/// # use bevy::prelude::*;
/// # use bevy_gpu_culling::prelude::*;
/// fn spawn(
///     mut commands: Commands,
///     assets: Res<AssetServer>,
///     mut sets: ResMut<Assets<InstanceSet>>,
///     mut materials: ResMut<Assets<StandardMaterial>>,
/// ) -> Result {
///     let row = (0..1000).map(|i| Transform::from_xyz(i as f32 * 2.0, 0.0, 0.0));
///     commands.spawn((
///         Mesh3d(assets.load("statue.glb#Mesh0/Primitive0")),
///         BuildLods::default(),
///         MeshMaterial3d(materials.add(StandardMaterial::default())),
///         GpuInstances(sets.add(InstanceSet::from_transforms(row)?)),
///     ));
///     Ok(())
/// }
/// ```
#[derive(Component, Reflect, Clone, Copy, Debug, Default, PartialEq)]
#[reflect(Component, Default, Clone, PartialEq)]
pub struct BuildLods(pub LodSettings);

/// On an entity with levels that [`BuildLods`] made: the settings.
///
/// A saved world has no meshes that were made at run time. If an entity comes with this component
/// and with [`InstanceLods`] of which a mesh is nowhere, its levels are built again.
#[derive(Component, Reflect, Clone, Copy, Debug, Default, PartialEq)]
#[reflect(Component, Default, Clone, PartialEq)]
pub struct BuiltLods(pub LodSettings);

/// Has levels built again that were not saved with their entities.
pub(in crate::render) fn rebuild_lods(
    mut commands: Commands,
    mut entities: Query<(Entity, &BuiltLods, &mut InstanceLods), Added<BuiltLods>>,
    meshes: Res<Assets<Mesh>>,
) {
    for (entity, BuiltLods(settings), mut lods) in &mut entities {
        let mut handles = lods.levels.iter().filter_map(|level| level.mesh.handle());
        // A file may not be loaded yet.
        if handles.any(|mesh| mesh.path().is_none() && !meshes.contains(mesh.id())) {
            lods.levels.clear();
            let mut entity = commands.entity(entity);
            entity.try_remove::<BuiltLods>();
            entity.try_insert(BuildLods(*settings));
        }
    }
}

/// The levels of an entity's mesh were made, or could not be.
#[derive(EntityEvent, Reflect, Clone, Debug)]
#[reflect(opaque, Event, Clone, Debug)]
pub struct LodsBuilt {
    /// The entity with [`BuildLods`].
    pub entity: Entity,
    /// The levels, or what is wrong with the mesh or the settings. There are no levels if the mesh
    /// cannot become coarser.
    pub result: Result<InstanceLods, MeshletError>,
}

/// The running builds of [`BuildLods`].
#[derive(Resource, Default)]
pub struct LodBuilds(Builds<SettingBits, Vec<(Mesh, f32)>, InstanceLods>);

/// The settings' numbers, as they are compared.
type SettingBits = [u32; 4];

impl LodBuilds {
    /// Number of meshes whose levels are being made.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no levels are being made.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The share of a mesh's build that is done, from 0 to 1; `None` if its levels are not being
    /// made.
    #[must_use]
    pub fn progress(&self, mesh: AssetId<Mesh>) -> Option<f32> {
        self.0.progress(mesh)
    }
}

/// Starts builds, and gives entities what has been built.
pub(in crate::render) fn build_lods(
    mut commands: Commands,
    asking: Query<(Entity, &Mesh3d, &BuildLods, Option<&InstanceLods>)>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut events: MessageReader<AssetEvent<Mesh>>,
    mut builds: ResMut<LodBuilds>,
    server: Option<Res<AssetServer>>,
) {
    let LodBuilds(builds) = &mut *builds;
    builds.forget_changed(events.read());
    if asking.is_empty() && builds.len() == 0 {
        return;
    }
    builds.poll(|levels| InstanceLods::from_meshes(levels, &mut meshes));
    for (entity, mesh, BuildLods(settings), known) in &asking {
        let key = BuildKey {
            mesh: mesh.id(),
            settings: settings.bits(),
        };
        if let Some(result) = builds.result(&key) {
            match &result {
                Ok(lods) => {
                    let lods = lods.clone().fading_like(known);
                    let built = BuiltLods(*settings);
                    commands.entity(entity).try_insert((lods, built));
                }
                Err(error) => error!(
                    "BuildLods on {entity}: {} gets no levels of detail: {error}",
                    AssetNames(server.as_deref()).of(key.mesh)
                ),
            }
            let mut entity = commands.entity(entity);
            entity.try_remove::<BuildLods>();
            entity.trigger(|entity| LodsBuilt { entity, result });
        } else if !builds.is_running(&key)
            // A mesh that is not loaded yet is looked up again in the next frame.
            && let Some(mesh) = meshes.get(key.mesh)
        {
            let (data, style) = (MeshData::try_from(mesh), MeshStyle::of(mesh));
            let settings = *settings;
            builds.start(key, move |progress| {
                level_meshes(&data?, style, &settings, progress)
            });
        }
    }
}
