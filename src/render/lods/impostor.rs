//! Impostors: the last level of detail of a set, with another material.

use crate::render::{
    components::GpuInstances,
    offset::{InstanceOffset, stretch_of},
    scene::InstanceScene,
    told::Told,
};
use bevy::{
    ecs::{query::QueryData, system::SystemParam},
    platform::collections::HashMap,
    prelude::*,
    render::sync_world::MainEntity,
};

/// On a child of an entity with [`GpuInstances`]: draws the parent's farthest instances with the
/// child's [`Mesh3d`] and [`MeshMaterial3d`](bevy::pbr::MeshMaterial3d), for example with a picture
/// on two triangles.
///
/// It is one more level of detail behind the parent's
/// [`InstanceLods`](crate::render::InstanceLods), if it has any: an instance is drawn by the parent
/// until a view sees [`error`](Self::error) as at most
/// [`GpuCullingSettings::lod_pixels`](crate::render::GpuCullingSettings::lod_pixels) pixels, and by
/// the child from there on. With [`InstanceLods::fade`](crate::render::InstanceLods::fade) on the
/// parent, it fades from one to the other.
///
/// The mesh may have other vertex attributes than the parent's, the material may be of another
/// type. The plugin gives the child the parent's set, with all that happens to it. The parent's
/// [`InstanceVisibilityRange`](crate::render::InstanceVisibilityRange) and
/// [`CullingRadius`](crate::render::CullingRadius) hold for both. As on any child, `RenderLayers`,
/// `NotShadowCaster` and `NotShadowReceiver` must be on the child itself; its [`Transform`] must
/// stay the default. An entity has one impostor. Until its mesh and its material are loaded, and
/// while it is hidden, the parent draws all instances.
///
/// ```
/// # use bevy::prelude::*;
/// # use bevy_gpu_culling::prelude::*;
/// fn spawn(
///     mut commands: Commands,
///     trees: Handle<InstanceSet>,
///     tree: (Mesh3d, MeshMaterial3d<StandardMaterial>),
///     card: (Mesh3d, MeshMaterial3d<StandardMaterial>),
/// ) {
///     commands
///         .spawn((GpuInstances(trees), tree))
///         // A tree of 8 units becomes a card if it is seen 40 pixels high.
///         .with_child((InstanceImpostor { error: 8.0 / 40.0 }, card));
/// }
/// ```
#[derive(Component, Reflect, Clone, Copy, Debug, Default, PartialEq)]
#[reflect(Component, Default, Clone, PartialEq)]
#[require(GpuInstances)]
pub struct InstanceImpostor {
    /// An instance becomes an impostor at the distance at which a length of this size is seen as
    /// `lod_pixels` pixels, in units of the parent's mesh. It must be finite and not negative, and
    /// larger than the errors of the parent's levels.
    pub error: f32,
}

/// The impostor of an entity's set.
#[derive(Component, Clone, Copy, Debug, PartialEq)]
pub(in crate::render) struct SetImpostor {
    pub entity: Entity,
    /// See [`InstanceImpostor::error`].
    pub error: f32,
}

/// On an impostor: the entity whose set it draws.
#[derive(Component, Clone, Copy, Debug, PartialEq)]
pub(in crate::render) struct ImpostorOf(pub Entity);

/// On a part of a scene: the part whose impostor shows both.
#[derive(Component, Clone, Copy, Debug, PartialEq)]
pub(in crate::render) struct SharedImpostor(pub Entity);

/// The instances of its set that an entity draws.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::render) enum InstanceShare {
    /// All.
    All,
    /// Those that the impostor does not draw.
    Near { impostor: MainEntity, error: f32 },
    /// Those that the parent does not draw. It may have this number of levels.
    Far {
        parent: MainEntity,
        error: f32,
        levels: u32,
    },
}

/// An impostor.
#[derive(QueryData)]
pub(in crate::render) struct Impostor {
    entity: Entity,
    impostor: &'static InstanceImpostor,
    parent: Option<&'static ChildOf>,
    instances: &'static GpuInstances,
    of: Option<&'static ImpostorOf>,
}

/// An entity that can have an impostor.
#[derive(QueryData)]
pub(in crate::render) struct Parent {
    entity: Entity,
    instances: &'static GpuInstances,
    children: Option<&'static Children>,
}

/// What decides which impostors an entity has.
type ImpostorsChanged = Or<(
    Changed<InstanceImpostor>,
    Changed<GpuInstances>,
    Changed<ChildOf>,
    Changed<Children>,
    Changed<SharedImpostor>,
)>;

/// An entity that is or has an impostor, or may have one.
type IsOrMayHaveImpostor = (
    With<GpuInstances>,
    Or<(With<InstanceImpostor>, With<ImpostorOf>, With<Children>)>,
);

/// Components whose removal parts impostors from sets.
#[derive(SystemParam)]
pub(in crate::render) struct Removals<'w, 's> {
    impostors: RemovedComponents<'w, 's, InstanceImpostor>,
    parents: RemovedComponents<'w, 's, ChildOf>,
    children: RemovedComponents<'w, 's, Children>,
    sets: RemovedComponents<'w, 's, GpuInstances>,
    both: Query<'w, 's, (), IsOrHasImpostor>,
}

impl Removals<'_, '_> {
    /// Reads all of them. Returns whether some part an impostor from its set. What was despawned
    /// needs nothing, unless it was an impostor; an impostor that it leaves behind loses its
    /// [`ChildOf`].
    fn concern_impostors(&mut self) -> bool {
        let impostors = self.impostors.read().count();
        let others = self.parents.read().chain(self.children.read());
        let others = others.chain(self.sets.read());
        impostors + others.filter(|entity| self.both.contains(*entity)).count() > 0
    }
}

