//! The bounds of a set: the sphere around its mesh, and the box around all its instances.

mod changes;

use super::{
    animation::InstanceAnimation,
    components::{CullingRadius, GpuInstances},
    cpu_times::{CpuClock, CpuStage},
    lods::{ImpostorOf, SetImpostor, SetLodMesh, SetLods},
    mesh_spheres::BoundedMeshes,
    meshlets::MeshletMesh3d,
    offset::{InstanceOffset, offset_sphere},
    scene::InstanceScene,
    told::Told,
    wind::Wind,
};
use crate::{
    cull::{BoundingSphere, layout::ROUNDING},
    instance::InstanceSet,
};
use bevy::{
    camera::{primitives::Aabb, visibility::NoAutoAabb},
    ecs::query::QueryData,
    mesh::{VertexAttributeValues, skinning::SkinnedMesh},
    pbr::Lightmap,
    platform::collections::HashMap,
    prelude::*,
};
use changes::BoundsChanges;

/// The spheres with which each instance of the entity's set is tested, behind the offset.
#[derive(Component, Clone, Copy, PartialEq)]
pub(super) struct SetSphere {
    /// Around everything that an instance may be drawn as.
    pub all: BoundingSphere,
    /// Around the full mesh alone, if its vertices or its box are known.
    pub full: Option<BoundingSphere>,
    /// A [`CullingRadius`] says how far vertices may move.
    pub is_by_radius: bool,
}

/// An entity whose bounds are computed.
#[derive(QueryData)]
pub(super) struct BoundedSet {
    entity: Entity,
    instances: &'static GpuInstances,
    mesh: &'static Mesh3d,
    sphere: Option<&'static SetSphere>,
    radius: Option<&'static CullingRadius>,
    offset: Option<&'static InstanceOffset>,
    wind: Option<&'static Wind>,
    animation: Option<&'static InstanceAnimation>,
    lods: Option<&'static SetLods>,
    impostor: Option<&'static SetImpostor>,
    impostor_of: Option<&'static ImpostorOf>,
    is_skinned: Has<SkinnedMesh>,
    is_lightmapped: Has<Lightmap>,
}

/// Views keep spheres below this radius: `load_sphere` in `shaders/shared/visibility.wesl`.
const MAX_RADIUS: f32 = 3e38;

/// What is wrong with a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Problem {
    Skinned,
    Lightmapped,
    NoBounds,
    BadRadius,
    BadOffset,
    NoJoints,
    NoMesh,
    TooLarge,
}

impl Problem {
    /// What is wrong, and what to do about it.
    fn text(self) -> &'static str {
        match self {
            Self::Skinned => {
                "the set is not drawn, because it cannot have a SkinnedMesh: all instances would share one pose. Replace it \
                 by an InstanceAnimation, or bake the pose into the mesh"
            }
            Self::Lightmapped => {
                "the set is not drawn, because its instances cannot share one Lightmap. Remove the component"
            }
            Self::NoBounds => {
                "the set is not drawn, because its mesh has no positions of three floats to compute bounds from. Add a \
                 CullingRadius"
            }
            Self::BadRadius => {
                "its CullingRadius is ignored, because it is not between 0 and CullingRadius::MAX. To keep every \
                 instance, use NoFrustumCulling"
            }
            Self::BadOffset => {
                "the set is not drawn, because its InstanceOffset has a number that is not between \
                 -InstanceOffset::MAX and InstanceOffset::MAX (1e12). Give it finite, smaller numbers"
            }
            Self::TooLarge => {
                "the largest instances are not drawn, because their scale times the radius of the mesh's sphere is not \
                 below 3e38. Give them smaller scales"
            }
            Self::NoJoints => {
                "no sphere holds the poses of its InstanceAnimation, because the mesh has no attributes JOINT_INDEX and \
                 JOINT_WEIGHT, or no vertices on the CPU. Add the attributes, or a CullingRadius that holds all poses"
            }
            Self::NoMesh => {
                "the set is not drawn, because the entity has no Mesh3d, no MeshletMesh3d and no InstanceScene. Add one"
            }
        }
    }
}

/// Problems that were logged.
#[derive(Default)]
pub(super) struct Problems(Told<(Entity, Problem)>);

impl Problems {
    fn tell(&mut self, entity: Entity, problem: Problem) {
        if self.0.is_new((entity, problem)) {
            warn!("GpuInstances on {entity}: {}", problem.text());
        }
    }
}

