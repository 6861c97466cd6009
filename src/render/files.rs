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
