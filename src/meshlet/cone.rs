//! The directions that a meshlet's triangles face, in four bytes.

use core::f64::consts::FRAC_PI_2;
use glam::{DVec3, Vec3};

/// A cone around the normals of a meshlet's triangles. An eye that is far enough behind it sees
/// only the backs of the meshlet's triangles.
///
/// Let `c` and `r` be the center and the radius of the meshlet's sphere, and `v` the vector from
/// `c` to the eye. All triangles face away if `-dot(axis, v) > cutoff * |v| + r`. (Zeux,
/// meshoptimizer, `meshopt_Bounds`: "the formula that uses the bounding sphere".) The eye may be at
/// infinity: `v` is then the direction to it, and `r` is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NormalCone {
    /// Axis of the cone, in steps of 1/127; its length is about 1.
    pub axis: [i8; 3],
    /// Sine of the half angle, in steps of 1/127, rounded so that no visible meshlet is rejected;
    /// [`Self::WIDE`] if there is no direction from which all triangles face away.
    pub cutoff: i8,
}

/// Steps per unit: signed normalized bytes, as the shader's `unpack4x8snorm` reads them.
const STEPS: f64 = 127.0;
/// Smallest useful cosine of the half angle. For wider cones, almost no eye is behind all
/// triangles.
const MIN_COSINE: f64 = 0.1;
/// Margin for the rounding of normals, views and rotations in `f32`.
const SLACK: f64 = 2e-3;

impl NormalCone {
    /// The cutoff of a cone that never rejects its meshlet.
    pub const WIDE: i8 = 127;

    /// A cone that never rejects its meshlet.
    pub const NONE: Self = Self {
        axis: [0; 3],
        cutoff: Self::WIDE,
    };

    /// The narrowest cone around `axis` that contains `normals` (of unit length), rounded outwards.
    #[must_use]
    pub fn around(axis: Vec3, normals: impl IntoIterator<Item = DVec3>) -> Self {
        let Some((axis, direction)) = rounded(axis.as_dvec3()) else {
            return Self::NONE;
        };
        let mut min = 1.0f64;
        let mut any = false;
        for normal in normals {
            min = min.min(normal.dot(direction));
            any = true;
        }
        if any {
            Self::of_rounded(axis, min)
        } else {
            Self::NONE
        }
    }

    /// The cone of all directions at most `angle` radians from `axis`, rounded outwards.
    pub(super) fn of_angle(axis: DVec3, angle: f64) -> Self {
        let Some((rounded, direction)) = rounded(axis) else {
            return Self::NONE;
        };
        let angle = angle + axis.angle_between(direction);
        let min = if angle < FRAC_PI_2 { angle.cos() } else { 0.0 };
        Self::of_rounded(rounded, min)
    }

    /// The cone around an axis in steps. `min` is the cosine of its half angle.
    fn of_rounded(axis: DVec3, min: f64) -> Self {
        if min <= MIN_COSINE {
            return Self::NONE;
        }
        let length = axis.length() / STEPS;
        // Rounding makes the stored axis longer or shorter than 1, and scales -dot(axis, v) by the
        // same factor.
        let sine = (1.0 - min * min).max(0.0).sqrt();
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

    /// The cutoff as the shader reads it; 1 if the cone never rejects its meshlet.
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

    /// The cone whose [`Self::to_bits`] are `bits`.
    #[must_use]
    pub fn from_bits(bits: u32) -> Self {
        let [x, y, z, cutoff] = bits.to_le_bytes().map(u8::cast_signed);
        Self {
            axis: [x, y, z],
            cutoff,
        }
    }
}

/// An axis in steps, and its direction after rounding; `None` if it has no length.
fn rounded(axis: DVec3) -> Option<(DVec3, DVec3)> {
    let axis = (axis.normalize_or_zero() * STEPS).round();
    (axis.length() / STEPS >= 0.5).then(|| (axis, axis.normalize()))
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
        // From any eye for which the cone rejects, every normal faces away.
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
