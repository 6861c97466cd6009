//! The engine without an app: plain data, the kernels on the GPU against their CPU twins, and the
//! same kernels on a simulated GPU.
#![cfg(feature = "study")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic and tell what it saw"
)]

#[path = "../common/mod.rs"]
mod common;
mod decode;
mod depth;
mod edits;
mod expansion;
mod far_first;
mod ladder;
mod layout;
mod levels;
mod memory;
#[cfg(feature = "meshlets")]
mod meshlet_bounds;
mod meshlets;
mod multi_draws;
mod occlude;
mod precision;
mod scatter;
mod self_test;
mod shapes;
mod shared_views;
mod simulator;
#[cfg(feature = "tune")]
mod tune;
mod twin;
mod written;
