//! Files of instances as assets.

use super::files;
use crate::instance::{InstanceFileError, InstanceSet};
use bevy::{
    asset::{
        AssetLoader, AssetPath, LoadContext, RenderAssetUsages,
        io::{Reader, Writer},
        saver::{AssetSaver, SavedAsset},
    },
    reflect::TypePath,
};
use serde::{Deserialize, Serialize};

/// Loads [`InstanceSet`] from files with the extension `instances`. The plugin registers it.
/// Damaged, truncated and foreign files, and files of another version, are an
/// [`InstanceFileError`].
#[derive(Clone, Copy, Debug, Default, TypePath)]
pub struct InstanceSetLoader;

/// How [`InstanceSetLoader`] loads a file. In the file's `.meta`, a field that is missing has its
/// default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstanceSetLoaderSettings {
    /// [`InstanceSet::asset_usage`]; by default, the data stays on the CPU.
    pub asset_usage: RenderAssetUsages,
    /// [`InstanceSet::keep_previous`]; by default (`None`), as it was saved.
    pub keep_previous: Option<bool>,
}

impl AssetLoader for InstanceSetLoader {
    type Asset = InstanceSet;
    type Settings = InstanceSetLoaderSettings;
    type Error = InstanceFileError;

    async fn load(
        &self,
        reader: &mut dyn Reader,
        settings: &InstanceSetLoaderSettings,
        _: &mut LoadContext<'_>,
    ) -> Result<InstanceSet, InstanceFileError> {
        let bytes = files::read(reader).await.map_err(InstanceFileError::Io)?;
        let set = InstanceSet::from_bytes(&bytes)?;
        let keep = settings.keep_previous.unwrap_or(set.keeps_previous());
        Ok(set
            .keep_previous(keep)
            .with_asset_usage(settings.asset_usage))
    }

    fn extensions(&self) -> &[&str] {
        &[InstanceSet::FILE_EXTENSION]
    }
}

/// Saves [`InstanceSet`] to files that [`InstanceSetLoader`] loads, for asset processors and
/// `bevy::asset::saver::save_using_saver`, which also saves the set's `asset_usage` (in a `.meta`
/// file). Elsewhere, `std::fs::write` the bytes of [`InstanceSet::to_bytes`].
#[derive(Clone, Copy, Debug, Default, TypePath)]
pub struct InstanceSetSaver;

impl AssetSaver for InstanceSetSaver {
    type Asset = InstanceSet;
    type Settings = ();
    type OutputLoader = InstanceSetLoader;
    type Error = InstanceFileError;

    async fn save(
        &self,
        writer: &mut Writer,
        asset: SavedAsset<'_, '_, InstanceSet>,
        (): &(),
        _: AssetPath<'_>,
    ) -> Result<InstanceSetLoaderSettings, InstanceFileError> {
        let bytes = asset.to_bytes()?;
        let written = files::write(writer, &bytes).await;
        written.map_err(InstanceFileError::Io)?;
        Ok(InstanceSetLoaderSettings {
            asset_usage: asset.asset_usage,
            keep_previous: None,
        })
    }
}
