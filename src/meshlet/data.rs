//! A mesh of meshlets, and the data that it is built from.

use super::{MeshletError, NormalCone};
use glam::Vec3;

/// [`VertexAttribute::id`] of positions, same as Bevy's `Mesh::ATTRIBUTE_POSITION`.
pub const POSITION: u64 = 0;

/// [`VertexAttribute::format`] of positions: three `f32`.
pub const POSITION_FORMAT: u32 = 0;

/// Largest size of one attribute of a vertex, in bytes: the most that meshoptimizer compares.
const MAX_STRIDE: u32 = 256;
/// Largest number of attributes: the most that meshoptimizer compares, and that each WebGPU device
/// has.
const MAX_ATTRIBUTES: u32 = 16;
/// Largest size of a vertex, in bytes: the most that each WebGPU device has.
const MAX_VERTEX: u32 = 2048;
/// WebGPU's alignment of vertices, and of attributes that are not smaller, in bytes.
const ALIGNMENT: u32 = 4;

/// One attribute of all vertices.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "meshlets", derive(serde::Serialize, serde::Deserialize))]
pub struct VertexAttribute {
    /// Name of the attribute; positions have [`POSITION`].
    pub id: u64,
    /// Code of the renderer's vertex format: [`POSITION_FORMAT`] for positions; other codes have no
    /// meaning here.
    pub format: u32,
    /// Size of a vertex, in bytes.
    pub stride: u32,
    /// The values: `stride` bytes per vertex.
    pub bytes: Vec<u8>,
}

/// A list of triangles with all its vertex attributes, as the caller has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeshData {
    /// Number of vertices.
    pub vertex_count: u32,
    /// Attributes of the vertices. Positions (three `f32`) are required.
    pub attributes: Vec<VertexAttribute>,
    /// Three indices per triangle; `None` if each three consecutive vertices form a triangle.
    pub indices: Option<Vec<u32>>,
}

impl MeshData {
    /// Triangles that have only positions, and no other attributes.
    #[must_use]
    pub fn from_positions(positions: &[Vec3], indices: Option<Vec<u32>>) -> Self {
        Self {
            vertex_count: positions.len() as u32,
            attributes: vec![VertexAttribute {
                id: POSITION,
                format: POSITION_FORMAT,
                stride: 12,
                bytes: bytemuck::cast_slice(positions).to_vec(),
            }],
            indices,
        }
    }
}

/// A run of a mesh's triangles, and what a view needs to test it, in the mesh's units and space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Meshlet {
    /// Center of a sphere around its vertices.
    pub center: Vec3,
    /// Radius of the sphere.
    pub radius: f32,
    /// Cone of the directions that its triangles face.
    pub cone: NormalCone,
    /// Its first index in [`MeshletMesh::indices`].
    pub first_index: u32,
    /// Number of triangles, of three indices each.
    pub triangle_count: u32,
}

/// A level of detail: the run of meshlets that draws the mesh in full, or coarser.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeshletLevel {
    /// Index of its first meshlet in [`MeshletMesh::meshlets`].
    pub first_meshlet: u32,
    /// Number of its meshlets.
    pub meshlet_count: u32,
    /// How far its surface lies from the full mesh's at most, in the mesh's units; 0 for the full
    /// mesh.
    pub error: f32,
}

/// A mesh whose triangles are grouped into meshlets.
///
/// It is an ordinary indexed mesh: drawn whole, it looks the same as the mesh that it was built
/// from. All vertex attributes are kept. Vertices that are equal in all of them are stored once, in
/// the order in which the meshlets need them.
///
/// It may have coarser levels of detail ([`MeshletLevel`]): further runs of its vertices,
/// indices and meshlets, behind the full mesh.
#[cfg_attr(
    feature = "bevy",
    derive(bevy::asset::Asset, bevy::reflect::Reflect),
    reflect(opaque),
    reflect(Clone, Debug, PartialEq)
)]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeshletMesh {
    pub(super) vertex_count: u32,
    pub(super) attributes: Vec<VertexAttribute>,
    pub(super) indices: Vec<u32>,
    pub(super) meshlets: Vec<Meshlet>,
    pub(super) levels: Vec<MeshletLevel>,
}

