//! What the vertex stage needs to fade an instance between levels of detail, in and out of a
//! visibility range, and away if it becomes too small.

use super::SetRange;
use crate::cull::{BoundingSphere, CoarserLevel, ErrorRange};
use bevy::{math::Vec4, prelude::*, render::render_resource::ShaderType};
use std::sync::Arc;

/// What fades of an entity's set.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::render) struct Fading {
    /// Whether instances fade between levels, or away if they become too small.
    pub fades: bool,
    /// Whether instances fade between levels.
    pub levels_fade: bool,
    /// The coarser levels, if instances fade between levels.
    pub coarser: Option<Arc<[CoarserLevel]>>,
    /// The errors at which the first level begins and the last one ends, if instances fade there.
    pub errors: ErrorRange,
    /// See [`CullRequest::fade`](crate::cull::CullRequest::fade).
    pub share: f32,
    pub range: Option<SetRange>,
    pub sphere: BoundingSphere,
    /// The error at which an instance is too small to be drawn; infinite if none is.
    pub too_small: f32,
    /// Largest stretch of the entity's transform.
    pub stretch: f32,
    /// The greatest error that may be seen, in pixels. If levels do not fade, any number above 0.
    pub pixels: f32,
}

/// How instances of one level fade: a part of `DrawSlot` in `shaders/draw/instance.wesl`.
#[derive(Clone, Copy, Debug, Default, PartialEq, ShaderType)]
pub(in crate::render) struct SlotFade {
    /// Errors over the radius and the greatest error in pixels: an instance fades in while the
    /// error that it is drawn for is between the first two, and out between the last two. That
    /// error is the distance of the sphere's nearest point in radii, over the view's pixels of one
    /// unit at distance 1. If the last two are negative, it is the distance of the center: an
    /// instance is as small as that.
    pub errors: Vec4,
    /// Distances in the world: the same for a visibility range.
    pub distances: Vec4,
    /// Center of the mesh's sphere behind the offset, from which errors are seen.
    pub center: Vec3,
    /// Radius of the sphere of an instance of scale 1, in the world; 0 if none fades by its error.
    pub radius: f32,
}

/// Margins between which nothing fades.
const EVERYWHERE: Vec4 = Vec4::new(-f32::MAX, -f32::MAX, f32::MAX, f32::MAX);

/// Errors that no instance reaches: a level that fades in between them is not drawn.
const NEVER: (f32, f32) = (f32::MAX / 4.0, f32::MAX / 2.0);

impl SlotFade {
    /// No instance fades.
    pub const NONE: Self = Self {
        errors: EVERYWHERE,
        distances: EVERYWHERE,
        center: Vec3::ZERO,
        radius: 0.0,
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
        // The error at which a level begins; behind the last one, the error at which all end.
        let border = |level: usize| match level.checked_sub(1) {
            None => self.errors.start,
            Some(before) if before == coarser.len() => self.errors.end,
            Some(before) => coarser.get(before).map(|level| level.error),
        };
        // Errors at which the border before a level begins and ends.
        let margin = |level: usize| {
            let begin = border(level)?;
            let next = border(level + 1).unwrap_or(f32::INFINITY);
            Some((begin, (begin * (1.0 + self.share)).min(next)))
        };
        let (mut fade_in, mut faded_in) = margin(level).unwrap_or((-f32::MAX, -f32::MAX));
        let (mut fade_out, mut faded_out) = margin(level + 1).unwrap_or((f32::MAX, f32::MAX));
        if faded_in >= self.too_small {
            // The level before fades away instead.
            (fade_in, faded_in) = NEVER;
        } else if self.too_small < f32::MAX {
            // A level that fades in fades away only after that.
            let begin = (self.too_small / (1.0 + self.share)).max(faded_in);
            if begin < fade_out {
                (fade_out, faded_out) = (-begin, -self.too_small);
            }
        }
        let errors = Vec4::new(fade_in, faded_in, fade_out, faded_out);
        let errors = errors / (self.sphere.radius * self.pixels);
        let radius = self.sphere.radius * self.stretch;
        SlotFade {
            errors: errors.clamp(Vec4::splat(-f32::MAX), Vec4::splat(f32::MAX)),
            radius: if self.fades { radius } else { 0.0 },
            ..self.of_ranges()
        }
    }

