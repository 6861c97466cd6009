//! Meshes of meshlets from and to Bevy's meshes.

use super::formats::{FORMATS, KNOWN, Kind, OTHER, attribute_id, format_code, values};
#[cfg(feature = "meshlets")]
use crate::meshlet::MeshletSettings;
use crate::{
    meshlet::{MeshData, MeshletError, MeshletMesh, VertexAttribute},
    render::compression::decompressed,
};
use bevy::{
    asset::RenderAssetUsages,
    mesh::{Indices, MeshVertexAttribute, PrimitiveTopology},
    prelude::*,
};

/// A mesh's triangles and attributes. Compressed attributes become floats.
impl TryFrom<&Mesh> for MeshData {
    type Error = MeshletError;

    fn try_from(mesh: &Mesh) -> Result<Self, MeshletError> {
        let topology = mesh.primitive_topology();
        if topology != PrimitiveTopology::TriangleList {
            return Err(MeshletError::Topology {
                topology: format!("{topology:?}"),
            });
        }
        let extracted = |_| MeshletError::Extracted;
        let mesh = &*decompressed(mesh);
        if mesh.try_has_morph_targets().map_err(extracted)? {
            return Err(MeshletError::Deformed {
                what: "morph targets",
            });
        }
        let mut data = Self::default();
        for (attribute, values) in mesh.try_attributes().map_err(extracted)? {
            let id = attribute_id(attribute);
            let format = format_code(attribute.format).ok_or(MeshletError::UnknownFormat {
                id,
                format: u32::MAX,
            })?;
            // Bevy draws as many vertices as the shortest attribute has.
            let count = values.len().min(u32::MAX as usize) as u32;
            data.vertex_count = match data.attributes.is_empty() {
                true => count,
                false => data.vertex_count.min(count),
            };
            data.attributes.push(VertexAttribute {
                id,
                format,
                stride: attribute.format.size() as u32,
                bytes: values.get_bytes().to_vec(),
            });
        }
        for attribute in &mut data.attributes {
            let bytes = data.vertex_count as usize * attribute.stride as usize;
            attribute.bytes.truncate(bytes);
        }
        data.indices = mesh
            .try_indices_option()
            .map_err(extracted)?
            .map(|indices| indices.iter().map(|index| index as u32).collect());
        Ok(data)
    }
}

impl MeshletMesh {
    /// Cuts a mesh into meshlets, by default of at most 64 vertices and 124 triangles. It takes
    /// some milliseconds per 10,000 triangles; [`BuildMeshlets`](crate::render::BuildMeshlets) does
    /// it off the main thread.
    ///
    /// # Errors
    /// [`MeshletError`]: the mesh is not a list of triangles, has morph targets, has its vertices
    /// only on the GPU, or [`Self::build`] refuses it.
    #[cfg(feature = "meshlets")]
    pub fn from_mesh(mesh: &Mesh, settings: &MeshletSettings) -> Result<Self, MeshletError> {
        Self::build(&MeshData::try_from(mesh)?, settings)
    }

    /// The full mesh as an ordinary one, which lives on the GPU alone.
    ///
    /// # Errors
    /// Same as [`Self::level_to_mesh`].
    pub fn to_mesh(&self) -> Result<Mesh, MeshletError> {
        self.level_to_mesh(0)
    }

    /// A level of detail as an ordinary mesh, which lives on the GPU alone. It has only the
    /// vertices from the level's first to its last.
    ///
    /// # Errors
    /// [`MeshletError::NoLevel`]. [`MeshletError::UnknownFormat`].
    /// [`MeshletError::AttributeFormat`] if Bevy knows the attribute and its shaders cannot read
    /// the format, for example because they read floats and it has integers.
    pub fn level_to_mesh(&self, level: usize) -> Result<Mesh, MeshletError> {
        let range = self.level_range(level).unwrap_or_default();
        let indices = self
            .indices()
            .get(range.start as usize..range.end as usize)
            .unwrap_or_default();
        let (Some(&first), Some(&last)) = (indices.iter().min(), indices.iter().max()) else {
            let levels = self.levels().len();
            return Err(MeshletError::NoLevel { level, levels });
        };
        let attributes = self.attributes().iter().map(|attribute| {
            let at = |vertex: u32| vertex as usize * attribute.stride as usize;
            VertexAttribute {
                bytes: attribute.bytes[at(first)..at(last + 1)].to_vec(),
                ..attribute.clone()
            }
        });
        let attributes: Vec<_> = attributes.collect();
        let indices: Vec<_> = indices.iter().map(|index| index - first).collect();
        let usage = RenderAssetUsages::RENDER_WORLD;
        mesh_of(&attributes, last - first + 1, &indices, usage)
    }

