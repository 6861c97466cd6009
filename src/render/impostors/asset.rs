//! Files of photographs as assets.

use super::{atlas::ImpostorAtlas, error::ImpostorError};
use crate::render::files::file_asset;

file_asset! {
    ImpostorAtlas, ImpostorError, ImpostorAtlas::EXTENSION;
    /// Loads [`ImpostorAtlas`] from files with the extension `impostor`. [`ImpostorPlugin`]
    /// registers it. Damaged, truncated and foreign files, and files of another version, are an
    /// [`ImpostorError`].
    ///
    /// [`ImpostorPlugin`]: super::ImpostorPlugin
    loader ImpostorAtlasLoader;
    /// Saves [`ImpostorAtlas`] to files that [`ImpostorAtlasLoader`] loads, for asset processors.
    /// Elsewhere, `std::fs::write` the bytes of [`ImpostorAtlas::to_bytes`].
    saver ImpostorAtlasSaver, |asset| asset.to_bytes();
}
