//! What the device refused to make.

use crate::cull::CullError;
use std::collections::HashSet;

/// Something that the device refused to make for a frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The device's error.
    pub error: CullError,
    /// [Keys](crate::cull::CullRequest::key) of the requests that are not drawn. They are tried
    /// again every 120 frames. Empty if something else is missing: bounds of blocks, motion vectors,
    /// a larger arena, the far-first sort.
    pub requests: Vec<u64>,
}

impl From<CullError> for Refusal {
    fn from(error: CullError) -> Self {
        Self {
            error,
            requests: Vec::new(),
        }
    }
}

/// Number of errors that are remembered.
const MAX_NOTED: usize = 64;

/// The refusals that nobody has asked for yet.
#[derive(Default)]
pub(super) struct Refusals {
    untold: Vec<Refusal>,
    /// Texts of errors that were noted once. They hold sizes, so they are forgotten if there are
    /// many.
    noted: HashSet<String>,
}

impl Refusals {
    pub fn push(&mut self, refusal: Refusal) {
        self.untold.push(refusal);
    }

    /// Notes an error that concerns no request, once.
    pub fn note<T>(&mut self, result: Result<T, CullError>) {
        if let Err(error) = result
            && !self.noted.contains(&error.to_string())
        {
            if self.noted.len() >= MAX_NOTED {
                self.noted.clear();
            }
            self.noted.insert(error.to_string());
            self.untold.push(error.into());
        }
    }

    /// The refusals since the last call.
    pub fn take(&mut self) -> Vec<Refusal> {
        core::mem::take(&mut self.untold)
    }
}
