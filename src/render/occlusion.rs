//! Occlusion: what the depth of a view hides is not drawn.
//!
//! 1. `component`: what users attach to cameras, lights and sets.
//! 2. `cameras`: what cameras need that cannot hide in their main pass.
//! 3. `views`: which cameras and lights of the frame hide, and by which of their passes.
//! 4. `pause`: which of them hide nothing for some frames, because it does not pay.
//! 5. `lists`: which list of survivors the draws of a view take at present.
//! 6. `passes`: the late lists between the passes of a view, and the draws of what is late.

mod cameras;
mod component;
mod lists;
mod passes;
mod pause;
mod views;

pub(super) use cameras::equip_cameras;
pub use component::{InstanceOcclusion, NoOcclusionCulling};
pub(super) use lists::DrawnLists;
pub(super) use passes::build_render;
pub(super) use pause::OcclusionPauses;
pub(super) use views::{HidingView, HidingViews, HidingWay};
