//! The camera that shows the overlay, and its place there.

use super::detail::{CullingOverlay, OverlayDetail};
use bevy::{
    camera::RenderTarget, dev_tools::diagnostics_overlay::DiagnosticsOverlayPlane, prelude::*,
    window::WindowRef,
};
use core::cmp::Reverse;

/// Distance of windows from the top left corner and from each other, in logical pixels.
const GAP: f32 = 8.0;

/// Has the plane of all overlays shown by the camera with the largest viewport. Bevy would choose
/// the one with the highest order: in a split screen the last half, or a small picture in another.
///
/// `given` is what this system gave the plane. What the app gave it stays.
pub(super) fn choose_camera(
    mut commands: Commands,
    cameras: Query<(Entity, &Camera, &RenderTarget, Has<IsDefaultUiCamera>)>,
    planes: Query<(Entity, Option<&UiTargetCamera>), With<DiagnosticsOverlayPlane>>,
    mut given: Local<Option<Entity>>,
) {
    let has_default = cameras.iter().any(|(.., is_default)| is_default);
    let active = cameras
        .iter()
        .filter(|(_, camera, ..)| camera.is_active && !has_default);
    let best = active.max_by_key(|(entity, camera, target, _)| {
        let window = match target {
            RenderTarget::Window(WindowRef::Primary) => 2,
            RenderTarget::Window(_) => 1,
            _ => 0,
        };
        let size = camera.physical_viewport_size().unwrap_or_default();
        let corner = camera.viewport.as_ref();
        let corner = corner.map_or(UVec2::ZERO, |viewport| viewport.physical_position);
        (
            window,
            u64::from(size.x) * u64::from(size.y),
            Reverse((corner.y, corner.x)),
            camera.order,
            *entity,
        )
    });
    let best = best.map(|(entity, ..)| entity);
    for (plane, target) in &planes {
        let target = target.map(UiTargetCamera::entity);
        if target == best || (target.is_some() && target != *given) {
            continue;
        }
        let mut plane = commands.entity(plane);
        match best {
            Some(camera) => plane.insert(UiTargetCamera(camera)),
            None => plane.remove::<UiTargetCamera>(),
        };
        *given = best;
    }
}

/// Shows the windows of the chosen detail, the counters in the top left corner and the stages
/// beside them. A window that the user has moved stays there.
///
/// `placed` is the left edge that this system gave the stages; `None` in the first frame.
pub(super) fn place(
    detail: Res<OverlayDetail>,
    mut windows: Query<(&CullingOverlay, &mut Node, &ComputedNode)>,
    mut placed: Local<Option<f32>>,
) {
    let mut beside = GAP;
    for (window, mut node, computed) in &mut windows {
        let shown = if window.is_shown(*detail) {
            Display::Flex
        } else {
            Display::None
        };
        if node.display != shown {
            node.display = shown;
        }
        if placed.is_none() {
            (node.top, node.left) = (px(GAP), px(GAP));
        }
        if *window == CullingOverlay::Counters
            && let Val::Px(left) = node.left
        {
            let width = computed.size().x * computed.inverse_scale_factor();
            beside = left + width + GAP;
        }
    }
    let before = *placed.get_or_insert(GAP);
    for (window, mut node, _) in &mut windows {
        let was_moved = node.left != px(before);
        if *window == CullingOverlay::Stages && !was_moved && beside != before {
            node.left = px(beside);
            *placed = Some(beside);
        }
    }
}
