//! Meshlets of survivors: finds which runs of a mesh's triangles each view can see, and draws just
//! those with one indirect draw.
//!
//! The meshlet stages follow the stages of a [`Culler`](crate::cull::Culler) and start from its
//! output: the survivors of each row.
//!
//! ```text
//! survivors of each row
//!   expand           survivors x meshlets -> tiles, cells, work items
//!   meshlet_vote     each meshlet of each survivor: outside the view? facing away? -> bits
//!   meshlet_scan     bits' counts -> exclusive prefixes
//!   meshlet_compact  bits -> per meshlet, the ids of the survivors that show it, in order
//!   meshlet_args     prefixes -> one command per visible meshlet: its indices, its instances
//! ```
//!
//! A row has one level of detail, so all its survivors have the same number of meshlets: a division
//! finds the survivor and the meshlet of a thread. Or the survivors of all rows are expanded
//! together ([`MeshletExpansion`]): then `expand` clears the bits and runs pass 1 of an
//! [`Expander`](crate::cull::Expander), `meshlet_vote` is its pass 2, and `meshlet_scan` counts the
//! bits.
//!
//! A row is drawn by ONE multi-draw whose commands are meshlets and whose instances are survivors.
//! So meshlets use the mesh's own vertex and index buffers and any vertex stage that draws
//! instances: no vertex is pulled, no index is written, and exactly the triangles of the visible
//! meshlets are submitted. A row that does not fit is drawn whole until its buffers have grown.

mod batch;
mod counters;
mod culler;
mod draws;
mod expansion;
#[cfg(feature = "testing")]
mod inspect;
mod items;
mod kernels;
mod options;
mod pipelines;
mod readback;
mod record;
mod request;
mod rows;
mod tables;

use crate::cull::layout::meshlets as layout;
pub use culler::MeshletCuller;
pub use draws::MeshletDraw;
pub use expansion::MeshletExpansion;
#[cfg(feature = "testing")]
pub use inspect::MeshletBatchData;
pub use kernels::MeshletStage;
pub use options::MeshletOptions;
pub use readback::{MeshletCounts, MeshletRowCount};
pub use request::{MeshletRequest, SeenFaces};
pub use tables::MeshletMeshId;
