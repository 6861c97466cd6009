//! The transform between the mesh of a set and its instances.

use crate::cull::{BoundingSphere, layout::greatest_stretch};
use bevy::{
    math::{Affine3, Affine3A, Affine3Ext, Vec4},
    prelude::*,
    render::render_resource::ShaderType,
};

/// On a set: moves the mesh before the transform of each instance does. The order is: mesh, offset,
/// instance, entity, world.
///
/// Entities that draw the parts of one object share a set, and each has the offset of its part. So
/// a set of trees is uploaded once for trunk and crown, and neither mesh is changed.
/// [`InstanceScene`](crate::render::InstanceScene) does so with a loaded scene.
///
/// It may rotate, stretch, shear and mirror. All that is measured in the mesh's units is stretched
/// with it: [`CullingRadius`](crate::render::CullingRadius), whose sphere moves with the mesh's
/// origin, and the errors of levels of detail. An
/// [`InstanceImpostor`](crate::render::InstanceImpostor) without an offset has its parent's.
/// Distances of [`InstanceVisibilityRange`](crate::render::InstanceVisibilityRange) are still to
/// the instance's origin, so all parts of an object come and go together.
///
/// It may change in every frame, also with motion vectors. All instances move at once, such as the
/// rotors of windmills. With [`MeshletMesh3d`](crate::render::MeshletMesh3d), each change uploads
/// the bounds of the mesh's meshlets again.
///
/// Every number must be finite and between -[`Self::MAX`] and [`Self::MAX`]. Otherwise the set is
/// not drawn, and the log says so.
///
/// ```
/// # use bevy::prelude::*;
/// # use bevy_gpu_culling::prelude::*;
/// fn spawn(
///     mut commands: Commands,
///     mills: Handle<InstanceSet>,
///     tower: (Mesh3d, MeshMaterial3d<StandardMaterial>),
///     rotor: (Mesh3d, MeshMaterial3d<StandardMaterial>),
/// ) {
///     commands.spawn((tower, GpuInstances(mills.clone())));
///     let axle = Transform::from_xyz(0.0, 12.0, 1.5);
///     commands.spawn((rotor, GpuInstances(mills), InstanceOffset::from(axle)));
/// }
/// ```
#[derive(Component, Reflect, Clone, Copy, Debug, Default, PartialEq, Deref, DerefMut)]
#[reflect(Component, Default, Clone, PartialEq)]
pub struct InstanceOffset(pub Affine3A);

impl InstanceOffset {
    /// The largest number in an offset.
    pub const MAX: f32 = 1e12;

    /// Whether each number is finite and not too large.
    pub(super) fn is_valid(&self) -> bool {
        let numbers = self.0.to_cols_array();
        // Not a number is not in the range, either.
        numbers
            .iter()
            .all(|number| (-Self::MAX..=Self::MAX).contains(number))
    }

    /// The offset, if it is valid and moves anything.
    pub(super) fn checked(&self) -> Option<Affine3A> {
        (self.is_valid() && self.0 != Affine3A::IDENTITY).then_some(self.0)
    }
}

impl From<Transform> for InstanceOffset {
    fn from(transform: Transform) -> Self {
        Self(transform.compute_affine())
    }
}

impl From<GlobalTransform> for InstanceOffset {
    fn from(transform: GlobalTransform) -> Self {
        Self(transform.affine())
    }
}

impl From<Affine3A> for InstanceOffset {
    fn from(affine: Affine3A) -> Self {
        Self(affine)
    }
}

/// The bits of a transform, for keys.
pub(super) fn bits_of(transform: &Affine3A) -> [u32; 12] {
    transform.to_cols_array().map(f32::to_bits)
}

/// How much an offset stretches lengths at most.
pub(super) fn stretch_of(offset: Option<&Affine3A>) -> f32 {
    offset.map_or(1.0, |offset| greatest_stretch(&offset.matrix3))
}

/// A sphere around what an offset makes of what is in `sphere`.
pub(super) fn offset_sphere(offset: Option<&Affine3A>, sphere: BoundingSphere) -> BoundingSphere {
    offset.map_or(sphere, |offset| BoundingSphere {
        center: offset.transform_point3(sphere.center),
        radius: sphere.radius * stretch_of(Some(offset)),
    })
}