    /// The mesh with all levels, one after the other. Drawn at once, they lie on top of each other.
    ///
    /// # Errors
    /// Same as [`Self::level_to_mesh`].
    pub(super) fn to_mesh_of_levels(&self) -> Result<Mesh, MeshletError> {
        let usage = RenderAssetUsages::RENDER_WORLD;
        mesh_of(
            self.attributes(),
            self.vertex_count(),
            self.indices(),
            usage,
        )
    }
}

/// A mesh with these attributes and triangles.
pub(in crate::render) fn mesh_of(
    attributes: &[VertexAttribute],
    vertex_count: u32,
    indices: &[u32],
    usage: RenderAssetUsages,
) -> Result<Mesh, MeshletError> {
    let mut mesh = Mesh::new(PrimitiveTopology::TriangleList, usage);
    for attribute in attributes {
        let unknown = MeshletError::UnknownFormat {
            id: attribute.id,
            format: attribute.format,
        };
        let format = FORMATS.get(attribute.format as usize).copied();
        let format = format.filter(|format| format.size() == u64::from(attribute.stride));
        let Some((format, values)) =
            format.and_then(|format| Some((format, values(format, &attribute.bytes)?)))
        else {
            return Err(unknown);
        };
        let known = KNOWN
            .into_iter()
            .find(|known| attribute_id(known) == attribute.id);
        if let Some(known) = &known
            && Kind::of(known.format) != Kind::of(format)
        {
            return Err(MeshletError::AttributeFormat {
                id: attribute.id,
                format: format!("{format:?}"),
                expected: format!("{:?}", known.format),
            });
        }
        let same = known.filter(|known| known.format == format);
        let kept = same.unwrap_or(MeshVertexAttribute::new(OTHER, attribute.id, format));
        mesh.insert_attribute(kept, values);
    }
    let small = vertex_count <= u32::from(u16::MAX);
    mesh.insert_indices(if small {
        Indices::U16(indices.iter().map(|index| *index as u16).collect())
    } else {
        Indices::U32(indices.to_vec())
    });
    Ok(mesh)
}

#[cfg(all(test, feature = "meshlets"))]
mod tests {
    use super::*;
    use crate::meshlet::{Meshlet, NormalCone, POSITION_FORMAT};
    use bevy::mesh::{VertexAttributeValues, VertexFormat};

    #[test]
    fn ids_are_the_numbers_that_bevy_gives() {
        for (number, attribute) in (0..).zip(&KNOWN) {
            assert_eq!(attribute_id(attribute), number);
        }
        let positions = FORMATS[POSITION_FORMAT as usize];
        assert_eq!(positions, Mesh::ATTRIBUTE_POSITION.format);
        let own = MeshVertexAttribute::new("Own", 988_540_917, VertexFormat::Float32);
        assert_eq!(attribute_id(&own), 988_540_917);
    }

