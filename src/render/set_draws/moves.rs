//! What moves the vertices of a set's instances.

use crate::cull::CoarserLevel;
use crate::render::{animation::SlotAnimation, wind::SlotWind};
use std::sync::Arc;

/// What moves the vertices of a set's instances.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::render) struct Moves {
    /// `None` if they stand still in the wind.
    pub wind: Option<SlotWind>,
    /// `None` if they have no poses.
    pub animation: Option<SlotAnimation>,
}

impl Moves {
    /// Levels whose spheres hold what is moved, and whose errors are in the instance's units.
    pub fn around(&self, levels: &Arc<[CoarserLevel]>) -> Arc<[CoarserLevel]> {
        let reach = self.wind.map_or(0.0, |wind| wind.reach);
        if self.animation.is_none() && reach == 0.0 {
            return levels.clone();
        }
        let moved = levels.iter().map(|level| {
            // The request's sphere holds all levels in all poses.
            let still = level.sphere.filter(|_| self.animation.is_none());
            let stretch = self.animation.map_or(1.0, |animation| animation.stretch);
            CoarserLevel {
                sphere: still.map(|sphere| sphere.grown(reach)),
                error: level.error * stretch,
                ..*level
            }
        });
        moved.collect()
    }
}
