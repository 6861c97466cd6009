//! The detail in which a set is drawn: its share of the levels, how it fades, how it is thinned
//! out.

use super::Requests;
use crate::cull::{CoarserLevel, ErrorRange, layout::greatest_stretch};
use crate::render::{
    animation::SlotAnimation,
    extracted_set::ExtractedSet,
    lods::{Fading, InstanceShare},
    wind::SlotWind,
};
use bevy::render::sync_world::MainEntity;
use std::sync::Arc;

impl Requests<'_, '_, '_> {
    /// The levels that the entity draws of its set.
    pub(super) fn errors_of(&self, set: &ExtractedSet) -> ErrorRange {
        match set.share {
            InstanceShare::Near { impostor, error } if self.impostors.contains(&impostor) => {
                ErrorRange {
                    end: Some(error),
                    ..ErrorRange::default()
                }
            }
            InstanceShare::Near { .. } | InstanceShare::All => ErrorRange::default(),
            InstanceShare::Far {
                parent,
                error,
                levels,
            } => ErrorRange {
                start: Some(error),
                end: None,
                levels_before: levels.max(self.meshes.own_levels(parent)),
            },
        }
    }

    /// How the set fades; `None` if it does not.
    pub(super) fn fading_of(
        &self,
        set: &ExtractedSet,
        coarser: Option<Arc<[CoarserLevel]>>,
        errors: ErrorRange,
    ) -> Option<Fading> {
        let does_fade = |entity: &MainEntity| self.aliases.fading.contains(entity);
        if !does_fade(&set.entity) {
            return None;
        }
        let is_number = |value: f32| value.is_finite() && value > 0.0;
        let stretch = greatest_stretch(&set.world_from_local.matrix3);
        let radius = set.sphere.radius;
        // As the engine's bands: otherwise all instances are drawn.
        let fades = set.fade > 0.0 && is_number(stretch) && radius > 0.0;
        let has_levels = is_number(self.made_for.lod_pixels);
        let levels_fade = fades
            && has_levels
            && match set.share {
                // It fades in only if what it replaces fades out.
                InstanceShare::Far { parent, .. } => does_fade(&parent),
                InstanceShare::Near { .. } | InstanceShare::All => true,
            };
        // Sizes are measured in errors, also if no error is allowed.
        let pixels = if has_levels {
            self.made_for.lod_pixels
        } else {
            1.0
        };
        let too_small = 2.0 * radius * pixels / self.made_for.min_pixels;
        let none = ErrorRange::default();
        Some(Fading {
            fades,
            levels_fade,
            coarser: coarser.filter(|_| levels_fade),
            errors: if levels_fade { errors } else { none },
            share: set.fade,
            range: set.range,
            sphere: set.sphere,
            too_small: if fades { too_small } else { f32::INFINITY },
            stretch,
            pixels,
        })
    }

    /// The diameter in pixels below which the set is thinned out; 0 if it is not.
    pub(super) fn thin_below(&mut self, set: &ExtractedSet) -> f32 {
        let has_size = set.sphere.radius > 0.0;
        if set.thin_below > 0.0 && has_size && self.draws_instances(set, "AggregateDetail") {
            set.thin_below
        } else {
            0.0
        }
    }

    /// The wind that bends the set's instances.
    pub(super) fn wind(&mut self, set: &ExtractedSet) -> Option<SlotWind> {
        set.wind.filter(|_| self.draws_instances(set, "Wind"))
    }

    /// The animation of the set's instances.
    pub(super) fn animation(&mut self, set: &ExtractedSet) -> Option<SlotAnimation> {
        let animation = set.animation.as_ref()?;
        let place = self.poses.placed(animation.poses)?;
        let is_played = self.draws_instances(set, "InstanceAnimation");
        is_played.then(|| SlotAnimation::new(animation, place))
    }

    /// Whether our vertex stage draws whole instances of the set. If not, a component of the entity
    /// is ignored.
    fn draws_instances(&mut self, set: &ExtractedSet, component: &'static str) -> bool {
        let drawn = if self.draws.expanded.contains(&set.entity) {
            "from a MeshUniform per survivor (InstanceMeshUniforms, or a vertex shader for meshes)"
        } else if set.has_meshlets {
            "by meshlets (MeshletMesh3d)"
        } else {
            return true;
        };
        (self.draws.warnings).ignore(set.entity, component, drawn);
        false
    }
}