/// An entity that is or has an impostor.
type IsOrHasImpostor = Or<(With<InstanceImpostor>, With<SetImpostor>)>;

/// Gives impostors the sets of their parents.
#[expect(
    clippy::too_many_arguments,
    reason = "a system's parameters are its data"
)]
pub(in crate::render) fn attach_impostors(
    mut commands: Commands,
    changed: Query<(), (IsOrMayHaveImpostor, ImpostorsChanged)>,
    mut removals: Removals,
    impostors: Query<Impostor>,
    parents: Query<Parent, (Without<InstanceImpostor>, Without<InstanceScene>)>,
    sharing: Query<(Entity, &SharedImpostor)>,
    offsets: Query<&InstanceOffset>,
    former: Query<Entity, (With<ImpostorOf>, Without<InstanceImpostor>)>,
    attached: Query<(Entity, &SetImpostor)>,
) {
    if !removals.concern_impostors() && changed.is_empty() {
        return;
    }
    for entity in &former {
        commands.entity(entity).try_remove::<ImpostorOf>();
    }
    let mut first_of = HashMap::new();
    for ParentItem {
        entity, children, ..
    } in &parents
    {
        let mut children = children.into_iter().flatten();
        if let Some(first) = children.find(|child| impostors.contains(**child)) {
            first_of.insert(entity, *first);
        }
    }
    let mut wanted = HashMap::new();
    for item in &impostors {
        let parent = item.parent.and_then(|parent| parents.get(parent.0).ok());
        let is_first = |parent: &ParentItem| first_of.get(&parent.entity) == Some(&item.entity);
        let parent = parent.filter(|parent| is_first(parent) && is_valid(item.impostor.error));
        let set = parent.as_ref().map(|parent| parent.instances.clone());
        let set = set.unwrap_or_default();
        if *item.instances != set {
            commands.entity(item.entity).try_insert(set);
        }
        let of = parent.map(|parent| ImpostorOf(parent.entity));
        if item.of != of.as_ref() {
            match of {
                Some(of) => commands.entity(item.entity).try_insert(of),
                None => commands.entity(item.entity).try_remove::<ImpostorOf>(),
            };
        }
        if let Some(ImpostorOf(parent)) = of {
            let impostor = SetImpostor {
                entity: item.entity,
                error: item.impostor.error,
            };
            wanted.insert(parent, impostor);
        }
    }
    let stretch = |part| stretch_of(offsets.get(part).ok().map(|offset| &offset.0));
    for (part, SharedImpostor(first)) in &sharing {
        if let Some(&SetImpostor { entity, error }) = wanted.get(first) {
            // Errors are in the units of each part's mesh.
            let error = error * stretch(*first) / stretch(part);
            wanted.insert(part, SetImpostor { entity, error });
        }
    }
    for (entity, known) in &attached {
        match wanted.remove(&entity) {
            Some(impostor) if impostor == *known => {}
            Some(impostor) => {
                commands.entity(entity).try_insert(impostor);
            }
            None => {
                commands.entity(entity).try_remove::<SetImpostor>();
            }
        }
    }
    for (entity, impostor) in wanted {
        commands.entity(entity).try_insert(impostor);
    }
}

fn is_valid(error: f32) -> bool {
    (0.0..f32::INFINITY).contains(&error)
}

/// Number of frames that an impostor may wait for its parent's set.
const PATIENCE: u8 = 30;

/// Impostors without a set, and what they have instead.
type LoneImpostor<'a> = (Entity, &'a InstanceImpostor, Option<&'a ChildOf>);

/// An impostor with a set that was spawned or moved.
type MovedImpostor = (With<ImpostorOf>, Changed<Transform>);

/// Warns of impostors that have had no set for some frames, and of those that are moved.
pub(in crate::render) fn warn_of_unused_impostors(
    lone: Query<LoneImpostor, Without<ImpostorOf>>,
    moved: Query<(Entity, &Transform), MovedImpostor>,
    parents: Query<&SetImpostor>,
    mut waiting: Local<HashMap<Entity, u8>>,
    mut told: Local<Told<Entity>>,
) {
    waiting.retain(|entity, _| lone.contains(*entity));
    for (entity, impostor, parent) in &lone {
        let frames = waiting.entry(entity).or_default();
        *frames = frames.saturating_add(1);
        if (*frames > PATIENCE || !is_valid(impostor.error)) && told.is_new(entity) {
            let parent = parent.map(|parent| parent.0);
            let other = parent.and_then(|parent| parents.get(parent).ok());
            warn!(
                "InstanceImpostor on {entity} is not drawn, {}",
                problem_of(impostor.error, parent, other.map(|other| other.entity))
            );
        }
    }
    for (entity, transform) in &moved {
        if *transform != Transform::IDENTITY && told.is_new(entity) {
            warn!(
                "InstanceImpostor on {entity}: its Transform moves all impostors of the set away from their instances, to \
                 {}. Leave it the default, and move the mesh's vertices",
                transform.translation
            );
        }
    }
}

/// Why an impostor is not drawn, and what to do about it.
fn problem_of(error: f32, parent: Option<Entity>, other: Option<Entity>) -> String {
    match (parent, other) {
        _ if !is_valid(error) => {
            format!("because its error is {error}, and must be finite and at least 0")
        }
        (None, _) => "because it has no parent. Make it a child of the entity whose set it draws, \
                      by which it gets its GpuInstances"
            .to_owned(),
        (Some(parent), Some(other)) => {
            format!("because its parent {parent} has another one, {other}. Remove one of them")
        }
        (Some(parent), None) => format!(
            "because its parent {parent} has no GpuInstances, has an InstanceScene, or is an \
             impostor itself. Make it a \
             child of the entity whose set it draws"
        ),
    }
}

#[cfg(test)]
mod tests;
