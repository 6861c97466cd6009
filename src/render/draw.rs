//! Draws of sets in Bevy's phases.
//!
//! 1. `functions`: Bevy's draw functions, with the mesh bind group and the draw call replaced by
//!    ours.
//! 2. `wireframe`: Bevy's wireframes.
//! 3. `near_levels`: the near levels of detail of all sets before far ones of any.

mod functions;
mod near_levels;
mod wireframe;

pub(super) use functions::{DrawSet, DrawSetDepthOnly, DrawSetPrepass};
pub(super) use near_levels::build_render;
pub(super) use wireframe::{redirect_wireframes, register_wireframes};
