//! One instance as a caller describes it.

use glam::{Affine3A, Mat3, Mat4, Quat, Vec3};

use super::{InstanceError, PackedInstance};

/// Largest deviation of a rotation's length from 1.
const MAX_LENGTH_DRIFT: f32 = 0.01;
/// Largest difference between the scales of two axes, relative to the larger one.
const MAX_SCALE_DIFFERENCE: f32 = 1e-3;
/// A scale this close to 1 counts as 1: decomposing a matrix is no more precise, and a set without
/// scales is smaller.
const UNIT_SCALE_SLACK: f32 = 1e-5;
/// Shortest axis whose direction can be computed: `f32` cannot square shorter ones.
const MIN_AXIS_LENGTH: f32 = 1e-18;

/// The place of one instance in its set's local space: scale, then rotation, then translation.
///
/// Made from `Transform` (feature `bevy`), [`Affine3A`], [`Mat4`], [`PackedInstance`] or, for a
/// pure translation, [`Vec3`]. Nothing is checked here; [`InstanceSet`](super::InstanceSet) checks
/// the instance when it takes it. These values are allowed:
///
/// | field | allowed |
/// | --- | --- |
/// | `translation` | finite |
/// | `rotation` | length 1 within 1 % (normalized then) |
/// | `scale` | finite, at least 0, the same on all axes within 0.1 % (the largest counts; 1 ± 0.00001 is 1) |
///
/// ```
/// use bevy_gpu_culling::instance::InstanceTransform;
/// use glam::{Affine3A, Quat, Vec3};
///
/// let affine = Affine3A::from_scale_rotation_translation(Vec3::splat(2.0), Quat::IDENTITY, Vec3::X);
/// let instance = InstanceTransform::from(affine);
/// assert_eq!(instance, InstanceTransform::from(Vec3::X).with_scale(2.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InstanceTransform {
    /// Position in the set's local space.
    pub translation: Vec3,
    /// Rotation, a unit quaternion.
    pub rotation: Quat,
    /// Scale; an instance has one for all axes.
    pub scale: Vec3,
}

impl InstanceTransform {
    /// At the origin, without rotation, of scale 1.
    pub const IDENTITY: Self = Self {
        translation: Vec3::ZERO,
        rotation: Quat::IDENTITY,
        scale: Vec3::ONE,
    };

    /// The same with another rotation.
    #[must_use]
    pub const fn with_rotation(mut self, rotation: Quat) -> Self {
        self.rotation = rotation;
        self
    }

    /// The same with another scale, equal on all axes.
    #[must_use]
    pub const fn with_scale(mut self, scale: f32) -> Self {
        self.scale = Vec3::splat(scale);
        self
    }

    /// The matrix: scale, then rotation, then translation.
    #[must_use]
    pub fn to_affine(&self) -> Affine3A {
        Affine3A::from_scale_rotation_translation(self.scale, self.rotation, self.translation)
    }

    /// Checks and packs. Position and scale are checked before rotation: a matrix with a flat axis
    /// has no rotation to blame.
    pub(super) fn pack(&self, index: u32) -> Result<(PackedInstance, f32), InstanceError> {
        check_position(self.translation, index)?;
        let scale = uniform_scale(self.scale, index)?;
        check_rotation(self.rotation, index)?;
        Ok((PackedInstance::new(self.translation, self.rotation), scale))
    }
}

/// Refuses a position that is not finite.
pub(super) fn check_position(value: Vec3, index: u32) -> Result<(), InstanceError> {
    if value.is_finite() {
        Ok(())
    } else {
        Err(InstanceError::NonFinitePosition { index, value })
    }
}

/// Refuses a rotation without a direction or far from unit length.
pub(super) fn check_rotation(value: Quat, index: u32) -> Result<(), InstanceError> {
    let length = value.length();
    if !value.is_finite() {
        Err(InstanceError::NonFiniteRotation { index, value })
    } else if length == 0.0 {
        Err(InstanceError::ZeroRotation { index, value })
    } else if (length - 1.0).abs() > MAX_LENGTH_DRIFT {
        Err(InstanceError::RotationNotNormalized {
            index,
            value,
            length,
        })
    } else {
        Ok(())
    }
}

