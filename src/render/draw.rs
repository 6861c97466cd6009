//! Draws of sets in Bevy's phases.
//!
//! 1. `functions`: Bevy's draw functions, with the mesh bind group and the draw call replaced by
//!    ours.
//! 2. `wireframe`: Bevy's wireframes.

mod functions;
mod wireframe;

pub(super) use functions::{DrawSet, DrawSetDepthOnly, DrawSetPrepass};
pub(super) use wireframe::{redirect_wireframes, register_wireframes};
