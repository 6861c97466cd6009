//! What the vertex stage needs to fade an instance between levels of detail, and in and out of a
//! visibility range.

use super::SetRange;
use crate::cull::{BoundingSphere, CoarserLevel};
use bevy::{math::Vec4, prelude::*, render::render_resource::ShaderType};
use std::sync::Arc;

/// What fades of an entity's set.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::render) struct Fading {
    /// The coarser levels, if instances fade between levels.
    pub coarser: Option<Arc<[CoarserLevel]>>,
    /// See [`CullRequest::fade`](crate::cull::CullRequest::fade).
    pub share: f32,
    pub range: Option<SetRange>,
    pub sphere: BoundingSphere,
    /// Largest stretch of the entity's transform, over the greatest error in pixels.
    pub error_scale: f32,
}

/// How instances of one level fade: a part of `DrawSlot` in `shaders/draw/instance.wgsl`.
#[derive(Clone, Copy, Debug, Default, PartialEq, ShaderType)]
pub(in crate::render) struct SlotFade {
    /// Errors: an instance fades in while the error that it is drawn for is between the first two,
    /// and out between the last two.
    pub errors: Vec4,
    /// Distances in the world: the same for a visibility range.
    pub distances: Vec4,
    /// Center of the mesh's sphere, from which errors are seen.
    pub center: Vec3,
    /// Error of the mesh that is seen as the greatest allowed, per world unit of distance and per
    /// pixel of the view.
    pub error_scale: f32,
}

/// Margins between which nothing fades.
const EVERYWHERE: Vec4 = Vec4::new(-f32::MAX, -f32::MAX, f32::MAX, f32::MAX);

impl SlotFade {
    /// No instance fades.
    pub const NONE: Self = Self {
        errors: EVERYWHERE,
        distances: EVERYWHERE,
        center: Vec3::ZERO,
        error_scale: 0.0,
    };
}

impl Fading {
    /// Number of levels that have slots.
    pub fn levels(&self) -> usize {
        1 + self.coarser.as_ref().map_or(0, |coarser| coarser.len())
    }

    /// How instances of a level fade. In the margins, the bands of `crate::cull::plan::bands`
    /// overlap.
    pub fn of_level(&self, level: usize) -> SlotFade {
        let coarser = self.coarser.as_deref().unwrap_or_default();
        // Errors at which the border before a level begins and ends.
        let margin = |level: usize| {
            let begin = coarser.get(level.checked_sub(1)?)?.error;
            let next = coarser.get(level).map_or(f32::INFINITY, |next| next.error);
            Some((begin, (begin * (1.0 + self.share)).min(next)))
        };
        let (fade_in, faded_in) = margin(level).unwrap_or((-f32::MAX, -f32::MAX));
        let (fade_out, faded_out) = margin(level + 1).unwrap_or((f32::MAX, f32::MAX));
        let range = self.range.filter(|range| range.fades());
        let distances = range.map_or(EVERYWHERE, |range| Vec4::from_array(range.margins));
        SlotFade {
            errors: Vec4::new(fade_in, faded_in, fade_out, faded_out),
            distances: distances.clamp(Vec4::splat(-f32::MAX), Vec4::splat(f32::MAX)),
            center: self.sphere.center,
            error_scale: self.error_scale,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cull::DrawShape;

    #[test]
    fn a_level_fades_out_where_the_next_fades_in() {
        let level = |error| CoarserLevel {
            shape: DrawShape::NonIndexed {
                vertex_count: 3,
                first_vertex: 0,
            },
            error,
        };
        let fading = Fading {
            coarser: Some(Arc::new([level(1.0), level(2.0), level(2.2), level(8.0)])),
            share: 0.25,
            range: None,
            sphere: BoundingSphere {
                center: Vec3::Y,
                radius: 1.0,
            },
            error_scale: 3.0,
        };
        let slots: Vec<_> = (0..fading.levels()).map(|at| fading.of_level(at)).collect();
        let margins: Vec<_> = slots.iter().map(|slot| slot.errors.to_array()).collect();
        let far = f32::MAX;
        assert_eq!(
            margins,
            [
                [-far, -far, 1.0, 1.25],
                // The next level begins before a quarter is over.
                [1.0, 1.25, 2.0, 2.2],
                [2.0, 2.2, 2.2, 2.75],
                [2.2, 2.75, 8.0, 10.0],
                [8.0, 10.0, far, far],
            ]
        );
        assert!(slots.iter().all(|slot| slot.distances == EVERYWHERE));
    }
}
