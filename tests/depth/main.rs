//! Occlusion by depth: spans and footprints of spheres, and the depth pyramid, against their twins
//! and against brute force.
#![cfg(feature = "study")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod cases;
#[path = "../common/mod.rs"]
mod common;
mod hidden;
mod near;
mod on_gpu;
mod picture;
mod pyramids;
mod spans;
mod views;
