//! The component, and the event when its scene is spawned.

use bevy::{asset::AsAssetId, prelude::*};

/// Draws a whole scene once per instance of the entity's set
/// ([`GpuInstances`](crate::render::GpuInstances)): what
/// [`WorldAssetRoot`] is for one place, this is for a million.
///
/// When the scene is loaded, each of its meshes becomes a child of the entity. A child has the
/// mesh's components, such as [`Mesh3d`], its material and its [`Name`]; the set; and an
/// [`InstanceOffset`](crate::render::InstanceOffset) from the mesh's place in the scene. The set is
/// uploaded once. Children of similar size are tested together, as any entities that share a set
/// and a transform. Then [`InstanceSceneReady`] is triggered on the entity: its observers may add
/// levels of detail or render layers. The children are spawned again when the scene changes, for
/// example by hot reloading, and get another set with the entity. They are despawned with either
/// component. In a world that was saved and loaded, and in a clone of the entity, they are spawned
/// again, too.
///
/// Skinned meshes play clips if the entity has `BakeAnimation` (feature `animation`). Otherwise
/// they are left out, as are morphed meshes, lights, cameras, and sets, and a warning names the
/// scene. Animations of nodes without a skin are not played. A mesh that its node hides is spawned
/// hidden. Components that name entities of the scene name the children of their meshes, or
/// [`Entity::PLACEHOLDER`] for entities without a mesh.
///
/// Scenes come from glTF files or from any other world. The entity's [`Transform`] and
/// [`Visibility`] hold for all.
///
/// ```
/// # use bevy::prelude::*;
/// # use bevy_gpu_culling::prelude::*;
/// fn spawn(
///     mut commands: Commands,
///     assets: Res<AssetServer>,
///     mut sets: ResMut<Assets<InstanceSet>>,
/// ) -> Result {
///     let row = (0..1000).map(|i| Transform::from_xyz(i as f32 * 2.0, 0.0, 0.0));
///     commands.spawn((
///         InstanceScene(assets.load("tree.glb#Scene0")),
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
pub struct InstanceScene(pub Handle<WorldAsset>);

impl AsAssetId for InstanceScene {
    type Asset = WorldAsset;

    fn as_asset_id(&self) -> AssetId<WorldAsset> {
        self.id()
    }
}

impl From<Handle<WorldAsset>> for InstanceScene {
    fn from(handle: Handle<WorldAsset>) -> Self {
        Self(handle)
    }
}

/// The meshes of an [`InstanceScene`] were spawned, for the first time or again.
#[derive(EntityEvent, Reflect, Clone, Debug)]
#[reflect(Event, Clone, Debug)]
pub struct InstanceSceneReady {
    /// The entity with the scene.
    pub entity: Entity,
    /// Its new children, one per mesh that is drawn.
    pub parts: Vec<Entity>,
}

/// On a part of a scene. A world that is saved with its parts spawns them again when it is loaded,
/// in place of these.
#[derive(Component, Reflect, Clone, Copy, Debug, Default)]
#[reflect(Component, Default, Clone)]
pub(in crate::render) struct ScenePart;

/// What was spawned of a scene.
#[derive(Component, Debug)]
pub(super) struct SpawnedScene {
    pub scene: AssetId<WorldAsset>,
    pub parts: Vec<Entity>,
}
