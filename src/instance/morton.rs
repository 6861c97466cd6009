//! The order along a Morton curve, and the way back to the old order.

#[cfg(feature = "bevy")]
use bevy::reflect::std_traits::ReflectDefault;
use glam::Vec3;
use std::sync::OnceLock;

use super::data::Data;
use super::scales::Scales;
use super::{InstanceBounds, InstanceError, PackedInstance};
use crate::parallel;

/// Number of bits per axis; three axes fill 63 bits.
const AXIS_BITS: u32 = 21;

/// The permutation that [`InstanceSet::sorted`](super::InstanceSet::sorted) applied, and its
/// inverse. The permutation takes 4 bytes per instance. The inverse takes the same amount of memory
/// and is made when it is first asked for.
///
/// ```
/// use bevy_gpu_culling::instance::InstanceSet;
/// use glam::Vec3;
///
/// let set = InstanceSet::from_transforms([Vec3::X * 9.0, Vec3::ZERO, Vec3::X])?;
/// let (sorted, order) = set.sorted_with_order();
/// assert_eq!(order.as_slice(), [1, 2, 0]);
/// assert_eq!(order.original(0), 1);
/// assert_eq!(sorted.get(order.sorted(0)).map(|t| t.translation), Some(Vec3::X * 9.0));
/// # Ok::<(), bevy_gpu_culling::instance::InstanceError>(())
/// ```
#[derive(Clone, Debug, Default)]
#[cfg_attr(
    feature = "bevy",
    derive(bevy::reflect::Reflect),
    reflect(opaque, Clone, Debug, Default, PartialEq)
)]
pub struct InstanceOrder {
    originals: Vec<u32>,
    /// The inverse permutation.
    sorted: OnceLock<Vec<u32>>,
}

impl PartialEq for InstanceOrder {
    fn eq(&self, other: &Self) -> bool {
        self.originals == other.originals
    }
}

impl Eq for InstanceOrder {}

impl InstanceOrder {
    /// The order that [`as_slice`](Self::as_slice) gave, for example from a file beside the set's.
    ///
    /// # Errors
    ///
    /// [`InstanceError::NotAnOrder`] unless each index below the length is there once.
    pub fn from_originals(originals: Vec<u32>) -> Result<Self, InstanceError> {
        let len = originals.len();
        let mut seen = vec![false; len];
        for (at, &index) in originals.iter().enumerate() {
            match seen.get_mut(index as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(InstanceError::NotAnOrder { at, index, len }),
            }
        }
        Ok(Self {
            originals,
            sorted: OnceLock::new(),
        })
    }

    /// The caller's index of the instance that is now at `sorted`.
    ///
    /// # Panics
    ///
    /// If `sorted` is not below [`len`](Self::len).
    #[must_use]
    pub fn original(&self, sorted: u32) -> u32 {
        self.originals[sorted as usize]
    }

    /// The current index of the instance that had the caller's index `original`.
    ///
    /// # Panics
    ///
    /// If `original` is not below [`len`](Self::len).
    #[must_use]
    pub fn sorted(&self, original: u32) -> u32 {
        let inverse = self.sorted.get_or_init(|| {
            let mut sorted = vec![0; self.originals.len()];
            for (&original, place) in self.originals.iter().zip(0u32..) {
                sorted[original as usize] = place;
            }
            sorted
        });
        inverse[original as usize]
    }

    /// The caller's index of each instance, in sorted order.
    #[must_use]
    pub fn as_slice(&self) -> &[u32] {
        &self.originals
    }

    /// Number of instances.
    #[must_use]
    pub fn len(&self) -> usize {
        self.originals.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.originals.is_empty()
    }

    /// The order of these instances along the curve through their bounding box. Instances in the
    /// same cell keep their order.
    pub(super) fn along_curve(instances: &[PackedInstance]) -> Self {
        let Some(bounds) = InstanceBounds::measure(instances, &Scales::One) else {
            return Self::default();
        };
        let grid = Grid::new(&bounds);
        // The index makes every pair unique, so the faster unstable sort is stable here.
        let mut keys = parallel::collect(instances.len(), |index| {
            (grid.key(instances[index].position()), index as u32)
        });
        parallel::sort(&mut keys);
        Self {
            originals: parallel::collect(keys.len(), |place| keys[place].1),
            sorted: OnceLock::new(),
        }
    }

    /// Scales in this order.
    pub(super) fn gather_scales(&self, scales: &Scales) -> Scales {
        match scales {
            Scales::One => Scales::One,
            Scales::Uniform(scales) => Scales::Uniform(self.gather(scales)),
            Scales::NonUniform(scales) => Scales::NonUniform(self.gather(scales)),
        }
    }

    /// The data of a set in this order.
    pub(super) fn gather_data(&self, data: &Data) -> Data {
        let words = data.words();
        let values = parallel::collect(self.originals.len() * words, |place| {
            let original = self.originals[place / words] as usize;
            data.values()[original * words + place % words]
        });
        Data::new(words, values)
    }

    /// A channel in this order.
    pub(super) fn gather<T: Copy + Default + Send + Sync>(&self, channel: &[T]) -> Vec<T> {
        parallel::collect(self.originals.len(), |place| {
            channel[self.originals[place] as usize]
        })
    }
}

/// A grid of 2²¹ cells along the longest side of a box. The cells are cubes, so flat or long sets
/// still fall into compact blocks.
struct Grid {
    min: [f64; 3],
    cells_per_unit: f64,
}

