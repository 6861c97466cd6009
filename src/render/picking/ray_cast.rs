//! Casting rays at instances.

use super::{InstanceHit, indices::SpatialIndices};
use crate::{
    cull::{BoundingSphere, DistanceRange},
    instance::{InstanceRay, InstanceSet, SpatialIndex},
    render::{
        bounds::SetSphere,
        components::GpuInstances,
        compression::{has_plain_positions, plain_values},
        lods::{ImpostorOf, InstanceVisibilityRange},
        offset::InstanceOffset,
    },
};
use bevy::{
    camera::visibility::{InheritedVisibility, ViewVisibility},
    ecs::{query::QueryData, system::SystemParam},
    math::{Affine3A, FloatOrd},
    mesh::{Indices, PrimitiveTopology, VertexAttributeValues},
    picking::mesh_picking::ray_cast::{
        Backfaces, MeshRayCastSettings, RayCastBackfaces, RayCastVisibility, RayMeshHit,
        ray_mesh_intersection,
    },
    prelude::*,
};
use core::cell::OnceCell;
use std::borrow::Cow;

/// A set that rays may hit.
#[derive(QueryData)]
pub(super) struct RayTarget {
    entity: Entity,
    instances: &'static GpuInstances,
    sphere: &'static SetSphere,
    range: Option<&'static InstanceVisibilityRange>,
    mesh: Option<&'static Mesh3d>,
    offset: Option<&'static InstanceOffset>,
    transform: &'static GlobalTransform,
    inherited: &'static InheritedVisibility,
    in_view: &'static ViewVisibility,
    has_backfaces: Has<RayCastBackfaces>,
}

/// A system parameter that casts rays at instances, as Bevy's `MeshRayCast` does at meshes and with
/// its settings (feature `picking`). It runs on the CPU: no GPU, and no delay.
///
/// A ray hits the full mesh, not a coarser level of detail. If the mesh is not on the CPU
/// (`MeshletMesh3d`, a mesh without `MAIN_WORLD`) or has no triangle list, it hits the sphere with
/// which instances are tested. It hits no hidden instances, and no sets that the GPU writes or that
/// were dropped on the CPU (`RENDER_WORLD`). A [`CullingRadius`](crate::render::CullingRadius) does
/// not matter if rays hit the mesh.
///
/// Of an entity with an [`InstanceVisibilityRange`], rays hit the instances that are drawn at their
/// distance; of two entities whose ranges fade into each other, only the one that is more than half
/// there. See [`cast_ray`](Self::cast_ray) and [`cast_ray_seen_from`](Self::cast_ray_seen_from) for
/// the point from which distances are measured.
///
/// With Bevy's default settings, a ray hits only sets that some camera or light sees, and returns
/// the nearest hit alone.
///
/// The first ray that enters the box around a set after a change updates an index of the set: some
/// milliseconds per million new instances, less for an edit. A ray then takes some microseconds in
/// a [sorted](InstanceSet::sorted) set.
///
/// ```
/// # use bevy::prelude::*;
/// # use bevy::picking::mesh_picking::ray_cast::MeshRayCastSettings;
/// # use bevy_gpu_culling::prelude::*;
/// fn look(camera: Single<&GlobalTransform, With<Camera3d>>, mut ray_cast: InstanceRayCast) {
///     let ray = Ray3d::new(camera.translation(), camera.forward());
///     let hits = ray_cast.cast_ray(ray, &MeshRayCastSettings::default());
///     if let Some((entity, hit)) = hits.first() {
///         info!("instance {} of {entity} is {} away", hit.instance, hit.distance);
///     }
/// }
/// ```
#[derive(SystemParam)]
pub struct InstanceRayCast<'w, 's> {
    sets: Res<'w, Assets<InstanceSet>>,
    meshes: Option<Res<'w, Assets<Mesh>>>,
    indices: ResMut<'w, SpatialIndices>,
    targets: Query<'w, 's, RayTarget, Without<ImpostorOf>>,
}

impl InstanceRayCast<'_, '_> {
    /// The nearest instance of each set that the ray hits, nearest first.
    ///
    /// As in Bevy, what lies behind an entity for which `settings.early_exit_test` is true is left
    /// out. By default, that is all but the nearest. [`InstanceVisibilityRange`]s are measured from
    /// the origin of the ray, as a camera there would see the instances.
    pub fn cast_ray(
        &mut self,
        ray: Ray3d,
        settings: &MeshRayCastSettings,
    ) -> Vec<(Entity, InstanceHit)> {
        self.cast_ray_seen_from(Some(ray.origin), ray, settings)
    }

