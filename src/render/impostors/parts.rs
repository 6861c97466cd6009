//! What is photographed: the entity's own mesh, or its children's.

use super::{component::BakeImpostor, error::ImpostorError, grid::Grid};
use crate::render::{
    animation::InstanceAnimation,
    components::GpuInstances,
    lods::InstanceImpostor,
    offset::{InstanceOffset, bits_of},
};
use bevy::{asset::UntypedAssetId, ecs::query::QueryData, math::Affine3A, prelude::*};

/// A mesh that is photographed.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub mesh: Handle<Mesh>,
    pub material: Handle<StandardMaterial>,
    /// From the mesh's space to the space of what is photographed.
    pub offset: Affine3A,
}

/// A mesh, its material, and its offset in what is photographed.
type PartKey = (AssetId<Mesh>, AssetId<StandardMaterial>, [u32; 12]);

/// What photographs are made of.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BakeKey {
    parts: Vec<PartKey>,
    pub grid: Grid,
}

impl BakeKey {
    pub fn of(parts: &[Part], grid: Grid) -> Self {
        let key = |part: &Part| (part.mesh.id(), part.material.id(), bits_of(&part.offset));
        Self {
            parts: parts.iter().map(key).collect(),
            grid,
        }
    }

    /// Whether it names this mesh or material.
    pub fn is_of(&self, id: UntypedAssetId) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|(mesh, material, _)| mesh.untyped() == id || material.untyped() == id)
    }
}

/// On an entity that has what it asked for, or was refused.
#[derive(Component)]
pub(super) struct Answered;

/// What says whether an entity is part of what its parent is photographed with.
#[derive(QueryData)]
pub(super) struct SetPart {
    is_set: Has<GpuInstances>,
    is_impostor: Has<InstanceImpostor>,
    visibility: Option<&'static Visibility>,
}

impl SetPartItem<'_, '_> {
    pub fn is_part(&self) -> bool {
        let is_hidden = self.visibility == Some(&Visibility::Hidden);
        self.is_set && !self.is_impostor && !is_hidden
    }
}

/// A mesh that may be photographed.
#[derive(QueryData)]
pub(super) struct PartItem {
    mesh: Option<&'static Mesh3d>,
    material: Option<&'static MeshMaterial3d<StandardMaterial>>,
    offset: Option<&'static InstanceOffset>,
    part: SetPart,
    is_animated: Has<InstanceAnimation>,
}

/// An entity that asks.
#[derive(QueryData)]
pub(super) struct AskingItem {
    pub entity: Entity,
    pub bake: Ref<'static, BakeImpostor>,
    pub is_answered: Has<Answered>,
    has_mesh: Has<Mesh3d>,
    children: Option<&'static Children>,
}

/// The entity's own mesh, or its children's. `None` while there is nothing to photograph; an
/// error if something there cannot be.
pub(super) fn parts_of(
    item: &AskingItemItem,
    all: &Query<PartItem>,
) -> Option<Result<Vec<Part>, ImpostorError>> {
    let own = item.has_mesh.then_some(item.entity);
    let children = item.children.into_iter().flatten().copied();
    let is_part =
        |child: &Entity| !item.has_mesh && all.get(*child).is_ok_and(|child| child.part.is_part());
    let mut parts = Vec::new();
    for part in own.into_iter().chain(children.filter(is_part)) {
        let part = all.get(part).ok()?;
        let mesh = part.mesh?.0.clone();
        let Some(material) = part.material else {
            return Some(Err(ImpostorError::Material));
        };
        if part.is_animated {
            return Some(Err(ImpostorError::Animated));
        }
        let offset = part.offset.filter(|_| !item.has_mesh);
        parts.push(Part {
            mesh,
            material: material.0.clone(),
            offset: offset.map_or(Affine3A::IDENTITY, |offset| offset.0),
        });
    }
    (!parts.is_empty()).then_some(Ok(parts))
}
