//! Without the feature `tune`: the rule for the tier, always.

use super::TuningSource;
use crate::cull::{CullerOptions, Tuning};
use wgpu::{Device, Queue};

/// Has nothing to keep.
#[derive(Default)]
pub(in crate::render) struct Tunings {}

impl Tunings {
    /// `None`, which is the rule.
    pub fn find(
        &mut self,
        TuningSource::Rule: TuningSource,
        _: (&Device, &Queue),
        _: &CullerOptions,
    ) -> Option<Tuning> {
        None
    }
}