/// Refuses a scale that is not finite or negative.
pub(super) fn check_scale(value: f32, index: u32) -> Result<(), InstanceError> {
    if value.is_finite() && value >= 0.0 {
        Ok(())
    } else {
        Err(InstanceError::InvalidScale { index, value })
    }
}

/// The one scale that stands for all three: the largest. Culling may then keep too much, never too
/// little.
fn uniform_scale(value: Vec3, index: u32) -> Result<f32, InstanceError> {
    if let Some(bad) = value.to_array().into_iter().find(|s| !s.is_finite()) {
        return Err(InstanceError::InvalidScale { index, value: bad });
    }
    let (low, high) = (value.min_element(), value.max_element());
    if high - low > MAX_SCALE_DIFFERENCE * high.abs().max(low.abs()) {
        return Err(InstanceError::NonUniformScale { index, value });
    }
    check_scale(low, index)?;
    Ok(if (high - 1.0).abs() <= UNIT_SCALE_SLACK {
        1.0
    } else {
        high
    })
}

impl Default for InstanceTransform {
    fn default() -> Self {
        Self::IDENTITY
    }
}

/// A pure translation.
impl From<Vec3> for InstanceTransform {
    fn from(translation: Vec3) -> Self {
        Self {
            translation,
            ..Self::IDENTITY
        }
    }
}

/// An instance of scale 1.
impl From<PackedInstance> for InstanceTransform {
    fn from(instance: PackedInstance) -> Self {
        Self {
            translation: instance.position(),
            rotation: instance.rotation(),
            scale: Vec3::ONE,
        }
    }
}

/// Decomposes the matrix. A mirroring matrix gets a negative x scale. An instance cannot be
/// sheared: shear stretches a diagonal, so a sheared matrix gets a scale that is not uniform. A
/// matrix with a scale of 0 has no rotation and gets the identity.
impl From<Affine3A> for InstanceTransform {
    fn from(affine: Affine3A) -> Self {
        // Not glam's function: with its assertions enabled, as in a default Bevy build, it panics
        // on a scale of 0.
        let columns = Mat3::from(affine.matrix3);
        let mut scale = Vec3::new(
            columns.x_axis.length(),
            columns.y_axis.length(),
            columns.z_axis.length(),
        );
        let rotation = if scale.is_finite() && scale.min_element() > MIN_AXIS_LENGTH {
            let mut x = columns.x_axis / scale.x;
            let (y, z) = (columns.y_axis / scale.y, columns.z_axis / scale.z);
            let shear = x.dot(y).abs().max(y.dot(z).abs()).max(z.dot(x).abs());
            if shear > MAX_SCALE_DIFFERENCE {
                // The factor by which two axes with that cosine stretch their diagonals.
                scale.y = scale.max_element() * (1.0 + shear).sqrt();
                scale.z = scale.min_element() * (1.0 - shear).max(0.0).sqrt();
            }
            if x.dot(y.cross(z)) < 0.0 {
                x = -x;
                scale.x = -scale.x;
            }
            Quat::from_mat3(&Mat3::from_cols(x, y, z))
        } else {
            Quat::IDENTITY
        };
        Self {
            translation: affine.translation.into(),
            rotation,
            scale,
        }
    }
}

/// Same as for [`Affine3A`]; ignores the last row.
impl From<Mat4> for InstanceTransform {
    fn from(matrix: Mat4) -> Self {
        Affine3A::from_mat4(matrix).into()
    }
}

#[cfg(feature = "bevy")]
mod bevy_transform {
    use bevy::transform::components::Transform;

    use super::InstanceTransform;

    impl From<Transform> for InstanceTransform {
        fn from(transform: Transform) -> Self {
            Self {
                translation: transform.translation,
                rotation: transform.rotation,
                scale: transform.scale,
            }
        }
    }

    impl From<&Transform> for InstanceTransform {
        fn from(transform: &Transform) -> Self {
            (*transform).into()
        }
    }

