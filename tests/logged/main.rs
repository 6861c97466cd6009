//! Apps that log what is wrong and nothing else. Their tests count all lines of the log.
//!
//! The log is the process's. So in this program, a test that makes an app log something holds the
//! `Log`, also if it reads no line.
#![cfg(all(feature = "bevy", feature = "study"))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod files;
#[cfg(all(feature = "gltf", feature = "meshlets"))]
#[path = "../scene/gltf_file.rs"]
mod gltf_file;
#[cfg(feature = "meshlets")]
mod lods;
#[path = "../scene/log.rs"]
mod log;
mod plugin;
#[cfg(all(feature = "gltf", feature = "meshlets"))]
mod saved;
#[path = "../scene/mod.rs"]
mod scene;
