//! Cards for entities with photographs.

use super::{SetPart, atlas::ImpostorAtlas, card::ImpostorMaterial};
use crate::render::{
    lods::{InstanceImpostor, SharedImpostor},
    offset::InstanceOffset,
    told::Told,
};
use bevy::{
    camera::visibility::RenderLayers,
    ecs::query::QueryData,
    light::{NotShadowCaster, NotShadowReceiver},
    platform::collections::HashMap,
    prelude::*,
    render::renderer::RenderDevice,
};

/// Draws far instances of the entity's set as cards that show photographs of it, or those of all its
/// children with sets, if it has no [`Mesh3d`]: the parts of an
/// [`InstanceScene`](crate::render::InstanceScene). It needs
/// [`ImpostorPlugin`](super::ImpostorPlugin).
///
/// [`BakeImpostor`](super::BakeImpostor) inserts it. Photographs that were saved need no baking:
/// insert this component with the handle of a file.
///
/// When the atlas is loaded, the plugin spawns a child with an
/// [`InstanceImpostor`](crate::render::InstanceImpostor): of the entity, or of its first part. All
/// parts end where the cards begin. The child is spawned again if this component or the atlas
/// changes, and despawned with this component. It takes over `NotShadowCaster`, `NotShadowReceiver`
/// and `RenderLayers` of the entity that it is a child of.
///
/// ```
/// # use bevy::prelude::*;
/// # use bevy_gpu_culling::prelude::*;
/// // With `app.add_plugins(ImpostorPlugin)`, and a file that `ImpostorAtlas::to_bytes` wrote.
/// fn spawn(
///     mut commands: Commands,
///     assets: Res<AssetServer>,
///     trees: Handle<InstanceSet>,
/// ) {
///     commands.spawn((
///         InstanceScene(assets.load("tree.glb#Scene0")),
///         ImpostorAtlas3d { atlas: assets.load("tree.impostor"), below_pixels: 64.0 },
///         GpuInstances(trees),
///     ));
/// }
/// ```
#[derive(Component, Reflect, Clone, Debug, Default, PartialEq)]
#[reflect(Component, Default, Clone, PartialEq)]
pub struct ImpostorAtlas3d {
    /// The photographs.
    pub atlas: Handle<ImpostorAtlas>,
    /// Instances become cards when what is photographed is seen at most this many pixels wide,
    /// times [`GpuCullingSettings::lod_pixels`](crate::render::GpuCullingSettings::lod_pixels). It
    /// must be finite and above 0.
    pub below_pixels: f32,
}

/// On a card: what it shows. A card that comes with a saved world knows nothing, and is replaced.
#[derive(Component, Reflect, Clone, Debug, Default, PartialEq)]
#[reflect(Component, Default, Clone, PartialEq)]
pub(super) struct CardOf {
    #[reflect(ignore)]
    material: Option<AssetId<ImpostorMaterial>>,
    #[reflect(ignore)]
    below_pixels: f32,
}

/// The mesh and the material of an atlas.
#[derive(Resource, Default)]
pub(super) struct Cards(HashMap<AssetId<ImpostorAtlas>, (Handle<Mesh>, Handle<ImpostorMaterial>)>);

/// An entity with photographs.
#[derive(QueryData)]
pub(super) struct ShownItem {
    entity: Entity,
    shown: &'static ImpostorAtlas3d,
    children: Option<&'static Children>,
    has_mesh: Has<Mesh3d>,
}

/// What a card takes over from the entity that it is a child of.
#[derive(QueryData)]
pub(super) struct ParentItem {
    part: SetPart,
    shared: Option<&'static SharedImpostor>,
    layers: Option<&'static RenderLayers>,
    casts_no_shadow: Has<NotShadowCaster>,
    receives_no_shadow: Has<NotShadowReceiver>,
}

