//! A rotation in 32 bits: smallest three.

use std::f32::consts::FRAC_1_SQRT_2;
use std::fmt;

#[cfg(feature = "bevy")]
use bevy::reflect::std_traits::ReflectDefault;
#[cfg(all(feature = "bevy", feature = "serde"))]
use bevy::reflect::{ReflectDeserialize, ReflectSerialize};
use bytemuck::{Pod, Zeroable};
use glam::Quat;

/// Number of steps on each side of zero. The total number of steps is even, so zero has a code.
const STEPS: i32 = 511;

/// A unit quaternion in 32 bits.
///
/// Smallest three, after Glenn Fiedler's [Snapshot
/// Compression](https://gafferongames.com/post/snapshot_compression/): the component with the
/// largest magnitude is left out, because the other three and the unit length give it back. `q` and
/// `-q` are the same rotation, so its sign is made positive; the other three then lie in `±1/√2`.
///
/// | bits | content |
/// | --- | --- |
/// | 31..30 | which component was left out: 0 = x, 1 = y, 2 = z, 3 = w |
/// | 29..20, 19..10, 9..0 | the third, second and first of the others, in the order x, y, z, w |
///
/// A code `c` in `0..=1022` stands for `(c - 511) · STEP`, see [`STEP`](Self::STEP). Code 511 is
/// zero, and codes 0 and 1022 are `±1/√2`. So the identity and turns by 90° and 180° around the
/// axes come back exact to the last bit or two. Code 1023 is never written; it reads as one step
/// above `1/√2`.
///
/// [`decode`](Self::decode) uses only `+`, `-`, `*`, `max` and `sqrt`, so a shader gets the same
/// values.
///
/// All bits zero, which is what [`Zeroable`] gives, is *not* a rotation; [`PackedQuat::IDENTITY`]
/// is the default.
///
/// ```
/// use bevy_gpu_culling::instance::PackedQuat;
/// use glam::Quat;
///
/// let turn = Quat::from_rotation_y(0.3);
/// let packed = PackedQuat::encode(turn);
/// assert!(packed.decode().angle_between(turn) <= PackedQuat::MAX_ERROR_RADIANS);
/// assert_eq!(packed, PackedQuat::encode(-turn));
/// assert_eq!(PackedQuat::encode(Quat::IDENTITY).decode(), Quat::IDENTITY);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Pod, Zeroable)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "bevy",
    derive(bevy::reflect::Reflect),
    reflect(opaque, Clone, Debug, Default, PartialEq, Hash)
)]
#[cfg_attr(
    all(feature = "bevy", feature = "serde"),
    reflect(Serialize, Deserialize)
)]
#[repr(transparent)]
pub struct PackedQuat(u32);

impl PackedQuat {
    /// Size of one step of a code: `(1/√2) / 511`. A shader multiplies by this exact constant.
    pub const STEP: f32 = FRAC_1_SQRT_2 / STEPS as f32;

    /// No rotation. Decodes to exactly [`Quat::IDENTITY`].
    pub const IDENTITY: Self = Self((3 << 30) | (511 << 20) | (511 << 10) | 511);

    /// The largest rotation error of `decode(encode(q))`, in radians (0.2756°).
    ///
    /// Let `h` be half a step, `d ≥ 1/2` the component left out and `v` the other three, each
    /// `|vᵢ| ≤ d`. Rounding moves each `vᵢ` by at most `h`, so `d² - d'²` is at most
    /// `h · Σ(2|vᵢ| + h) ≤ 6hd + 3h²`, and `d` moves by at most `x = d - √(d² - 6hd - 3h²)`. That
    /// shrinks as `d` grows, so `d = 1/2` is the worst case. The two quaternions are then at most
    /// `s = √(3h² + x²)` apart, which is a turn of `4 asin(s/2)` = 0.0048037; the rest is a margin
    /// for `f32`. Inputs near the corner `|x| = |y| = |z| = |w| = 1/2` reach 99 % of it.
    pub const MAX_ERROR_RADIANS: f32 = 0.00481;

