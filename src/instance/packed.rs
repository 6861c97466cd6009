//! One instance in 16 bytes.

#[cfg(feature = "bevy")]
use bevy::reflect::std_traits::ReflectDefault;
#[cfg(all(feature = "bevy", feature = "serde"))]
use bevy::reflect::{ReflectDeserialize, ReflectSerialize};
use bytemuck::{Pod, Zeroable};
use glam::{Affine3A, Quat, Vec3};

use super::PackedQuat;

/// An instance as the shaders read it: 16 bytes, alignment 4.
///
/// | bytes | field |
/// | --- | --- |
/// | 0..12 | `position`, three `f32`, in the set's local space |
/// | 12..16 | `rotation`, see [`PackedQuat`] |
///
/// Scale and data are separate channels; see [`InstanceSet`](super::InstanceSet). The fields are
/// public so that a loader can fill a buffer directly;
/// [`InstanceSet::from_packed`](super::InstanceSet::from_packed) checks them.
///
/// ```
/// use bevy_gpu_culling::instance::PackedInstance;
/// use glam::{Quat, Vec3};
///
/// let instance = PackedInstance::new(Vec3::new(1.0, 2.0, 3.0), Quat::IDENTITY);
/// assert_eq!(instance.position(), Vec3::new(1.0, 2.0, 3.0));
/// assert_eq!(bytemuck::bytes_of(&instance).len(), 16);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "bevy",
    derive(bevy::reflect::Reflect),
    reflect(Clone, Debug, Default, PartialEq)
)]
#[cfg_attr(
    all(feature = "bevy", feature = "serde"),
    reflect(Serialize, Deserialize)
)]
#[repr(C)]
pub struct PackedInstance {
    /// Position in the set's local space. Must be finite.
    pub position: [f32; 3],
    /// Rotation around the position.
    pub rotation: PackedQuat,
}

impl PackedInstance {
    /// Packs a position and a rotation of any length, without checking either.
    #[must_use]
    pub fn new(position: Vec3, rotation: Quat) -> Self {
        Self {
            position: position.to_array(),
            rotation: PackedQuat::encode(rotation),
        }
    }

    /// The position.
    #[must_use]
    pub fn position(&self) -> Vec3 {
        Vec3::from_array(self.position)
    }

    /// Whether no view keeps it: see [`InstanceSet::hide`](super::InstanceSet::hide).
    pub(crate) fn is_hidden(&self) -> bool {
        self.position[0].is_nan()
    }

    /// The rotation, decoded.
    #[must_use]
    pub fn rotation(&self) -> Quat {
        self.rotation.decode()
    }

    /// The matrix that the vertex shader applies: scale, then rotation, then translation.
    #[must_use]
    pub fn to_affine(&self, scale: Vec3) -> Affine3A {
        Affine3A::from_scale_rotation_translation(scale, self.rotation(), self.position())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_sixteen_bytes_in_the_order_of_the_shader() {
        assert_eq!(size_of::<PackedInstance>(), 16);
        assert_eq!(align_of::<PackedInstance>(), 4);
        let instance = PackedInstance::new(Vec3::new(1.0, 2.0, 3.0), Quat::IDENTITY);
        let words: [u32; 4] = bytemuck::cast(instance);
        assert_eq!(words[..3], [1.0f32, 2.0, 3.0].map(f32::to_bits));
        assert_eq!(words[3], PackedQuat::IDENTITY.to_bits());
    }

    #[test]
    fn default_is_identity_at_the_origin() {
        assert_eq!(
            PackedInstance::default(),
            PackedInstance::new(Vec3::ZERO, Quat::IDENTITY)
        );
        assert_eq!(
            PackedInstance::default().to_affine(Vec3::ONE),
            Affine3A::IDENTITY
        );
    }

    #[test]
    fn affine_scales_then_turns_then_moves() {
        let instance =
            PackedInstance::new(Vec3::X, Quat::from_rotation_z(std::f32::consts::FRAC_PI_2));
        let moved = instance
            .to_affine(Vec3::splat(2.0))
            .transform_point3(Vec3::X);
        assert!(moved.abs_diff_eq(Vec3::new(1.0, 2.0, 0.0), 1e-6), "{moved}");
    }
}
