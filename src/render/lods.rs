//! Levels of detail of sets: coarser meshes for instances that are far away.
//!
//! 1. `component`: [`InstanceLods`], the levels of an entity.
//! 2. `resolve` (main world): which of them are loaded, and the sphere around them.
//! 3. `requests`: the engine's levels of a request, and the meshes that they draw.
//! 4. `simplify`: makes levels from a mesh.
//! 5. `range`: [`InstanceVisibilityRange`], the distances at which instances are drawn at all.
//! 6. `fade`: what the vertex stage needs to fade instances between levels and ranges.

mod component;
mod fade;
mod range;
mod requests;
mod resolve;
#[cfg(feature = "meshlets")]
mod simplify;

pub use component::{InstanceLod, InstanceLods};
pub use range::InstanceVisibilityRange;

pub(super) use fade::{Fading, SlotFade};
pub(super) use range::{SetRange, warn_of_bad_ranges};
pub(super) use requests::{RequestLods, fit_each_other};
pub(super) use resolve::{SetLod, SetLods, resolve_lods};
