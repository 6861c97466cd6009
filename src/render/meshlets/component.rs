//! The component, and the mesh that it gives to its entity.

use crate::meshlet::MeshletMesh;
use bevy::{asset::AsAssetId, platform::collections::HashMap, prelude::*};

/// Draws the set of its entity ([`GpuInstances`](crate::render::GpuInstances)) by meshlets: of what survives, only the parts of the mesh that
/// a view can see.
///
/// It takes the place of [`Mesh3d`], which it adds: the mesh of the meshlets, an ordinary one. Materials, shadows, prepasses and
/// everything else are as without it. The set is drawn whole, as if the component were a `Mesh3d`, where meshlets cannot
/// be told apart or are of no use: on the `Cpu` tier, with materials that blend, transmit or have a vertex stage of their own, with
/// [`CullingRadius`](crate::render::CullingRadius) or `NoFrustumCulling`. Materials that draw both sides of their triangles are culled by
/// the frustum alone.
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
///         MeshletMesh3d(assets.load("statue.meshlets")),
///         MeshMaterial3d(materials.add(StandardMaterial::default())),
///         GpuInstances(sets.add(InstanceSet::from_transforms(row)?)),
///     ));
///     Ok(())
/// }
/// ```
#[derive(Component, Reflect, Clone, Debug, Default, PartialEq, Eq, Deref, DerefMut)]
#[reflect(Component, Default, Clone, PartialEq)]
#[require(Transform, Visibility)]
pub struct MeshletMesh3d(pub Handle<MeshletMesh>);

impl AsAssetId for MeshletMesh3d {
    type Asset = MeshletMesh;

    fn as_asset_id(&self) -> AssetId<MeshletMesh> {
        self.id()
    }
}

impl From<Handle<MeshletMesh>> for MeshletMesh3d {
    fn from(handle: Handle<MeshletMesh>) -> Self {
        Self(handle)
    }
}

/// The meshes that were made for meshes of meshlets.
#[derive(Resource, Default)]
pub(in crate::render) struct MeshletMeshes {
    meshes: HashMap<AssetId<MeshletMesh>, Made>,
    /// Increases with every mesh that is made.
    made: u64,
}

/// A mesh that was made, and which.
struct Made {
    mesh: Handle<Mesh>,
    version: u64,
}

impl MeshletMeshes {
    /// The mesh that was made, and a number that is another for each.
    pub fn get(&self, id: AssetId<MeshletMesh>) -> Option<(AssetId<Mesh>, u64)> {
        let made = self.meshes.get(&id)?;
        Some((made.mesh.id(), made.version))
    }
}

/// Gives entities the meshes of their meshlets, once those are loaded and whenever they change.
pub(in crate::render) fn give_meshes(
    mut commands: Commands,
    mut events: MessageReader<AssetEvent<MeshletMesh>>,
    entities: Query<(Entity, &MeshletMesh3d, Option<&Mesh3d>)>,
    assets: Res<Assets<MeshletMesh>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut made: ResMut<MeshletMeshes>,
) {
    for event in events.read() {
        match event {
            AssetEvent::Modified { id } | AssetEvent::Removed { id } => {
                made.meshes.remove(id);
            }
            AssetEvent::Added { .. }
            | AssetEvent::Unused { .. }
            | AssetEvent::LoadedWithDependencies { .. } => {}
        }
    }
    for (entity, meshlets, mesh) in &entities {
        let id = meshlets.id();
        if !made.meshes.contains_key(&id) {
            let Some(asset) = assets.get(id) else {
                continue;
            };
            match asset.to_mesh() {
                Ok(mesh) => {
                    made.made += 1;
                    let version = made.made;
                    let mesh = meshes.add(mesh);
                    made.meshes.insert(id, Made { mesh, version });
                }
                Err(error) => {
                    error_once!("{entity}: a mesh of meshlets cannot be drawn: {error}");
                    continue;
                }
            }
        }
        if let Some(made) = made.meshes.get(&id)
            && mesh.is_none_or(|mesh| mesh.id() != made.mesh.id())
        {
            commands
                .entity(entity)
                .try_insert(Mesh3d(made.mesh.clone()));
        }
    }
}
