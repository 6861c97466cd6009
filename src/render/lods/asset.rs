//! Files of levels of detail as assets.

use crate::{
    meshlet::{LodSettings, MeshData, MeshLods, MeshletError},
    render::files,
};
use bevy::{
    asset::{
        AssetLoader, AssetPath, LoadContext,
        io::{Reader, Writer},
        saver::{AssetSaver, SavedAsset},
    },
    prelude::*,
    reflect::TypePath,
};

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

/// Loads [`MeshLods`] from files with the extension `lods`. The plugin registers it. Damaged,
/// truncated and foreign files, and files of another version, are a [`MeshletError`].
#[derive(Clone, Copy, Debug, Default, TypePath)]
pub struct MeshLodsLoader;

impl AssetLoader for MeshLodsLoader {
    type Asset = MeshLods;
    type Settings = ();
    type Error = MeshletError;

    async fn load(
        &self,
        reader: &mut dyn Reader,
        (): &(),
        _: &mut LoadContext<'_>,
    ) -> Result<MeshLods, MeshletError> {
        let bytes = files::read(reader).await.map_err(MeshletError::Io)?;
        MeshLods::from_bytes(&bytes)
    }

    fn extensions(&self) -> &[&str] {
        &[MeshLods::FILE_EXTENSION]
    }
}

/// Saves [`MeshLods`] to files that [`MeshLodsLoader`] loads, for asset processors. Elsewhere,
/// `std::fs::write` the bytes of [`MeshLods::to_bytes`].
#[derive(Clone, Copy, Debug, Default, TypePath)]
pub struct MeshLodsSaver;

impl AssetSaver for MeshLodsSaver {
    type Asset = MeshLods;
    type Settings = ();
    type OutputLoader = MeshLodsLoader;
    type Error = MeshletError;

    async fn save(
        &self,
        writer: &mut Writer,
        asset: SavedAsset<'_, '_, MeshLods>,
        (): &(),
        _: AssetPath<'_>,
    ) -> Result<(), MeshletError> {
        let written = files::write(writer, &asset.to_bytes()?).await;
        written.map_err(MeshletError::Io)
    }
}
