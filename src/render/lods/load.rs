//! Levels of an entity's set that are in an asset.

use super::{InstanceLods, simplify::to_mesh};
use crate::{
    meshlet::{MeshLods, MeshletError},
    render::names::AssetNames,
};
use bevy::{
    asset::{AsAssetId, RenderAssetUsages},
    platform::collections::HashMap,
    prelude::*,
    render::renderer::RenderDevice,
};

/// Levels of detail of the entity's set from an asset, for example a file that
/// [`MeshLods::to_bytes`] wrote (feature `lods`).
///
/// It adds [`InstanceLods`] when the asset is loaded, and again when it changes. Until then the set
/// is drawn in full detail. Entities with the same asset share the meshes of the levels. The `fade`
/// of an [`InstanceLods`] that the entity has stays. To draw in full detail again, remove both
/// components.
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
///         MeshLods3d(assets.load("statue.lods")),
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
pub struct MeshLods3d(pub Handle<MeshLods>);

impl AsAssetId for MeshLods3d {
    type Asset = MeshLods;

    fn as_asset_id(&self) -> AssetId<MeshLods> {
        self.id()
    }
}

impl From<Handle<MeshLods>> for MeshLods3d {
    fn from(handle: Handle<MeshLods>) -> Self {
        Self(handle)
    }
}

/// The levels that were made of assets; `None` if no mesh can be made of a level. It is not tried
/// again until the asset changes.
#[derive(Resource, Default)]
pub(in crate::render) struct LoadedLods(HashMap<AssetId<MeshLods>, Option<InstanceLods>>);

/// Gives entities the levels of their assets when those are loaded, and again when they change.
#[expect(
    clippy::too_many_arguments,
    reason = "a system's parameters are its data"
)]
pub(in crate::render) fn give_lods(
    mut commands: Commands,
    mut events: MessageReader<AssetEvent<MeshLods>>,
    entities: Query<(Entity, &MeshLods3d, Option<&InstanceLods>)>,
    changed: Query<(), Changed<MeshLods3d>>,
    mut removed: RemovedComponents<InstanceLods>,
    assets: Res<Assets<MeshLods>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut loaded: ResMut<LoadedLods>,
    (device, server): (Option<Res<RenderDevice>>, Option<Res<AssetServer>>),
    mut has_run: Local<bool>,
) {
    let LoadedLods(loaded) = &mut *loaded;
    // Only the GPU has the vertices: a lost device takes them along.
    let is_new = device.is_some_and(|device| device.is_changed());
    if core::mem::replace(&mut *has_run, true) && is_new {
        loaded.clear();
    }
    let has_removed = removed.read().count() > 0;
    if events.is_empty() && changed.is_empty() && !has_removed && !is_new {
        return;
    }
    for event in events.read() {
        if let AssetEvent::Modified { id } | AssetEvent::Removed { id } = event {
            loaded.remove(id);
        }
    }
    for (entity, MeshLods3d(handle), known) in &entities {
        let id = handle.id();
        if !loaded.contains_key(&id) {
            let Some(asset) = assets.get(id) else {
                continue;
            };
            let levels = match level_meshes_of(asset) {
                Ok(levels) => Some(InstanceLods::from_meshes(levels, &mut meshes)),
                Err(error) => {
                    error!(
                        "MeshLods3d on {entity}: {} gives no levels of detail: {error}",
                        AssetNames(server.as_deref()).of(id)
                    );
                    None
                }
            };
            loaded.insert(id, levels);
        }
        if let Some(Some(lods)) = loaded.get(&id)
            && known.is_none_or(|known| known.levels != lods.levels)
        {
            let lods = lods.clone().fading_like(known);
            commands.entity(entity).try_insert(lods);
        }
    }
}

/// The levels' meshes with their errors.
fn level_meshes_of(lods: &MeshLods) -> Result<Vec<(Mesh, f32)>, MeshletError> {
    let levels = lods.levels().iter();
    let usage = RenderAssetUsages::RENDER_WORLD;
    levels.map(|level| to_mesh(level, usage)).collect()
}
