//! Meshes of meshlets from and to Bevy's.

#[cfg(feature = "meshlets")]
use crate::meshlet::MeshletSettings;
use crate::meshlet::{MeshData, MeshletError, MeshletMesh, VertexAttribute};
use bevy::{
    asset::RenderAssetUsages,
    mesh::{Indices, MeshVertexAttribute, PrimitiveTopology, VertexAttributeValues, VertexFormat},
    prelude::*,
};
use core::hash::{Hash, Hasher};

/// The formats that an attribute may have; a format's code is its place here, so new ones go to the end.
macro_rules! formats {
    ($($name:ident),+ $(,)?) => {
        const FORMATS: &[VertexFormat] = &[$(VertexFormat::$name),+];

        /// Values of a format from their bytes.
        fn values(format: VertexFormat, bytes: &[u8]) -> Option<VertexAttributeValues> {
            match format {
                $(VertexFormat::$name => {
                    Some(VertexAttributeValues::$name(bytemuck::pod_collect_to_vec(bytes)))
                })+
                _ => None,
            }
        }
    };
}

formats!(
    Float32x3,
    Float32x2,
    Float32x4,
    Float32,
    Uint32,
    Uint32x2,
    Uint32x3,
    Uint32x4,
    Sint32,
    Sint32x2,
    Sint32x3,
    Sint32x4,
    Uint16x2,
    Uint16x4,
    Sint16x2,
    Sint16x4,
    Unorm16x2,
    Unorm16x4,
    Snorm16x2,
    Snorm16x4,
    Uint8x2,
    Uint8x4,
    Sint8x2,
    Sint8x4,
    Unorm8x2,
    Unorm8x4,
    Snorm8x2,
    Snorm8x4,
    Uint8,
    Sint8,
    Unorm8,
    Snorm8,
    Uint16,
    Sint16,
    Unorm16,
    Snorm16,
    Float16,
    Float16x2,
    Float16x4,
    Unorm10_10_10_2,
    Unorm8x4Bgra,
);

/// Bevy's own attributes; others keep id and format, and have this name.
const KNOWN: [MeshVertexAttribute; 8] = [
    Mesh::ATTRIBUTE_POSITION,
    Mesh::ATTRIBUTE_NORMAL,
    Mesh::ATTRIBUTE_UV_0,
    Mesh::ATTRIBUTE_UV_1,
    Mesh::ATTRIBUTE_TANGENT,
    Mesh::ATTRIBUTE_COLOR,
    Mesh::ATTRIBUTE_JOINT_WEIGHT,
    Mesh::ATTRIBUTE_JOINT_INDEX,
];
const OTHER: &str = "Vertex_Custom";

/// What a shader reads an attribute as. wgpu refuses a pipeline that reads another kind, and Bevy
/// then quits.
#[derive(PartialEq)]
enum Kind {
    Float,
    Signed,
    Unsigned,
}

impl Kind {
    fn of(format: VertexFormat) -> Self {
        use VertexFormat::*;
        match format {
            Uint8 | Uint8x2 | Uint8x4 | Uint16 | Uint16x2 | Uint16x4 | Uint32 | Uint32x2
            | Uint32x3 | Uint32x4 => Self::Unsigned,
            Sint8 | Sint8x2 | Sint8x4 | Sint16 | Sint16x2 | Sint16x4 | Sint32 | Sint32x2
            | Sint32x3 | Sint32x4 => Self::Signed,
            _ => Self::Float,
        }
    }
}

