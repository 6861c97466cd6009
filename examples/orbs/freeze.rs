//! Frozen culling: the camera flies on, and lines show the frustum that still culls.

use super::look;
use bevy::{gizmos::config::GizmoConfigStore, math::ops, prelude::*};
use bevy_gpu_culling::{prelude::CullingGizmosPlugin, render::CullingGizmoConfigGroup};

/// Draws the frozen frustum of each camera that has one, in lines that glow.
pub struct FreezePlugin;

impl Plugin for FreezePlugin {
    fn build(&self, app: &mut App) {
        app.add_plugins(CullingGizmosPlugin)
            .add_systems(Startup, thicken_lines);
    }
}

fn thicken_lines(mut store: ResMut<GizmoConfigStore>) {
    let (config, group) = store.config_mut::<CullingGizmoConfigGroup>();
    config.line.width = 3.0;
    group.frustum_color = Color::linear_rgb(5.0, 2.6, 0.5);
}

/// The camera on its way out: 0 is its start, 1 is high above and behind.
pub fn way_out(radius: f32, progress: f32) -> Transform {
    let start = look::start(radius);
    let outside = Transform::from_translation(Vec3::new(1.03, 1.05, 1.08) * radius)
        .looking_at(Vec3::new(0.13, 0.0, -0.37) * radius, Vec3::Y);
    let eased = progress * progress * (3.0 - 2.0 * progress);
    Transform {
        translation: start.translation.lerp(outside.translation, eased)
            + Vec3::Y * 0.2 * radius * ops::sin(eased * std::f32::consts::PI),
        rotation: start.rotation.slerp(outside.rotation, eased),
        ..default()
    }
}