    /// Same as [`cast_ray`](Self::cast_ray), with [`InstanceVisibilityRange`]s measured from `eye`:
    /// the translation of a camera if the ray is of its cursor. With `None`, a ray hits instances
    /// at every distance.
    pub fn cast_ray_seen_from(
        &mut self,
        eye: Option<Vec3>,
        ray: Ray3d,
        settings: &MeshRayCastSettings,
    ) -> Vec<(Entity, InstanceHit)> {
        let indices = self.indices.bypass_change_detection();
        let mut limit = f32::INFINITY;
        let mut hits = Vec::new();
        for target in &self.targets {
            let is_visible = match settings.visibility {
                RayCastVisibility::Any => true,
                RayCastVisibility::Visible => target.inherited.get(),
                RayCastVisibility::VisibleInView => target.in_view.get(),
            };
            if !is_visible || !(settings.filter)(target.entity) {
                continue;
            }
            let Some(set) = self.sets.get(target.instances.id()) else {
                continue;
            };
            let mesh = target
                .mesh
                .zip(self.meshes.as_ref())
                .and_then(|(mesh, meshes)| Triangles::of(meshes.get(&mesh.0)?));
            let Some(cast) = Cast::new(ray, eye, &target, mesh) else {
                continue;
            };
            let sphere = (cast.sphere.center, cast.sphere.radius);
            if !SpatialIndex::enters(set, cast.local, sphere, limit) {
                continue;
            }
            let index = indices.updated(target.instances.id(), set);
            let Some(hit) = cast.nearest(set, index, limit) else {
                continue;
            };
            if (settings.early_exit_test)(target.entity) {
                limit = limit.min(hit.distance);
            }
            hits.push((target.entity, hit));
        }
        hits.retain(|(_, hit)| hit.distance <= limit);
        // Of hits at one distance, the entity that was spawned first.
        hits.sort_by_key(|(entity, hit)| (FloatOrd(hit.distance), entity.index_u32()));
        hits
    }

    /// Number of sets that have an index: those whose boxes a ray has entered, or a region of an
    /// [`InstanceQuery`](crate::render::InstanceQuery) has touched. It is what rays keep
    /// in memory, about one byte per instance.
    #[must_use]
    pub fn indexed_sets(&self) -> usize {
        self.indices.len()
    }
}

/// A ray that is cast at one set.
struct Cast<'a> {
    ray: Ray3d,
    /// The ray in the set's space. Distances along it are the same as in the world.
    local: InstanceRay,
    world_from_local: Affine3A,
    offset: Affine3A,
    /// The sphere around what the ray may hit of an instance.
    sphere: BoundingSphere,
    /// The triangles; without them, the ray hits the sphere.
    mesh: Option<Triangles<'a>>,
    backfaces: Backfaces,
    range: Option<SeenRange>,
}

/// The distances at which a ray hits instances.
struct SeenRange {
    eye: Vec3,
    distances: DistanceRange,
    /// The center of the sphere with which instances are tested.
    center: Vec3,
}

impl SeenRange {
    /// Whether an instance is in the range.
    fn has(&self, place: &Affine3A) -> bool {
        let of = match self.distances.of_centers {
            true => place.transform_point3(self.center),
            false => place.translation.into(),
        };
        let distance = of.distance(self.eye);
        (self.distances.start..self.distances.end).contains(&distance)
    }
}

impl<'a> Cast<'a> {
    /// `None` if the set's transform has no inverse.
    fn new(
        ray: Ray3d,
        eye: Option<Vec3>,
        target: &RayTargetItem,
        mesh: Option<Triangles<'a>>,
    ) -> Option<Self> {
        let world_from_local = target.transform.affine();
        let local_from_world = world_from_local.inverse();
        if !local_from_world.is_finite() {
            return None;
        }
        let offset = target.offset.and_then(InstanceOffset::checked);
        let tested = target.sphere.all;
        // A radius is for culling, and may be smaller than the mesh. Rays hit no levels.
        let of_mesh = target.sphere.full.filter(|_| mesh.is_some());
        let sphere = of_mesh.unwrap_or(tested);
        let range = target.range.and_then(InstanceVisibilityRange::checked);
        Some(Self {
            ray,
            local: InstanceRay {
                origin: local_from_world.transform_point3(ray.origin),
                // The length of the direction makes distances the same as in the world.
                direction: local_from_world.transform_vector3(*ray.direction),
            },
            world_from_local,
            offset: offset.unwrap_or_default(),
            sphere,
            mesh,
            backfaces: match target.has_backfaces {
                true => Backfaces::Include,
                false => Backfaces::Cull,
            },
            range: eye.zip(range).map(|(eye, range)| SeenRange {
                eye,
                distances: range.mostly_there(),
                center: tested.center,
            }),
        })
    }

