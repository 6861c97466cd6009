//! Apps with the plugin: what they draw, and what they say of it. Most are compared with the same
//! scene of Bevy's own entities.
#![cfg(all(feature = "bevy", feature = "study"))]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic and tell what it saw"
)]

#[cfg(feature = "meshlets")]
mod assets;
// Not for `common::gpu`: kernels are shared with devices of one instance, the apps'.
#[cfg(all(target_os = "linux", feature = "tune"))]
#[path = "../common/mod.rs"]
mod common;
#[cfg(feature = "gizmos")]
mod gizmos;
#[path = "../scene/log.rs"]
mod log;
#[cfg(feature = "meshlets")]
mod meshlet_picture;
mod occlusion;
mod oracle;
#[cfg(feature = "overlay")]
mod overlay;
#[cfg(feature = "picking")]
mod picking;
#[path = "../scene/mod.rs"]
mod scene;
#[cfg(all(target_os = "linux", feature = "tune"))]
mod tuned_app;
mod work;
