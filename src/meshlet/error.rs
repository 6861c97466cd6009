//! What can be wrong with a mesh, with settings or with a file.

use glam::Vec3;
use thiserror::Error;

/// Why a [`MeshletMesh`](super::MeshletMesh) or levels of detail could not be built, read or
/// assembled.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum MeshletError {
    /// A setting is out of its range.
    #[error("{name} is {value}; it must be from {min} to {max}")]
    Setting {
        /// Name of the setting.
        name: &'static str,
        /// Its value.
        value: f64,
        /// The smallest allowed value.
        min: f64,
        /// The largest allowed value.
        max: f64,
    },
    /// No attribute holds positions, or it does not have three `f32` per vertex.
    #[error(
        "the mesh has no positions of three f32 (attribute {}, format {}): give it such an attribute",
        super::POSITION,
        super::POSITION_FORMAT
    )]
    NoPositions,
    /// A mesh without triangles.
    #[error("the mesh has {indices} indices, which form no triangle: three or more are needed")]
    NoTriangles {
        /// Number of indices, or of vertices if there are no indices.
        indices: usize,
    },
    /// The last triangle is incomplete.
    #[error("{indices} indices are not a multiple of 3: the mesh must be a list of triangles")]
    NotTriangles {
        /// Number of indices, or of vertices if there are no indices.
        indices: usize,
    },
    /// More vertices or indices than 32 bits can count, or too many attributes or levels of detail.
    #[error("the mesh has {count} {what}; at most {limit} are possible")]
    TooLarge {
        /// What there are too many of: vertices, indices, attributes or levels of detail.
        what: &'static str,
        /// Their number.
        count: usize,
        /// The largest possible number.
        limit: u32,
    },
    /// An index refers to a vertex that does not exist.
    #[error("index {at} is {index}, but the mesh has {vertices} vertices")]
    IndexOutOfRange {
        /// Position of the index in the list of indices.
        at: usize,
        /// Its value.
        index: u32,
        /// Number of vertices of the mesh.
        vertices: u32,
    },
    /// A position is NaN or infinite.
    #[error("vertex {vertex}: position {value} is not finite")]
    NonFinitePosition {
        /// Index of the vertex.
        vertex: u32,
        /// The position.
        value: Vec3,
    },
    /// An attribute does not have the number of bytes that the vertices need.
    #[error(
        "attribute {id} has {bytes} bytes; {expected} are needed for {vertices} vertices of {stride} bytes"
    )]
    AttributeLength {
        /// The attribute.
        id: u64,
        /// Number of bytes that it has.
        bytes: usize,
        /// Number of bytes that it must have.
        expected: u64,
        /// Number of vertices of the mesh.
        vertices: u32,
        /// Size of a vertex, in bytes.
        stride: u32,
    },
    /// Two attributes have the same id.
    #[error("the mesh has attribute {id} twice: give each attribute its own id")]
    DuplicateAttribute {
        /// The id.
        id: u64,
    },
    /// An attribute would lie at a byte of the vertex from which a GPU cannot read it.
    #[error(
        "attribute {id} of {stride} bytes lies at byte {offset} of the vertex, behind the attributes with smaller ids: GPUs read it at multiples of {alignment} only; give those a number of bytes that is a multiple of {alignment}"
    )]
    AttributeOffset {
        /// The attribute.
        id: u64,
        /// Its size, in bytes.
        stride: u32,
        /// Its place, in bytes from the start of the vertex.
        offset: u32,
        /// What that must be a multiple of.
        alignment: u32,
    },
    /// All attributes of a vertex together have a size that a GPU cannot read.
    #[error(
        "a vertex has {bytes} bytes; it must be a multiple of {alignment}, and at most {limit}: pad or drop attributes"
    )]
    VertexSize {
        /// The size, in bytes.
        bytes: u32,
        /// What it must be a multiple of.
        alignment: u32,
        /// The largest possible size.
        limit: u32,
    },
    /// A meshlet's indices do not start at the end of the previous meshlet's, or the last meshlet
    /// does not end at the end of the indices.
    #[error(
        "meshlet {meshlet} starts at index {start}; it must start at {expected} of {indices} indices"
    )]
    MeshletRange {
        /// Index of the meshlet; the number of meshlets if indices follow the last one.
        meshlet: usize,
        /// The index at which it starts.
        start: u64,
        /// The index at which it must start.
        expected: u64,
        /// Number of indices of the mesh.
        indices: usize,
    },
    /// A meshlet's sphere has a center or a radius that is not finite.
    #[error("meshlet {meshlet}: the sphere around {center} with radius {radius} is not finite")]
    MeshletSphere {
        /// Index of the meshlet.
        meshlet: usize,
        /// Center of the sphere.
        center: Vec3,
        /// Radius of the sphere.
        radius: f32,
    },
    /// A level of detail's meshlets do not start at the end of the previous level's, a level has
    /// none, or the last level does not end at the end of the meshlets.
    #[error(
        "level {level} has {count} meshlets from {start} on; it must start at {expected} and have one or more of the \
         mesh's {meshlets}, and the last level must end with the last of them"
    )]
    LevelRange {
        /// Index of the level, the full mesh first.
        level: usize,
        /// Its first meshlet.
        start: u32,
        /// Number of its meshlets.
        count: u32,
        /// The meshlet at which it must start.
        expected: u64,
        /// Number of meshlets of the mesh.
        meshlets: usize,
    },
    /// The full mesh has an error that is not 0, or a coarser level's error is not finite or less
    /// than the error of the level before.
    #[error(
        "level {level} has the error {error}; it must be finite and at least {min}, and 0 for the full mesh"
    )]
    LevelError {
        /// Index of the level, the full mesh first.
        level: usize,
        /// Its error.
        error: f32,
        /// The error of the level before; 0 for the full mesh.
        min: f32,
    },
    /// The mesh does not have this level of detail.
    #[error("the mesh has no level {level}: it has {levels}, counted from 0, the full mesh")]
    NoLevel {
        /// Index of the level.
        level: usize,
        /// Number of levels.
        levels: usize,
    },
    /// The mesh is not a triangle list (it has another of Bevy's topologies).
    #[error("the mesh is a {topology}; it must be a TriangleList")]
    Topology {
        /// Name of the topology.
        topology: String,
    },
    /// The mesh moves vertices in ways that no bounds can cover.
    #[error(
        "the mesh has {what}, which move vertices out of all bounds: remove them from the mesh"
    )]
    Deformed {
        /// What moves them: morph targets.
        what: &'static str,
    },
    /// The mesh's data is no longer in the main world.
    #[error(
        "the mesh's vertices are only on the GPU: load it with RenderAssetUsages::MAIN_WORLD, so that the CPU can read \
         them"
    )]
    Extracted,
    /// A mesh is compressed, and the attributes of a level cannot be.
    #[error("a level of a compressed mesh cannot be compressed: {problems}")]
    Compression {
        /// What Bevy says of each attribute.
        problems: String,
    },
    /// The renderer does not have this vertex format.
    #[error("attribute {id} has the unknown format {format}")]
    UnknownFormat {
        /// The attribute.
        id: u64,
        /// The format's code.
        format: u32,
    },
    /// Shaders read the attribute as another kind of number.
    #[error(
        "attribute {id} has the format {format}, but shaders read it as {expected}: give it a format of that kind"
    )]
    AttributeFormat {
        /// The attribute.
        id: u64,
        /// Name of its format.
        format: String,
        /// Name of the format that the renderer normally gives it.
        expected: String,
    },
    /// Not a file of meshlets.
    #[error("this is not a meshlet file: it starts with {found:02x?}")]
    NotMeshlets {
        /// The first bytes of the file.
        found: Vec<u8>,
    },
    /// Not a file of levels of detail.
    #[error("this is not a file of levels of detail: it starts with {found:02x?}")]
    NotLods {
        /// The first bytes of the file.
        found: Vec<u8>,
    },
    /// A file of another version.
    #[error(
        "the file has version {found}, but this build reads version {supported}: build the file again"
    )]
    Version {
        /// Version of the file.
        found: u32,
        /// The version that this build reads.
        supported: u32,
    },
    /// The file ends early, or goes on too long.
    #[error("the file has {found} bytes, but its header says {expected}: it is damaged")]
    Length {
        /// Number of bytes in the file.
        found: u64,
        /// Number of bytes that its header announces.
        expected: u64,
    },
    /// The file's content differs from what was written.
    #[error(
        "the file's checksum is {found:08x}, but its header says {expected:08x}: it is damaged"
    )]
    Checksum {
        /// Checksum of the content.
        found: u32,
        /// Checksum in the header.
        expected: u32,
    },
    /// The content is complete but is not a mesh of meshlets.
    #[error("the file's content cannot be read: {0}")]
    Content(String),
    /// The file could not be read or written.
    #[error("the file could not be read or written: {0}")]
    Io(String),
}

/// Refuses a setting that is not from `min` to `max`.
pub(super) fn check_setting(
    name: &'static str,
    value: f64,
    min: f64,
    max: f64,
) -> Result<(), MeshletError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(MeshletError::Setting {
        name,
        value,
        min,
        max,
    })
}
