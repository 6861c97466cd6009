//! Spheres around meshes. Each is computed once, because that reads all vertices.

use super::{
    animation::{AnimationPoses, PoseTable, sphere_in_poses},
    compression::plain_values,
};
use crate::cull::BoundingSphere;
use bevy::{
    camera::primitives::{Aabb, MeshAabb},
    ecs::system::SystemParam,
    mesh::VertexAttributeValues,
    platform::collections::HashMap,
    prelude::*,
};

/// The spheres that are known; `None` for a mesh without positions of three floats.
#[derive(Resource, Default)]
pub(super) struct MeshSpheres {
    of_meshes: HashMap<AssetId<Mesh>, Option<BoundingSphere>>,
    /// Around meshes in all poses; `None` for a mesh without joints, too.
    in_poses: HashMap<PosedMesh, Option<BoundingSphere>>,
}

/// A mesh, and poses that it is drawn in.
type PosedMesh = (AssetId<Mesh>, AssetId<AnimationPoses>);

/// Forgets the spheres of meshes and of poses that changed.
pub(super) fn forget_changed_meshes(
    mut spheres: ResMut<MeshSpheres>,
    mut events: MessageReader<AssetEvent<Mesh>>,
    mut poses: MessageReader<AssetEvent<AnimationPoses>>,
) {
    for event in poses.read() {
        if let AssetEvent::Modified { id } | AssetEvent::Removed { id } = event {
            spheres.in_poses.retain(|(_, poses), _| poses != id);
        }
    }
    for event in events.read() {
        match event {
            AssetEvent::Added { id } | AssetEvent::Modified { id } | AssetEvent::Removed { id } => {
                spheres.of_meshes.remove(id);
                spheres.in_poses.retain(|(mesh, _), _| mesh != id);
            }
            AssetEvent::Unused { .. } | AssetEvent::LoadedWithDependencies { .. } => {}
        }
    }
}

/// The meshes of sets, and their spheres.
#[derive(SystemParam)]
pub(super) struct BoundedMeshes<'w> {
    pub meshes: Res<'w, Assets<Mesh>>,
    poses: Res<'w, Assets<AnimationPoses>>,
    pose_table: Res<'w, PoseTable>,
    spheres: ResMut<'w, MeshSpheres>,
}

impl BoundedMeshes<'_> {
    /// The sphere around a mesh that has positions.
    pub fn sphere_of(&mut self, id: AssetId<Mesh>) -> Option<BoundingSphere> {
        let compute = || self.meshes.get(id).and_then(sphere_around);
        let known = &mut self.spheres.of_meshes;
        *known.entry(id).or_insert_with(compute)
    }

    /// Whether vertex stages find poses.
    pub fn have_poses(&self, poses: AssetId<AnimationPoses>) -> bool {
        self.pose_table.placed(poses).is_some()
    }

    /// The sphere around a mesh with joints in all poses.
    pub fn sphere_in_poses(
        &mut self,
        mesh: AssetId<Mesh>,
        poses: AssetId<AnimationPoses>,
    ) -> Option<BoundingSphere> {
        let compute = || sphere_in_poses(self.meshes.get(mesh)?, self.poses.get(poses)?);
        let known = &mut self.spheres.in_poses;
        *known.entry((mesh, poses)).or_insert_with(compute)
    }
}

/// A box that is larger than its vertices by this share of its size was set on purpose. What Bevy
/// computes of a compressed mesh differs by less.
const MAX_DIFFERENCE: f32 = 1e-3;

/// The sphere around the vertices of a mesh. If they are not on the CPU, or if
/// [`Mesh::final_aabb`] is larger than they are, the sphere around that box.
pub(super) fn sphere_around(mesh: &Mesh) -> Option<BoundingSphere> {
    let around_box =
        |aabb: Aabb| BoundingSphere::around_box(aabb.center.into(), aabb.half_extents.into());
    let values = plain_values(mesh, Mesh::ATTRIBUTE_POSITION);
    let Some(VertexAttributeValues::Float32x3(points)) = values.as_deref() else {
        return mesh.get_aabb().map(around_box);
    };
    let points = points.iter().copied().map(Vec3::from_array);
    if let Some(known) = mesh.final_aabb.map(Aabb::from) {
        let finite = points.clone().filter(|point| point.is_finite());
        let own = Aabb::enclosing(finite)?;
        let slack = known.half_extents.max_element() * MAX_DIFFERENCE;
        let is_larger = (own.min() - known.min()).max_element() > slack
            || (known.max() - own.max()).max_element() > slack;
        if is_larger {
            return Some(around_box(known));
        }
    }
    BoundingSphere::around_points(points)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bevy::shape::Aabb3d;

    fn radius(mesh: impl Into<Mesh>) -> f32 {
        sphere_around(&mesh.into()).map_or(0.0, |sphere| sphere.radius)
    }

    #[test]
    fn spheres_touch_the_vertices() -> Result {
        let torus = radius(Torus::new(0.37, 0.63));
        let capsule = radius(Capsule3d::new(0.3, 0.84));
        for (radius, expected) in [
            (radius(Sphere::new(0.5).mesh().ico(5)?), 0.5),
            (radius(Sphere::new(0.5).mesh().uv(32, 18)), 0.5),
            (torus, 0.63),
            (capsule, 0.72),
            (radius(Cuboid::from_length(1.0)), 0.75f32.sqrt()),
        ] {
            assert!(
                (expected * 0.999..=expected * 1.002).contains(&radius),
                "{radius}, expected {expected}"
            );
        }
        Ok(())
    }

    #[test]
    fn a_compressed_mesh_has_the_same_sphere() -> Result {
        let mut mesh = Sphere::new(0.5).mesh().ico(3)?;
        mesh.compress_positions()?;
        assert!((0.4999..0.501).contains(&radius(mesh)));
        Ok(())
    }

    #[test]
    fn a_box_that_is_larger_than_the_vertices_counts() {
        let mut mesh = Mesh::from(Cuboid::from_length(2.0));
        let half = |x: f32| Aabb3d::new(Vec3::ZERO, Vec3::splat(x));
        mesh.final_aabb = Some(half(1.0));
        assert!((radius(mesh.clone()) - 3f32.sqrt()).abs() < 1e-4);
        mesh.final_aabb = Some(half(2.0));
        assert_eq!(radius(mesh.clone()), 12f32.sqrt());
        // Vertices that only the GPU has.
        mesh.remove_attribute(Mesh::ATTRIBUTE_POSITION);
        mesh.final_aabb = Some(half(1.0));
        assert_eq!(radius(mesh), 3f32.sqrt());
    }
}
