//! Levels of detail of a view: from where it sees them, and the distances at which each is drawn.

use super::stretch::{greatest_stretch, least_stretch};
use crate::cull::layout::{BAND_EYE, BAND_FLAT, DistanceBand};
use glam::{Affine3A, Vec3};

/// From where, and how finely, a view sees levels of detail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LodEye {
    /// The point in the world from which distances count. The view of a shadow has its camera's, so
    /// that shadows are of the level that is seen.
    pub position: Vec3,
    /// Whether the camera is orthographic: then an instance has the same size at all distances.
    pub is_orthographic: bool,
    /// Size of an error of one world unit at distance 1 (at any distance if orthographic), in
    /// multiples of the greatest error that may be seen. A perspective camera whose image is `h`
    /// pixels high has `h / (2 tan(fov / 2)) / pixels`, if `pixels` is the greatest error.
    pub resolution: f32,
}

/// The bands of the levels of a set: of the full mesh, then of each coarser level with one of
/// `errors` ([`CoarserLevel::error`](crate::cull::CoarserLevel::error)). `radius` is the
/// radius of the mesh's sphere.
///
/// A level begins at the distance at which its error is seen as the greatest that the view
/// allows. Distances are measured in the set's space, in radii of the instance's sphere. In a
/// set that is stretched unevenly, levels begin farther away than they need to.
pub(crate) fn bands<I: ExactSizeIterator<Item = f32>>(
    eye: Option<LodEye>,
    world_from_local: &Affine3A,
    radius: f32,
    mut errors: I,
) -> impl Iterator<Item = DistanceBand> + use<I> {
    // No distance for levels that are never drawn.
    let nowhere = f32::MAX;
    let mut band = DistanceBand {
        kind: BAND_FLAT,
        ..DistanceBand::default()
    };
    let mut per_error = f32::INFINITY;
    if let Some(eye) = eye {
        let matrix = &world_from_local.matrix3;
        let mut distance = eye.resolution * greatest_stretch(matrix) / radius;
        if !eye.is_orthographic {
            band.kind = BAND_EYE;
            band.eye = world_from_local.inverse().transform_point3(eye.position);
            distance /= least_stretch(matrix);
        }
        if band.eye.is_finite() && distance > 0.0 {
            per_error = distance;
        }
    }
    let len = errors.len();
    (0..=len).map(move |_| {
        band.low = band.high.max(0.0);
        band.high = match errors.next() {
            None => -1.0,
            Some(error) => {
                let begin = error.max(0.0) * per_error;
                // Not a number: an error of 0 times infinity.
                let begin = if begin.is_nan() { nowhere } else { begin };
                (begin * begin).clamp(band.low, nowhere)
            }
        };
        band
    })
}