    impl From<InstanceTransform> for Transform {
        fn from(instance: InstanceTransform) -> Self {
            Self {
                translation: instance.translation,
                rotation: instance.rotation,
                scale: instance.scale,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn scaled(scale: Vec3) -> InstanceTransform {
        InstanceTransform {
            scale,
            ..InstanceTransform::IDENTITY
        }
    }

    fn turned(x: f32, y: f32, z: f32, w: f32) -> InstanceTransform {
        InstanceTransform::IDENTITY.with_rotation(Quat::from_xyzw(x, y, z, w))
    }

    #[test]
    fn positions_must_be_finite() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for axis in Vec3::AXES {
                let value = Vec3::ONE + axis * bad;
                let error = InstanceTransform::from(value).pack(3).unwrap_err();
                assert!(
                    matches!(error, InstanceError::NonFinitePosition { index: 3, .. }),
                    "{error}"
                );
            }
        }
        assert!(
            InstanceTransform::from(Vec3::splat(-f32::MAX))
                .pack(0)
                .is_ok()
        );
    }

    #[test]
    fn rotations_must_be_near_unit_length() {
        let error = turned(0.0, 0.0, 0.0, 0.0).pack(3).unwrap_err();
        assert!(
            matches!(error, InstanceError::ZeroRotation { index: 3, .. }),
            "{error}"
        );
        for bad in [f32::NAN, f32::INFINITY] {
            let error = turned(0.0, bad, 0.0, 1.0).pack(3).unwrap_err();
            assert!(
                matches!(error, InstanceError::NonFiniteRotation { index: 3, .. }),
                "{error}"
            );
        }
        for (w, ok) in [
            (1.009, true),
            (0.991, true),
            (1.011, false),
            (0.989, false),
            (1e-10, false),
            (1e30, false),
        ] {
            match turned(0.0, 0.0, 0.0, w).pack(3) {
                Ok((packed, _)) => {
                    assert!(ok, "length {w} was accepted");
                    assert_eq!(packed.rotation(), Quat::IDENTITY);
                }
                Err(InstanceError::RotationNotNormalized { index: 3, .. }) => {
                    assert!(!ok, "length {w} was refused");
                }
                Err(other) => panic!("{other}"),
            }
        }
    }

    #[test]
    fn scales_must_be_uniform() {
        for bad in [
            Vec3::new(1.0, 1.0, 1.002),
            Vec3::new(0.0, 1.0, 1.0),
            Vec3::new(-1.0, 1.0, 1.0),
            Vec3::new(f32::MAX, -f32::MAX, f32::MAX),
        ] {
            let error = scaled(bad).pack(3).unwrap_err();
            assert_eq!(
                error,
                InstanceError::NonUniformScale {
                    index: 3,
                    value: bad
                }
            );
        }
        assert_eq!(scaled(Vec3::new(2.0, 2.001, 2.0)).pack(0).unwrap().1, 2.001);
    }

