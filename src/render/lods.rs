//! Levels of detail of sets: coarser meshes for instances that are far away.
//!
//! 1. `component`: [`InstanceLods`], the levels of an entity.
//! 2. `resolve` (main world): which of them are loaded, and the sphere around them.
//! 3. `requests`: the engine's levels of a request, and the meshes that they draw.
//! 4. `simplify`: makes levels from a mesh.

mod component;
mod requests;
mod resolve;
#[cfg(feature = "meshlets")]
mod simplify;

pub use component::{InstanceLod, InstanceLods};

pub(super) use requests::{RequestLods, fit_each_other};
pub(super) use resolve::{SetLod, SetLods, resolve_lods};
