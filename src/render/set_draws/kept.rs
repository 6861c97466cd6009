//! Requests that the next frame takes over.

use crate::cull::{BoundingSphere, CullRequest, DrawShape, SetId};
use crate::render::lods::ShadowPixels;
use bevy::prelude::*;

/// What a request leaves behind that the next frame takes over.
pub(in crate::render) fn no_request() -> CullRequest {
    let sphere = BoundingSphere {
        center: Vec3::ZERO,
        radius: 0.0,
    };
    let shape = DrawShape::NonIndexed {
        vertex_count: 0,
        first_vertex: 0,
    };
    CullRequest::new(SetId(0), sphere, shape)
}

/// What the requests of a frame depend on, besides its sets and views.
#[derive(Clone, Copy, Default, PartialEq)]
pub(in crate::render) struct FrameInputs {
    /// Whether some view hides instances.
    pub hides: bool,
    /// The greatest error with which cameras draw levels of detail, in pixels.
    pub lod_pixels: f32,
    /// The least diameter that is drawn, in pixels.
    pub min_pixels: f32,
    /// Whether some view draws no instance below some size.
    pub has_min_size: bool,
    /// How shadow views see instances that are thinned out.
    pub shadow_pixels: ShadowPixels,
    /// Whether draws are colored by their list.
    pub colors_occlusion: bool,
    /// Whether small sets have rows in all views, which may rest.
    pub rests: bool,
    /// Number of views.
    pub views: u32,
}

/// Whether small sets have rows in all views: there are many sets, and not too many pairs of a set
/// and a view.
pub(in crate::render) fn many_rest(sets: usize, views: usize) -> bool {
    let max_pairs = match views {
        0..=FEW_VIEWS => MAX_RESTING_PAIRS,
        _ => MAX_PAIRS_WITH_LAMPS,
    };
    sets >= MIN_RESTING_SETS && views <= MAX_RESTING_VIEWS && sets * views <= max_pairs
}

/// Fewer sets than this have rows only in the views that see them: another plan costs little.
const MIN_RESTING_SETS: usize = 64;
/// [`CullRequest::resting`] has a bit for each of these.
const MAX_RESTING_VIEWS: usize = 128;
/// Number of pairs that may rest: each takes some hundred bytes on the GPU per level and block.
const MAX_RESTING_PAIRS: usize = 1 << 17;
/// More views than these are mostly of lamps, which see few sets.
const FEW_VIEWS: usize = 8;
/// Number of pairs that may rest if there are more views: most of them rest at all times.
const MAX_PAIRS_WITH_LAMPS: usize = 1 << 15;
