//! Instances that become entities, and become instances again.

use super::{
    animation::InstanceAnimation, components::GpuInstances, lods::InstanceImpostor,
    meshlets::MeshletMesh3d, names::AssetNames, offset::InstanceOffset, scene::ScenePart,
};
use crate::instance::{InstanceError, InstanceId, InstanceSet, InstanceTransform};
use bevy::{
    camera::visibility::RenderLayers,
    ecs::component::ComponentId,
    light::{NotShadowCaster, NotShadowReceiver, TransmittedShadowReceiver},
    math::Affine3A,
    prelude::*,
};

/// On an entity that was an instance: where it came from. See
/// [`InstanceCommands::detach_instance`].
///
/// A world that is saved has its entity, and not what its set hides: hide the instance again when
/// the world is loaded.
#[derive(Component, Reflect, Clone, Copy, Debug, PartialEq)]
#[reflect(Component, Clone, Debug, PartialEq)]
pub struct DetachedInstance {
    /// The entity with the set.
    #[entities]
    pub set: Entity,
    /// The instance's index in the set, hidden while it is detached.
    pub index: u32,
    /// The instance's id, if the set [has ids](InstanceSet::with_ids). Then it is found again
    /// though edits gave it another index.
    pub id: Option<InstanceId>,
}

/// Commands that make entities of instances, and instances of entities: a tree that is felled, a
/// unit that gets a mind, a rock that is thrown.
///
/// ```
/// # use bevy::prelude::*;
/// # use bevy_gpu_culling::prelude::*;
/// # #[derive(Component)]
/// # struct Falling;
/// fn fell(mut commands: Commands, forest: Entity, tree: u32) {
///     // What is inserted next is on the new entity.
///     commands.detach_instance(forest, tree).insert(Falling);
/// }
///
/// fn stand_up(mut commands: Commands, trees: Query<Entity, With<Falling>>) {
///     for tree in &trees {
///         commands.attach_instance(tree);
///     }
/// }
/// ```
pub trait InstanceCommands {
    /// Hides an instance, and spawns an entity that looks like it in its place.
    ///
    /// The entity is a child of `set`, the entity with [`GpuInstances`], with the instance as its
    /// [`Transform`] (`remove_parent_in_place` makes it a root). It has the [`Mesh3d`], the
    /// material, the [`RenderLayers`] and the shadow components of `set`, and [`DetachedInstance`].
    /// If `set` has an [`InstanceOffset`], or children that draw the same set, such as the parts of
    /// an [`InstanceScene`](super::InstanceScene), the entity has a child for each of them. If `set`
    /// is a part of a scene, which a ray may have hit, the whole scene is detached.
    ///
    /// If `set` is drawn by meshlets, the entity gets the full mesh. If a mesh holds its own levels
    /// ([`InstanceLods::full`](super::InstanceLods)), the entity draws all of them at once. Levels of
    /// detail, tints and other data of instances are not taken over. What has an
    /// [`InstanceAnimation`](super::InstanceAnimation) is left out: give the entity a
    /// `WorldAssetRoot` of the same scene, and have its `AnimationPlayer` play.
    ///
    /// All entities that draw the set's asset lose the instance.
    ///
    /// The log says it if this cannot be done: `set` has no set, there is no such instance, it is
    /// hidden, or the CPU has no data of it. Then the new entity stays empty.
    fn detach_instance(&mut self, set: Entity, index: u32) -> EntityCommands<'_>;

    /// Despawns an entity that was detached, and shows its instance again, where the entity was.
    ///
    /// The log says it if this cannot be done: the entity has no [`DetachedInstance`], its set or
    /// its instance is gone, an edit of a set without [ids](InstanceSet::with_ids) has put another
    /// instance in its place, or an instance cannot have its transform. Then the entity stays.
    fn attach_instance(&mut self, entity: Entity);
}

impl InstanceCommands for Commands<'_, '_> {
    fn detach_instance(&mut self, set: Entity, index: u32) -> EntityCommands<'_> {
        let mut entity = self.spawn_empty();
        entity.queue(move |mut entity: EntityWorldMut| {
            let new = entity.id();
            entity.world_scope(|world| {
                if let Err(problem) = detach(world, new, set, index) {
                    error!("detach_instance: instance {index} of {set} gets no entity, and {new} stays empty: {problem}");
                }
            });
        });
        entity
    }

    fn attach_instance(&mut self, entity: Entity) {
        self.queue(move |world: &mut World| {
            if let Err(problem) = attach(world, entity) {
                error!("attach_instance: {entity} does not become an instance: {problem}");
            }
        });
    }
}

