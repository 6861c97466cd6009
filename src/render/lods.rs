//! Levels of detail of sets: coarser meshes for instances that are far away.
//!
//! 1. `component`: [`InstanceLods`], the levels of an entity.
//! 2. `impostor`: [`InstanceImpostor`], a last level with another material.
//! 3. `resolve` (main world): which of them are loaded, and the sphere around them.
//! 4. `requests`: the engine's levels of a request, and the meshes that they draw.
//! 5. `simplify`: makes levels from a mesh. `build`: [`BuildLods`] does it off the main thread, and
//!    [`BuiltLods`] has it done again in a world that was saved.
//! 6. `asset`: files of levels. `load`: [`MeshLods3d`] gives its entity the levels of a file.
//! 7. `range`: [`InstanceVisibilityRange`], the distances at which instances are drawn at all.
//! 8. `aggregate`: [`AggregateDetail`], fewer and larger instances in place of very small ones.
//! 9. `fade`: what the vertex stage needs to fade instances between levels and ranges.

mod aggregate;
#[cfg(feature = "meshlets")]
mod asset;
#[cfg(feature = "meshlets")]
mod build;
mod component;
mod fade;
mod impostor;
#[cfg(feature = "meshlets")]
mod load;
mod range;
mod requests;
mod resolve;
#[cfg(feature = "meshlets")]
mod simplify;

pub use aggregate::AggregateDetail;
#[cfg(feature = "meshlets")]
pub use asset::{MeshLodsLoader, MeshLodsSaver};
#[cfg(feature = "meshlets")]
pub use build::{BuildLods, BuiltLods, LodBuilds, LodsBuilt};
pub use component::{InstanceLod, InstanceLods, LodMesh};
pub use impostor::InstanceImpostor;
#[cfg(feature = "meshlets")]
pub use load::MeshLods3d;
pub use range::InstanceVisibilityRange;

pub(super) use aggregate::{ShadowPixels, Thinning, warn_of_bad_details};
pub(super) use fade::{Fading, SlotFade};
pub(super) use impostor::{
    ImpostorOf, InstanceShare, SetImpostor, SharedImpostor, attach_impostors,
    warn_of_unused_impostors,
};
pub(super) use range::{SetRange, warn_of_bad_ranges};
pub(super) use requests::{RequestLods, fit_each_other, indices_per_element, part_of};
pub(super) use resolve::{SetLod, SetLodMesh, SetLods, resolve_lods};

use bevy::prelude::*;

/// Adds the types and systems of the main world that give entities their levels.
pub(super) fn build(app: &mut App) {
    app.register_type::<InstanceLod>()
        .register_type::<LodMesh>()
        .register_type::<InstanceLods>()
        .register_type::<InstanceImpostor>()
        .register_type::<InstanceVisibilityRange>()
        .register_type::<AggregateDetail>();
    #[cfg(feature = "meshlets")]
    app.register_type::<BuildLods>()
        .register_type::<BuiltLods>()
        .register_type::<LodsBuilt>()
        .register_type::<MeshLods3d>()
        .init_asset::<crate::meshlet::MeshLods>()
        .register_asset_loader(MeshLodsLoader)
        .init_resource::<LodBuilds>()
        .init_resource::<load::LoadedLods>()
        .add_systems(
            PreUpdate,
            (build::rebuild_lods, build::build_lods)
                .chain()
                .run_if(resource_exists::<Assets<Mesh>>),
        )
        .add_systems(
            PostUpdate,
            load::give_lods
                .run_if(resource_exists::<Assets<Mesh>>)
                .before(super::settings::GpuCullingSystems::UpdateBounds),
        );
}
