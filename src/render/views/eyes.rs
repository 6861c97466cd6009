//! The eyes of views: the points that levels of detail are measured from.

use super::detail::Detail;
use crate::{
    cull::{CullView, LodEye},
    render::lods::ShadowPixels,
};
use bevy::{
    camera::primitives::Frustum,
    math::{FloatOrd, Vec4},
    prelude::*,
    render::{
        sync_world::MainEntity,
        view::{ExtractedView, RetainedViewEntity},
    },
};

/// The point that the levels of detail of a camera are measured from.
pub(in crate::render) struct CameraEye {
    pub(super) camera: MainEntity,
    position: Vec3,
    is_orthographic: bool,
    /// Pixels per world unit, at distance 1 if the camera is not orthographic.
    pixels: f32,
    detail: Detail,
}

impl CameraEye {
    /// The eye of a camera that draws meshes. The eye of a frozen camera stays where it was.
    pub fn new(view: &ExtractedView, frozen: Option<&Frustum>, detail: Detail) -> Self {
        let frozen = frozen.map(|frustum| planes(frustum).with_eye().eye());
        let frozen = frozen.filter(|eye| eye.w != 0.0);
        Self {
            camera: view.retained_view_entity.main_entity,
            position: match frozen {
                Some(eye) => eye.truncate() / eye.w,
                None => view.world_from_view.translation(),
            },
            is_orthographic: is_orthographic(view),
            pixels: pixels_of_unit(view),
            detail,
        }
    }
}

pub(super) fn shadow_pixels_of(eyes: &[CameraEye]) -> ShadowPixels {
    ShadowPixels::of_cameras(eyes.iter().map(|eye| (eye.pixels, eye.is_orthographic)))
}

fn is_orthographic(view: &ExtractedView) -> bool {
    view.clip_from_view.w_axis.w == 1.0
}

/// Pixels per world unit, at distance 1 if the view is not orthographic: as `pixels_of_unit` in
/// `shaders/draw/instance.wesl`. The scale of an orthographic camera's transform counts, and the
/// scale of another's does not: it changes distances, too.
fn pixels_of_unit(view: &ExtractedView) -> f32 {
    let height = match is_orthographic(view) {
        true => clip_from_world(view).row(1).truncate().length(),
        false => view.clip_from_view.y_axis.y.abs(),
    };
    0.5 * view.viewport.w as f32 * height
}

/// How a view sees levels of detail.
#[derive(Clone, Copy)]
pub(super) struct LodRule {
    pub fades: bool,
    pub is_shadow: bool,
    /// The eye of levels, for a light that all cameras share.
    pub origin: Option<Vec3>,
}

/// The view with levels of detail as its camera sees them, or for a light that all cameras
/// share, as the camera next to the light's origin of levels does.
pub(super) fn with_lods(
    view: CullView,
    key: &RetainedViewEntity,
    eyes: &[CameraEye],
    of_settings: Detail,
    rule: LodRule,
) -> CullView {
    let own = [Some(key.main_entity), key.auxiliary_entity];
    let of_view = eyes.iter().find(|eye| own.contains(&Some(eye.camera)));
    let apart = |eye: &&CameraEye| {
        let origin = rule.origin;
        let apart = origin.map_or(0.0, |origin| eye.position.distance_squared(origin));
        FloatOrd(apart)
    };
    let Some(eye) = of_view.or_else(|| eyes.iter().min_by_key(apart)) else {
        return view;
    };
    // What all cameras share stays with the settings.
    let detail = of_view.map_or(of_settings, |eye| eye.detail);
    let shadow = shadow_pixels_of(eyes);
    view.with_lods_of(LodEye {
        position: rule.origin.unwrap_or(eye.position),
        is_orthographic: eye.is_orthographic,
        // If a size is not above 0, the quotient is infinite: no error is allowed, and no
        // size is too small.
        resolution: eye.pixels / detail.max_error(rule.is_shadow),
        min_resolution: eye.pixels / detail.min_pixels(),
        pixels: match rule.is_shadow {
            true if shadow.is_orthographic == eye.is_orthographic => shadow.pixels,
            true => 0.0,
            false => eye.pixels,
        },
        fades: rule.fades,
    })
}

/// The planes of a frustum.
pub(super) fn planes(frustum: &Frustum) -> CullView {
    // Bevy lists the bottom plane before the top plane, the engine after it.
    let [left, right, bottom, top, near, far] = frustum
        .half_spaces
        .map(|half_space| -> Vec4 { half_space.normal_d() });
    CullView::from_planes([left, right, top, bottom, near, far])
}

/// The matrix of a view, without jitter.
pub(in crate::render) fn clip_from_world(view: &ExtractedView) -> Mat4 {
    view.clip_from_world
        .unwrap_or_else(|| view.clip_from_view * view.world_from_view.to_matrix().inverse())
}