impl MeshletMesh {
    /// A mesh of one level from its parts, for instance from meshlets that another tool made.
    /// [`Self::with_levels`] says which of the meshlets are coarser levels.
    ///
    /// # Errors
    /// [`MeshletError`] if the parts do not fit together: every index must refer to a vertex, every
    /// attribute must have the right number of bytes and its own id, vertices must be such that
    /// GPUs can read them (at most 16 attributes and 2,048 bytes, at multiples of 4 bytes), and the
    /// meshlets must follow each other from the first index to the last.
    pub fn from_parts(
        vertex_count: u32,
        attributes: Vec<VertexAttribute>,
        indices: Vec<u32>,
        meshlets: Vec<Meshlet>,
    ) -> Result<Self, MeshletError> {
        check_indices(Some(&indices), vertex_count)?;
        check_attributes(&attributes, vertex_count)?;
        let mut expected = 0;
        for (meshlet, at) in meshlets.iter().zip(0..) {
            if u64::from(meshlet.first_index) != expected || meshlet.triangle_count == 0 {
                return Err(MeshletError::MeshletRange {
                    meshlet: at,
                    start: u64::from(meshlet.first_index),
                    expected,
                    indices: indices.len(),
                });
            }
            if !meshlet.center.is_finite() || !(0.0..f32::INFINITY).contains(&meshlet.radius) {
                return Err(MeshletError::MeshletSphere {
                    meshlet: at,
                    center: meshlet.center,
                    radius: meshlet.radius,
                });
            }
            expected += u64::from(meshlet.triangle_count) * 3;
        }
        if expected != indices.len() as u64 {
            return Err(MeshletError::MeshletRange {
                meshlet: meshlets.len(),
                start: indices.len() as u64,
                expected,
                indices: indices.len(),
            });
        }
        let full = MeshletLevel {
            first_meshlet: 0,
            meshlet_count: meshlets.len() as u32,
            error: 0.0,
        };
        Ok(Self {
            vertex_count,
            attributes,
            indices,
            meshlets,
            levels: vec![full],
        })
    }

    /// The meshlets of all levels, in the order of their indices.
    #[must_use]
    pub fn meshlets(&self) -> &[Meshlet] {
        &self.meshlets
    }

    /// The indices of all levels, meshlet after meshlet, three per triangle.
    #[must_use]
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// The indices of a meshlet's triangles.
    #[must_use]
    pub fn meshlet_indices(&self, meshlet: &Meshlet) -> &[u32] {
        let first = meshlet.first_index as usize;
        self.indices
            .get(first..first + meshlet.triangle_count as usize * 3)
            .unwrap_or_default()
    }

    /// Number of triangles of the full mesh.
    #[must_use]
    pub fn triangle_count(&self) -> u32 {
        self.level_range(0)
            .map_or(0, |range| range.len() as u32 / 3)
    }

    /// Number of vertices of all levels.
    #[must_use]
    pub fn vertex_count(&self) -> u32 {
        self.vertex_count
    }

    /// The vertex attributes.
    #[must_use]
    pub fn attributes(&self) -> &[VertexAttribute] {
        &self.attributes
    }

    /// The positions of the vertices.
    #[must_use]
    pub fn positions(&self) -> Vec<Vec3> {
        positions(&self.attributes).unwrap_or_default()
    }
}

/// The positions of a mesh; `None` if no attribute holds them as three `f32`.
pub(super) fn positions(attributes: &[VertexAttribute]) -> Option<Vec<Vec3>> {
    let attribute = attributes
        .iter()
        .find(|attribute| attribute.id == POSITION)?;
    let is_vec3 = attribute.stride == 12 && attribute.format == POSITION_FORMAT;
    is_vec3.then(|| bytemuck::pod_collect_to_vec(&attribute.bytes))
}

/// Refuses indices that do not form a list of triangles between the vertices.
pub(super) fn check_indices(indices: Option<&[u32]>, vertices: u32) -> Result<(), MeshletError> {
    let count = indices.map_or(vertices as usize, <[u32]>::len);
    if count > u32::MAX as usize {
        return Err(MeshletError::TooLarge {
            what: "indices",
            count,
            limit: u32::MAX,
        });
    }
    if count < 3 {
        return Err(MeshletError::NoTriangles { indices: count });
    }
    if !count.is_multiple_of(3) {
        return Err(MeshletError::NotTriangles { indices: count });
    }
    let indices = indices.unwrap_or_default();
    match indices.iter().position(|index| *index >= vertices) {
        Some(at) => Err(MeshletError::IndexOutOfRange {
            at,
            index: indices[at],
            vertices,
        }),
        None => Ok(()),
    }
}

