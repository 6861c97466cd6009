//! The component, and the mesh that it gives its entity.

use super::levels::MeshLevels;
use crate::{
    meshlet::{MeshletError, MeshletMesh},
    render::{
        components::GpuInstances,
        cpu_times::{CpuClock, CpuStage},
    },
};
use bevy::{
    asset::AsAssetId, platform::collections::HashMap, prelude::*, render::renderer::RenderDevice,
};

/// Draws the set of its entity ([`GpuInstances`](crate::render::GpuInstances)) by meshlets: of each
/// survivor, only the parts of the mesh that a view can see.
///
/// It adds a [`Mesh3d`] with the whole mesh. If the mesh has levels of detail
/// ([`MeshletSettings::lods`](crate::meshlet::MeshletSettings::lods)), each instance and view gets
/// the level that [`InstanceLods`](crate::render::InstanceLods) would give it. The `Mesh3d` of such
/// a set holds all levels, so it must not be given to an entity without a set;
/// [`MeshletMesh::to_mesh`] makes one for that. Materials, shadows, prepasses and everything else
/// are the same as with any mesh. The set is drawn whole if meshlets cannot be drawn apart or do
/// not help: on the `Cpu` tier; with materials that blend, transmit or have their own vertex stage;
/// with [`CullingRadius`](crate::render::CullingRadius) or `NoFrustumCulling`. Meshlets of
/// materials that draw both sides of their triangles are tested against the frustum alone.
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
#[derive(
    Component, FromTemplate, Reflect, Clone, Debug, Default, PartialEq, Eq, Deref, DerefMut,
)]
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

/// The meshes that were made of meshlets.
#[derive(Resource, Default)]
pub(in crate::render) struct MeshletMeshes {
    /// `None` if no mesh can be made of the asset. It is not tried again until it changes.
    meshes: HashMap<AssetId<MeshletMesh>, Option<MadeMesh>>,
    /// The newest version.
    last_version: u64,
}

/// A mesh that was made.
pub(super) struct MadeMesh {
    /// The mesh of sets, with all levels of detail.
    pub mesh: Handle<Mesh>,
    /// The full mesh, for entities without a set, which Bevy draws with all indices. It is made
    /// when the first such entity has it.
    full: Option<Handle<Mesh>>,
    /// Different for each mesh that is made.
    pub version: u64,
}

impl MadeMesh {
    /// Makes the full mesh, unless it is there.
    fn make_full(&mut self, asset: Option<&MeshletMesh>, meshes: &mut Assets<Mesh>) {
        if self.full.is_none() {
            // It has the formats of the mesh with all levels, so this succeeds as that did.
            let full = asset.and_then(|asset| asset.to_mesh().ok());
            self.full = full.map(|full| meshes.add(full));
        }
    }
}

impl MeshletMeshes {
    /// The assets that meshes with all levels were made of.
    fn assets_of(&self) -> HashMap<AssetId<Mesh>, AssetId<MeshletMesh>> {
        let all = self.meshes.iter();
        let made = all.filter_map(|(id, made)| Some((made.as_ref()?.mesh.id(), *id)));
        made.collect()
    }

    /// The mesh that was made of an asset.
    pub(super) fn get(&self, id: AssetId<MeshletMesh>) -> Option<&MadeMesh> {
        self.meshes.get(&id)?.as_ref()
    }
}

