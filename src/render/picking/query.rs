//! Finding the instances in a part of the world.

use super::indices::SpatialIndices;
use crate::{
    cull::layout::greatest_stretch,
    instance::{InstanceRegion, InstanceSet, SpatialIndex},
    render::{bounds::SetSphere, components::GpuInstances, lods::ImpostorOf},
};
use bevy::{
    camera::visibility::InheritedVisibility,
    ecs::{query::QueryData, system::SystemParam},
    math::{Affine3A, Mat4, Vec4},
    prelude::*,
};

/// A set in which regions find instances.
#[derive(QueryData)]
pub(super) struct QueriedSet {
    entity: Entity,
    instances: &'static GpuInstances,
    sphere: &'static SetSphere,
    transform: &'static GlobalTransform,
    visibility: &'static InheritedVisibility,
}

/// A system parameter that finds instances in a part of the world: around a player, in a box, in
/// the frame that a mouse draws (feature `picking`). It runs on the CPU: no GPU, and no delay.
///
/// It finds the instances of visible entities whose culling spheres touch the region. Near edges
/// and corners, it may also return instances that just miss the region. As with
/// [`InstanceRayCast`](crate::render::InstanceRayCast), hidden instances are not found, and neither
/// are sets that the GPU writes or that were dropped on the CPU. Both use the same index, and the
/// first query after a change updates it.
///
/// ```
/// # use bevy::prelude::*;
/// # use bevy_gpu_culling::prelude::*;
/// fn explode(
///     mut query: InstanceQuery,
///     mut sets: ResMut<Assets<InstanceSet>>,
///     trees: Query<&GpuInstances>,
/// ) -> Result {
///     let blast = InstanceRegion::Sphere { center: Vec3::new(4.0, 0.0, 2.0), radius: 5.0 };
///     let hit = query.in_region(&blast, &sets);
///     for (entity, instances) in hit {
///         let set = trees.get(entity).ok();
///         let Some(mut set) = set.and_then(|set| sets.get_mut(&set.0)) else {
///             continue;
///         };
///         for instance in instances {
///             // A refused edit is logged. An error without a severity would end the app.
///             set.hide(instance).with_severity(Severity::Error)?;
///         }
///     }
///     Ok(())
/// }
/// ```
#[derive(SystemParam)]
pub struct InstanceQuery<'w, 's> {
    indices: ResMut<'w, SpatialIndices>,
    targets: Query<'w, 's, QueriedSet, Without<ImpostorOf>>,
}

impl InstanceQuery<'_, '_> {
    /// The instances in a region of the world: of each entity, in the order of its set. Entities
    /// without any are left out.
    pub fn in_region(
        &mut self,
        region: &InstanceRegion,
        sets: &Assets<InstanceSet>,
    ) -> Vec<(Entity, Vec<u32>)> {
        let indices = self.indices.bypass_change_detection();
        let mut all = Vec::new();
        for target in &self.targets {
            let asset = target.instances.id();
            let world_from_local = target.transform.affine();
            let Some(set) = sets.get(asset).filter(|_| target.visibility.get()) else {
                continue;
            };
            let Some(local) = to_local(region, &world_from_local) else {
                continue;
            };
            let sphere = target.sphere.all;
            let tested = (sphere.center, sphere.radius);
            if !SpatialIndex::reaches(set, &local, tested) {
                continue;
            }
            let stretch = greatest_stretch(&world_from_local.matrix3);
            // A ball of the world is smaller than the one that was looked for, if the set
            // stretches.
            let is_near = |instance: u32| match (region, set.get(instance)) {
                (InstanceRegion::Sphere { center, radius }, Some(at)) => {
                    let reach = radius + sphere.radius * at.scale.max_element() * stretch;
                    let place = world_from_local * at.to_affine();
                    place.transform_point3(sphere.center).distance(*center) <= reach
                }
                _ => true,
            };
            let mut found = Vec::new();
            let index = indices.updated(asset, set);
            index.in_region(set, &local, tested, |instance| {
                if is_near(instance) {
                    found.push(instance);
                }
            });
            if !found.is_empty() {
                all.push((target.entity, found));
            }
        }
        all.sort_by_key(|(entity, _)| entity.index_u32());
        all
    }
}

/// A region of the world in the space of a set. A ball that the set stretches is a larger ball.
/// `None` if the transform has no inverse.
fn to_local(region: &InstanceRegion, world_from_local: &Affine3A) -> Option<InstanceRegion> {
    let local_from_world = world_from_local.inverse();
    if !local_from_world.is_finite() {
        return None;
    }
    let turn = Mat4::from(*world_from_local).transpose();
    let planes = |all: &[Vec4]| all.iter().map(|plane| turn * *plane).collect();
    Some(match region {
        InstanceRegion::Box { min, max } => InstanceRegion::Planes(planes(&[
            Vec3::X.extend(-min.x),
            Vec3::Y.extend(-min.y),
            Vec3::Z.extend(-min.z),
            Vec3::NEG_X.extend(max.x),
            Vec3::NEG_Y.extend(max.y),
            Vec3::NEG_Z.extend(max.z),
        ])),
        InstanceRegion::Sphere { center, radius } => InstanceRegion::Sphere {
            center: local_from_world.transform_point3(*center),
            radius: radius * greatest_stretch(&local_from_world.matrix3),
        },
        InstanceRegion::Planes(all) => InstanceRegion::Planes(planes(all)),
    })
}
