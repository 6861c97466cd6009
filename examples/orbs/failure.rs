//! What the program says and returns if something fails.

use crate::end;
use bevy::prelude::*;

/// A failure: a message for people, and the exit code.
#[derive(Debug)]
pub struct Failure {
    pub code: u8,
    pub message: String,
}

impl Failure {
    /// The work failed or its check did.
    pub const WORK: u8 = 1;
    /// The flags ask for something that cannot be done.
    pub const USAGE: u8 = 2;
    /// There is no adapter.
    pub const NO_ADAPTER: u8 = 3;
    /// Ctrl-C.
    pub const INTERRUPTED: u8 = end::INTERRUPTED;

    pub fn new(code: u8, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// The failure that the app's exit code reports; `None` if it ended well.
    pub fn of_app(exit: AppExit) -> Option<Self> {
        let AppExit::Error(code) = exit else {
            return None;
        };
        let message = if code.get() == Self::INTERRUPTED {
            "interrupted"
        } else {
            "the app ended with an error: the log says which"
        };
        Some(Self::new(code.get(), message))
    }
}
