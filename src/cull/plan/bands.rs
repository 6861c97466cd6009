//! Distance bands: the distances at which each level of detail of a request is drawn.

use crate::cull::{
    layout::{
        BAND_BY_DISTANCE, BAND_BY_SIZE, BAND_IS_THINNED, BAND_OF_CENTERS, BAND_OF_ORIGINS,
        BAND_THINS_BY_SIZE, DistanceBand, greatest_stretch,
    },
    request::{CullRequest, DistanceRange, LodEye},
};
use glam::Vec3;

/// A band that no instance is in.
const NOWHERE: DistanceBand = DistanceBand {
    eye: Vec3::ZERO,
    flags: BAND_OF_CENTERS,
    low: 0.0,
    high: -1.0,
    start: 0.0,
    end: 0.0,
    thin: 0.0,
    pad_a: 0,
    pad_b: 0,
    pad_c: 0,
};

/// The bands of a request's rows in a view: of the full mesh, then of each coarser level.
///
/// A level begins at the distance of the sphere's nearest point at which its error is seen as the
/// greatest that the view allows: bands are of the centers, which are a radius farther. Distances
/// are measured in the world, in radii of the instance's sphere in the set's units. If the view
/// cannot tell levels apart, it keeps the full mesh at every distance and the coarser levels
/// nowhere; so it does if the request starts at an error, with all of its levels.
pub(crate) fn bands(
    eye: Option<LodEye>,
    request: &CullRequest,
) -> impl Iterator<Item = DistanceBand> {
    let coarser = request.coarser_levels();
    let errors = request.errors;
    let has_borders = !coarser.is_empty() || errors.start.is_some() || errors.end.is_some();
    let (radius, fade) = (request.sphere.radius, request.fade);
    let usable = |value: &f32| value.is_finite() && *value > 0.0;
    let eye = eye.filter(|eye| {
        let is_measured = has_borders || request.range.is_some() || request.thins();
        eye.position.is_finite() && (is_measured || usable(&eye.min_resolution))
    });
    let stretch = eye.map_or(0.0, |_| greatest_stretch(&request.world_from_local.matrix3));
    // Radii per unit of error, and the radii from which instances are too small.
    let per_error = eye.map(|eye| eye.resolution * stretch / radius);
    let per_error = per_error.filter(usable);
    let too_small = eye.map(|eye| eye.min_resolution * stretch * 2.0);
    let too_small = too_small.filter(|value| usable(value) && radius > 0.0);
    let overlap = match eye {
        Some(eye) if eye.fades && fade > 0.0 => 1.0 + fade,
        _ => 1.0,
    };
    let mut whole = DistanceBand {
        high: too_small.map_or(-1.0, squared),
        ..DistanceBand::default()
    };
    if let Some(eye) = eye {
        if (per_error.is_some() && has_borders) || too_small.is_some() {
            whole.flags |= match eye.is_orthographic {
                true => BAND_BY_SIZE,
                false => BAND_BY_DISTANCE,
            };
        }
        if let Some(range) = request.range {
            whole.flags |= range.flag();
            (whole.start, whole.end) = range.squares();
        }
        // Distance, in radii, at which an instance is as wide as this many pixels.
        let wide = eye.pixels * stretch * 2.0 / request.thin_below;
        if request.thins() && usable(&wide) {
            whole.flags |= match eye.is_orthographic {
                true => BAND_IS_THINNED | BAND_THINS_BY_SIZE,
                false => BAND_IS_THINNED,
            };
            whole.thin = squared(wide);
        }
        if whole.flags != 0 {
            whole.eye = eye.position;
        }
    }
    // Errors at which levels begin. The first level begins at the request's start; behind the last
    // one is the request's end.
    let border = move |at: usize| {
        let max = errors.end.unwrap_or(f32::INFINITY);
        match at.checked_sub(1) {
            None => errors.start,
            Some(before) if before == coarser.len() => errors.end,
            Some(before) => coarser.get(before).map(|level| level.error.min(max)),
        }
    };
    // The square of the center's distance, if the nearest point is at `nearest`. A level without an
    // error begins in the sphere. An orthographic view has no distances.
    let has_distance = eye.is_some_and(|eye| !eye.is_orthographic);
    let to_center = if has_distance { stretch } else { 0.0 };
    let of_center = move |nearest: f32| match nearest > 0.0 {
        true => squared(nearest + to_center),
        false => 0.0,
    };
    let mut begin = 0.0;
    (0..=coarser.len()).map(move |level| {
        let Some(per_error) = per_error else {
            return match level == 0 && errors.start.is_none() {
                true => whole,
                false => NOWHERE,
            };
        };
        let begin_of = |at: usize| Some(border(at)?.max(0.0) * per_error);
        if level == 0 {
            begin = begin_of(0).unwrap_or(0.0);
        }
        let mut band = DistanceBand {
            low: of_center(begin),
            ..whole
        };
        if let Some(next) = begin_of(level + 1) {
            begin = next.max(begin);
            // At most two levels overlap.
            let after = begin_of(level + 2).map_or(f32::INFINITY, |after| after.max(begin));
            let end = of_center((begin * overlap).min(after));
            band.high = if band.high < 0.0 {
                end
            } else {
                end.min(band.high)
            };
        }
        band
    })
}

impl DistanceRange {
    fn flag(self) -> u32 {
        if self.of_centers {
            BAND_OF_CENTERS
        } else {
            BAND_OF_ORIGINS
        }
    }

    /// The squares of the start and the end. Numbers that are not numbers keep every distance.
    fn squares(self) -> (f32, f32) {
        let end = if self.end.is_nan() {
            f32::MAX
        } else {
            self.end
        };
        (squared(self.start.max(0.0)), squared(end.max(0.0)))
    }
}

/// The square, at most the largest number.
fn squared(value: f32) -> f32 {
    (value * value).min(f32::MAX)
}
