//! Which levels of an entity are loaded, and the sphere around their meshes.

use super::{InstanceImpostor, InstanceLod, InstanceLods, LodMesh, SetImpostor};
use crate::{
    cull::BoundingSphere,
    render::{
        components::GpuInstances,
        cpu_times::{CpuClock, CpuStage},
        mesh_spheres::BoundedMeshes,
        meshlets::MeshletMesh3d,
        told::Told,
    },
};
use bevy::{
    ecs::{query::QueryData, system::SystemParam},
    platform::collections::HashSet,
    prelude::*,
};
use core::ops::Range;
use std::sync::Arc;

/// The levels of an entity that are loaded.
#[derive(Component, Clone)]
pub(in crate::render) struct SetLods {
    pub levels: Arc<[SetLod]>,
    /// See [`InstanceLods::fade`].
    pub fade: f32,
    /// See [`InstanceLods::full`].
    pub full: Option<Range<u32>>,
}

/// A level of an entity.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::render) struct SetLod {
    pub mesh: SetLodMesh,
    pub error: f32,
    /// The sphere around its mesh; `None` if that is a part of the full mesh, or has no positions.
    pub sphere: Option<BoundingSphere>,
}

/// See [`LodMesh`].
#[derive(Clone, Debug, PartialEq)]
pub(in crate::render) enum SetLodMesh {
    Mesh(AssetId<Mesh>),
    Indices(Range<u32>),
}

impl SetLods {
    /// The sphere around the entity's mesh, enlarged around the meshes of the levels.
    pub fn enlarge(&self, sphere: BoundingSphere) -> BoundingSphere {
        let spheres = self.levels.iter().filter_map(|level| level.sphere);
        spheres.fold(sphere, BoundingSphere::enlarged_around)
    }
}

/// Entities whose levels may have changed.
type LodsChanged = Or<(
    Changed<InstanceLods>,
    Changed<SetImpostor>,
    Added<InstanceImpostor>,
    Added<GpuInstances>,
    Added<MeshletMesh3d>,
)>;

/// Entities that have lost what decides which of their levels are drawn.
#[derive(SystemParam)]
pub(in crate::render) struct Parted<'w, 's> {
    impostors: RemovedComponents<'w, 's, SetImpostor>,
    meshlets: RemovedComponents<'w, 's, MeshletMesh3d>,
    are_impostors: RemovedComponents<'w, 's, InstanceImpostor>,
}

impl Parted<'_, '_> {
    fn read(&mut self) -> HashSet<Entity> {
        let both = self.impostors.read().chain(self.meshlets.read());
        both.chain(self.are_impostors.read()).collect()
    }
}

/// An entity with levels.
#[derive(QueryData)]
pub(in crate::render) struct LodEntity {
    entity: Entity,
    lods: &'static InstanceLods,
    known: Option<&'static SetLods>,
    has_meshlets: Has<MeshletMesh3d>,
    impostor: Option<&'static SetImpostor>,
    is_impostor: Has<InstanceImpostor>,
}

/// Why the levels of an entity are ignored.
#[derive(Clone, Copy, PartialEq)]
enum IgnoreReason {
    Meshlets,
    Impostor,
}

