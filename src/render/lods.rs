//! Levels of detail of sets: coarser meshes for instances that are far away.
//!
//! 1. `component`: [`InstanceLods`], the levels of an entity.
//! 2. `resolve` (main world): which of them are loaded, and the sphere around them.
//! 3. `requests`: the engine's levels of a request, and the meshes that they draw.
//! 4. `simplify`: makes levels from a mesh. `build`: [`BuildLods`] does it off the main thread.

#[cfg(feature = "meshlets")]
mod build;
mod component;
mod requests;
mod resolve;
#[cfg(feature = "meshlets")]
mod simplify;

#[cfg(feature = "meshlets")]
pub use build::{BuildLods, LodBuilds, LodsBuilt};
pub use component::{InstanceLod, InstanceLods};

pub(super) use requests::{RequestLods, fit_each_other};
pub(super) use resolve::{SetLod, SetLods, resolve_lods};

use bevy::prelude::*;

/// Adds the types and systems of the main world that give entities their levels.
pub(super) fn build(app: &mut App) {
    app.register_type::<InstanceLod>()
        .register_type::<InstanceLods>();
    #[cfg(feature = "meshlets")]
    app.register_type::<BuildLods>()
        .init_resource::<LodBuilds>()
        .add_systems(
            PreUpdate,
            build::build_lods.run_if(resource_exists::<Assets<Mesh>>),
        );
}
