//! Meshlets of survivors: which runs of a mesh's triangles each view can see, and one indirect draw of just those.
//!
//! They follow the stages of a [`Culler`](crate::cull::Culler) and start from what it wrote: the survivors of each row.
//!
//! ```text
//! survivors of each row
//!   expand           survivors x meshlets -> tiles, cells, work items (a division: a row has one mesh)
//!   meshlet_vote     each meshlet of each survivor: outside the view? all triangles facing away? -> bits
//!   meshlet_scan     bits' counts -> exclusive prefixes
//!   meshlet_compact  bits -> for each meshlet the ids of the survivors that show it, in order
//!   meshlet_args     prefixes -> a command for each meshlet that anyone shows: its indices, as many instances
//! ```
//!
//! A row is drawn by ONE multi-draw whose commands are meshlets and whose instances are survivors. So the mesh's own
//! vertex and index buffers, and any vertex stage that draws instances, serve meshlets too: no vertex is pulled, no index is
//! written, and exactly the triangles of the meshlets that survive are submitted. A row that finds no room is drawn
//! whole, until its buffers have grown.

mod batch;
mod culler;
mod inspect;
pub mod layout;
mod options;
mod pipelines;
mod readback;
mod rows;
mod tables;

pub use culler::{MeshletCuller, MeshletDraw, MeshletRequest, SeenFaces};
pub use options::MeshletOptions;
pub use pipelines::MeshletStage;
pub use readback::{MeshletBatchData, MeshletCounts, MeshletRowCount};
pub use tables::MeshletMeshId;
