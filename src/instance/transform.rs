//! One instance as a caller describes it.

#[cfg(feature = "bevy")]
use bevy::reflect::std_traits::ReflectDefault;
#[cfg(all(feature = "bevy", feature = "serde"))]
use bevy::reflect::{ReflectDeserialize, ReflectSerialize};
use glam::{Affine3A, Mat3, Mat4, Quat, Vec3};

use super::{InstanceError, PackedInstance};

/// Largest deviation of a rotation's length from 1.
const MAX_LENGTH_DRIFT: f32 = 0.01;
/// Largest difference between the scales of two axes that count as equal, relative to the larger
/// one.
const MAX_SCALE_DIFFERENCE: f32 = 1e-3;
/// Largest cosine between two axes of a matrix that counts as not sheared.
const MAX_SHEAR: f32 = 1e-3;
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
/// | `scale` | finite, and no mirror: two axes may be negative, which is [a half turn](Self::folded). If the axes differ by at most 0.1 %, the largest counts for all (1 ± 0.00001 is 1) |
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
#[cfg_attr(
    feature = "bevy",
    derive(bevy::reflect::Reflect),
    reflect(Clone, Debug, Default, PartialEq)
)]
#[cfg_attr(
    all(feature = "bevy", feature = "serde"),
    reflect(Serialize, Deserialize)
)]
pub struct InstanceTransform {
    /// Position in the set's local space.
    pub translation: Vec3,
    /// Rotation, a unit quaternion.
    pub rotation: Quat,
    /// Scale along the axes of the mesh, before the rotation. A set stores 12 bytes per instance
    /// if it differs between axes, 4 otherwise.
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

    /// The same place with as few negative scales as there can be. Two negative axes are half a
    /// turn around the third one, which goes into the rotation, exactly. What is left is a negative
    /// scale along x if the transform mirrors, and none otherwise.
    ///
    /// A set does this to each instance and refuses the ones that mirror. To draw these, too,
    /// mirror the mesh along x and give a set of that mesh the transforms with the scale's absolute
    /// value.
    ///
    /// ```
    /// use bevy_gpu_culling::instance::InstanceTransform;
    /// use glam::{Quat, Vec3};
    ///
    /// let mut instance = InstanceTransform::from(Vec3::X);
    /// instance.scale = Vec3::new(-2.0, 1.0, -3.0);
    /// let folded = instance.folded();
    /// assert_eq!(folded.scale, Vec3::new(2.0, 1.0, 3.0));
    /// assert!(folded.to_affine().abs_diff_eq(instance.to_affine(), 1e-6));
    /// instance.scale.x = 2.0;
    /// assert!(instance.is_mirrored());
    /// assert_eq!(instance.folded().scale, Vec3::new(-2.0, 1.0, 3.0));
    /// ```
    #[must_use]
    pub fn folded(mut self) -> Self {
        let mut negative = self.scale.to_array().map(|axis| axis < 0.0);
        let is_odd = |negative: [bool; 3]| negative.iter().filter(|axis| **axis).count() % 2 == 1;
        if is_odd(negative) && !self.is_mirrored() {
            // The sign of an axis of length 0 is free.
            if let Some(flat) = (0..3).find(|axis| self.scale[*axis] == 0.0) {
                negative[flat] = true;
            }
        }
        // Half a turn around x, y or z turns the other two axes. Written out: a product would
        // round, and glam may assert that its factors are normalized.
        let [x, y, z, w] = self.rotation.to_array();
        self.rotation = match (negative[1], negative[2]) {
            (false, false) => self.rotation,
            (true, true) => Quat::from_xyzw(w, z, -y, -x),
            (false, true) => Quat::from_xyzw(-z, w, x, -y),
            (true, false) => Quat::from_xyzw(y, -x, w, -z),
        };
        self.scale = self.scale.abs();
        if is_odd(negative) {
            self.scale.x = -self.scale.x;
        }
        self
    }

    /// Whether the transform mirrors: an odd number of axes is negative, and none is 0.
    #[must_use]
    pub fn is_mirrored(&self) -> bool {
        let signs = self.scale.signum().element_product();
        signs < 0.0 && self.scale.cmpne(Vec3::ZERO).all()
    }

    /// Checks and packs. Position and scale are checked before rotation: a sheared matrix has no
    /// rotation to blame.
    pub(super) fn pack(&self, index: u32) -> Result<(PackedInstance, Vec3), InstanceError> {
        check_position(self.translation, index)?;
        // A mirror is refused with the scale as it was given.
        let may_fold = self.scale.min_element() < 0.0 && !self.is_mirrored();
        let folded = if may_fold { self.folded() } else { *self };
        let scale = stored_scale(folded.scale, index)?;
        check_rotation(folded.rotation, index)?;
        let packed = PackedInstance::new(folded.translation, folded.rotation);
        Ok((packed, scale))
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

/// The scale as a set stores it: the largest for all axes if they are nearly equal. Culling may
/// then keep too much, never too little.
fn stored_scale(value: Vec3, index: u32) -> Result<Vec3, InstanceError> {
    for axis in value.to_array() {
        check_scale(axis, index)?;
    }
    let (low, high) = (value.min_element(), value.max_element());
    Ok(if high - low > MAX_SCALE_DIFFERENCE * high {
        value
    } else if (high - 1.0).abs() <= UNIT_SCALE_SLACK {
        Vec3::ONE
    } else {
        Vec3::splat(high)
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

/// Decomposes the matrix. A mirroring matrix gets a negative x scale, and a sheared one gets a
/// scale that is not a number, so that a set refuses both. A flat matrix gets one of the rotations
/// that fit, and a matrix of zeros the identity.
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
        let mut rotation = Quat::IDENTITY;
        if scale.is_finite() {
            let (mut x, y, z) = directions(&columns, scale);
            let shear = x.dot(y).abs().max(y.dot(z).abs()).max(z.dot(x).abs());
            if x.dot(y.cross(z)) < 0.0 {
                x = -x;
                scale.x = -scale.x;
            }
            if shear > MAX_SHEAR {
                scale = Vec3::NAN;
            } else {
                rotation = Quat::from_mat3(&Mat3::from_cols(x, y, z));
            }
        }
        Self {
            translation: affine.translation.into(),
            rotation,
            scale,
        }
    }
}

/// The directions of the axes. An axis of length 0 gets a direction across the others.
fn directions(columns: &Mat3, lengths: Vec3) -> (Vec3, Vec3, Vec3) {
    let along = |axis: Vec3, length: f32| (length > MIN_AXIS_LENGTH).then(|| axis / length);
    let [x, y, z] = core::array::from_fn(|i| along(columns.col(i), lengths[i]));
    // The triples in cyclic order are right-handed, as the axes of a rotation are.
    match (x, y, z) {
        (Some(x), Some(y), Some(z)) => (x, y, z),
        (Some(x), Some(y), None) => (x, y, x.cross(y).normalize_or(Vec3::Z)),
        (Some(x), None, Some(z)) => (x, z.cross(x).normalize_or(Vec3::Y), z),
        (None, Some(y), Some(z)) => (y.cross(z).normalize_or(Vec3::X), y, z),
        (Some(x), None, None) => {
            let (y, z) = x.any_orthonormal_pair();
            (x, y, z)
        }
        (None, Some(y), None) => {
            let (z, x) = y.any_orthonormal_pair();
            (x, y, z)
        }
        (None, None, Some(z)) => {
            let (x, y) = z.any_orthonormal_pair();
            (x, y, z)
        }
        (None, None, None) => (Vec3::X, Vec3::Y, Vec3::Z),
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
