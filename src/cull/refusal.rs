//! What the device refused to make.

use crate::cull::CullError;
use core::fmt;
use std::collections::HashSet;

/// Something that the device refused to make for a frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The device's error.
    pub error: CullError,
    /// What the frame lacks for it. The device is asked again.
    pub missing: Missing,
}

/// What a frame lacks because the device refused to make it.
#[derive(Clone, Debug, PartialEq)]
pub enum Missing {
    /// Requests with these [keys](crate::cull::CullRequest::key) are not drawn. They are tried
    /// again every 120 frames.
    Requests(Vec<u64>),
    /// Bounds of blocks of 1,024 instances.
    Bounds,
    /// What a view needs to hide instances.
    Occlusion,
    /// The order of sets that are sorted far first.
    Order,
    /// Where instances were in the frame before.
    PreviousPlaces,
    /// Lists of survivors that are long enough.
    Room,
}

/// What is seen of it.
impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Requests(_) => "some sets are not drawn",
            Self::Bounds => "instances that are new or were moved may not be drawn",
            Self::Occlusion => "views hide no instances: those behind others are drawn, too",
            Self::Order => "blended instances are not drawn from far to near",
            Self::PreviousPlaces => "instances that move have no motion vectors, or old ones",
            Self::Room => "visible instances may not fit into the lists of survivors",
        })
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
    pub fn push(&mut self, error: CullError, missing: Missing) {
        self.untold.push(Refusal { error, missing });
    }

    /// Notes an error once.
    pub fn note(&mut self, error: CullError, missing: Missing) {
        let text = error.to_string();
        if !self.noted.contains(&text) {
            if self.noted.len() >= MAX_NOTED {
                self.noted.clear();
            }
            self.noted.insert(text);
            self.push(error, missing);
        }
    }

    /// Notes the error of a result, if it has one.
    pub fn note_error<T>(&mut self, result: Result<T, CullError>, missing: Missing) {
        if let Err(error) = result {
            self.note(error, missing);
        }
    }

    /// The refusals since the last call.
    pub fn take(&mut self) -> Vec<Refusal> {
        core::mem::take(&mut self.untold)
    }
}