    /// Packs a rotation.
    ///
    /// The length of `rotation` does not matter. A quaternion without a direction (zero, NaN,
    /// infinite) gives [`PackedQuat::IDENTITY`]; [`InstanceSet`](super::InstanceSet) refuses such
    /// input before it gets here.
    #[must_use]
    pub fn encode(rotation: Quat) -> Self {
        let components = rotation.to_array();
        // The first one of equal components, so that q and -q choose the same.
        let mut largest = 0;
        for i in 1..4 {
            if components[i].abs() > components[largest].abs() {
                largest = i;
            }
        }
        let pivot = components[largest];
        if pivot == 0.0 || !rotation.is_finite() {
            return Self::IDENTITY;
        }

        // Dividing by the signed pivot makes it +1: no overflow at any length, and q and -q agree.
        let scaled = components.map(|component| component / pivot);
        let length = scaled.iter().map(|s| s * s).sum::<f32>().sqrt();
        let others = match largest {
            0 => [scaled[1], scaled[2], scaled[3]],
            1 => [scaled[0], scaled[2], scaled[3]],
            2 => [scaled[0], scaled[1], scaled[3]],
            _ => [scaled[0], scaled[1], scaled[2]],
        };
        let [first, second, third] = others.map(|other| quantize(other / length));
        Self((largest as u32) << 30 | third << 20 | second << 10 | first)
    }

    /// The rotation, of unit length within 1e-6.
    ///
    /// Bits that [`encode`](Self::encode) did not write may hold three components that are too long
    /// together. The result is then finite and has a length between 1 and 1.23.
    #[must_use]
    pub fn decode(self) -> Quat {
        let first = dequantize(self.0);
        let second = dequantize(self.0 >> 10);
        let third = dequantize(self.0 >> 20);
        let largest = (1.0 - (first * first + second * second + third * third))
            .max(0.0)
            .sqrt();
        match self.0 >> 30 {
            0 => Quat::from_xyzw(largest, first, second, third),
            1 => Quat::from_xyzw(first, largest, second, third),
            2 => Quat::from_xyzw(first, second, largest, third),
            _ => Quat::from_xyzw(first, second, third, largest),
        }
    }

    /// Takes the bits unchanged, from a file or from the GPU.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The bits, as the shaders read them.
    #[must_use]
    pub const fn to_bits(self) -> u32 {
        self.0
    }
}

/// The code of a component in `±1/√2`. Halves round away from zero, so a rotation and its inverse
/// get mirrored codes.
fn quantize(component: f32) -> u32 {
    let steps = component / PackedQuat::STEP;
    let rounded = (steps + 0.5f32.copysign(steps)) as i32;
    (rounded.clamp(-STEPS, STEPS) + STEPS) as u32
}

/// The component that the code in the low ten bits stands for.
fn dequantize(code: u32) -> f32 {
    ((code & 0x3ff) as f32 - STEPS as f32) * PackedQuat::STEP
}

impl Default for PackedQuat {
    fn default() -> Self {
        Self::IDENTITY
    }
}

impl fmt::Debug for PackedQuat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PackedQuat({:#010x} = {})", self.0, self.decode())
    }
}

impl From<Quat> for PackedQuat {
    fn from(rotation: Quat) -> Self {
        Self::encode(rotation)
    }
}

