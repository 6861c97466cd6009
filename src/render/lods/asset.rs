//! Files of levels of detail as assets.

use crate::{
    meshlet::{LodSettings, MeshData, MeshLods, MeshletError},
    render::files::file_asset,
};
use bevy::prelude::Mesh;

impl MeshLods {
    /// Makes the levels of a mesh. It takes as long as
    /// [`InstanceLods::simplified`](crate::render::InstanceLods::simplified).
    ///
    /// # Errors
    /// [`MeshletError`]: the mesh is not a list of triangles, has morph targets, has its vertices
    /// only on the GPU, or [`Self::build`] refuses it.
    pub fn from_mesh(mesh: &Mesh, settings: &LodSettings) -> Result<Self, MeshletError> {
        Self::build(&MeshData::try_from(mesh)?, settings)
    }
}

file_asset! {
    MeshLods, MeshletError, MeshLods::FILE_EXTENSION;
    /// Loads [`MeshLods`] from files with the extension `lods`. The plugin registers it. Damaged,
    /// truncated and foreign files, and files of another version, are a [`MeshletError`].
    loader MeshLodsLoader;
    /// Saves [`MeshLods`] to files that [`MeshLodsLoader`] loads, for asset processors. Elsewhere,
    /// `std::fs::write` the bytes of [`MeshLods::to_bytes`].
    saver MeshLodsSaver, |asset| asset.to_bytes()?;
}
