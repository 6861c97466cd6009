//! Spawns the parts of scenes when they are loaded, and again when they change.

use super::{
    component::{InstanceScene, InstanceSceneReady, ScenePart, SpawnedScene},
    parts::{SceneMesh, meshes_of},
};
#[cfg(feature = "animation")]
use crate::render::animation::{BakeAnimation, SkinToBake};
use crate::render::{components::GpuInstances, names::AssetNames, offset::InstanceOffset};
use bevy::{
    camera::{primitives::Aabb, visibility::DynamicSkinnedMeshBounds},
    ecs::{
        component::ComponentCloneBehavior,
        entity::{EntityHashMap, EntityMapper},
        query::QueryData,
        reflect::ReflectFromWorld,
        relationship::RelationshipHookMode,
        system::SystemParam,
    },
    mesh::skinning::SkinnedMesh,
    platform::collections::HashSet,
    prelude::*,
    reflect::{ReflectFromReflect, TypeRegistry},
    transform::components::TransformTreeChanged,
};
use core::any::TypeId;
use std::collections::BTreeSet;

/// An entity with a scene.
#[derive(QueryData)]
pub(super) struct SceneRoot {
    entity: Entity,
    scene: &'static InstanceScene,
    instances: Ref<'static, GpuInstances>,
    spawned: Option<&'static SpawnedScene>,
    #[cfg(feature = "animation")]
    bake: Option<Ref<'static, BakeAnimation>>,
}

impl SceneRootItem<'_, '_> {
    /// Whether its parts are to be baked in another way than when they were spawned.
    fn bakes_again(&self) -> bool {
        #[cfg(feature = "animation")]
        return self.bake.as_ref().is_some_and(Ref::is_changed);
        #[cfg(not(feature = "animation"))]
        false
    }
}

