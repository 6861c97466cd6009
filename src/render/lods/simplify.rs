//! Levels of detail from a mesh.

use super::{InstanceLod, InstanceLods};
use crate::{
    meshlet::{LodSettings, MeshData, MeshletError, SimplifiedMesh},
    render::{
        compression::{compress, compression_of},
        meshlets::mesh_of,
    },
};
use bevy::{asset::RenderAssetUsages, mesh::MeshAttributeCompressionFlags, prelude::*};

impl InstanceLods {
    /// Makes levels of a mesh with meshoptimizer, each from the one before, and adds their meshes
    /// to `meshes`. It takes about a tenth of a second per 10,000 triangles. There are no levels if
    /// the mesh cannot become coarser.
    ///
    /// # Errors
    /// [`MeshletError`]: the mesh is not a list of triangles, has morph targets, has its vertices
    /// only on the GPU, or has a vertex format without a known size; settings out of range.
    pub fn simplified(
        mesh: &Mesh,
        settings: &LodSettings,
        meshes: &mut Assets<Mesh>,
    ) -> Result<Self, MeshletError> {
        let levels = Self::simplified_meshes(mesh, settings)?;
        Ok(Self::from_meshes(levels, meshes))
    }

    /// Adds the meshes of levels, which come with their errors.
    pub(super) fn from_meshes(levels: Vec<(Mesh, f32)>, meshes: &mut Assets<Mesh>) -> Self {
        let levels = levels.into_iter();
        let levels = levels.map(|(mesh, error)| InstanceLod::new(meshes.add(mesh), error));
        Self {
            levels: levels.collect(),
            ..Self::default()
        }
    }

    /// The same as plain meshes with their errors, for any thread, and for changes before they are
    /// added.
    ///
    /// # Errors
    /// Same as [`Self::simplified`].
    pub fn simplified_meshes(
        mesh: &Mesh,
        settings: &LodSettings,
    ) -> Result<Vec<(Mesh, f32)>, MeshletError> {
        level_meshes(
            &MeshData::try_from(mesh)?,
            MeshStyle::of(mesh),
            settings,
            |_| (),
        )
    }
}

/// What the levels of a mesh have in common with it besides attributes: they are drawn by one
/// pipeline.
#[derive(Clone, Copy)]
pub(super) struct MeshStyle {
    usage: RenderAssetUsages,
    compression: MeshAttributeCompressionFlags,
}

impl MeshStyle {
    pub fn of(mesh: &Mesh) -> Self {
        Self {
            usage: mesh.asset_usage,
            compression: compression_of(mesh),
        }
    }
}

/// The levels of a mesh with their errors. The share that is done is reported, from 0 to 1.
pub(super) fn level_meshes(
    mesh: &MeshData,
    style: MeshStyle,
    settings: &LodSettings,
    progress: impl FnMut(f32),
) -> Result<Vec<(Mesh, f32)>, MeshletError> {
    let levels = mesh.simplified_with_progress(settings, progress)?;
    let levels = levels.iter().map(|level| {
        let (mut mesh, error) = to_mesh(level, style.usage)?;
        compress(&mut mesh, style.compression)?;
        Ok((mesh, error))
    });
    levels.collect()
}

/// A level as a mesh, with its error.
pub(super) fn to_mesh(
    level: &SimplifiedMesh,
    usage: RenderAssetUsages,
) -> Result<(Mesh, f32), MeshletError> {
    let data = &level.data;
    let indices = data.indices.as_deref().unwrap_or_default();
    let mesh = mesh_of(&data.attributes, data.vertex_count, indices, usage)?;
    Ok((mesh, level.error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bevy::mesh::MeshVertexAttributeId;

    #[test]
    fn levels_have_the_attributes_of_the_mesh() -> Result<(), MeshletError> {
        let full = Mesh::from(Torus::default());
        let levels = InstanceLods::simplified_meshes(&full, &LodSettings::default())?;
        assert!(levels.len() >= 3, "{}", levels.len());
        let attributes = |mesh: &Mesh| -> Vec<MeshVertexAttributeId> {
            mesh.attributes()
                .map(|(attribute, _)| attribute.id)
                .collect()
        };
        let mut error = 0.0;
        for (mesh, of_level) in &levels {
            assert_eq!(attributes(mesh), attributes(&full));
            assert_eq!(mesh.asset_usage, full.asset_usage);
            assert!(*of_level > error);
            error = *of_level;
        }
        Ok(())
    }
}