/// Refuses attributes without positions, with too few or too many bytes, with positions that are
/// not finite, or that no GPU can read from one buffer.
pub(super) fn check_attributes(
    attributes: &[VertexAttribute],
    vertices: u32,
) -> Result<(), MeshletError> {
    for attribute in attributes {
        if attribute.stride > MAX_STRIDE {
            return Err(MeshletError::TooLarge {
                what: "bytes in a vertex of one attribute",
                count: attribute.stride as usize,
                limit: MAX_STRIDE,
            });
        }
        let expected = u64::from(attribute.stride) * u64::from(vertices);
        if attribute.bytes.len() as u64 != expected || attribute.stride == 0 {
            return Err(MeshletError::AttributeLength {
                id: attribute.id,
                bytes: attribute.bytes.len(),
                expected,
                vertices,
                stride: attribute.stride,
            });
        }
    }
    check_layout(attributes)?;
    let positions = positions(attributes).ok_or(MeshletError::NoPositions)?;
    match (0..).zip(&positions).find(|(_, value)| !value.is_finite()) {
        Some((vertex, value)) => Err(MeshletError::NonFinitePosition {
            vertex,
            value: *value,
        }),
        None => Ok(()),
    }
}

/// Refuses attributes that a renderer cannot put into one vertex buffer, vertex after vertex, in
/// the order of their ids. Each has a stride.
fn check_layout(attributes: &[VertexAttribute]) -> Result<(), MeshletError> {
    if attributes.len() > MAX_ATTRIBUTES as usize {
        return Err(MeshletError::TooLarge {
            what: "attributes",
            count: attributes.len(),
            limit: MAX_ATTRIBUTES,
        });
    }
    let mut order: Vec<_> = attributes.iter().map(|a| (a.id, a.stride)).collect();
    order.sort_unstable();
    if let Some(twice) = order.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(MeshletError::DuplicateAttribute { id: twice[0].0 });
    }
    let mut offset = 0;
    for (id, stride) in order {
        let alignment = stride.min(ALIGNMENT);
        if offset % alignment != 0 {
            return Err(MeshletError::AttributeOffset {
                id,
                stride,
                offset,
                alignment,
            });
        }
        offset += stride;
    }
    if offset % ALIGNMENT != 0 || offset > MAX_VERTEX {
        return Err(MeshletError::VertexSize {
            bytes: offset,
            alignment: ALIGNMENT,
            limit: MAX_VERTEX,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A triangle with positions, and with further attributes of these ids and strides.
    fn triangle(more: &[(u64, u32)]) -> Result<(), MeshletError> {
        let mut mesh = MeshData::from_positions(&[Vec3::ZERO, Vec3::X, Vec3::Y], None);
        let more = more.iter().map(|&(id, stride)| VertexAttribute {
            id,
            format: 1,
            stride,
            bytes: vec![0; 3 * stride as usize],
        });
        mesh.attributes.extend(more);
        check_attributes(&mesh.attributes, mesh.vertex_count)
    }

    #[test]
    fn vertices_that_no_gpu_can_read_are_refused() {
        for (more, part) in [
            (&[(7, 1)][..], "13 bytes; it must be a multiple of 4"),
            (&[(7, 2), (9, 4)], "attribute 9 of 4 bytes lies at byte 14"),
            (&[(7, 2), (9, 4), (11, 2)], "attribute 9 of 4 bytes"),
            (
                &[(7, 1), (9, 2), (11, 1)],
                "attribute 9 of 2 bytes lies at byte 13",
            ),
            (&[(7, 8), (9, 4), (7, 8)], "attribute 7 twice"),
            (&[(0, 12)], "attribute 0 twice"),
            (
                &core::array::from_fn::<_, 16, _>(|at| (at as u64 + 1, 4)),
                "17 attributes",
            ),
            (
                &core::array::from_fn::<_, 8, _>(|at| (at as u64 + 1, 256)),
                "2060 bytes",
            ),
        ] {
            let text = triangle(more).err().map(|error| error.to_string());
            let text = text.unwrap_or_default();
            assert!(text.contains(part), "{more:?}: {text:?} lacks {part:?}");
        }
        for more in [
            &[(7, 2), (9, 2)][..],
            &[(11, 1), (9, 1), (7, 2)],
            &core::array::from_fn::<_, 15, _>(|at| (at as u64 + 1, 128)),
            &core::array::from_fn::<_, 8, _>(|at| (at as u64 + 1, 252)),
        ] {
            assert_eq!(triangle(more), Ok(()), "{more:?}");
        }
    }
}