/// Entities that have lost one of the components.
#[derive(SystemParam)]
pub(super) struct Removals<'w, 's> {
    scenes: RemovedComponents<'w, 's, InstanceScene>,
    sets: RemovedComponents<'w, 's, GpuInstances>,
    spawned: Query<'w, 's, (&'static SpawnedScene, Has<InstanceScene>, Has<GpuInstances>)>,
}

/// Has scenes spawned that are loaded or were changed, and despawns what their roots have lost.
pub(super) fn spawn_scenes(
    mut commands: Commands,
    roots: Query<SceneRoot>,
    mut removals: Removals,
    scenes: Res<Assets<WorldAsset>>,
    mut events: MessageReader<AssetEvent<WorldAsset>>,
) {
    let changed: HashSet<_> = events
        .read()
        .filter_map(|event| match event {
            AssetEvent::Modified { id } => Some(*id),
            _ => None,
        })
        .collect();
    for entity in removals.scenes.read().chain(removals.sets.read()) {
        if let Ok((spawned, has_scene, has_set)) = removals.spawned.get(entity)
            && !(has_scene && has_set)
        {
            for part in &spawned.parts {
                commands.entity(*part).try_despawn();
            }
            commands.entity(entity).try_remove::<SpawnedScene>();
        }
    }
    for root in &roots {
        let id = root.scene.id();
        let is_current = root.spawned.is_some_and(|spawned| {
            spawned.scene == id && !changed.contains(&id) && !root.bakes_again()
        });
        if !is_current && scenes.contains(id) {
            let entity = root.entity;
            commands.queue(move |world: &mut World| spawn_scene(world, entity));
        } else if let Some(spawned) = root.spawned
            && root.instances.is_changed()
        {
            for part in &spawned.parts {
                commands
                    .entity(*part)
                    .try_insert(GpuInstances::clone(&root.instances));
            }
        }
    }
}

/// Spawns the parts of an entity's scene, in place of those that it has.
fn spawn_scene(world: &mut World, root: Entity) {
    let Ok(mut entity) = world.get_entity_mut(root) else {
        return;
    };
    let spawned = entity.take::<SpawnedScene>();
    let children = entity.get::<Children>().map(|children| children.to_vec());
    let (Some(scene), Some(instances)) = (
        entity.get::<InstanceScene>().cloned(),
        entity.get::<GpuInstances>().cloned(),
    ) else {
        return;
    };
    // Children that are parts came with the entity, from a saved world or by cloning.
    let before = spawned.map_or_else(
        || {
            let mut children = children.unwrap_or_default();
            children.retain(|child| world.get::<ScenePart>(*child).is_some());
            children
        },
        |spawned| spawned.parts,
    );
    for part in before {
        // Something else may have despawned it.
        let _ = world.try_despawn(part);
    }
    let id = scene.id();
    let registry = world.get_resource::<AppTypeRegistry>().cloned();
    let registry = registry.unwrap_or_default();
    let registry = registry.read();
    let parts = world.resource_scope(|world, scenes: Mut<Assets<WorldAsset>>| {
        let Some(scene) = scenes.get(id) else {
            return Vec::new();
        };
        #[cfg(feature = "animation")]
        let bake = world.get::<BakeAnimation>(root).cloned();
        #[cfg(feature = "animation")]
        let posed = bake.is_some();
        #[cfg(not(feature = "animation"))]
        let posed = false;
        let (meshes, skipped) = meshes_of(&scene.world, posed);
        let mut lost = BTreeSet::new();
        let mut spawned = Vec::new();
        for mesh in &meshes {
            // Observers of components may despawn anything.
            if world.get_entity(root).is_err() {
                return Vec::new();
            }
            spawned.push(spawn_part(world, root, mesh, &instances));
        }
        let sources = meshes.iter().map(|mesh| mesh.source);
        let mut parts = PartMapper(sources.zip(spawned.iter().copied()).collect());
        for (mesh, &entity) in meshes.iter().zip(&spawned) {
            copy_components(
                &scene.world,
                world,
                mesh.source,
                entity,
                &mut parts,
                &registry,
                &mut lost,
            );
            #[cfg(feature = "animation")]
            if let (Some(bake), Some(skeleton)) = (&bake, &mesh.skeleton)
                && let Ok(mut entity) = world.get_entity_mut(entity)
            {
                entity.insert((
                    bake.animation(Handle::default()),
                    SkinToBake::new(id, skeleton, bake),
                ));
            }
        }
        let name = || AssetNames(world.get_resource::<AssetServer>()).of(id);
        if skipped.any() {
            warn!(
                "InstanceScene on {root}: {skipped} of {} cannot be instances and are left out. To have them once, spawn \
                 the scene with WorldAssetRoot{}",
                name(),
                if skipped.skinned > 0 {
                    ". To have skinned meshes per instance, add BakeAnimation (feature animation)"
                } else {
                    ""
                }
            );
        }
        if meshes.is_empty() && !skipped.any() {
            warn!(
                "InstanceScene on {root}: {} has no entity with a Mesh3d, so nothing is drawn",
                name()
            );
        }
        if !lost.is_empty() {
            let lost: Vec<_> = lost.into_iter().collect();
            warn!(
                "InstanceScene on {root}: components of {} are left out, because they cannot be copied by reflection: {}. \
                 Register them with App::register_type, and let them reflect Component",
                name(),
                lost.join(", ")
            );
        }
        spawned.retain(|part| world.get_entity(*part).is_ok());
        spawned
    });
    let Ok(mut entity) = world.get_entity_mut(root) else {
        return;
    };
    entity.insert(SpawnedScene {
        scene: id,
        parts: parts.clone(),
    });
    world.trigger(InstanceSceneReady {
        entity: root,
        parts,
    });
}

/// Spawns a part without what the scene says of it.
fn spawn_part(
    world: &mut World,
    root: Entity,
    mesh: &SceneMesh,
    instances: &GpuInstances,
) -> Entity {
    let visibility = match mesh.is_hidden {
        true => Visibility::Hidden,
        false => Visibility::Inherited,
    };
    let offset = InstanceOffset(mesh.offset);
    let part = (
        instances.clone(),
        offset,
        visibility,
        ScenePart,
        ChildOf(root),
    );
    world.spawn(part).id()
}

/// Whether the part has its own component of this type, or none.
fn is_own(component: TypeId) -> bool {
    [
        TypeId::of::<ScenePart>(),
        TypeId::of::<ChildOf>(),
        TypeId::of::<Children>(),
        TypeId::of::<Transform>(),
        TypeId::of::<GlobalTransform>(),
        TypeId::of::<TransformTreeChanged>(),
        TypeId::of::<Visibility>(),
        TypeId::of::<InheritedVisibility>(),
        TypeId::of::<ViewVisibility>(),
        // The box of the mesh. Ours surrounds the set.
        TypeId::of::<Aabb>(),
        // A skin is played by the set.
        TypeId::of::<SkinnedMesh>(),
        TypeId::of::<DynamicSkinnedMeshBounds>(),
    ]
    .contains(&component)
}

/// The parts of a scene by their entities there. Other entities of the scene are not in the world.
struct PartMapper(EntityHashMap<Entity>);

impl EntityMapper for PartMapper {
    fn get_mapped(&mut self, source: Entity) -> Entity {
        let part = self.0.get(&source);
        part.copied().unwrap_or(Entity::PLACEHOLDER)
    }

    fn set_mapped(&mut self, source: Entity, target: Entity) {
        self.0.insert(source, target);
    }
}

/// Copies the components of an entity of the scene to an entity of the world. References to
/// entities of the scene are mapped to their parts. Notes the names of components that cannot be
/// copied.
fn copy_components(
    scene: &World,
    world: &mut World,
    source: Entity,
    target: Entity,
    parts: &mut PartMapper,
    registry: &TypeRegistry,
    lost: &mut BTreeSet<String>,
) {
    let source = scene.entity(source);
    for component in source.archetype().iter_components() {
        let Some(info) = scene.components().get_info(component) else {
            continue;
        };
        let Some(id) = info.type_id().filter(|id| !is_own(*id)) else {
            continue;
        };
        if matches!(info.clone_behavior(), ComponentCloneBehavior::Ignore) {
            continue;
        }
        let registration = registry.get(id).filter(|registration| {
            // Otherwise the reflection below panics.
            registration.contains::<ReflectFromReflect>()
                || registration.contains::<ReflectDefault>()
                || registration.contains::<ReflectFromWorld>()
        });
        let reflected = registration.and_then(|registration| {
            let reflect = registration.data::<ReflectComponent>()?;
            Some((reflect, reflect.reflect(source)?))
        });
        let Some((reflect, component)) = reflected else {
            lost.insert(info.name().to_string());
            continue;
        };
        let Ok(mut target) = world.get_entity_mut(target) else {
            return;
        };
        // The other side of a relationship is copied, too.
        let hooks = RelationshipHookMode::Skip;
        let component = component.as_partial_reflect();
        reflect.apply_or_insert_mapped(&mut target, component, registry, parts, hooks);
    }
}
