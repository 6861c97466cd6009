//! Files of meshlets as assets.

use crate::{
    meshlet::{MeshletError, MeshletMesh},
    render::files::file_asset,
};

file_asset! {
    MeshletMesh, MeshletError, MeshletMesh::FILE_EXTENSION;
    /// Loads [`MeshletMesh`] from files with the extension `meshlets`. The plugin registers it.
    /// Damaged, truncated and foreign files, and files of another version, are a
    /// [`MeshletError`].
    loader MeshletMeshLoader;
    /// Saves [`MeshletMesh`] to files that [`MeshletMeshLoader`] loads, for asset processors.
    /// Elsewhere, `std::fs::write` the bytes of [`MeshletMesh::to_bytes`].
    saver MeshletMeshSaver, |asset| asset.to_bytes()?;
}
