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
/// let (scale, rotation) = (Vec3::splat(2.0), Quat::IDENTITY);
/// let affine = Affine3A::from_scale_rotation_translation(scale, rotation, Vec3::X);
/// let instance = InstanceTransform::from(affine);
/// assert_eq!(instance, InstanceTransform::from(Vec3::X).with_scale(2.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
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
mod tests;
