//! A joint in a pose, as the texture holds it: `matrix_of` in `shaders/draw/animation.wesl`.

use bevy::math::{Affine3, Affine3A, Affine3Ext, Mat3A, Quat, Vec3, Vec3A, Vec4};

/// A joint in a pose, of which [`JointPacking::texels`] are used.
pub(super) type PackedJoint = [Vec4; 3];

/// How the joints of poses are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JointPacking {
    /// A rotation; the place of the joint's pivot, and a scale.
    Turned,
    /// The rows of a matrix that stretches or shears.
    Rows,
}

/// How much a matrix that only turns and scales may differ from that.
const MAX_SHEAR: f32 = 1e-3;

impl JointPacking {
    /// The packing of some matrices.
    pub fn of<'a>(mut matrices: impl Iterator<Item = &'a Affine3A>) -> Self {
        match matrices.all(|matrix| turned(&matrix.matrix3).is_some()) {
            true => Self::Turned,
            false => Self::Rows,
        }
    }

    /// Texels of a joint.
    pub fn texels(self) -> u32 {
        match self {
            Self::Turned => 2,
            Self::Rows => 3,
        }
    }

    /// Packs the matrix of a joint with a pivot.
    pub fn pack(self, matrix: &Affine3A, pivot: Vec3) -> PackedJoint {
        match (self, turned(&matrix.matrix3)) {
            (Self::Turned, Some((rotation, scale))) => {
                let place = matrix.transform_point3(pivot);
                [rotation.into(), place.extend(scale), Vec4::ZERO]
            }
            _ => Affine3::from(*matrix).to_transpose(),
        }
    }

    /// A joint between two.
    pub fn mix(self, a: PackedJoint, b: PackedJoint, share: f32) -> PackedJoint {
        let mut mixed = [0, 1, 2].map(|texel| a[texel] * (1.0 - share) + b[texel] * share);
        if self == Self::Turned && a[0].dot(b[0]) < 0.0 {
            // The same rotation has two signs: the short way around.
            mixed[0] = a[0] * (1.0 - share) - b[0] * share;
        }
        mixed
    }

    /// The matrix of a joint with a pivot.
    pub fn unpack(self, joint: PackedJoint, pivot: Vec3) -> Affine3A {
        match self {
            Self::Turned => {
                let [rotation, place, _] = joint;
                let rotation = Quat::from_vec4(rotation.normalize());
                let matrix = Mat3A::from_quat(rotation) * place.w;
                Affine3A {
                    matrix3: matrix,
                    translation: Vec3A::from(place.truncate()) - matrix * Vec3A::from(pivot),
                }
            }
            Self::Rows => {
                let rows = joint.map(|row| row.truncate().to_array());
                Affine3A {
                    matrix3: Mat3A::from_cols_array_2d(&rows).transpose(),
                    translation: Vec3A::from_array(joint.map(|row| row.w)),
                }
            }
        }
    }
}

/// The rotation and the scale of a matrix that does nothing else.
fn turned(matrix: &Mat3A) -> Option<(Quat, f32)> {
    let scale = matrix.determinant().cbrt();
    if scale <= 0.0 || scale.is_nan() {
        return None;
    }
    let rotation = Quat::from_mat3a(&(*matrix * scale.recip())).normalize();
    let again = Mat3A::from_quat(rotation) * scale;
    let is_close = again.abs_diff_eq(*matrix, MAX_SHEAR * scale);
    is_close.then_some((rotation, scale))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn matrix(scale: Vec3, angle: f32, at: Vec3) -> Affine3A {
        let turn = Quat::from_axis_angle(Vec3::new(0.6, 0.0, 0.8), angle);
        Affine3A::from_scale_rotation_translation(scale, turn, at)
    }

    #[test]
    fn matrices_are_unpacked_as_they_were() {
        let pivot = Vec3::new(0.3, -4.0, 2.0);
        let scales = [Vec3::ONE, Vec3::splat(0.02), Vec3::splat(40.0)];
        let stretched = [
            Vec3::new(1.0, 1.1, 1.0),
            Vec3::new(-1.0, 1.0, 1.0),
            Vec3::ZERO,
        ];
        let with = |scales: [Vec3; 3]| {
            let each = scales.map(|scale| matrix(scale, 2.5, Vec3::new(9.0, 1.0, -3.0)));
            (JointPacking::of(each.iter()), each)
        };
        let (packing, turned) = with(scales);
        assert_eq!((packing, packing.texels()), (JointPacking::Turned, 2));
        let (rows, others) = with(stretched);
        assert_eq!((rows, rows.texels()), (JointPacking::Rows, 3));
        for (packing, all) in [(packing, turned), (rows, others)] {
            for matrix in all {
                let again = packing.unpack(packing.pack(&matrix, pivot), pivot);
                let size = matrix.matrix3.x_axis.length();
                assert!(
                    again.abs_diff_eq(matrix, 1e-5 * (1.0 + 10.0 * size)),
                    "{again} {matrix}"
                );
            }
        }
        // One that stretches is enough.
        let all = [turned[0], others[0]];
        assert_eq!(JointPacking::of(all.iter()), JointPacking::Rows);
    }

    #[test]
    fn a_joint_turns_around_its_pivot() {
        let pivot = Vec3::new(0.0, 3.0, 0.0);
        let at = |angle: f32, at: Vec3| {
            let turn = Affine3A::from_quat(Quat::from_rotation_z(angle));
            Affine3A::from_translation(at) * turn * Affine3A::from_translation(-pivot)
        };
        let packing = JointPacking::Turned;
        let [a, b] = [at(0.2, Vec3::X), at(1.4, Vec3::Y)].map(|joint| packing.pack(&joint, pivot));
        let expected = at(0.8, Vec3::new(0.5, 0.5, 0.0));
        // A rotation and its negative are the same.
        for b in [b, [-b[0], b[1], b[2]]] {
            let between = packing.unpack(packing.mix(a, b, 0.5), pivot);
            assert!(between.abs_diff_eq(expected, 1e-5), "{between} {expected}");
        }
    }
}