    /// The nearest instance of the set.
    fn nearest(&self, set: &InstanceSet, index: &SpatialIndex, limit: f32) -> Option<InstanceHit> {
        let mut nearest: Option<InstanceHit> = None;
        let exact = |instance, enter| {
            let mut at = set.get(instance)?;
            // A flat instance has no inverse.
            at.scale = at.scale.max(Vec3::splat(at.scale.max_element() * 1e-5));
            let place = self.world_from_local * at.to_affine();
            if self.range.as_ref().is_some_and(|range| !range.has(&place)) {
                return None;
            }
            let hit = match &self.mesh {
                Some(mesh) => {
                    let place = place * self.offset;
                    instance_hit(mesh.meet(self.ray, &place, self.backfaces)?)
                }
                // The sphere is the one that the offset has moved.
                None => sphere_hit(self.ray, place.transform_point3(self.sphere.center), enter),
            };
            let distance = hit.distance;
            if nearest.as_ref().is_none_or(|best| distance < best.distance) {
                nearest = Some(InstanceHit {
                    instance,
                    id: set.id_of(instance),
                    version: set.version(),
                    tag: set.tag(instance)?,
                    ..hit
                });
            }
            Some(distance)
        };
        let sphere = (self.sphere.center, self.sphere.radius);
        index.nearest(set, self.local, sphere, limit, exact)?;
        nearest
    }
}

fn instance_hit(hit: RayMeshHit) -> InstanceHit {
    InstanceHit {
        instance: 0,
        id: None,
        version: default(),
        tag: 0,
        point: hit.point,
        normal: hit.normal,
        distance: hit.distance,
        triangle_index: hit.triangle_index,
        uv: hit.uv,
    }
}

fn sphere_hit(ray: Ray3d, center: Vec3, distance: f32) -> InstanceHit {
    let point = ray.get_point(distance);
    InstanceHit {
        instance: 0,
        id: None,
        version: default(),
        tag: 0,
        point,
        normal: (point - center).normalize_or(-*ray.direction),
        distance,
        triangle_index: None,
        uv: None,
    }
}

/// A mesh whose triangles a ray may hit.
struct Triangles<'a> {
    mesh: &'a Mesh,
    /// Read when the ray comes near an instance: attributes may be compressed.
    attributes: OnceCell<Attributes<'a>>,
}

/// The attributes of a mesh as Bevy's intersection takes them.
struct Attributes<'a> {
    positions: Option<Cow<'a, VertexAttributeValues>>,
    normals: Option<Cow<'a, VertexAttributeValues>>,
    uvs: Option<Cow<'a, VertexAttributeValues>>,
}

impl<'a> Triangles<'a> {
    /// `None` if the mesh is not on the CPU or has no triangle list.
    fn of(mesh: &'a Mesh) -> Option<Self> {
        let is_list = mesh.primitive_topology() == PrimitiveTopology::TriangleList;
        (is_list && has_plain_positions(mesh)).then(|| Self {
            mesh,
            attributes: OnceCell::new(),
        })
    }

    fn meet(&self, ray: Ray3d, place: &Affine3A, backfaces: Backfaces) -> Option<RayMeshHit> {
        let attributes = self.attributes.get_or_init(|| Attributes {
            positions: plain_values(self.mesh, Mesh::ATTRIBUTE_POSITION),
            normals: plain_values(self.mesh, Mesh::ATTRIBUTE_NORMAL),
            uvs: plain_values(self.mesh, Mesh::ATTRIBUTE_UV_0),
        });
        let positions = attributes.positions.as_deref()?.as_float3()?;
        let normals = attributes.normals.as_deref();
        let normals = normals.and_then(VertexAttributeValues::as_float3);
        let uvs = match attributes.uvs.as_deref() {
            Some(VertexAttributeValues::Float32x2(uvs)) => Some(uvs.as_slice()),
            _ => None,
        };
        match self.mesh.try_indices().ok() {
            Some(Indices::U16(indices)) => {
                let indices = Some(indices.as_slice());
                ray_mesh_intersection(ray, place, positions, normals, indices, uvs, backfaces)
            }
            Some(Indices::U32(indices)) => {
                let indices = Some(indices.as_slice());
                ray_mesh_intersection(ray, place, positions, normals, indices, uvs, backfaces)
            }
            None => {
                ray_mesh_intersection::<u32>(ray, place, positions, normals, None, uvs, backfaces)
            }
        }
    }
}
