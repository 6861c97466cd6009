//! Casting rays at instances.

use crate::{
    instance::{InstanceRay, InstanceSet, RayIndex},
    render::{
        bounds::SetSphere, components::GpuInstances, lods::ImpostorOf, offset::InstanceOffset,
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
    platform::collections::HashMap,
    prelude::*,
};

/// An instance that a ray meets.
#[derive(Clone, Debug, PartialEq, Reflect)]
#[reflect(Clone, Debug, PartialEq)]
pub struct InstanceHit {
    /// Index of the instance in its set.
    pub instance: u32,
    /// The instance's tag; 0 without tags.
    pub tag: u32,
    /// The point at which the ray meets it, in world space.
    pub point: Vec3,
    /// The normal there, in world space, as Bevy's `RayMeshHit` has it: its length may differ from
    /// 1 in scaled sets, and uneven scales bend it.
    pub normal: Vec3,
    /// Distance from the ray's origin, in world units.
    pub distance: f32,
    /// Which triangle of the mesh was met. `None` if only the instance's sphere is known: see
    /// [`InstanceRayCast`].
    pub triangle_index: Option<usize>,
    /// Texture coordinates, if the mesh has them.
    pub uv: Option<Vec2>,
}

/// The boxes by which rays find instances, set by set.
#[derive(Resource, Default)]
pub(in crate::render) struct RayIndices(HashMap<AssetId<InstanceSet>, RayIndex>);

/// A set that rays may meet.
#[derive(QueryData)]
pub(super) struct RayTarget {
    entity: Entity,
    instances: &'static GpuInstances,
    sphere: &'static SetSphere,
    mesh: Option<&'static Mesh3d>,
    offset: Option<&'static InstanceOffset>,
    transform: &'static GlobalTransform,
    inherited: &'static InheritedVisibility,
    in_view: &'static ViewVisibility,
    has_backfaces: Has<RayCastBackfaces>,
}

/// A system parameter that casts rays at instances, as Bevy's `MeshRayCast` does at meshes and with
/// its settings. It runs on the CPU: no GPU, and no delay.
///
/// The full mesh is met, not a coarser level of detail. If the mesh is not on the CPU
/// (`MeshletMesh3d`, a mesh without `MAIN_WORLD`) or has no triangle list, the sphere with which
/// instances are tested is met instead. Hidden instances are not met. Neither are sets that the
/// GPU writes or that were dropped on the CPU (`RENDER_WORLD`).
///
/// The first ray after a change updates an index of the set: some milliseconds per million new
/// instances, less for an edit. A ray then takes some microseconds in a
/// [sorted](InstanceSet::sorted) set.
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
    indices: ResMut<'w, RayIndices>,
    targets: Query<'w, 's, RayTarget, Without<ImpostorOf>>,
}

impl InstanceRayCast<'_, '_> {
    /// The nearest instance of each set that the ray meets, nearest first.
    ///
    /// As in Bevy, what lies behind an entity for which `settings.early_exit_test` is true is left
    /// out.
    pub fn cast_ray(
        &mut self,
        ray: Ray3d,
        settings: &MeshRayCastSettings,
    ) -> Vec<(Entity, InstanceHit)> {
        let indices = &mut self.indices.bypass_change_detection().0;
        indices.retain(|asset, _| self.sets.contains(*asset));
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
            let index = indices.entry(target.instances.id()).or_default();
            index.update(set);
            let mesh = target
                .mesh
                .zip(self.meshes.as_ref())
                .and_then(|(mesh, meshes)| Triangles::of(meshes.get(&mesh.0)?));
            let Some(hit) = cast(ray, &target, (set, index), mesh.as_ref(), limit) else {
                continue;
            };
            if (settings.early_exit_test)(target.entity) {
                limit = limit.min(hit.distance);
            }
            hits.push((target.entity, hit));
        }
        hits.retain(|(_, hit)| hit.distance <= limit);
        hits.sort_by_key(|(_, hit)| FloatOrd(hit.distance));
        hits
    }
}

/// The nearest instance of one set.
fn cast(
    ray: Ray3d,
    target: &RayTargetItem,
    (set, index): (&InstanceSet, &RayIndex),
    mesh: Option<&Triangles>,
    limit: f32,
) -> Option<InstanceHit> {
    let world_from_local = target.transform.affine();
    let local_from_world = world_from_local.inverse();
    if !local_from_world.is_finite() {
        return None;
    }
    // The length of the direction makes distances the same as in the world.
    let local = InstanceRay {
        origin: local_from_world.transform_point3(ray.origin),
        direction: local_from_world.transform_vector3(*ray.direction),
    };
    let backfaces = match target.has_backfaces {
        true => Backfaces::Include,
        false => Backfaces::Cull,
    };
    let sphere = target.sphere.0;
    let offset = target.offset.and_then(InstanceOffset::checked);
    let offset = offset.unwrap_or_default();
    let mut nearest: Option<InstanceHit> = None;
    let exact = |instance, enter| {
        let mut at = set.get(instance)?;
        // A flat instance has no inverse.
        at.scale = at.scale.max(Vec3::splat(at.scale.max_element() * 1e-5));
        let place = world_from_local * at.to_affine();
        let hit = match mesh {
            Some(mesh) => instance_hit(mesh.meet(ray, &(place * offset), backfaces)?),
            // The sphere is the one that the offset has moved.
            None => sphere_hit(ray, place.transform_point3(sphere.center), enter),
        };
        let distance = hit.distance;
        if nearest.as_ref().is_none_or(|best| distance < best.distance) {
            let tag = set.tag(instance)?;
            nearest = Some(InstanceHit {
                instance,
                tag,
                ..hit
            });
        }
        Some(distance)
    };
    let limits = (sphere.center, sphere.radius);
    index.nearest(set, local, limits, limit, exact)?;
    nearest
}

fn instance_hit(hit: RayMeshHit) -> InstanceHit {
    InstanceHit {
        instance: 0,
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
        tag: 0,
        point,
        normal: (point - center).normalize_or(-*ray.direction),
        distance,
        triangle_index: None,
        uv: None,
    }
}

/// A mesh as Bevy's intersection takes it.
struct Triangles<'a> {
    positions: &'a [[f32; 3]],
    normals: Option<&'a [[f32; 3]]>,
    uvs: Option<&'a [[f32; 2]]>,
    indices: Option<&'a Indices>,
}

impl<'a> Triangles<'a> {
    /// `None` if the mesh is not on the CPU or has no triangle list.
    fn of(mesh: &'a Mesh) -> Option<Self> {
        if mesh.primitive_topology() != PrimitiveTopology::TriangleList {
            return None;
        }
        let positions = mesh.try_attribute(Mesh::ATTRIBUTE_POSITION).ok()?;
        let normals = mesh.try_attribute(Mesh::ATTRIBUTE_NORMAL).ok();
        let uvs = mesh.try_attribute(Mesh::ATTRIBUTE_UV_0).ok();
        Some(Self {
            positions: positions.as_float3()?,
            normals: normals.and_then(VertexAttributeValues::as_float3),
            uvs: uvs.and_then(|uvs| match uvs {
                VertexAttributeValues::Float32x2(uvs) => Some(uvs.as_slice()),
                _ => None,
            }),
            indices: mesh.try_indices().ok(),
        })
    }

    fn meet(&self, ray: Ray3d, place: &Affine3A, backfaces: Backfaces) -> Option<RayMeshHit> {
        let Self {
            positions,
            normals,
            uvs,
            indices,
        } = *self;
        match indices {
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
