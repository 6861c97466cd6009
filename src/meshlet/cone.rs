//! The directions that a meshlet's triangles face, in four bytes.

use glam::{DVec3, Vec3};

/// A cone around the normals of a meshlet's triangles. From an eye far enough on its back, every triangle of the
/// meshlet shows its back.
///
/// With `c` and `r` the meshlet's sphere and `v` the vector from `c` to the eye, all triangles face away when
/// `-dot(axis, v) > cutoff * |v| + r`. (Zeux, meshoptimizer, `meshopt_Bounds`: "the formula that uses the
/// bounding sphere".) The eye may be at infinity: `v` is then the direction to it, and `r` is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NormalCone {
    /// Around which the normals lie, in steps of 1/127; of about unit length.
    pub axis: [i8; 3],
    /// Sine of the half angle, in steps of 1/127, rounded so that nothing is culled wrongly; [`Self::WIDE`] when there is
    /// no direction from which all triangles face away.
    pub cutoff: i8,
}

/// Steps of one: signed normalised bytes, as the shader's `unpack4x8snorm` reads them.
const STEPS: f64 = 127.0;
/// Cones wider than this (cosine of the half angle) are of no use: almost no eye lies behind all triangles.
const LEAST_COSINE: f64 = 0.1;
/// For the rounding of normals, views and rotations in `f32`.
const SLACK: f64 = 2e-3;

impl NormalCone {
    /// The cutoff of a meshlet that no view may cull by its cone.
    pub const WIDE: i8 = 127;

    /// A cone that never culls.
    pub const NONE: Self = Self {
        axis: [0; 3],
        cutoff: Self::WIDE,
    };

    /// The narrowest cone around `axis` that holds `normals` (of unit length), rounded outwards.
    #[must_use]
    pub fn around(axis: Vec3, normals: impl IntoIterator<Item = DVec3>) -> Self {
        let unit = axis.as_dvec3().normalize_or_zero();
        let axis = (unit * STEPS).round();
        let length = axis.length() / STEPS;
        if length < 0.5 {
            return Self::NONE;
        }
        let direction = axis.normalize();
        let mut least = 1.0f64;
        let mut any = false;
        for normal in normals {
            least = least.min(normal.dot(direction));
            any = true;
        }
        if !any || least <= LEAST_COSINE {
            return Self::NONE;
        }
        // The stored axis is longer or shorter than one by its rounding: -dot(axis, v) is off by as much.
        let sine = (1.0 - least * least).max(0.0).sqrt();
        let cutoff = sine * length.max(1.0) + (length - 1.0).max(0.0) + SLACK;
        let steps = (cutoff * STEPS).ceil();
        if steps >= STEPS {
            return Self::NONE;
        }
        Self {
            axis: [axis.x as i8, axis.y as i8, axis.z as i8],
            cutoff: steps as i8,
        }
    }

    /// The axis as the shader reads it.
    #[must_use]
    pub fn axis(&self) -> Vec3 {
        let [x, y, z] = self.axis.map(unpack);
        Vec3::new(x, y, z)
    }

    /// The cutoff as the shader reads it; 1 when no view may cull by the cone.
    #[must_use]
    pub fn cutoff(&self) -> f32 {
        unpack(self.cutoff)
    }

    /// The four bytes, axis first, as a little-endian `u32`.
    #[must_use]
    pub fn to_bits(&self) -> u32 {
        let [x, y, z] = self.axis;
        u32::from_le_bytes([x, y, z, self.cutoff].map(i8::cast_unsigned))
    }

    /// The cone of [`Self::to_bits`].
    #[must_use]
    pub fn from_bits(bits: u32) -> Self {
        let [x, y, z, cutoff] = bits.to_le_bytes().map(u8::cast_signed);
        Self {
            axis: [x, y, z],
            cutoff,
        }
    }
}

fn unpack(value: i8) -> f32 {
    (f32::from(value) / 127.0).max(-1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cone_of_one_normal_is_narrow_and_one_of_opposite_normals_never_culls() {
        let narrow = NormalCone::around(Vec3::Y, [DVec3::Y]);
        assert_eq!(narrow.axis, [0, 127, 0]);
        assert!(narrow.cutoff >= 1 && narrow.cutoff <= 2, "{narrow:?}");
        assert_eq!(
            NormalCone::around(Vec3::Y, [DVec3::Y, DVec3::NEG_Y]),
            NormalCone::NONE
        );
        assert_eq!(NormalCone::around(Vec3::ZERO, [DVec3::Y]), NormalCone::NONE);
        assert_eq!(NormalCone::around(Vec3::Y, []), NormalCone::NONE);
        assert_eq!(NormalCone::around(Vec3::NAN, [DVec3::Y]), NormalCone::NONE);
    }

    #[test]
    fn every_normal_is_inside_the_rounded_cone() {
        // An axis that rounds badly, and normals 30 degrees around it.
        let axis = Vec3::new(0.31, -0.47, 0.83).normalize();
        let side = axis.any_orthonormal_vector();
        let normals: Vec<_> = (0..64)
            .map(|i| {
                let turn = glam::Quat::from_axis_angle(axis, i as f32 * 0.1);
                let tilt = glam::Quat::from_axis_angle(side, 30f32.to_radians());
                (turn * tilt * axis).as_dvec3().normalize()
            })
            .collect();
        let cone = NormalCone::around(axis, normals.iter().copied());
        assert!((0.5..0.53).contains(&cone.cutoff()), "{}", cone.cutoff());
        // From any eye that the cone culls, every normal faces away.
        for i in 0..2000 {
            let turn = glam::Quat::from_euler(glam::EulerRot::XYZ, i as f32, i as f32 * 0.7, 0.0);
            let eye = turn * Vec3::Z;
            if -cone.axis().dot(eye) > cone.cutoff() {
                for normal in &normals {
                    assert!(normal.dot(eye.as_dvec3()) <= 0.0, "{normal} {eye}");
                }
            }
        }
    }

    #[test]
    fn bits_come_back() {
        let cone = NormalCone {
            axis: [-127, 3, 90],
            cutoff: 66,
        };
        assert_eq!(NormalCone::from_bits(cone.to_bits()), cone);
        assert_eq!(NormalCone::NONE.cutoff(), 1.0);
    }
}
