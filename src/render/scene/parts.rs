//! What a scene's world has to draw, and what a set cannot have of it.

#[cfg(feature = "animation")]
use crate::render::animation::{Skeleton, skeleton_of};
use crate::render::{components::GpuInstances, meshlets::MeshletMesh3d};
use bevy::{
    math::Affine3A,
    mesh::{morph::MeshMorphWeights, skinning::SkinnedMesh},
    prelude::*,
};
use core::fmt;

/// A mesh of a scene.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SceneMesh {
    /// The entity in the scene's world.
    pub source: Entity,
    /// From the mesh's space to the scene's.
    pub offset: Affine3A,
    /// Whether its node is hidden.
    pub is_hidden: bool,
    /// What moves it, if it has a skin.
    #[cfg(feature = "animation")]
    pub skeleton: Option<Skeleton>,
}

/// Numbers of things that cannot be instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Skipped {
    pub skinned: u32,
    pub morphed: u32,
    pub lights: u32,
    pub cameras: u32,
    pub sets: u32,
}

impl Skipped {
    pub fn any(&self) -> bool {
        *self != Self::default()
    }
}

/// As in "2 lights and 1 camera".
impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [
            (self.skinned, "skinned mesh", "es"),
            (self.morphed, "morphed mesh", "es"),
            (self.lights, "light", "s"),
            (self.cameras, "camera", "s"),
            (self.sets, "set", "s"),
        ];
        let found: Vec<_> = kinds.iter().filter(|(count, ..)| *count > 0).collect();
        for (at, (count, kind, ending)) in found.iter().enumerate() {
            let between = match at {
                0 => "",
                _ if at + 1 == found.len() => " and ",
                _ => ", ",
            };
            let ending = if *count == 1 { "" } else { ending };
            write!(f, "{between}{count} {kind}{ending}")?;
        }
        Ok(())
    }
}

/// The meshes of a scene in the order of their entities, and what is left out. Skinned meshes are,
/// unless they are `posed`.
pub(super) fn meshes_of(scene: &World, posed: bool) -> (Vec<SceneMesh>, Skipped) {
    let archetypes = scene.archetypes().iter();
    let mut entities: Vec<_> = archetypes
        .flat_map(|archetype| archetype.entities())
        .map(|entity| entity.id())
        .collect();
    // Entities themselves are not ordered by their index.
    entities.sort_unstable_by_key(|entity| entity.index_u32());
    let (mut meshes, mut skipped) = (Vec::new(), Skipped::default());
    for source in entities {
        let entity = scene.entity(source);
        if entity.contains::<DirectionalLight>()
            || entity.contains::<PointLight>()
            || entity.contains::<SpotLight>()
        {
            skipped.lights += 1;
        }
        skipped.cameras += u32::from(entity.contains::<Camera>());
        if is_set(entity) {
            skipped.sets += 1;
        } else if !entity.contains::<Mesh3d>() && !entity.contains::<MeshletMesh3d>() {
            continue;
        } else if entity.contains::<SkinnedMesh>() && !posed {
            skipped.skinned += 1;
        } else if entity.contains::<MeshMorphWeights>() {
            skipped.morphed += 1;
        } else {
            meshes.push(mesh_of(scene, entity));
        }
    }
    (meshes, skipped)
}

/// Whether an entity is a set itself.
fn is_set(entity: EntityRef) -> bool {
    #[cfg(feature = "gltf")]
    if entity.contains::<super::gltf::NodeInstances>() {
        return true;
    }
    entity.contains::<GpuInstances>()
}

/// The mesh of an entity.
fn mesh_of(scene: &World, entity: EntityRef) -> SceneMesh {
    let mut mesh = SceneMesh {
        source: entity.id(),
        offset: Affine3A::IDENTITY,
        is_hidden: false,
        #[cfg(feature = "animation")]
        skeleton: entity
            .get::<SkinnedMesh>()
            .map(|skin| skeleton_of(scene, skin)),
    };
    // Where a skin is does not depend on the place of its mesh.
    let is_skinned = entity.contains::<SkinnedMesh>();
    let mut visibility = Visibility::Inherited;
    for node in lineage(scene, entity) {
        if let Some(transform) = node.get::<Transform>().filter(|_| !is_skinned) {
            mesh.offset = transform.compute_affine() * mesh.offset;
        }
        if visibility == Visibility::Inherited {
            visibility = node.get::<Visibility>().copied().unwrap_or_default();
        }
    }
    mesh.is_hidden = visibility == Visibility::Hidden;
    mesh
}

/// An entity, its parent, the parent's parent.
fn lineage<'a>(scene: &'a World, entity: EntityRef<'a>) -> impl Iterator<Item = EntityRef<'a>> {
    core::iter::successors(Some(entity), move |entity| {
        let parent = entity.get::<ChildOf>()?.parent();
        scene.get_entity(parent).ok()
    })
}
