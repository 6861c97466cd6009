//! The project's own files: what documents name, how the sources import each other, and the
//! shaders.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod circles;
#[cfg(feature = "study")]
#[path = "../common/mod.rs"]
mod common;
#[path = "../../build/compose.rs"]
mod compose;
mod docs;
#[cfg(feature = "study")]
mod shaders;
mod wesl;