/// Recomputes the bounds of sets whose instances, mesh or radius changed.
#[expect(
    clippy::too_many_arguments,
    reason = "a system's parameters are its data"
)]
pub(super) fn update_bounds(
    mut commands: Commands,
    mut changes: BoundsChanges,
    all: Query<BoundedSet>,
    with_sets: Query<(), With<GpuInstances>>,
    sets: Res<Assets<InstanceSet>>,
    mut meshes: BoundedMeshes,
    mut told: Local<Problems>,
    clock: Res<CpuClock>,
) {
    let _timer = clock.start(CpuStage::Main);
    for entity in changes.removals.set.read() {
        if with_sets.contains(entity) {
            continue;
        }
        // An ordinary mesh again: Bevy computes its box.
        if let Ok(mut entity) = commands.get_entity(entity) {
            entity.try_remove::<(SetSphere, Aabb, NoAutoAabb)>();
        }
    }
    let mut changed = changes.collect();
    // The spheres of their parents surround impostors, too.
    let parents = all.iter_many(&changed).flatten();
    let parents: Vec<_> = parents.filter_map(|item| item.impostor_of).collect();
    changed.extend(parents.iter().map(|of| of.0));
    for item in all.iter_many(&changed).flatten() {
        let entity = item.entity;
        let mesh = item.mesh.id();
        let Some(set) = sets.get(&item.instances.0) else {
            continue;
        };
        if !meshes.meshes.contains(mesh) {
            continue;
        }
        // Not drawn before it has a pose.
        let animation = item.animation.map(|animation| animation.poses.id());
        if animation.is_some_and(|poses| !meshes.have_poses(poses)) {
            let mut entity = commands.entity(entity);
            entity.try_remove::<(SetSphere, Aabb)>();
            continue;
        }
        let sphere = if item.is_skinned {
            Err(Problem::Skinned)
        } else if item.is_lightmapped {
            Err(Problem::Lightmapped)
        } else if item.offset.is_some_and(|offset| !offset.is_valid()) {
            Err(Problem::BadOffset)
        } else {
            let bad_radius = || told.tell(entity, Problem::BadRadius);
            let offset = item.offset.and_then(InstanceOffset::checked);
            let impostor = item.impostor.and_then(|known| all.get(known.entity).ok());
            let impostor = impostor.and_then(|impostor| {
                let mesh = impostor.mesh.id();
                let own = impostor.offset.map(InstanceOffset::checked);
                let around = || meshes.sphere_of(mesh);
                let sphere = culling_sphere(around, impostor.radius, None, || ())
                    .ok()?
                    .all;
                let wind = impostor.wind.or(item.wind);
                let sphere = offset_sphere(own.unwrap_or(offset).as_ref(), sphere);
                Some(sphere.grown(wind.map_or(0.0, Wind::reach)))
            });
            let posed = animation.map(|poses| {
                let levels = item.lods.into_iter().flat_map(own_meshes);
                let spheres = levels.filter_map(|level| meshes.sphere_in_poses(level, poses));
                let levels: Vec<_> = spheres.collect();
                let own = meshes.sphere_in_poses(mesh, poses);
                own.map(|own| {
                    levels
                        .into_iter()
                        .fold(own, BoundingSphere::enlarged_around)
                })
            });
            let around = || posed.flatten().or_else(|| meshes.sphere_of(mesh));
            // The spheres of levels are without a pose.
            let lods = item.lods.filter(|_| !matches!(posed, Some(Some(_))));
            let sphere = culling_sphere(around, item.radius, lods, bad_radius);
            let has_radius = sphere.as_ref().is_ok_and(|sphere| sphere.is_by_radius);
            if posed == Some(None) && !has_radius {
                told.tell(entity, Problem::NoJoints);
            }
            sphere.map(|sphere| {
                let reach = item.wind.map_or(0.0, Wind::reach);
                let behind_offset = |sphere| offset_sphere(offset.as_ref(), sphere).grown(reach);
                let full = sphere.full.map(behind_offset);
                let all = behind_offset(sphere.all);
                let all = match impostor.filter(|_| !sphere.is_by_radius) {
                    // Parts of a scene share its sphere, and end at the same distance.
                    Some(impostor) if impostor.surrounds(&all) => impostor,
                    Some(impostor) => all.enlarged_around(impostor),
                    None => all,
                };
                SetSphere {
                    all,
                    full,
                    ..sphere
                }
            })
        };
        match sphere {
            Ok(sphere) => {
                let largest = set.bounds().map_or(0.0, |bounds| bounds.max_scale);
                if largest * sphere.all.radius >= MAX_RADIUS {
                    told.tell(entity, Problem::TooLarge);
                }
                let mut entity = commands.entity(entity);
                entity.try_insert(set_aabb(set, sphere.all));
                // The same sphere is no change: otherwise all entities are read again.
                if item.sphere != Some(&sphere) {
                    entity.try_insert(sphere);
                }
            }
            Err(problem) => {
                // A mesh without vertices draws nothing, and nothing is wrong with it.
                let is_empty = || meshes.meshes.get(mesh).is_some_and(is_empty);
                if problem != Problem::NoBounds || !is_empty() {
                    told.tell(entity, problem);
                }
                commands.entity(entity).try_remove::<(SetSphere, Aabb)>();
            }
        }
    }
}

