//! From a matrix to a [`Projection`]: the constants of the span, in 64 bits.

use crate::cull::layout::{Projection, ROUNDING};
use glam::{DMat4, DVec3, DVec4, UVec2, Vec4};

/// Vertices snap to at least 16 positions per pixel.
const SNAP: f64 = 1.0 / 16.0;

/// How far a jittered view moves its picture, in pixels.
const JITTER: f64 = 1.0;

/// Largest ratio of the sizes of a pixel's sides in the set's space. Squares of ratios beyond may
/// leave the range of `f32`.
const MAX_STRETCH: f64 = (1u64 << 40) as f64;

/// Least and greatest place of a pixel's samples along x, which are the same along y: the standard
/// sample locations. Of other counts it is the whole pixel.
const fn sample_range(samples: u32) -> (f64, f64) {
    match samples {
        1 => (0.5, 0.5),
        2 => (0.25, 0.75),
        4 => (0.125, 0.875),
        8 => (0.0625, 0.9375),
        _ => (0.0, 1.0),
    }
}

/// Least and greatest x + y of a pixel's samples, and least and greatest x - y, also if the device
/// counts rows from below. No sample is in a corner of its pixel, so these ranges are narrower than
/// the ranges of x and y suggest.
const fn diagonal_range(samples: u32) -> [f64; 4] {
    match samples {
        1 => [1.0, 1.0, 0.0, 0.0],
        2 => [0.5, 1.5, -0.5, 0.5],
        4 => [0.5, 1.5, -0.5, 0.5],
        8 => [0.375, 1.875, -0.625, 0.875],
        _ => [0.0, 2.0, -1.0, 1.0],
    }
}

/// Least squared length of x + y and of x - y, relative to the sum of the squared lengths of x and
/// y, with which diagonals are used. At right angles it is 1.
const MIN_DIAGONAL: f64 = 0.25;

impl Projection {
    /// The projection of a set in a view.
    ///
    /// `clip_from_set` is the view's matrix times the set's: perspective or orthographic, off
    /// center, oblique, mirrored or stretched, with reverse z. `size` is the size of the viewport
    /// in pixels, whose depth range is 0 to 1: another range is part of the matrix. `samples` is
    /// the number of samples per pixel. A jittered view is drawn by a matrix that moves the picture
    /// by up to one pixel.
    ///
    /// The result is [`Projection::default`], which hides nothing, if the matrix is not finite, if
    /// it has no pixels, or if it stretches the set beyond what 32 bits can square.
    #[must_use]
    pub fn new(clip_from_set: DMat4, size: UVec2, samples: u32, is_jittered: bool) -> Self {
        let half = size.as_dvec2() * 0.5;
        let [x, y, z, w] = [0, 1, 2, 3].map(|row| clip_from_set.row(row));
        let (x, y) = ((x + w) * half.x, (w - y) * half.y);
        let lengths = [x, y].map(|row| row.truncate().length());
        let (min, greatest) = (lengths[0].min(lengths[1]), lengths[0].max(lengths[1]));
        let is_finite = [x, y, z, w].iter().all(|row| row.is_finite());
        // False if a length is not a number.
        let is_even = greatest <= min * MAX_STRETCH && greatest > 0.0;
        let unit = greatest.log2().round().exp2();
        if !(is_finite && is_even && (unit as f32).is_normal()) {
            return Self::default();
        }
        let scaled = |row: DVec4| (row.truncate() / unit).extend(row.w);
        let [x, y, z, w] = [x, y, z, w].map(scaled);
        // How far the origin is from where a row is zero: as far as positions, it is rounded.
        let reach = [x, y, w].map(|row| match row.truncate().length() {
            0.0 => 0.0,
            length => row.w.abs() / length,
        });
        let reach = reach[0].max(reach[1]).max(reach[2]);
        let slack = SNAP
            + f64::from(size.max_element()) * f64::from(ROUNDING)
            + if is_jittered { JITTER } else { 0.0 };
        let (first, last) = sample_range(samples);
        let (first, last) = ((first - slack) as f32, (last + slack) as f32);
        // Twice the slack: of x, and of y.
        let outward = DVec4::new(-2.0, 2.0, -2.0, 2.0) * slack;
        let diagonal_samples = DVec4::from(diagonal_range(samples)) + outward;
        let m = w.truncate();
        let (sum, difference) = ((x + y).truncate(), (x - y).truncate());
        let sides = x.truncate().length_squared() + y.truncate().length_squared();
        let shorter = sum.length_squared().min(difference.length_squared());
        let has_diagonals = shorter >= MIN_DIAGONAL * sides;
        let projection = Self {
            x: x.as_vec4(),
            y: y.as_vec4(),
            z: z.as_vec4(),
            w: w.as_vec4(),
            gram_x: gram(x.truncate(), m),
            gram_y: gram(y.truncate(), m),
            gram_z: gram(z.truncate(), m),
            gram_sum: gram(sum, m),
            gram_difference: gram(difference, m),
            samples: Vec4::new(first, last, first, last),
            diagonal_samples: diagonal_samples.as_vec4(),
            unit: unit as f32,
            margin: (reach * f64::from(ROUNDING)) as f32,
            slope: m.length() as f32,
            has_diagonals: u32::from(has_diagonals),
        };
        let Self {
            unit,
            margin,
            slope,
            ..
        } = projection;
        let rows = [projection.x, projection.y, projection.z, projection.w];
        let grams = [
            projection.gram_x,
            projection.gram_y,
            projection.gram_z,
            projection.gram_sum,
            projection.gram_difference,
        ];
        let others = [projection.samples, Vec4::new(unit, margin, slope, 0.0)];
        let mut all = rows.iter().chain(&grams).chain(&others);
        if all.all(|row| row.is_finite()) {
            projection
        } else {
            Self::default()
        }
    }

    /// The same projection, in which every sphere is wider by `distance`, in the set's units. For
    /// what is drawn less precisely than the set's space is, for example far from the world's
    /// origin.
    #[must_use]
    pub fn widened(mut self, distance: f32) -> Self {
        self.margin += distance * self.unit;
        self
    }
}

/// The products of a row and the row of w.
fn gram(n: DVec3, m: DVec3) -> Vec4 {
    let products = [n.dot(n), n.dot(m), n.cross(m).length_squared(), m.dot(m)];
    DVec4::from(products).as_vec4()
}
