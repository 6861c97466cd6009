//! How much a matrix stretches what it transforms.

use glam::Mat3A;

/// The largest stretch of a matrix: an upper bound of its largest singular value. The bound is the
/// length of the longest column if the columns are orthogonal. (The Frobenius norm would be too
/// loose.)
#[must_use]
pub(crate) fn greatest_stretch(matrix: &Mat3A) -> f32 {
    let (x, y, z) = (matrix.x_axis, matrix.y_axis, matrix.z_axis);
    let longest = x
        .length_squared()
        .max(y.length_squared())
        .max(z.length_squared());
    let skew = x.dot(y).abs() + y.dot(z).abs() + z.dot(x).abs();
    // Gershgorin: the largest eigenvalue of MᵀM is at most its largest diagonal entry plus the
    // other entries of the row.
    (longest + skew).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::{Quat, Vec3};

    #[test]
    fn stretches_are_bounds() {
        let matrix = Mat3A::from_quat(Quat::from_rotation_x(0.4))
            * Mat3A::from_diagonal(Vec3::new(1.0, 3.0, 2.0));
        assert!((greatest_stretch(&matrix) - 3.0).abs() < 1e-5);
        let sheared = matrix * Mat3A::from_quat(Quat::from_rotation_z(0.9));
        let stretch = greatest_stretch(&sheared);
        assert!((3.0..4.0).contains(&stretch), "{stretch}");
    }
}
