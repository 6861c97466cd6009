//! What a request draws, and its bounds.

use glam::Vec3;

/// A sphere around a mesh, in the mesh's space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundingSphere {
    /// Center, in the mesh's units.
    pub center: Vec3,
    /// Radius, in the mesh's units.
    pub radius: f32,
}

impl BoundingSphere {
    /// The sphere around an axis-aligned box.
    #[must_use]
    pub fn around_box(center: Vec3, half_extents: Vec3) -> Self {
        Self {
            center,
            radius: half_extents.length(),
        }
    }
}

/// The part of a mesh that one draw call draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrawShape {
    /// A mesh with indices.
    Indexed {
        /// Number of indices of the mesh.
        index_count: u32,
        /// First index in the bound index buffer.
        first_index: u32,
        /// Value added to each index.
        base_vertex: i32,
    },
    /// A mesh without indices.
    NonIndexed {
        /// Number of vertices of the mesh.
        vertex_count: u32,
        /// First vertex in the bound vertex buffer.
        first_vertex: u32,
    },
}
