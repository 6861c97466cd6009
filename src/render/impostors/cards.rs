//! Cards for entities with photographs.

use super::{atlas::ImpostorAtlas, card::ImpostorMaterial, parts::SetPart};
use crate::render::{
    lods::{InstanceImpostor, SharedImpostor},
    offset::InstanceOffset,
    told::Told,
};
use bevy::{
    camera::visibility::RenderLayers,
    ecs::{query::QueryData, system::SystemParam},
    light::{NotShadowCaster, NotShadowReceiver},
    platform::collections::HashMap,
    prelude::*,
    render::renderer::RenderDevice,
};

/// Draws far instances of the entity's set as cards that show photographs of it. An entity without a
/// [`Mesh3d`] has one card for all its children with sets: the parts of an
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

/// Atlases, and what is made of them.
#[derive(SystemParam)]
pub(super) struct CardAssets<'w, 's> {
    atlases: Res<'w, Assets<ImpostorAtlas>>,
    events: MessageReader<'w, 's, AssetEvent<ImpostorAtlas>>,
    meshes: ResMut<'w, Assets<Mesh>>,
    images: ResMut<'w, Assets<Image>>,
    materials: ResMut<'w, Assets<ImpostorMaterial>>,
    made: ResMut<'w, Cards>,
    device: Option<Res<'w, RenderDevice>>,
    has_run: Local<'s, bool>,
}

impl CardAssets<'_, '_> {
    /// Forgets what was made of other atlases. Returns whether any atlas is new, or the device.
    fn refresh(&mut self) -> bool {
        let Cards(made) = &mut *self.made;
        // Only the GPU has the pictures: a lost device takes them along.
        let is_new = (self.device.as_ref()).is_some_and(|device| device.is_changed());
        if core::mem::replace(&mut *self.has_run, true) && is_new {
            made.clear();
        }
        let mut has_changed = is_new;
        for event in self.events.read() {
            has_changed = true;
            if let AssetEvent::Modified { id } | AssetEvent::Removed { id } = event {
                made.remove(id);
            }
        }
        has_changed
    }

    /// The components of a card; `None` if the atlas is not loaded.
    fn card_of(
        &mut self,
        shown: &ImpostorAtlas3d,
    ) -> Option<(
        CardOf,
        InstanceImpostor,
        Mesh3d,
        MeshMaterial3d<ImpostorMaterial>,
    )> {
        let atlas = self.atlases.get(&shown.atlas)?;
        let Cards(made) = &mut *self.made;
        let (mesh, material) = made.entry(shown.atlas.id()).or_insert_with(|| {
            let material = self.materials.add(atlas.material(&mut self.images));
            (self.meshes.add(atlas.card()), material)
        });
        let card = CardOf {
            material: Some(material.id()),
            below_pixels: shown.below_pixels,
        };
        let error = atlas.error(shown.below_pixels);
        Some((
            card,
            InstanceImpostor { error },
            Mesh3d(mesh.clone()),
            MeshMaterial3d(material.clone()),
        ))
    }
}

/// What decides which cards there are, beside atlases.
type CardsChanged = (
    With<ImpostorAtlas3d>,
    Or<(Changed<ImpostorAtlas3d>, Changed<Children>, Changed<Mesh3d>)>,
);

/// Spawns cards, and despawns what is not wanted any more. Most frames change nothing.
#[expect(
    clippy::too_many_arguments,
    reason = "a system's parameters are its data"
)]
pub(super) fn give_cards(
    mut commands: Commands,
    shown: Query<ShownItem>,
    changed: Query<(), CardsChanged>,
    parents: Query<ParentItem>,
    cards: Query<(Entity, &CardOf, Option<&ChildOf>)>,
    sharing: Query<(Entity, &SharedImpostor)>,
    mut removed: RemovedComponents<ImpostorAtlas3d>,
    mut removed_cards: RemovedComponents<CardOf>,
    mut assets: CardAssets,
    mut told: Local<Told<Entity>>,
) {
    let has_removed = removed.read().count() > 0;
    let has_lost_cards = removed_cards.read().count() > 0;
    if !assets.refresh() && changed.is_empty() && !has_removed && !has_lost_cards {
        return;
    }
    let mut wanted = HashMap::new();
    for item in &shown {
        let below_pixels = item.shown.below_pixels;
        if !(below_pixels > 0.0 && below_pixels.is_finite()) {
            if told.is_new(item.entity) {
                warn!(
                    "ImpostorAtlas3d on {}: below_pixels is {below_pixels}, and must be finite and \
                     above 0. No cards are drawn",
                    item.entity
                );
            }
            continue;
        }
        let Some(card) = assets.card_of(item.shown) else {
            continue;
        };
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
        // A card of several parts is in the space of all of them.
        let offset = (!item.has_mesh).then(InstanceOffset::default);
        wanted.insert(parent, (card, offset));
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
            let known = wanted.get(&parent).filter(|(known, _)| known.0 == *card);
            known.is_some() && wanted.remove(&parent).is_some()
        });
        if !is_wanted {
            commands.entity(entity).try_despawn();
        }
    }
    for (parent, (card, offset)) in wanted {
        let Ok(of) = parents.get(parent) else {
            continue;
        };
        let mut card = commands.spawn((card, ChildOf(parent)));
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
