//! Occlusion: what a camera's depth hides is not drawn.
//!
//! 1. `component`: what users attach to cameras and sets.
//! 2. `views`: which cameras of the frame hide, and by which of their passes.
//! 3. `lists`: which list of survivors the draws of a camera take at present.
//! 4. `passes`: the late lists between a camera's passes, and the draws of what is late.

mod component;
mod lists;
mod passes;
mod views;

pub use component::{InstanceOcclusion, NoOcclusionCulling};
pub(super) use lists::DrawnLists;
pub(super) use passes::build_render;
pub(super) use views::{HidingView, HidingViews, Way};
