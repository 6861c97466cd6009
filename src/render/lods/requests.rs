//! The levels of a request: what the engine culls, and what the draws bind.

use super::SetLod;
use crate::cull::CoarserLevel;
use bevy::render::mesh::RenderMesh;
use std::sync::Arc;

/// The levels of a request, kept from frame to frame.
#[derive(Clone)]
pub(in crate::render) struct RequestLods {
    /// The levels that they were made from.
    pub made_from: Arc<[SetLod]>,
    /// The engine's levels.
    pub coarser: Arc<[CoarserLevel]>,
    /// Index of each coarser level's mesh in
    /// [`SetDraws::meshes`](super::super::set_draws::SetDraws).
    pub meshes: Arc<[usize]>,
}

impl RequestLods {
    /// Levels that lie in the buffers of the full mesh, which has this place; `None` if there are
    /// none.
    pub fn in_one_mesh(coarser: Vec<CoarserLevel>, place: usize) -> Option<Self> {
        (!coarser.is_empty()).then(|| Self {
            made_from: Arc::default(),
            meshes: coarser.iter().map(|_| place).collect(),
            coarser: coarser.into(),
        })
    }
}

/// Whether one pipeline draws both meshes: same vertex attributes, same topology, both with indices
/// or both without.
pub(in crate::render) fn fit_each_other(full: &RenderMesh, level: &RenderMesh) -> bool {
    full.layout == level.layout
        && full.key_bits.bits() == level.key_bits.bits()
        && full.indexed() == level.indexed()
}