/// Gives entities the meshes of their meshlets when those are loaded, and again when they change.
#[expect(
    clippy::too_many_arguments,
    reason = "a system's parameters are its data"
)]
pub(in crate::render) fn give_meshes(
    mut commands: Commands,
    mut events: MessageReader<AssetEvent<MeshletMesh>>,
    entities: Query<(Entity, &MeshletMesh3d, Option<&Mesh3d>, Has<GpuInstances>)>,
    assets: Res<Assets<MeshletMesh>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut made: ResMut<MeshletMeshes>,
    mut levels: ResMut<MeshLevels>,
    device: Option<Res<RenderDevice>>,
    mut removed: RemovedComponents<MeshletMesh3d>,
    without: Query<&Mesh3d, Without<MeshletMesh3d>>,
    mut has_run: Local<bool>,
    clock: Res<CpuClock>,
) {
    let _timer = clock.start(CpuStage::Main);
    // Without the component, nothing says that a mesh has levels when its entity loses the set.
    let with_mesh = |entity| Some((entity, without.get(entity).ok()?.id()));
    let removed: Vec<_> = removed.read().filter_map(with_mesh).collect();
    let assets_of = match removed.is_empty() {
        true => HashMap::default(),
        false => made.assets_of(),
    };
    for (entity, mesh) in removed {
        let id = assets_of.get(&mesh).copied();
        let found = id.and_then(|id| Some((id, made.meshes.get_mut(&id)?.as_mut()?)));
        if let Some((id, made)) = found {
            made.make_full(assets.get(id), &mut meshes);
            if let Some(full) = &made.full {
                commands.entity(entity).try_insert(Mesh3d(full.clone()));
            } else {
                commands.entity(entity).try_remove::<Mesh3d>();
                warn!(
                    "{entity} loses its Mesh3d with its MeshletMesh3d, because that mesh holds all levels of detail \
                     and the asset {id} is gone. Give the entity a Mesh3d"
                );
            }
        }
    }
    // Only the GPU has the vertices: a lost device takes them along.
    let is_new = device.is_some_and(|device| device.is_changed());
    if core::mem::replace(&mut *has_run, true) && is_new {
        made.meshes.clear();
    }
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
    for (entity, meshlets, mesh, has_set) in &entities {
        let id = meshlets.id();
        if !made.meshes.contains_key(&id) {
            let Some(asset) = assets.get(id) else {
                continue;
            };
            let mesh = match asset.to_mesh_of_levels() {
                Ok(mesh) => {
                    made.last_version += 1;
                    let version = made.last_version;
                    let mesh = meshes.add(mesh);
                    let has_levels = asset.levels().len() > 1;
                    if has_levels {
                        levels.insert(mesh.id(), asset, &meshes);
                    }
                    let full = (!has_levels).then(|| mesh.clone());
                    Some(MadeMesh {
                        mesh,
                        full,
                        version,
                    })
                }
                Err(error) => {
                    error!("{}", not_drawn(entity, meshlets, &error));
                    None
                }
            };
            made.meshes.insert(id, mesh);
        }
        let Some(Some(made)) = made.meshes.get_mut(&id) else {
            continue;
        };
        if !has_set {
            made.make_full(assets.get(id), &mut meshes);
        }
        let given = if has_set {
            Some(&made.mesh)
        } else {
            made.full.as_ref()
        };
        if let Some(given) = given
            && mesh.is_none_or(|mesh| mesh.id() != given.id())
        {
            commands.entity(entity).try_insert(Mesh3d(given.clone()));
        }
    }
}

/// The message that an asset cannot be drawn. It names the asset by its path, if it has one.
fn not_drawn(entity: Entity, meshlets: &Handle<MeshletMesh>, error: &MeshletError) -> String {
    let asset = meshlets
        .path()
        .map_or_else(|| meshlets.id().to_string(), ToString::to_string);
    format!("{entity}: the mesh of meshlets {asset} cannot be drawn: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meshlet::{MeshData, Meshlet, NormalCone, VertexAttribute};

    /// A triangle with an attribute of this format, of 12 bytes.
    fn triangle(format: u32) -> Result<MeshletMesh, MeshletError> {
        let points = [Vec3::ZERO, Vec3::X, Vec3::Y];
        let mut attributes = MeshData::from_positions(&points, None).attributes;
        attributes.push(VertexAttribute {
            id: 1,
            format,
            stride: 12,
            bytes: vec![0; 36],
        });
        let meshlet = Meshlet {
            center: Vec3::ZERO,
            radius: 2.0,
            cone: NormalCone::from_bits(0),
            first_index: 0,
            triangle_count: 1,
        };
        MeshletMesh::from_parts(3, attributes, vec![0, 1, 2], vec![meshlet])
    }

    #[test]
    fn what_cannot_be_drawn_is_not_tried_again_until_it_changes() -> Result {
        let mut world = World::new();
        world.init_resource::<Assets<MeshletMesh>>();
        world.init_resource::<Assets<Mesh>>();
        world.init_resource::<Messages<AssetEvent<MeshletMesh>>>();
        world.init_resource::<MeshletMeshes>();
        world.init_resource::<MeshLevels>();
        world.init_resource::<CpuClock>();
        let system = world.register_system(give_meshes);
        // No format has this code.
        let mut assets = world.resource_mut::<Assets<MeshletMesh>>();
        let handle = assets.add(triangle(1000)?);
        let id = handle.id();
        let entity = world.spawn(MeshletMesh3d(handle)).id();
        world.run_system(system)?;
        assert!(!world.entity(entity).contains::<Mesh3d>());

        let mut assets = world.resource_mut::<Assets<MeshletMesh>>();
        let asset = assets.get_mut_untracked(id).ok_or("the asset is gone")?;
        *asset = triangle(0)?;
        world.run_system(system)?;
        assert!(
            !world.entity(entity).contains::<Mesh3d>(),
            "it was tried again"
        );

        world.write_message(AssetEvent::Modified { id });
        world.run_system(system)?;
        assert!(world.entity(entity).contains::<Mesh3d>());
        Ok(())
    }

    #[test]
    fn the_log_names_the_entity_the_asset_and_what_is_wrong() {
        let handle = Handle::Uuid(
            bevy::asset::uuid::Uuid::from_u128(0xabcd_ef01),
            core::marker::PhantomData,
        );
        let entity = Entity::from_raw_u32(77).unwrap_or(Entity::PLACEHOLDER);
        let line = not_drawn(entity, &handle, &MeshletError::NoPositions);
        for part in ["77v", "abcdef01", "positions"] {
            assert!(line.contains(part), "{line:?} lacks {part:?}");
        }
    }
}
