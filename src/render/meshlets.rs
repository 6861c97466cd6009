//! Meshlets of sets: the asset, how it is built and loaded, and how survivors are drawn by
//! meshlets.
//!
//! 1. `asset`: files of meshlets; `convert`: [`MeshletMesh`](crate::meshlet::MeshletMesh) from and
//!    to Bevy's `Mesh`, with the `formats` of its attributes; `colors` tell meshlets apart.
//! 2. `component`: [`MeshletMesh3d`] gives its entity an ordinary `Mesh3d`; `levels` are the levels
//!    of detail in such a mesh.
//! 3. `build`: [`BuildMeshlets`] cuts an entity's mesh off the main thread, and
//!    [`BuiltMeshlets`] has it done again in a world that was saved.
//! 4. `culler`: the meshlet stages; `extract`, `prepare`: which requests of the frame have
//!    meshlets, and what their draws bind.

#[cfg(feature = "meshlets")]
mod asset;
#[cfg(feature = "meshlets")]
mod build;
mod colors;
mod component;
mod convert;
mod culler;
mod extract;
mod formats;
mod levels;
mod prepare;

#[cfg(feature = "meshlets")]
pub use asset::{MeshletMeshLoader, MeshletMeshSaver};
#[cfg(feature = "meshlets")]
pub use build::{BuildMeshlets, BuiltMeshlets, MeshletBuilds, MeshletsBuilt};
pub use component::MeshletMesh3d;
pub use culler::MeshletRoom;

#[cfg(feature = "meshlets")]
pub(super) use convert::mesh_of;
pub(super) use culler::GpuMeshlets;
pub(super) use extract::extract_meshlets;
pub(super) use levels::MeshLevels;
pub(super) use prepare::prepare_meshlets;

use crate::meshlet::MeshletMesh;
use bevy::prelude::*;
use component::{MeshletMeshes, give_meshes};

/// Adds the assets, loaders and systems of the main world. `give_meshes` runs before the bounds of
/// sets are updated.
pub(super) fn build(app: &mut App) {
    app.init_asset::<MeshletMesh>()
        .register_type::<MeshletMesh3d>()
        .init_resource::<MeshletMeshes>()
        .init_resource::<MeshLevels>()
        .add_systems(
            PostUpdate,
            give_meshes
                .run_if(resource_exists::<Assets<Mesh>>)
                .before(super::settings::GpuCullingSystems::UpdateBounds),
        );
    #[cfg(feature = "meshlets")]
    app.register_type::<BuildMeshlets>()
        .register_type::<BuiltMeshlets>()
        .register_type::<MeshletsBuilt>()
        .init_resource::<MeshletBuilds>()
        .register_asset_loader(MeshletMeshLoader)
        .add_systems(
            PreUpdate,
            (build::rebuild_meshlets, build::build_meshlets)
                .chain()
                .run_if(resource_exists::<Assets<Mesh>>),
        );
}
