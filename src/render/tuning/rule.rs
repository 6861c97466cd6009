//! Without the feature `tune`: the rule for the tier, always.

use super::TuningSource;
use crate::cull::{CullerOptions, Gpu, Tuning};

/// Has nothing to keep.
#[derive(Default)]
pub(in crate::render) struct Tunings {}

impl Tunings {
    /// `None`, which is the rule.
    pub fn find(
        &mut self,
        TuningSource::Rule: TuningSource,
        _: Gpu<'_>,
        _: &CullerOptions,
    ) -> Option<Tuning> {
        None
    }
}