/// Why an instance does not become an entity, or the other way round.
#[derive(Debug, thiserror::Error)]
enum DetachError {
    #[error("{0} has no GpuInstances")]
    NoSet(Entity),
    #[error("{0} is not loaded, or was dropped")]
    NoAsset(String),
    #[error(
        "{name} has {len} instances; this index is beyond them, or the CPU has no data of them, because the set was \
         dropped there (RENDER_WORLD) or is written by the GPU"
    )]
    NoInstance { name: String, len: usize },
    #[error("it is hidden already. Each instance can be detached once, until it is attached again")]
    Hidden,
    #[error("it has no DetachedInstance")]
    NotDetached,
    #[error("instance {0} was removed from its set")]
    Removed(u32),
    #[error(
        "instance {0} of its set is shown, so an edit has put another one there: give the set ids before \
         (`InstanceSet::with_ids`), or hide it to have it replaced"
    )]
    Replaced(u32),
    #[error("its transform is none of an instance: {0}")]
    Transform(#[from] InstanceError),
}

/// The set of an entity, and its name.
fn set_of(world: &World, owner: Entity) -> Result<(AssetId<InstanceSet>, String), DetachError> {
    let instances = world.get::<GpuInstances>(owner);
    let id = instances.ok_or(DetachError::NoSet(owner))?.id();
    let server = world.get_resource::<AssetServer>();
    Ok((id, AssetNames(server).of(id).to_string()))
}

/// All sets. There are none without the plugin.
fn sets_of<'w>(
    world: &'w mut World,
    name: &str,
) -> Result<Mut<'w, Assets<InstanceSet>>, DetachError> {
    let sets = world.get_resource_mut();
    sets.ok_or_else(|| DetachError::NoAsset(name.to_owned()))
}

fn detach(world: &mut World, new: Entity, set: Entity, index: u32) -> Result<(), DetachError> {
    // A ray hits a part of a scene, and all parts become one entity.
    let owner = match (world.get::<ScenePart>(set), world.get::<ChildOf>(set)) {
        (Some(_), Some(root)) => root.0,
        _ => set,
    };
    let (asset, name) = set_of(world, owner)?;
    let mut sets = sets_of(world, &name)?;
    let set = sets.get(asset).ok_or(DetachError::NoAsset(name.clone()))?;
    let len = set.len();
    let instance = set
        .get(index)
        .ok_or(DetachError::NoInstance { name, len })?;
    if set.is_hidden(index) {
        return Err(DetachError::Hidden);
    }
    let id = set.id_of(index);
    if let Some(mut set) = sets.get_mut(asset) {
        set.hide(index)?;
    }
    let parts = parts_of(world, owner, asset);
    let detached = DetachedInstance {
        set: owner,
        index,
        id,
    };
    let place = Transform::from(instance);
    world
        .entity_mut(new)
        .insert((detached, ChildOf(owner), place, Visibility::Inherited));
    for Part {
        entity,
        offset,
        visibility,
    } in parts
    {
        let to = if entity == owner && offset == Transform::IDENTITY {
            new
        } else {
            world.spawn((ChildOf(new), offset, visibility)).id()
        };
        copy_look(world, [entity, to]);
    }
    Ok(())
}

/// What draws the instances of a set.
struct Part {
    entity: Entity,
    /// From an instance to the part's mesh.
    offset: Transform,
    /// The part's own: the set's holds for its children.
    visibility: Visibility,
}