/// The meshes of levels that have their own.
fn own_meshes(lods: &SetLods) -> impl Iterator<Item = AssetId<Mesh>> {
    lods.levels.iter().filter_map(|level| match level.mesh {
        SetLodMesh::Mesh(mesh) => Some(mesh),
        SetLodMesh::Indices(_) => None,
    })
}

/// Whether a mesh has an attribute of positions that has no values.
fn is_empty(mesh: &Mesh) -> bool {
    let points = mesh.try_attribute(Mesh::ATTRIBUTE_POSITION);
    matches!(points, Ok(VertexAttributeValues::Float32x3(points)) if points.is_empty())
}

/// The sphere of the radius if that is valid, otherwise the spheres around the mesh, and around the
/// mesh and its levels.
fn culling_sphere(
    mesh: impl FnOnce() -> Option<BoundingSphere>,
    radius: Option<&CullingRadius>,
    lods: Option<&SetLods>,
    bad_radius: impl FnOnce(),
) -> Result<SetSphere, Problem> {
    if let Some(radius) = radius {
        if let Some(radius) = radius.checked() {
            let center = Vec3::ZERO;
            return Ok(SetSphere {
                all: BoundingSphere { center, radius },
                full: mesh(),
                is_by_radius: true,
            });
        }
        bad_radius();
    }
    let full = mesh().ok_or(Problem::NoBounds)?;
    Ok(SetSphere {
        all: lods.map_or(full, |lods| lods.enlarge(full)),
        full: Some(full),
        is_by_radius: false,
    })
}

/// A set without a mesh.
type WithoutMesh = (
    With<GpuInstances>,
    Without<Mesh3d>,
    Without<MeshletMesh3d>,
    Without<InstanceScene>,
);

/// Number of frames that an entity may wait for its mesh.
const PATIENCE: u8 = 30;

/// Warns of entities with a set that have had no mesh for some frames.
pub(super) fn warn_of_missing_meshes(
    without: Query<Entity, WithoutMesh>,
    mut waiting: Local<HashMap<Entity, u8>>,
    mut told: Local<Problems>,
) {
    waiting.retain(|entity, _| without.contains(*entity));
    for entity in &without {
        let frames = waiting.entry(entity).or_default();
        *frames = frames.saturating_add(1);
        if *frames > PATIENCE {
            told.tell(entity, Problem::NoMesh);
        }
    }
}

/// A box around the spheres of all instances, whatever their rotation. It is larger by what 32-bit
/// arithmetic loses of its corners, here and on the way to the world. Its numbers are finite.
fn set_aabb(set: &InstanceSet, sphere: BoundingSphere) -> Aabb {
    /// Bevy multiplies the half extents by numbers up to about 1 and adds three of them.
    const MAX: Vec3 = Vec3::splat(f32::MAX / 8.0);
    let Some(bounds) = set.bounds() else {
        return Aabb::default();
    };
    let rounded = bounds.min.abs().max(bounds.max.abs()).max_element() * ROUNDING;
    let reach = (sphere.center.length() + sphere.radius) * bounds.max_scale + rounded;
    Aabb {
        center: bounds.center().into(),
        half_extents: (bounds.half_extents() + reach).min(MAX).into(),
    }
}

#[cfg(test)]
mod tests;
