//! What can be wrong with a mesh, with settings, or with a file of meshlets.

use glam::Vec3;
use thiserror::Error;

/// Why a [`MeshletMesh`](super::MeshletMesh) could not be built, read or put together.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum MeshletError {
    /// A setting is out of its range.
    #[error("{name} is {value}, it must be from {least} to {most}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: f64,
        /// The least that is allowed.
        least: f64,
        /// The most that is allowed.
        most: f64,
    },
    /// There is no attribute of positions, or it is not three `f32` a vertex.
    #[error(
        "the mesh has no positions of three f32 (attribute {}, format {}): meshlets are cut by position",
        super::POSITION,
        super::POSITION_FORMAT
    )]
    NoPositions,
    /// A mesh without triangles.
    #[error("the mesh has {indices} indices, which make no triangle: three or more are needed")]
    NoTriangles {
        /// Indices, or vertices where there are no indices.
        indices: usize,
    },
    /// The last triangle is not whole.
    #[error("{indices} indices are not a multiple of 3: the mesh must be a list of triangles")]
    NotTriangles {
        /// Indices, or vertices where there are no indices.
        indices: usize,
    },
    /// More vertices or indices than 32 bits count.
    #[error("the mesh has {count} {what}, at most {limit} are possible")]
    TooLarge {
        /// Vertices or indices.
        what: &'static str,
        /// How many.
        count: usize,
        /// The most.
        limit: u32,
    },
    /// An index points beyond the vertices.
    #[error("index {at} is {index}, but the mesh has {vertices} vertices")]
    IndexOutOfRange {
        /// Which index.
        at: usize,
        /// Its value.
        index: u32,
        /// Vertices of the mesh.
        vertices: u32,
    },
    /// A position is NaN or infinite.
    #[error("vertex {vertex}: position {value} is not finite")]
    NonFinitePosition {
        /// Which vertex.
        vertex: u32,
        /// The position.
        value: Vec3,
    },
    /// An attribute has not as many bytes as the vertices need.
    #[error(
        "attribute {id} has {bytes} bytes, {expected} are needed for {vertices} vertices of {stride} bytes"
    )]
    AttributeLength {
        /// The attribute.
        id: u64,
        /// Bytes that it has.
        bytes: usize,
        /// Bytes that it should have.
        expected: u64,
        /// Vertices of the mesh.
        vertices: u32,
        /// Bytes of a vertex.
        stride: u32,
    },
    /// A meshlet's indices are not where the meshlet before it ends, or the last ends elsewhere than the indices.
    #[error(
        "meshlet {meshlet} starts at index {start}, it must start at {expected} of {indices} indices"
    )]
    MeshletRange {
        /// Which meshlet; as many as there are when the indices go on after the last.
        meshlet: usize,
        /// Where it starts.
        start: u64,
        /// Where it must start.
        expected: u64,
        /// Indices of the mesh.
        indices: usize,
    },
    /// A meshlet's sphere is not a sphere.
    #[error("meshlet {meshlet}: the sphere around {centre} with radius {radius} is not finite")]
    MeshletSphere {
        /// Which meshlet.
        meshlet: usize,
        /// Centre.
        centre: Vec3,
        /// Radius.
        radius: f32,
    },
    /// The mesh's triangles are not a list (Bevy's other topologies).
    #[error("the mesh is a {topology}, only a TriangleList can be cut into meshlets")]
    Topology {
        /// Name of the topology.
        topology: String,
    },
    /// The mesh moves vertices in ways that no bounds hold.
    #[error("the mesh has {what}, which move vertices out of a meshlet's bounds: draw it whole")]
    Deformed {
        /// Morph targets.
        what: &'static str,
    },
    /// The mesh's data is no longer in the main world.
    #[error(
        "the mesh's vertices are only on the GPU: load it with RenderAssetUsages::MAIN_WORLD to cut it into meshlets"
    )]
    Extracted,
    /// A vertex format that the renderer does not have.
    #[error("attribute {id} has the format {format}, which is unknown")]
    UnknownFormat {
        /// The attribute.
        id: u64,
        /// The format's code.
        format: u32,
    },
    /// An attribute that shaders read as another kind of number.
    #[error(
        "attribute {id} has the format {format}, but shaders read it as {expected}: give it a format of that kind"
    )]
    AttributeFormat {
        /// The attribute.
        id: u64,
        /// Name of its format.
        format: String,
        /// Name of the format that the renderer itself gives it.
        expected: String,
    },
    /// Not a file of meshlets.
    #[error("this is not a file of meshlets: it starts with {found:02x?}")]
    NotMeshlets {
        /// The first bytes.
        found: Vec<u8>,
    },
    /// A file of another version.
    #[error("the file has version {found}, this build reads version {supported}: build it again")]
    Version {
        /// Version of the file.
        found: u32,
        /// The version that is read.
        supported: u32,
    },
    /// The file ends early, or goes on too long.
    #[error("the file has {found} bytes, its head says {expected}: it is damaged")]
    Length {
        /// Bytes that there are.
        found: u64,
        /// Bytes that there should be.
        expected: u64,
    },
    /// The file's content is not what was written.
    #[error("the file's checksum is {found:08x}, its head says {expected:08x}: it is damaged")]
    Checksum {
        /// Checksum of the content.
        found: u32,
        /// Checksum in the head.
        expected: u32,
    },
    /// The content is whole but is not a mesh of meshlets.
    #[error("the file's content cannot be read: {0}")]
    Content(String),
    /// The file could not be read or written.
    #[error("the file could not be read or written: {0}")]
    Io(String),
}