    /// How instances of all levels fade if only ranges count.
    pub fn of_ranges(&self) -> SlotFade {
        let range = self.range.filter(|range| range.fades());
        let distances = range.map_or(EVERYWHERE, |range| Vec4::from_array(range.margins));
        SlotFade {
            distances: distances.clamp(Vec4::splat(-f32::MAX), Vec4::splat(f32::MAX)),
            center: self.sphere.center,
            ..SlotFade::NONE
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
            sphere: None,
        };
        let fading = Fading {
            fades: true,
            levels_fade: true,
            coarser: Some(Arc::new([level(1.0), level(2.0), level(2.2), level(8.0)])),
            errors: ErrorRange::default(),
            share: 0.25,
            range: None,
            sphere: BoundingSphere {
                center: Vec3::Y,
                radius: 1.0,
            },
            too_small: f32::INFINITY,
            stretch: 3.0,
            pixels: 1.0,
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
        assert!(slots.iter().all(|slot| slot.radius == 3.0));
        // Errors are of the mesh; margins are in radii, for one pixel.
        let large = Fading {
            sphere: BoundingSphere {
                center: Vec3::Y,
                radius: 4.0,
            },
            pixels: 0.5,
            ..fading.clone()
        };
        assert_eq!(large.of_level(1).errors.to_array(), [0.5, 0.625, 1.0, 1.1]);
        assert_eq!(large.of_level(1).radius, 12.0);
        // An impostor fades in as the last level fades out.
        let share_out = |start, end| ErrorRange {
            start,
            end,
            levels_before: 0,
        };
        let near = Fading {
            errors: share_out(None, Some(9.0)),
            ..fading.clone()
        };
        let impostor = Fading {
            coarser: None,
            errors: share_out(Some(9.0), None),
            ..fading
        };
        let margins = [near.of_level(3), near.of_level(4), impostor.of_level(0)];
        assert_eq!(
            margins.map(|slot| slot.errors.to_array()),
            [
                [2.2, 2.75, 8.0, 9.0],
                [8.0, 9.0, 9.0, 11.25],
                [9.0, 11.25, far, far]
            ]
        );
    }

    #[test]
    fn what_becomes_too_small_fades_away_at_every_level() {
        let shape = DrawShape::NonIndexed {
            vertex_count: 3,
            first_vertex: 0,
        };
        let level = |error| CoarserLevel::new(shape, error);
        let plain = Fading {
            fades: true,
            levels_fade: true,
            coarser: None,
            errors: ErrorRange::default(),
            share: 0.25,
            range: None,
            sphere: BoundingSphere {
                center: Vec3::ZERO,
                radius: 1.0,
            },
            too_small: 10.0,
            stretch: 1.0,
            pixels: 1.0,
        };
        let far = f32::MAX;
        let errors = plain.of_level(0).errors.to_array();
        assert_eq!(errors, [-far, -far, -8.0, -10.0]);
        let margins = |too_small| {
            let fading = Fading {
                coarser: Some(Arc::new([level(1.0), level(4.0)])),
                too_small,
                ..plain.clone()
            };
            [0, 1, 2].map(|at| fading.of_level(at).errors.to_array())
        };
        let (never, nor) = NEVER;
        for (too_small, expected) in [
            // Only the last level becomes too small.
            (
                10.0,
                [
                    [-far, -far, 1.0, 1.25],
                    [1.0, 1.25, 4.0, 5.0],
                    [4.0, 5.0, -8.0, -10.0],
                ],
            ),
            // The last level fades in first, and away until the same size.
            (
                6.0,
                [
                    [-far, -far, 1.0, 1.25],
                    [1.0, 1.25, 4.0, 5.0],
                    [4.0, 5.0, -5.0, -6.0],
                ],
            ),
            // It would not be faded in: the level before fades away.
            (
                5.0,
                [
                    [-far, -far, 1.0, 1.25],
                    [1.0, 1.25, 4.0, 5.0],
                    [never, nor, far, far],
                ],
            ),
            (
                2.5,
                [
                    [-far, -far, 1.0, 1.25],
                    [1.0, 1.25, -2.0, -2.5],
                    [never, nor, far, far],
                ],
            ),
        ] {
            assert_eq!(margins(too_small), expected, "{too_small}");
        }
    }
}