/// A mesh's triangles and attributes.
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
        if mesh.try_has_morph_targets().map_err(extracted)? {
            return Err(MeshletError::Deformed {
                what: "morph targets",
            });
        }
        let mut data = Self::default();
        for (attribute, values) in mesh.try_attributes().map_err(extracted)? {
            let id = attribute_id(attribute);
            let format = FORMATS
                .iter()
                .position(|format| *format == attribute.format);
            let format = format.ok_or(MeshletError::UnknownFormat {
                id,
                format: u32::MAX,
            })? as u32;
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

/// The number in an attribute's id: it is private, but hashed as it is.
fn attribute_id(attribute: &MeshVertexAttribute) -> u64 {
    struct Number(u64);

    impl Hasher for Number {
        fn finish(&self) -> u64 {
            self.0
        }

        fn write(&mut self, bytes: &[u8]) {
            let mut word = [0; 8];
            let len = bytes.len().min(8);
            word[..len].copy_from_slice(&bytes[..len]);
            self.0 = u64::from_ne_bytes(word);
        }
    }

    let mut number = Number(u64::MAX);
    attribute.id.hash(&mut number);
    number.finish()
}

impl MeshletMesh {
    /// Cuts a mesh into meshlets, by default into ones of at most 64 vertices and 124 triangles. It takes some milliseconds for
    /// 10,000 triangles; [`BuildMeshlets`](crate::render::BuildMeshlets) does it off the main thread.
    ///
    /// # Errors
    /// [`MeshletError`]: not a list of triangles, morph targets, vertices that are only on the GPU, and whatever
    /// [`Self::build`] refuses.
    #[cfg(feature = "meshlets")]
    pub fn from_mesh(mesh: &Mesh, settings: &MeshletSettings) -> Result<Self, MeshletError> {
        Self::build(&MeshData::try_from(mesh)?, settings)
    }

    /// The whole as an ordinary mesh, which lives on the GPU alone.
    ///
    /// # Errors
    /// [`MeshletError::UnknownFormat`]; [`MeshletError::AttributeFormat`], if Bevy knows the attribute
    /// and its shaders cannot read the format: they read floats and it has integers, for instance.
    pub fn to_mesh(&self) -> Result<Mesh, MeshletError> {
        let mut mesh = Mesh::new(
            PrimitiveTopology::TriangleList,
            RenderAssetUsages::RENDER_WORLD,
        );
        for attribute in self.attributes() {
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
            let own = same.unwrap_or(MeshVertexAttribute::new(OTHER, attribute.id, format));
            mesh.insert_attribute(own, values);
        }
        let small = self.vertex_count() <= u32::from(u16::MAX);
        mesh.insert_indices(if small {
            Indices::U16(self.indices().iter().map(|index| *index as u16).collect())
        } else {
            Indices::U32(self.indices().to_vec())
        });
        Ok(mesh)
    }

    /// The same meshlets, each in a colour of its own: a vertex colour, which materials of Bevy's multiply with theirs. Vertices that
    /// meshlets share are doubled.
    #[must_use]
    pub fn with_meshlet_colors(&self) -> Self {
        let mut sources = Vec::new();
        let mut colors: Vec<[f32; 4]> = Vec::new();
        let mut indices = Vec::with_capacity(self.indices().len());
        for (number, meshlet) in self.meshlets().iter().enumerate() {
            let mut own: bevy::platform::collections::HashMap<u32, u32> = default();
            // Neighbours are far apart on the colour wheel.
            let hue = (number as f32 * 222.492_2) % 360.0;
            let color = LinearRgba::from(Color::hsl(hue, 0.75, 0.55)).to_f32_array();
            for index in self.meshlet_indices(meshlet) {
                let place = *own.entry(*index).or_insert_with(|| {
                    sources.push(*index);
                    colors.push(color);
                    sources.len() as u32 - 1
                });
                indices.push(place);
            }
        }
        let color = attribute_id(&Mesh::ATTRIBUTE_COLOR);
        let kept = self.attributes().iter().filter(|own| own.id != color);
        let mut attributes: Vec<_> = kept
            .map(|attribute| {
                let stride = attribute.stride as usize;
                let vertex = |source: &u32| &attribute.bytes[*source as usize * stride..][..stride];
                VertexAttribute {
                    bytes: sources.iter().flat_map(vertex).copied().collect(),
                    ..attribute.clone()
                }
            })
            .collect();
        let format = FORMATS
            .iter()
            .position(|format| *format == VertexFormat::Float32x4)
            .unwrap_or_default();
        attributes.push(VertexAttribute {
            id: color,
            format: format as u32,
            stride: 16,
            bytes: bytemuck::cast_slice(&colors).to_vec(),
        });
        let vertices = sources.len() as u32;
        // The parts fit as those of this mesh do.
        Self::from_parts(vertices, attributes, indices, self.meshlets().to_vec())
            .unwrap_or_else(|_| self.clone())
    }
}

#[cfg(all(test, feature = "meshlets"))]
mod tests {
    use super::*;
    use crate::meshlet::{Meshlet, NormalCone, POSITION_FORMAT};

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
            centre: Vec3::ZERO,
            radius: 1.0,
            cone: NormalCone::from_bits(0),
            first_index: 0,
            triangle_count: 1,
        };
        MeshletMesh::from_parts(3, attributes, vec![0, 1, 2], vec![meshlet])
    }

    /// The attribute's values are of the kind that shaders read, in `format` too.
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
                    // Positions are what bounds are made from: three f32 and nothing else.
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
        // Nobody knows what an attribute of the user's is read as.
        for code in 0..FORMATS.len() {
            assert!(triangle(988_540_917, code).is_ok_and(|made| made.to_mesh().is_ok()));
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

    #[test]
    fn colours_part_the_meshlets() -> Result<(), MeshletError> {
        let mesh = Mesh::from(Torus::default());
        let meshlets = MeshletMesh::from_mesh(&mesh, &MeshletSettings::default())?;
        let coloured = meshlets.with_meshlet_colors();
        assert_eq!(coloured.meshlets(), meshlets.meshlets());
        assert!(coloured.vertex_count() > meshlets.vertex_count());
        let (before, after) = (meshlets.positions(), coloured.positions());
        for (a, b) in meshlets.indices().iter().zip(coloured.indices()) {
            assert_eq!(before[*a as usize], after[*b as usize]);
        }
        coloured.to_mesh()?;
        Ok(())
    }
}