    #[test]
    fn every_attribute_comes_back_with_its_format() -> Result<(), MeshletError> {
        let own = MeshVertexAttribute::new("Own", 988_540_917, VertexFormat::Unorm8x4);
        let mut mesh = Mesh::from(Torus::default());
        let vertices = mesh.count_vertices();
        let values: Vec<_> = (0..vertices).map(|v| (v as u32).to_le_bytes()).collect();
        mesh.insert_attribute(own, VertexAttributeValues::Unorm8x4(values));
        mesh.insert_attribute(Mesh::ATTRIBUTE_COLOR, vec![[0.5f32; 4]; vertices]);
        let meshlets = MeshletMesh::from_mesh(&mesh, &MeshletSettings::default())?;
        let back = meshlets.to_mesh()?;
        assert_eq!(back.attributes().count(), mesh.attributes().count());
        for (attribute, values) in mesh.attributes() {
            let kept = back
                .attribute(attribute.id)
                .expect("every attribute is kept");
            assert_eq!(VertexFormat::from(kept), VertexFormat::from(values));
        }
        assert_eq!(
            back.indices().map(Indices::len),
            Some(meshlets.indices().len())
        );
        Ok(())
    }

    /// A triangle with positions and this attribute.
    fn triangle(id: u64, format: usize) -> Result<MeshletMesh, MeshletError> {
        let points = [Vec3::ZERO, Vec3::X, Vec3::Y];
        let mut attributes = MeshData::from_positions(&points, None).attributes;
        let stride = FORMATS[format].size() as u32;
        let own = VertexAttribute {
            id,
            format: format as u32,
            stride,
            bytes: vec![0; 3 * stride as usize],
        };
        attributes.retain(|other| other.id != id);
        attributes.push(own);
        let meshlet = Meshlet {
            center: Vec3::ZERO,
            radius: 1.0,
            cone: NormalCone::from_bits(0),
            first_index: 0,
            triangle_count: 1,
        };
        MeshletMesh::from_parts(3, attributes, vec![0, 1, 2], vec![meshlet])
    }

    /// Whether shaders that read `known` can read `format`, too.
    fn is_read_as(known: VertexFormat, format: VertexFormat) -> bool {
        let is = |format: VertexFormat, kind: &str| format!("{format:?}").starts_with(kind);
        ["Uint", "Sint"]
            .iter()
            .all(|kind| is(known, kind) == is(format, kind))
    }

    #[test]
    fn a_known_attribute_of_a_format_that_no_shader_reads_is_refused() {
        for known in &KNOWN {
            let id = attribute_id(known);
            let (mut fit, mut refused) = (0, 0);
            for (code, format) in FORMATS.iter().enumerate() {
                let made = triangle(id, code);
                if id == 0 {
                    // Bounds are made from positions, which must be three f32.
                    assert_eq!(made.is_ok(), *format == known.format, "{format:?}");
                }
                let Ok(made) = made else { continue };
                let mesh = made.to_mesh();
                let fits = is_read_as(known.format, *format);
                assert_eq!(mesh.is_ok(), fits, "{}, {format:?}: {mesh:?}", known.name);
                if let Err(error) = mesh {
                    let text = error.to_string();
                    let parts = [format!("attribute {id} "), format!("{format:?}")];
                    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
                    refused += 1;
                } else {
                    fit += 1;
                }
            }
            assert!(fit > 0 && (refused > 0 || id == 0), "{}", known.name);
        }
        // A custom attribute may be read as anything. Vertices of 13 or 14 bytes cannot be read.
        for (code, format) in FORMATS.iter().enumerate() {
            let made = triangle(988_540_917, code);
            let fits = format.size() % 4 == 0;
            assert_eq!(made.is_ok(), fits, "{format:?}: {made:?}");
            assert!(!fits || made.is_ok_and(|made| made.to_mesh().is_ok()));
        }
    }

    #[test]
    fn what_is_no_list_of_triangles_is_refused() {
        let lines = Mesh::new(PrimitiveTopology::LineList, RenderAssetUsages::default());
        let error = MeshletMesh::from_mesh(&lines, &MeshletSettings::default()).err();
        assert!(
            matches!(error, Some(MeshletError::Topology { topology }) if topology == "LineList")
        );
        let mut gone = Mesh::from(Cuboid::default());
        gone.take_gpu_data().expect("the data is there");
        let error = MeshletMesh::from_mesh(&gone, &MeshletSettings::default()).err();
        assert_eq!(error, Some(MeshletError::Extracted));
    }
}
