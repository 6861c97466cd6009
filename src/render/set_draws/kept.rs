//! Requests that the next frame takes over.

use crate::cull::{BoundingSphere, CullRequest, DrawShape, ErrorRange, Order, SetId};
use crate::render::lods::ShadowPixels;
use bevy::{math::Affine3A, prelude::*};

/// What a request leaves behind that the next frame takes over.
pub(in crate::render) fn no_request() -> CullRequest {
    CullRequest {
        key: 0,
        set: SetId(0),
        world_from_local: Affine3A::IDENTITY,
        sphere: BoundingSphere {
            center: Vec3::ZERO,
            radius: 0.0,
        },
        shape: DrawShape::NonIndexed {
            vertex_count: 0,
            first_vertex: 0,
        },
        coarser: None,
        more: Vec::new(),
        fade: 0.0,
        range: None,
        thin_below: 0.0,
        errors: ErrorRange::default(),
        order: Order::Set,
        views: Vec::new(),
    }
}

/// What the requests of a frame depend on, besides its sets and views.
#[derive(Clone, Copy, Default, PartialEq)]
pub(in crate::render) struct MadeFor {
    /// Whether some view hides instances.
    pub hides: bool,
    /// The greatest error with which cameras draw levels of detail, in pixels.
    pub lod_pixels: f32,
    /// The least diameter that is drawn, in pixels.
    pub least_pixels: f32,
    /// How shadow views see instances that are thinned out.
    pub shadow_pixels: ShadowPixels,
    /// Whether draws are colored by their list.
    pub colors_occlusion: bool,
}
