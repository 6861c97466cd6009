//! Files of assets, whole. Errors are what the system says.

use bevy::asset::{
    AsyncWriteExt,
    io::{Reader, Writer},
};

/// All bytes of a file.
pub(super) async fn read(reader: &mut dyn Reader) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = reader.read_to_end(&mut bytes).await;
    read.map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Writes a file.
pub(super) async fn write(writer: &mut Writer, bytes: &[u8]) -> Result<(), String> {
    let written = writer.write_all(bytes).await;
    written.map_err(|error| error.to_string())
}

/// Declares the loader and the saver of an asset whose files have no settings. The asset has
/// `from_bytes`, and its error has an `Io`.
macro_rules! file_asset {
    (
        $asset:ident, $error:ident, $extension:expr;
        $(#[$loader_docs:meta])*
        loader $loader:ident;
        $(#[$saver_docs:meta])*
        saver $saver:ident, |$saved:ident| $bytes:expr;
    ) => {
        $(#[$loader_docs])*
        #[derive(Clone, Copy, Debug, Default, bevy::reflect::TypePath)]
        pub struct $loader;

        impl bevy::asset::AssetLoader for $loader {
            type Asset = $asset;
            type Settings = ();
            type Error = $error;

            async fn load(
                &self,
                reader: &mut dyn bevy::asset::io::Reader,
                (): &(),
                _: &mut bevy::asset::LoadContext<'_>,
            ) -> Result<$asset, $error> {
                let read = crate::render::files::read(reader).await;
                $asset::from_bytes(&read.map_err($error::Io)?)
            }

            fn extensions(&self) -> &[&str] {
                &[$extension]
            }
        }

        $(#[$saver_docs])*
        #[derive(Clone, Copy, Debug, Default, bevy::reflect::TypePath)]
        pub struct $saver;

        impl bevy::asset::saver::AssetSaver for $saver {
            type Asset = $asset;
            type Settings = ();
            type OutputLoader = $loader;
            type Error = $error;

            async fn save(
                &self,
                writer: &mut bevy::asset::io::Writer,
                $saved: bevy::asset::saver::SavedAsset<'_, '_, $asset>,
                (): &(),
                _: bevy::asset::AssetPath<'_>,
            ) -> Result<(), $error> {
                let written = crate::render::files::write(writer, &$bytes).await;
                written.map_err($error::Io)
            }
        }
    };
}

pub(super) use file_asset;