impl From<PackedQuat> for Quat {
    fn from(packed: PackedQuat) -> Self {
        packed.decode()
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::FRAC_1_SQRT_2 as FRAC_1_SQRT_2_F64;

    use glam::{DQuat, Vec3};
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// The angle between two quaternions, in `f64`: `acos` of a dot product near 1 would be noise.
    fn turn_between(a: Quat, b: Quat) -> f64 {
        let a = a.as_dquat().normalize();
        let b = b.as_dquat().normalize();
        let apart = |b: DQuat| (a - b).length();
        4.0 * (apart(b).min(apart(-b)) / 2.0).asin()
    }

    /// Encodes, checks everything that holds for any rotation, and returns the error in radians.
    fn check(rotation: Quat) -> f64 {
        let packed = PackedQuat::encode(rotation);
        assert_eq!(
            packed,
            PackedQuat::encode(-rotation),
            "q and -q: {rotation}"
        );
        let decoded = packed.decode();
        let length = decoded.as_dquat().length();
        assert!(
            (length - 1.0).abs() < 1e-6,
            "{rotation} -> {decoded}: length {length}"
        );
        let error = turn_between(rotation, decoded);
        assert!(
            error <= f64::from(PackedQuat::MAX_ERROR_RADIANS),
            "{rotation} -> {decoded}: {error} radians"
        );
        error
    }

    fn random_rotation(rng: &mut ChaCha8Rng) -> Quat {
        loop {
            let q = Quat::from_array(std::array::from_fn(|_| rng.random_range(-1.0f32..=1.0)));
            if (0.01..=1.0).contains(&q.length_squared()) {
                return q.normalize();
            }
        }
    }

    #[test]
    fn is_four_bytes() {
        assert_eq!(size_of::<PackedQuat>(), 4);
        assert_eq!(align_of::<PackedQuat>(), 4);
    }

    #[test]
    fn a_million_random_rotations_stay_within_the_bound() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut squares = 0.0;
        for _ in 0..1_000_000 {
            squares += check(random_rotation(&mut rng)).powi(2);
        }
        let rms = (squares / 1e6).sqrt().to_degrees();
        assert!((0.08..0.12).contains(&rms), "RMS error {rms} degrees");
    }

    #[test]
    fn the_bound_follows_from_the_step_and_is_reached_near_the_corners() {
        let h = FRAC_1_SQRT_2_F64 / f64::from(STEPS) / 2.0;
        let d = 0.5;
        let x = d - (d * d - 6.0 * h * d - 3.0 * h * h).sqrt();
        let proven = 4.0 * ((3.0 * h * h + x * x).sqrt() / 2.0).asin();
        let stated = f64::from(PackedQuat::MAX_ERROR_RADIANS);
        assert!(
            proven < stated && stated < proven * 1.002,
            "{proven} against {stated}"
        );

        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut worst = 0.0f64;
        for _ in 0..500_000 {
            let corner = Quat::from_array(std::array::from_fn(|_| {
                let sign = if rng.random_bool(0.5) { 1.0 } else { -1.0 };
                sign * (0.5 + rng.random_range(-0.003f32..=0.003))
            }));
            worst = worst.max(check(corner.normalize()));
        }
        assert!(worst > stated * 0.98, "worst {worst} of {stated}");
    }

    #[test]
    fn corners_with_all_signs_are_ordinary() {
        for signs in 0..16u32 {
            let sign = |bit: u32| if signs >> bit & 1 == 0 { 0.5 } else { -0.5 };
            let corner = [sign(0), sign(1), sign(2), sign(3)];
            check(Quat::from_array(corner));
            for component in 0..4 {
                for ulps in [-2i32, -1, 1, 2] {
                    let mut near = corner;
                    near[component] =
                        f32::from_bits(near[component].to_bits().wrapping_add_signed(ulps));
                    check(Quat::from_array(near).normalize());
                }
            }
        }
    }

    #[test]
    fn identity_and_turns_around_the_axes_are_exact() {
        assert_eq!(PackedQuat::encode(Quat::IDENTITY), PackedQuat::IDENTITY);
        assert_eq!(PackedQuat::encode(-Quat::IDENTITY), PackedQuat::IDENTITY);
        assert_eq!(PackedQuat::IDENTITY.decode(), Quat::IDENTITY);
        assert_eq!(PackedQuat::default(), PackedQuat::IDENTITY);
        for axis in Vec3::AXES {
            let half = Quat::from_xyzw(axis.x, axis.y, axis.z, 0.0);
            assert_eq!(PackedQuat::encode(half).decode(), half);
            for quarters in -4..=4 {
                let turn =
                    Quat::from_axis_angle(axis, quarters as f32 * std::f32::consts::FRAC_PI_2);
                assert!(check(turn) < 1e-6, "{quarters} quarter turns around {axis}");
            }
        }
    }

