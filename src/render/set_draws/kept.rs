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
pub(in crate::render) struct MadeFor {
    /// Whether some view hides instances.
    pub hides: bool,
    /// The greatest error with which cameras draw levels of detail, in pixels.
    pub lod_pixels: f32,
    /// The least diameter that is drawn, in pixels.
    pub min_pixels: f32,
    /// How shadow views see instances that are thinned out.
    pub shadow_pixels: ShadowPixels,
    /// Whether draws are colored by their list.
    pub colors_occlusion: bool,
}
