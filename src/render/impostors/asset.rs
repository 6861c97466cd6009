//! Files of photographs as assets.

use super::{atlas::ImpostorAtlas, error::ImpostorError};
use crate::render::files;
use bevy::{
    asset::{
        AssetLoader, AssetPath, LoadContext,
        io::{Reader, Writer},
        saver::{AssetSaver, SavedAsset},
    },
    reflect::TypePath,
};

/// Loads [`ImpostorAtlas`] from files with the extension `impostor`. [`ImpostorPlugin`] registers
/// it. Damaged, truncated and foreign files, and files of another version, are an
/// [`ImpostorError`].
///
/// [`ImpostorPlugin`]: super::ImpostorPlugin
#[derive(Clone, Copy, Debug, Default, TypePath)]
pub struct ImpostorAtlasLoader;

impl AssetLoader for ImpostorAtlasLoader {
    type Asset = ImpostorAtlas;
    type Settings = ();
    type Error = ImpostorError;

    async fn load(
        &self,
        reader: &mut dyn Reader,
        (): &(),
        _: &mut LoadContext<'_>,
    ) -> Result<ImpostorAtlas, ImpostorError> {
        let bytes = files::read(reader).await.map_err(ImpostorError::Io)?;
        ImpostorAtlas::from_bytes(&bytes)
    }

    fn extensions(&self) -> &[&str] {
        &[ImpostorAtlas::EXTENSION]
    }
}

/// Saves [`ImpostorAtlas`] to files that [`ImpostorAtlasLoader`] loads, for asset processors.
/// Elsewhere, `std::fs::write` the bytes of [`ImpostorAtlas::to_bytes`].
#[derive(Clone, Copy, Debug, Default, TypePath)]
pub struct ImpostorAtlasSaver;

impl AssetSaver for ImpostorAtlasSaver {
    type Asset = ImpostorAtlas;
    type Settings = ();
    type OutputLoader = ImpostorAtlasLoader;
    type Error = ImpostorError;

    async fn save(
        &self,
        writer: &mut Writer,
        asset: SavedAsset<'_, '_, ImpostorAtlas>,
        (): &(),
        _: AssetPath<'_>,
    ) -> Result<(), ImpostorError> {
        let written = files::write(writer, &asset.to_bytes()).await;
        written.map_err(ImpostorError::Io)
    }
}
