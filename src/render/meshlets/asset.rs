//! Files of meshlets as assets.

use crate::{
    meshlet::{MeshletError, MeshletMesh},
    render::files,
};
use bevy::{
    asset::{
        AssetLoader, AssetPath, LoadContext,
        io::{Reader, Writer},
        saver::{AssetSaver, SavedAsset},
    },
    reflect::TypePath,
};

/// Loads [`MeshletMesh`] from files with the extension `meshlets`. The plugin registers it.
/// Damaged, truncated and foreign files, and files of another version, are a [`MeshletError`].
#[derive(Clone, Copy, Debug, Default, TypePath)]
pub struct MeshletMeshLoader;

impl AssetLoader for MeshletMeshLoader {
    type Asset = MeshletMesh;
    type Settings = ();
    type Error = MeshletError;

    async fn load(
        &self,
        reader: &mut dyn Reader,
        (): &(),
        _: &mut LoadContext<'_>,
    ) -> Result<MeshletMesh, MeshletError> {
        let bytes = files::read(reader).await.map_err(MeshletError::Io)?;
        MeshletMesh::from_bytes(&bytes)
    }

    fn extensions(&self) -> &[&str] {
        &[MeshletMesh::FILE_EXTENSION]
    }
}

/// Saves [`MeshletMesh`] to files that [`MeshletMeshLoader`] loads, for asset processors.
/// Elsewhere, `std::fs::write` the bytes of [`MeshletMesh::to_bytes`].
#[derive(Clone, Copy, Debug, Default, TypePath)]
pub struct MeshletMeshSaver;

impl AssetSaver for MeshletMeshSaver {
    type Asset = MeshletMesh;
    type Settings = ();
    type OutputLoader = MeshletMeshLoader;
    type Error = MeshletError;

    async fn save(
        &self,
        writer: &mut Writer,
        asset: SavedAsset<'_, '_, MeshletMesh>,
        (): &(),
        _: AssetPath<'_>,
    ) -> Result<(), MeshletError> {
        let written = files::write(writer, &asset.to_bytes()?).await;
        written.map_err(MeshletError::Io)
    }
}