/// The offset of a set in its draw slot: the end of `DrawSlot` in `shaders/draw/instance.wesl`.
#[derive(Clone, Copy, Default, PartialEq, ShaderType)]
pub(super) struct SlotOffset {
    /// Rows of the offset.
    pub instance_from_mesh: [Vec4; 3],
    /// The same in the previous frame.
    pub previous_instance_from_mesh: [Vec4; 3],
    /// Rows of the matrix for normals.
    pub instance_from_mesh_normals: [Vec4; 3],
}

impl SlotOffset {
    pub fn new(now: Affine3, before: Affine3) -> Self {
        let matrix = now.matrix3;
        let determinant = matrix.determinant();
        let (x, y, z) = (matrix.x_axis, matrix.y_axis, matrix.z_axis);
        // The inverse, transposed, times the determinant. An offset that flattens has no inverse.
        let cofactors = Mat3::from_cols(y.cross(z), z.cross(x), x.cross(y));
        let normals = match cofactors * determinant.recip() {
            inverse if inverse.is_finite() => inverse,
            _ => cofactors,
        };
        let rows = normals.transpose();
        Self {
            instance_from_mesh: now.to_transpose(),
            previous_instance_from_mesh: before.to_transpose(),
            instance_from_mesh_normals: [
                rows.x_axis.extend(0.0),
                rows.y_axis.extend(0.0),
                rows.z_axis.extend(0.0),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mirrored() -> Affine3A {
        Affine3A::from_scale_rotation_translation(
            Vec3::new(2.0, -0.5, 1.5),
            Quat::from_euler(EulerRot::XYZ, 0.3, -1.1, 2.0),
            Vec3::new(1.0, -4.0, 2.0),
        )
    }

    #[test]
    fn a_sphere_surrounds_what_the_offset_makes_of_it() {
        let sphere = BoundingSphere {
            center: Vec3::new(0.5, 1.0, -2.0),
            radius: 0.7,
        };
        let moved = offset_sphere(Some(&mirrored()), sphere);
        assert!((moved.radius - 1.4).abs() < 1e-5);
        for i in 0..500 {
            let turn = Quat::from_euler(EulerRot::XYZ, i as f32, i as f32 * 0.7, 0.0);
            let point = mirrored().transform_point3(sphere.center + turn * Vec3::X * 0.7);
            assert!(point.distance(moved.center) <= moved.radius * 1.000_01);
        }
        assert_eq!(offset_sphere(None, sphere), sphere);
    }

    #[test]
    fn normals_stay_perpendicular() {
        let affine = Affine3::from(mirrored());
        let slot = SlotOffset::new(affine, affine);
        let rows = slot.instance_from_mesh_normals;
        let normal = Vec3::new(0.2, -0.9, 0.4).normalize();
        let turned = Vec3::from_array(rows.map(|row| row.truncate().dot(normal)));
        for tangent in [
            normal.any_orthonormal_vector(),
            normal.cross(normal.any_orthonormal_vector()),
        ] {
            let tangent = mirrored().transform_vector3(tangent);
            assert!(turned.dot(tangent).abs() < 1e-5);
        }
        let flat = Affine3A::from_scale(Vec3::new(1.0, 0.0, 2.0));
        let slot = SlotOffset::new(flat.into(), flat.into());
        let rows = slot.instance_from_mesh_normals;
        assert_eq!(rows[1].truncate(), Vec3::Y * 2.0, "its one normal");
        assert!(rows.iter().all(|row| row.is_finite()));
    }

    #[test]
    fn only_finite_offsets_that_move_something_are_used() {
        assert_eq!(InstanceOffset::default().checked(), None);
        let moved = InstanceOffset::from(Transform::from_xyz(0.0, 2.0, 0.0));
        assert_eq!(moved.checked(), Some(moved.0));
        for bad in [f32::NAN, f32::INFINITY, -2e12] {
            let offset = InstanceOffset::from(Transform::from_xyz(0.0, bad, 0.0));
            assert!(!offset.is_valid() && offset.checked().is_none(), "{bad}");
        }
    }
}