/// Notes which levels are loaded, when the levels or one of their meshes change.
#[expect(
    clippy::too_many_arguments,
    reason = "a system's parameters are its data"
)]
pub(in crate::render) fn resolve_lods(
    mut commands: Commands,
    changed: Query<Entity, (With<InstanceLods>, LodsChanged)>,
    all: Query<LodEntity, With<GpuInstances>>,
    mut removed: RemovedComponents<InstanceLods>,
    mut parted: Parted,
    still_there: Query<(), With<InstanceLods>>,
    mut events: MessageReader<AssetEvent<Mesh>>,
    mut bounded: BoundedMeshes,
    mut told: Local<Told<Entity>>,
    clock: Res<CpuClock>,
) {
    let _timer = clock.start(CpuStage::Main);
    for entity in removed.read() {
        // The component may have been removed and inserted again.
        if !still_there.contains(entity)
            && let Ok(mut entity) = commands.get_entity(entity)
        {
            entity.try_remove::<SetLods>();
        }
    }
    let parted = parted.read();
    let changed_meshes: HashSet<_> = events.read().filter_map(changed_mesh).collect();
    if changed_meshes.is_empty() && changed.is_empty() && parted.is_empty() {
        return;
    }
    for LodEntityItem {
        entity,
        lods,
        known,
        has_meshlets,
        impostor,
        is_impostor,
    } in &all
    {
        let is_of_changed = |level: &InstanceLod| {
            let mesh = level.mesh.handle();
            mesh.is_some_and(|mesh| changed_meshes.contains(&mesh.id()))
        };
        let is_changed = changed.contains(entity) || parted.contains(&entity);
        if !is_changed && !lods.levels.iter().any(is_of_changed) {
            continue;
        }
        let reason = match (has_meshlets, is_impostor) {
            (true, _) => Some(IgnoreReason::Meshlets),
            (_, true) => Some(IgnoreReason::Impostor),
            _ => None,
        };
        if let Some(problem) = problem_of(lods, reason, impostor)
            && told.is_new(entity)
        {
            warn!("InstanceLods on {entity}: {problem}");
        }
        let mut error = 0.0;
        let mut levels = Vec::new();
        for level in lods.levels.iter().take(InstanceLods::MAX) {
            if reason.is_some() {
                break;
            }
            let (mesh, sphere) = match &level.mesh {
                LodMesh::Indices(indices) => (SetLodMesh::Indices(indices.clone()), None),
                LodMesh::Mesh(handle) if bounded.meshes.contains(handle) => {
                    let id = handle.id();
                    (SetLodMesh::Mesh(id), bounded.sphere_of(id))
                }
                LodMesh::Mesh(_) => continue,
            };
            let is_impostor = impostor.is_some_and(|impostor| level.error >= impostor.error);
            if !level.error.is_finite() || level.error < error || is_impostor {
                continue;
            }
            error = level.error;
            levels.push(SetLod {
                mesh,
                error,
                sphere,
            });
        }
        // Not a number is no share.
        let fade = if lods.fade > 0.0 && reason.is_none() {
            lods.fade.min(1.0)
        } else {
            0.0
        };
        let full = lods.full.clone().filter(|_| reason.is_none());
        let is_same = known.is_some_and(|known| {
            *known.levels == *levels && (known.fade, &known.full) == (fade, &full)
        });
        if !is_same {
            let set = SetLods {
                levels: levels.into(),
                fade,
                full,
            };
            commands.entity(entity).try_insert(set);
        }
    }
}

/// The mesh that was loaded, changed or removed.
fn changed_mesh(event: &AssetEvent<Mesh>) -> Option<AssetId<Mesh>> {
    match event {
        AssetEvent::Added { id }
        | AssetEvent::Modified { id }
        | AssetEvent::Removed { id }
        | AssetEvent::LoadedWithDependencies { id } => Some(*id),
        // The last handle was dropped. The mesh is there until it is removed.
        AssetEvent::Unused { .. } => None,
    }
}

/// What is wrong with the levels, and what to do about it.
fn problem_of(
    lods: &InstanceLods,
    reason: Option<IgnoreReason>,
    impostor: Option<&SetImpostor>,
) -> Option<String> {
    match reason {
        Some(IgnoreReason::Meshlets) => return Some(
            "they are ignored, because the set is drawn by meshlets, whose mesh has its own levels \
             (MeshletSettings::lods). Remove either InstanceLods or MeshletMesh3d"
                .to_owned(),
        ),
        Some(IgnoreReason::Impostor) => {
            return Some(
                "they are ignored, because the entity is an InstanceImpostor, the last level of its parent. Add the \
                 levels to the parent"
                    .to_owned(),
            );
        }
        None => {}
    }
    let mut before = 0.0;
    for (number, level) in (1..).zip(&lods.levels) {
        // Not a number is no error, either.
        if !(before..f32::INFINITY).contains(&level.error) {
            return Some(format!(
                "level {number} is ignored: its error is {}, which must be finite and at least {before}, the \
                 error of the level before",
                level.error
            ));
        }
        if let Some(impostor) = impostor
            && level.error >= impostor.error
        {
            return Some(format!(
                "level {number} is not drawn: its error is {}, and instances are drawn by the InstanceImpostor on {} from \
                 the error {} on. Leave the level out, or give the impostor a larger error",
                level.error, impostor.entity, impostor.error
            ));
        }
        before = level.error;
    }
    if !(0.0..=1.0).contains(&lods.fade) {
        return Some(format!(
            "fade is {}, and must be between 0 and 1: the nearest of both is used",
            lods.fade
        ));
    }
    (lods.levels.len() > InstanceLods::MAX).then(|| {
        format!(
            "{} levels are given, of which the first {} are drawn. Leave some out",
            lods.levels.len(),
            InstanceLods::MAX
        )
    })
}

#[cfg(test)]
mod tests;
