//! Cutting an entity's mesh off the main thread.

use super::component::MeshletMesh3d;
use crate::{
    meshlet::{MeshData, MeshletError, MeshletMesh, MeshletSettings},
    render::{
        builds::{BuildKey, Builds},
        names::AssetNames,
    },
};
use bevy::prelude::*;

/// Cuts the entity's [`Mesh3d`] into meshlets in the background.
///
/// Until then the entity is drawn as it is. At the end, [`MeshletMesh3d`] and [`BuiltMeshlets`] are
/// inserted if the build succeeded, this component is removed, and [`MeshletsBuilt`] is triggered
/// on the entity. Entities with the same mesh and settings share a build. [`MeshletBuilds`] has its
/// progress.
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

/// On an entity with meshlets that [`BuildMeshlets`] made: what they were made of.
///
/// A saved world has no meshlets that were made at run time, nor the mesh that was drawn of them.
/// If an entity comes with this component and with a [`MeshletMesh3d`] whose meshlets are nowhere,
/// it gets its mesh back, and the meshlets are built again.
#[derive(Component, Reflect, Clone, Debug, Default, PartialEq)]
#[reflect(Component, Default, Clone, PartialEq)]
pub struct BuiltMeshlets {
    /// The mesh. A loaded world has it only if it is an asset of a file.
    pub mesh: Handle<Mesh>,
    /// The settings.
    pub settings: MeshletSettings,
}

/// Has meshlets built again that were not saved with their entities.
pub(super) fn rebuild_meshlets(
    mut commands: Commands,
    entities: Query<(Entity, &BuiltMeshlets, &MeshletMesh3d), Added<BuiltMeshlets>>,
    assets: Res<Assets<MeshletMesh>>,
) {
    for (entity, BuiltMeshlets { mesh, settings }, meshlets) in &entities {
        // A file may not be loaded yet.
        if meshlets.0.path().is_none() && !assets.contains(meshlets.id()) {
            let mut entity = commands.entity(entity);
            entity.try_remove::<(MeshletMesh3d, BuiltMeshlets)>();
            entity.try_insert((Mesh3d(mesh.clone()), BuildMeshlets(*settings)));
        }
    }
}

/// The meshlets of an entity's mesh were built, or could not be.
#[derive(EntityEvent, Reflect, Clone, Debug)]
#[reflect(opaque, Event, Clone, Debug)]
pub struct MeshletsBuilt {
    /// The entity with [`BuildMeshlets`].
    pub entity: Entity,
    /// The mesh of meshlets, or what is wrong with the mesh or the settings.
    pub result: Result<Handle<MeshletMesh>, MeshletError>,
}

/// The running builds of [`BuildMeshlets`].
#[derive(Resource, Default)]
pub struct MeshletBuilds(Builds<SettingBits, MeshletMesh, Handle<MeshletMesh>>);

/// The settings' numbers, as they are compared.
type SettingBits = ([u32; 3], Option<[u32; 4]>);

impl MeshletBuilds {
    /// Number of meshes that are being cut.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no mesh is being cut.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The share of a mesh's build that is done, from 0 to 1; `None` if it is not being cut.
    #[must_use]
    pub fn progress(&self, mesh: AssetId<Mesh>) -> Option<f32> {
        self.0.progress(mesh)
    }
}

fn bits(settings: &MeshletSettings) -> SettingBits {
    let MeshletSettings {
        max_vertices,
        max_triangles,
        cone_weight,
        lods,
    } = *settings;
    let own = [max_vertices, max_triangles, cone_weight.to_bits()];
    (own, lods.map(|lods| lods.bits()))
}

/// Starts builds, and gives entities what has been built.
pub(super) fn build_meshlets(
    mut commands: Commands,
    asking: Query<(Entity, &Mesh3d, &BuildMeshlets)>,
    meshes: Res<Assets<Mesh>>,
    mut events: MessageReader<AssetEvent<Mesh>>,
    mut assets: ResMut<Assets<MeshletMesh>>,
    mut builds: ResMut<MeshletBuilds>,
    server: Option<Res<AssetServer>>,
) {
    let MeshletBuilds(builds) = &mut *builds;
    builds.forget_changed(events.read());
    if asking.is_empty() && builds.len() == 0 {
        return;
    }
    builds.poll(|mesh| assets.add(mesh));
    for (entity, mesh, BuildMeshlets(settings)) in &asking {
        let key = BuildKey {
            mesh: mesh.id(),
            settings: bits(settings),
        };
        if let Some(result) = builds.result(&key) {
            match &result {
                Ok(handle) => {
                    let built = BuiltMeshlets {
                        mesh: mesh.0.clone(),
                        settings: *settings,
                    };
                    let meshlets = MeshletMesh3d(handle.clone());
                    commands.entity(entity).try_insert((meshlets, built));
                }
                Err(error) => error!(
                    "BuildMeshlets on {entity}: {} is not cut into meshlets: {error}",
                    AssetNames(server.as_deref()).of(key.mesh)
                ),
            }
            let mut entity = commands.entity(entity);
            entity.try_remove::<BuildMeshlets>();
            entity.trigger(|entity| MeshletsBuilt { entity, result });
        } else if !builds.is_running(&key)
            // A mesh that is not loaded yet is looked up again in the next frame.
            && let Some(mesh) = meshes.get(key.mesh)
        {
            let (data, settings) = (MeshData::try_from(mesh), *settings);
            builds.start(key, move |progress| {
                MeshletMesh::build_with_progress(&data?, &settings, progress)
            });
        }
    }
}