impl Grid {
    fn new(bounds: &InstanceBounds) -> Self {
        // In f64, the difference of two f32 values never overflows.
        let min = bounds.min.as_dvec3();
        let longest = (bounds.max.as_dvec3() - min).max_element();
        let cells = f64::from(1u32 << AXIS_BITS);
        Self {
            min: min.to_array(),
            cells_per_unit: if longest > 0.0 { cells / longest } else { 0.0 },
        }
    }

    fn key(&self, position: Vec3) -> u64 {
        let cell = |axis: usize| {
            let cell = (f64::from(position[axis]) - self.min[axis]) * self.cells_per_unit;
            spread((cell as u64).min((1 << AXIS_BITS) - 1))
        };
        cell(0) | cell(1) << 1 | cell(2) << 2
    }
}

/// Moves bit `i` of a 21-bit number to bit `3i`, by the usual shifts and masks.
fn spread(cell: u64) -> u64 {
    let mut bits = cell & 0x1f_ffff;
    bits = (bits | bits << 32) & 0x001f_0000_0000_ffff;
    bits = (bits | bits << 16) & 0x001f_0000_ff00_00ff;
    bits = (bits | bits << 8) & 0x100f_00f0_0f00_f00f;
    bits = (bits | bits << 4) & 0x10c3_0c30_c30c_30c3;
    (bits | bits << 2) & 0x1249_2492_4924_9249
}

#[cfg(test)]
mod tests {
    use glam::Quat;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn at(positions: &[Vec3]) -> Vec<PackedInstance> {
        positions
            .iter()
            .map(|&p| PackedInstance::new(p, Quat::IDENTITY))
            .collect()
    }

    #[test]
    fn spread_leaves_two_bits_between() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for cell in (0..1000)
            .map(|_| rng.random_range(0..1u64 << AXIS_BITS))
            .chain([0, (1 << AXIS_BITS) - 1])
        {
            let expected = (0..AXIS_BITS).fold(0, |bits, i| bits | (cell >> i & 1) << (3 * i));
            assert_eq!(spread(cell), expected, "{cell:#x}");
        }
    }

    #[test]
    fn the_eight_octants_come_in_order() {
        let corners: Vec<Vec3> = (0..8u32)
            .map(|i| Vec3::new((i & 1) as f32, (i >> 1 & 1) as f32, (i >> 2) as f32) * 10.0 - 3.0)
            .collect();
        let reversed: Vec<Vec3> = corners.iter().rev().copied().collect();
        assert_eq!(
            InstanceOrder::along_curve(&at(&corners)).as_slice(),
            [0, 1, 2, 3, 4, 5, 6, 7]
        );
        assert_eq!(
            InstanceOrder::along_curve(&at(&reversed)).as_slice(),
            [7, 6, 5, 4, 3, 2, 1, 0]
        );
    }

    #[test]
    fn equal_places_keep_their_order() {
        let order = InstanceOrder::along_curve(&at(&[Vec3::ONE; 100]));
        assert!(order.as_slice().iter().copied().eq(0..100));
        let pairs: Vec<Vec3> = (0..100).map(|i| Vec3::X * (i % 2) as f32).collect();
        let order = InstanceOrder::along_curve(&at(&pairs));
        assert!(
            order
                .as_slice()
                .iter()
                .copied()
                .eq((0..100).step_by(2).chain((1..100).step_by(2)))
        );
    }

    #[test]
    fn huge_and_tiny_boxes_are_ordinary() {
        for size in [f32::MAX, 1.0, 1e-30] {
            let order = InstanceOrder::along_curve(&at(&[
                Vec3::splat(size),
                Vec3::splat(-size),
                Vec3::ZERO,
            ]));
            assert_eq!(order.as_slice(), [1, 2, 0], "size {size}");
        }
    }

    #[test]
    fn an_order_comes_back_from_its_slice() {
        let points = at(&[Vec3::X * 9.0, Vec3::ZERO, Vec3::X]);
        let order = InstanceOrder::along_curve(&points);
        let again = InstanceOrder::from_originals(order.as_slice().to_vec());
        assert_eq!(again.as_ref(), Ok(&order));
        assert_eq!(again.map(|order| order.sorted(0)), Ok(2));
        assert_eq!(
            InstanceOrder::from_originals(vec![]),
            Ok(InstanceOrder::default())
        );
        for (originals, at) in [(vec![0, 2, 2], 2), (vec![0, 3, 1], 1), (vec![u32::MAX], 0)] {
            let (index, len) = (originals[at], originals.len());
            assert_eq!(
                InstanceOrder::from_originals(originals),
                Err(InstanceError::NotAnOrder { at, index, len })
            );
        }
    }

    #[test]
    fn order_and_inverse_agree() {
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        let points: Vec<Vec3> = (0..10_000)
            .map(|_| Vec3::from_array(std::array::from_fn(|_| rng.random_range(-50.0f32..50.0))))
            .collect();
        let order = InstanceOrder::along_curve(&at(&points));
        assert_eq!(order.len(), points.len());
        for i in 0..points.len() as u32 {
            assert_eq!(order.sorted(order.original(i)), i);
            assert_eq!(order.original(order.sorted(i)), i);
        }
        let walked = |path: &[Vec3]| path.windows(2).map(|p| p[0].distance(p[1])).sum::<f32>();
        let sorted = order.gather(&points);
        assert!(
            walked(&sorted) < walked(&points) / 10.0,
            "neighbors on the curve are near each other"
        );
    }
}
