//! Which requests of a frame have meshlets.

use super::tables::MeshletMeshId;

/// Which faces of triangles a pipeline draws. It decides which meshlets the cones may reject.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeenFaces {
    /// Backs are not drawn; this is the usual case.
    Front,
    /// Fronts are not drawn.
    Back,
    /// Both sides are drawn: cones reject nothing.
    #[default]
    Both,
}

/// A request of the frame whose mesh has meshlets.
#[derive(Clone, Debug)]
pub struct MeshletRequest {
    /// Index of the request in [`CullFrame::requests`](crate::cull::CullFrame::requests). Its shape
    /// must be the shape of the meshlet mesh, with indices, and its coarser levels the mesh's
    /// levels in the same buffers. Levels that the mesh does not have are drawn whole.
    pub request: usize,
    /// The mesh.
    pub mesh: MeshletMeshId,
    /// The faces that are drawn in each of the request's views; [`SeenFaces::Both`] for views
    /// beyond the end.
    pub faces: Vec<SeenFaces>,
    /// Whether each of the request's views draws
    /// [`DrawList::Visible`](crate::cull::DrawList::Visible); true for views beyond the end. It
    /// matters for views that [hide](crate::cull::Culler::hides).
    pub draws_visible: Vec<bool>,
}
