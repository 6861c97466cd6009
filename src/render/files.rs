//! Files of assets, whole.

use crate::meshlet::MeshletError;
use bevy::asset::{
    AsyncWriteExt,
    io::{Reader, Writer},
};

/// All bytes of a file.
///
/// # Errors
/// [`MeshletError::Io`].
pub(super) async fn read(reader: &mut dyn Reader) -> Result<Vec<u8>, MeshletError> {
    let mut bytes = Vec::new();
    let read = reader.read_to_end(&mut bytes).await;
    read.map_err(|error| MeshletError::Io(error.to_string()))?;
    Ok(bytes)
}

/// Writes a file.
///
/// # Errors
/// [`MeshletError::Io`].
pub(super) async fn write(writer: &mut Writer, bytes: &[u8]) -> Result<(), MeshletError> {
    let written = writer.write_all(bytes).await;
    written.map_err(|error| MeshletError::Io(error.to_string()))
}
