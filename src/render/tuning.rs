//! Which tuning [`Compaction::Auto`](crate::cull::Compaction::Auto) uses in an app.

#[cfg(feature = "tune")]
mod kept;
#[cfg(not(feature = "tune"))]
mod rule;

#[cfg(feature = "tune")]
pub(super) use kept::Tunings;
#[cfg(not(feature = "tune"))]
pub(super) use rule::Tunings;

use bevy::prelude::*;

/// Where [`Compaction::Auto`](crate::cull::Compaction::Auto) gets its thresholds: up to how many
/// tests per frame it takes which compaction.
#[derive(Reflect, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[reflect(Default, Clone, PartialEq, Hash)]
pub enum TuningSource {
    /// The fixed rule for the tier ([`Tuning::rule`](crate::cull::Tuning::rule)). The default
    /// without the feature `tune`.
    #[cfg_attr(not(feature = "tune"), default)]
    Rule,
    /// The tuning that is kept for this adapter in the user's cache folder
    /// ([`cull::tune`](crate::cull::tune)); [`Self::Rule`] if none is kept. `cargo xtask tune` or
    /// [`Self::Measure`] keeps one. Nothing is measured. The default with the feature `tune`.
    #[cfg(feature = "tune")]
    #[default]
    Kept,
    /// [`Self::Kept`]; if none is kept, one is measured when the renderer starts, and kept. The
    /// measurement takes about a second and waits for the GPU.
    #[cfg(feature = "tune")]
    Measure,
}