    #[test]
    fn a_rotation_and_its_inverse_stay_inverse() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for _ in 0..100_000 {
            let q = random_rotation(&mut rng);
            let there = PackedQuat::encode(q).decode();
            let back = PackedQuat::encode(q.conjugate()).decode();
            assert!(turn_between(there.conjugate(), back) < 1e-6, "{q}");
        }
    }

    #[test]
    fn known_bits_do_not_move() {
        let bits = |x, y, z, w| PackedQuat::encode(Quat::from_xyzw(x, y, z, w)).to_bits();
        assert_eq!(bits(0.0, 0.0, 0.0, 1.0), 0xdff7_fdff);
        assert_eq!(bits(1.0, 0.0, 0.0, 0.0), 0x1ff7_fdff);
        assert_eq!(bits(0.0, 1.0, 0.0, 0.0), 0x5ff7_fdff);
        assert_eq!(bits(0.0, 0.0, -1.0, 0.0), 0x9ff7_fdff);
        // 0.5 is 361.33 steps: code 872. Of equal components, the first one is left out.
        assert_eq!(bits(0.5, 0.5, 0.5, 0.5), 0x368d_a368);
        // Leaving out -x makes the others negative: code 150.
        assert_eq!(bits(-0.5, 0.5, 0.5, 0.5), 150 << 20 | 150 << 10 | 150);
        // 0.36 is 260.16 steps: code 771.
        assert_eq!(
            bits(0.36, 0.0, 0.0, 0.932_952),
            3 << 30 | 511 << 20 | 511 << 10 | 771
        );
        // The three fields, each with a different value: 100, -200 and 300 steps, and w left out.
        let step = PackedQuat::STEP;
        let (x, y, z) = (100.0 * step, -200.0 * step, 300.0 * step);
        let w = (1.0 - x * x - y * y - z * z).sqrt();
        assert_eq!(bits(x, y, z, w), 3 << 30 | 811 << 20 | 311 << 10 | 611);
    }

    #[test]
    fn length_of_the_input_does_not_matter() {
        let q = Quat::from_xyzw(0.1, -0.7, 0.3, 0.2);
        let expected = PackedQuat::encode(q);
        for scale in [1e-30, 1e-3, 7.0, 1e30] {
            assert_eq!(PackedQuat::encode(q * scale), expected, "scaled by {scale}");
        }
    }

    #[test]
    fn input_without_a_direction_is_identity() {
        for bad in [
            Quat::from_xyzw(0.0, 0.0, 0.0, 0.0),
            Quat::from_xyzw(0.0, f32::NAN, 0.0, 1.0),
            Quat::from_xyzw(0.0, 0.0, 0.0, f32::NAN),
            Quat::from_xyzw(f32::NAN, 0.0, 0.0, 1.0),
            Quat::from_xyzw(f32::INFINITY, 0.0, 0.0, 1.0),
        ] {
            assert_eq!(PackedQuat::encode(bad), PackedQuat::IDENTITY, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_quaternion_round_trips(c in prop::array::uniform4(-1.0f32..=1.0)) {
            let q = Quat::from_array(c);
            prop_assume!(q.length_squared() > 1e-6);
            check(q);
        }

        #[test]
        fn any_bits_decode_to_something_finite(bits in any::<u32>()) {
            let packed = PackedQuat::from_bits(bits);
            prop_assert_eq!(packed.to_bits(), bits);
            let length = packed.decode().length();
            prop_assert!((0.999_999..1.23).contains(&length), "length {}", length);
        }
    }
}