/// Spawns cards, and despawns those that are not wanted any more.
#[expect(
    clippy::too_many_arguments,
    reason = "a system's parameters are its data"
)]
pub(super) fn give_cards(
    mut commands: Commands,
    shown: Query<ShownItem>,
    parents: Query<ParentItem>,
    cards: Query<(Entity, &CardOf, Option<&ChildOf>)>,
    sharing: Query<(Entity, &SharedImpostor)>,
    mut removed: RemovedComponents<ImpostorAtlas3d>,
    mut events: MessageReader<AssetEvent<ImpostorAtlas>>,
    (mut meshes, mut images, mut materials): (
        ResMut<Assets<Mesh>>,
        ResMut<Assets<Image>>,
        ResMut<Assets<ImpostorMaterial>>,
    ),
    (atlases, device): (Res<Assets<ImpostorAtlas>>, Option<Res<RenderDevice>>),
    mut made: ResMut<Cards>,
    mut told: Local<Told<Entity>>,
    mut has_run: Local<bool>,
) {
    let Cards(made) = &mut *made;
    // Only the GPU has the pictures: a lost device takes them along.
    let is_new = device.is_some_and(|device| device.is_changed());
    if core::mem::replace(&mut *has_run, true) && is_new {
        made.clear();
    }
    for event in events.read() {
        if let AssetEvent::Modified { id } | AssetEvent::Removed { id } = event {
            made.remove(id);
        }
    }
    let has_removed = removed.read().count() > 0;
    if shown.is_empty() && !has_removed {
        return;
    }
    let mut wanted = HashMap::new();
    for item in &shown {
        let ImpostorAtlas3d {
            atlas,
            below_pixels,
        } = item.shown;
        if !(*below_pixels > 0.0 && below_pixels.is_finite()) {
            if told.is_new(item.entity) {
                warn!(
                    "ImpostorAtlas3d on {}: below_pixels is {below_pixels}, and must be finite and \
                     above 0. No cards are drawn",
                    item.entity
                );
            }
            continue;
        }
        let Some(known) = atlases.get(atlas) else {
            continue;
        };
        let (mesh, material) = made.entry(atlas.id()).or_insert_with(|| {
            let material = materials.add(known.material(&mut images));
            (meshes.add(known.card()), material)
        });
        let is_part = |child: &Entity| {
            let child = parents.get(*child);
            !item.has_mesh && child.is_ok_and(|child| child.part.is_part())
        };
        let children = item.children.into_iter().flatten().copied();
        let mut parts = children.filter(is_part);
        let parent = match item.has_mesh {
            true => Some(item.entity),
            false => parts.next(),
        };
        let Some(parent) = parent else {
            continue;
        };
        for part in parts {
            let shared = SharedImpostor(parent);
            if parents
                .get(part)
                .is_ok_and(|part| part.shared != Some(&shared))
            {
                commands.entity(part).try_insert(shared);
            }
        }
        let card = CardOf {
            material: Some(material.id()),
            below_pixels: *below_pixels,
        };
        let impostor = InstanceImpostor {
            error: known.error(*below_pixels),
        };
        let drawn = (Mesh3d(mesh.clone()), MeshMaterial3d(material.clone()));
        // Cards of several parts are in the space of all, not in that of the first.
        let offset = (!item.has_mesh).then(InstanceOffset::default);
        wanted.insert(parent, (card, impostor, drawn, offset));
    }
    if has_removed {
        for (part, SharedImpostor(first)) in &sharing {
            if !wanted.contains_key(first) {
                commands.entity(part).try_remove::<SharedImpostor>();
            }
        }
    }
    for (entity, card, parent) in &cards {
        let parent = parent.map(ChildOf::parent);
        let is_wanted = parent.is_some_and(|parent| {
            let known = wanted.get(&parent).filter(|(known, ..)| known == card);
            known.is_some() && wanted.remove(&parent).is_some()
        });
        if !is_wanted {
            commands.entity(entity).try_despawn();
        }
    }
    for (parent, (card, impostor, drawn, offset)) in wanted {
        let Ok(of) = parents.get(parent) else {
            continue;
        };
        let mut card = commands.spawn((card, impostor, drawn, ChildOf(parent)));
        if let Some(offset) = offset {
            card.insert(offset);
        }
        if let Some(layers) = of.layers {
            card.insert(layers.clone());
        }
        if of.casts_no_shadow {
            card.insert(NotShadowCaster);
        }
        if of.receives_no_shadow {
            card.insert(NotShadowReceiver);
        }
    }
}
