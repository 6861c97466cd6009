//! Kernels on a simulated GPU: at subgroup sizes that no adapter at hand has, and with schedulers
//! that let workgroups starve.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod batch;
#[path = "../common/mod.rs"]
mod common;
mod kernels;
mod look_back;
mod machine;
mod scene;
mod small;
mod values;