/// What draws the instances of an entity's set: the entity, and its children.
fn parts_of(world: &World, owner: Entity, asset: AssetId<InstanceSet>) -> Vec<Part> {
    let children = world.get::<Children>(owner).into_iter().flatten().copied();
    let draws = |part: &Entity| {
        let instances = world.get::<GpuInstances>(*part);
        instances.is_some_and(|instances| instances.id() == asset)
            && world.get::<InstanceImpostor>(*part).is_none()
            && world.get::<Mesh3d>(*part).is_some()
            // Bevy draws a mesh with joints only with a SkinnedMesh.
            && world.get::<InstanceAnimation>(*part).is_none()
    };
    let part = |entity: Entity| {
        let offset = world.get::<InstanceOffset>(entity);
        let offset = offset.map(|offset| Transform::from_matrix(offset.0.into()));
        let visibility = world.get::<Visibility>(entity).filter(|_| entity != owner);
        Part {
            entity,
            offset: offset.unwrap_or_default(),
            visibility: visibility.copied().unwrap_or_default(),
        }
    };
    [owner]
        .into_iter()
        .chain(children)
        .filter(draws)
        .map(part)
        .collect()
}

/// The material of an entity, of whatever type: the app's registry tells.
fn materials_of(world: &World, entity: Entity) -> Vec<ComponentId> {
    let Some(registry) = world.get_resource::<AppTypeRegistry>() else {
        return Vec::new();
    };
    let registry = registry.read();
    let is_material = |id: &ComponentId| {
        let info = world.components().get_info(*id);
        let ty = info.and_then(|info| registry.get_type_info(info.type_id()?));
        ty.is_some_and(|ty| {
            let path = ty.type_path_table();
            path.ident() == Some("MeshMaterial3d") && path.crate_name() == Some("bevy_pbr")
        })
    };
    let entity = world.entity(entity);
    let components = entity.archetype().iter_components();
    components.filter(is_material).collect()
}

/// Gives an entity what decides how a part looks.
fn copy_look(world: &mut World, [from, to]: [Entity; 2]) {
    type Look = (
        RenderLayers,
        NotShadowCaster,
        NotShadowReceiver,
        TransmittedShadowReceiver,
    );
    // Observers of what was inserted may have despawned either.
    if world.get_entity(from).is_err() || world.get_entity(to).is_err() {
        return;
    }
    let materials = materials_of(world, from);
    // The mesh of a set of meshlets has the indices of all levels. An entity without a set gets
    // another one by the same component.
    let has_meshlets = world.get::<MeshletMesh3d>(from).is_some();
    world.entity_mut(from).clone_with_opt_in(to, move |look| {
        look.without_required_components(|look| {
            look.allow::<Look>().allow_by_ids(materials);
            match has_meshlets {
                true => look.allow::<MeshletMesh3d>(),
                false => look.allow::<Mesh3d>(),
            };
        });
    });
}

fn attach(world: &mut World, entity: Entity) -> Result<(), DetachError> {
    let detached = world.get::<DetachedInstance>(entity).copied();
    let DetachedInstance {
        set: owner,
        index,
        id,
    } = detached.ok_or(DetachError::NotDetached)?;
    let (asset, name) = set_of(world, owner)?;
    let place = if world
        .get::<ChildOf>(entity)
        .is_some_and(|parent| parent.0 == owner)
    {
        // To the bit as it was, if nobody moved it.
        InstanceTransform::from(world.get::<Transform>(entity).copied().unwrap_or_default())
    } else {
        InstanceTransform::from(world_from(world, owner).inverse() * world_from(world, entity))
    };
    let mut sets = sets_of(world, &name)?;
    let set = sets.get(asset).ok_or(DetachError::NoAsset(name))?;
    let now = match id {
        Some(id) => set.index_of(id),
        None => Some(index),
    };
    let known = now.and_then(|now| Some((now, set.get(now)?)));
    let (now, before) = known.ok_or(DetachError::Removed(index))?;
    // Another one must not lose its place.
    if id.is_none() && !set.is_hidden(now) {
        return Err(DetachError::Replaced(now));
    }
    if let Some(mut set) = sets.get_mut(asset) {
        if place != before {
            set.set(now, place)?;
        }
        set.show(now)?;
    }
    world.despawn(entity);
    Ok(())
}

/// The transform of an entity, as its parents' transforms are now.
fn world_from(world: &World, entity: Entity) -> Affine3A {
    let own = world.get::<Transform>(entity).copied().unwrap_or_default();
    match world.get::<ChildOf>(entity) {
        Some(parent) => world_from(world, parent.0) * own.compute_affine(),
        None => own.compute_affine(),
    }
}

#[cfg(test)]
mod tests;