    #[test]
    fn scales_must_be_finite_and_not_negative() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let error = scaled(Vec3::new(1.0, bad, 1.0)).pack(3).unwrap_err();
            assert!(
                matches!(error, InstanceError::InvalidScale { index: 3, value } if !value.is_finite()),
                "{error}"
            );
        }
        let error = scaled(Vec3::splat(-2.0)).pack(3).unwrap_err();
        assert_eq!(
            error,
            InstanceError::InvalidScale {
                index: 3,
                value: -2.0
            }
        );
        assert_eq!(scaled(Vec3::ZERO).pack(0).unwrap().1, 0.0);
        assert_eq!(scaled(Vec3::splat(f32::MAX)).pack(0).unwrap().1, f32::MAX);
    }

    #[test]
    fn a_scale_next_to_one_is_one() {
        assert_eq!(scaled(Vec3::splat(1.000_005)).pack(0).unwrap().1, 1.0);
        assert_eq!(scaled(Vec3::splat(1.000_02)).pack(0).unwrap().1, 1.000_02);
    }

    #[test]
    fn matrices_come_apart_as_they_were_made() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        for _ in 0..100_000 {
            let rotation =
                Quat::from_array(std::array::from_fn(|_| rng.random_range(-1.0f32..=1.0)));
            if rotation.length_squared() < 0.01 {
                continue;
            }
            let rotation = rotation.normalize();
            let translation =
                Vec3::from_array(std::array::from_fn(|_| rng.random_range(-1e3f32..=1e3)));
            let rigid = Affine3A::from_rotation_translation(rotation, translation);
            let (packed, scale) = InstanceTransform::from(rigid).pack(0).unwrap();
            assert_eq!(scale, 1.0, "{rigid}");
            assert_eq!(packed.position(), translation);

            let scale = rng.random_range(0.01f32..100.0);
            let matrix =
                Mat4::from_scale_rotation_translation(Vec3::splat(scale), rotation, translation);
            let apart = InstanceTransform::from(matrix);
            assert!(
                (apart.scale / scale).abs_diff_eq(Vec3::ONE, 1e-6),
                "{scale} -> {}",
                apart.scale
            );
            assert!(
                apart.rotation.dot(rotation).abs() > 1.0 - 1e-6,
                "{rotation} -> {}",
                apart.rotation
            );
            assert_eq!(apart.translation, translation);
        }
    }

    #[test]
    fn odd_matrices_are_refused_for_the_right_reason() {
        let of = |scale| InstanceTransform::from(Affine3A::from_scale(scale)).pack(0);
        assert_eq!(of(Vec3::ZERO).unwrap(), (PackedInstance::default(), 0.0));
        assert!(of(Vec3::splat(1e-30)).is_ok());
        assert!(matches!(
            of(Vec3::new(1.0, 0.0, 1.0)),
            Err(InstanceError::NonUniformScale { .. })
        ));
        assert!(matches!(
            of(Vec3::new(1.0, -1.0, 1.0)),
            Err(InstanceError::NonUniformScale { .. })
        ));
        assert!(matches!(
            of(Vec3::splat(f32::NAN)),
            Err(InstanceError::InvalidScale { .. })
        ));
        assert!(matches!(
            of(Vec3::splat(f32::MAX)),
            Err(InstanceError::InvalidScale { .. })
        ));
        // A shear that keeps all axes at unit length.
        for angle in [0.0f32, 1e-4, 2e-3, 0.5, 1.5] {
            let leaning = Vec3::new(angle.sin(), angle.cos(), 0.0);
            let sheared = Affine3A::from_mat3(Mat3::from_cols(Vec3::X, leaning, Vec3::Z));
            match InstanceTransform::from(sheared).pack(0) {
                Ok((_, scale)) => assert!(
                    angle < 1e-3 && scale == 1.0,
                    "{angle} radians of shear were accepted"
                ),
                Err(InstanceError::NonUniformScale { .. }) => {
                    assert!(angle > 1e-3, "{angle} radians were refused");
                }
                Err(other) => panic!("{other}"),
            }
        }
    }

    #[test]
    fn to_affine_is_the_inverse_of_from_affine() {
        let instance = InstanceTransform::from(Vec3::new(1.0, 2.0, 3.0))
            .with_rotation(Quat::from_rotation_y(1.0))
            .with_scale(2.0);
        let back = InstanceTransform::from(instance.to_affine());
        assert!(back.to_affine().abs_diff_eq(instance.to_affine(), 1e-5));

        let mirrored = InstanceTransform {
            scale: Vec3::new(2.0, 3.0, -4.0),
            ..instance
        };
        let back = InstanceTransform::from(mirrored.to_affine());
        assert_eq!(back.scale.signum(), Vec3::new(-1.0, 1.0, 1.0));
        assert!(back.to_affine().abs_diff_eq(mirrored.to_affine(), 1e-5));
    }

    #[cfg(feature = "bevy")]
    #[test]
    fn bevy_transforms_go_both_ways() {
        use bevy::transform::components::Transform;

        let transform = Transform::from_xyz(1.0, 2.0, 3.0).with_scale(Vec3::splat(2.0));
        assert_eq!(
            Transform::from(InstanceTransform::from(&transform)),
            transform
        );
        assert_eq!(
            InstanceTransform::from(transform).translation,
            transform.translation
        );
    }
}
