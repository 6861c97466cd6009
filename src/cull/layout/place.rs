//! Where a chunk is: its transform, and what follows from it.

use super::Chunk;
use glam::{Affine3A, DMat3, Mat3A, Vec3, Vec3A};

/// Largest part of a matrix's scale by which it may be off an even scale; about two f32 roundings.
const MAX_UNEVEN: f64 = 4e-7;

impl Chunk {
    /// Gives the chunk its transform.
    pub(crate) fn place(&mut self, world: &Affine3A) {
        let rows = world.matrix3.transpose();
        let row = |axis: Vec3A, offset: f32| Vec3::from(axis).extend(offset);
        self.world_x = row(rows.x_axis, world.translation.x);
        self.world_y = row(rows.y_axis, world.translation.y);
        self.world_z = row(rows.z_axis, world.translation.z);
        self.world_scale = greatest_stretch(&world.matrix3);
        let matrix = world.matrix3.as_dmat3();
        let inverse = matrix.try_inverse().map(|inverse| {
            let columns = inverse.transpose();
            [columns.x_axis, columns.y_axis, columns.z_axis].map(|row| row.as_vec3())
        });
        let finite = inverse.filter(|rows| rows.iter().all(|row| row.is_finite()));
        [self.local_x, self.local_y, self.local_z] = finite.unwrap_or([Vec3::ZERO; 3]);
        self.inverse_scale = even_scale(&matrix).map_or(0.0, |scale| scale.recip() as f32);
    }
}

/// The scale of a matrix that turns, mirrors and scales, and nothing else.
fn even_scale(matrix: &DMat3) -> Option<f64> {
    let square = matrix.x_axis.length_squared();
    let products = matrix.transpose() * *matrix;
    let off = products - DMat3::from_diagonal(glam::DVec3::splat(square));
    let largest = off
        .to_cols_array()
        .into_iter()
        .fold(0.0, |max, off| off.abs().max(max));
    // The square of a scale is off by twice as much.
    (square > 0.0 && largest <= 2.0 * MAX_UNEVEN * square).then(|| square.sqrt())
}

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
