//! Meshes cut into meshlets, as plain data on the CPU: built once, saved, loaded and drawn.
//!
//! * [`MeshData`]: triangles as the caller has them, with every vertex attribute as bytes.
//! * [`MeshletMesh`]: the same triangles, grouped into [`Meshlet`]s of at most 64 vertices and 124
//!   triangles by default ([`MeshletSettings`]). It is still one ordinary indexed mesh: a meshlet
//!   is a run of its indices, with a bounding sphere and a [`NormalCone`] that contains the
//!   directions that its triangles face. A [`MeshletLevel`] is a run of meshlets that draws all of
//!   the mesh, in full or coarser.
//! * [`MeshletMesh::to_bytes`], [`MeshletMesh::from_bytes`]: the file, versioned and with a
//!   checksum.
//! * [`MeshData::simplified`]: coarser forms of a mesh, its levels of detail. [`MeshLods`]: the
//!   same as an asset, with its file.
//! * [`MeshletError`]: what was wrong, with the value and the limit.
//!
//! Building and files need the feature `meshlets`. Nothing here depends on the GPU or Bevy.

#[cfg(feature = "meshlets")]
mod build;
#[cfg(feature = "meshlets")]
mod collapse;
mod cone;
#[cfg(feature = "meshlets")]
mod cut;
mod data;
mod error;
#[cfg(feature = "meshlets")]
mod file;
#[cfg(feature = "meshlets")]
mod foliage;
#[cfg(all(feature = "meshlets", target_arch = "wasm32"))]
mod heap;
mod levels;
#[cfg(feature = "meshlets")]
mod lods;
#[cfg(feature = "meshlets")]
mod payload;
mod placed;
mod settings;
#[cfg(feature = "meshlets")]
mod simplify;
#[cfg(feature = "meshlets")]
mod surface;

pub use cone::NormalCone;
pub use data::{
    MeshData, Meshlet, MeshletLevel, MeshletMesh, POSITION, POSITION_FORMAT, VertexAttribute,
};
pub use error::MeshletError;
#[cfg(feature = "meshlets")]
pub use lods::MeshLods;
pub use settings::{LodSettings, MeshletSettings};
#[cfg(feature = "meshlets")]
pub use simplify::SimplifiedMesh;
