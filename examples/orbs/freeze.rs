//! Frozen culling: the camera flies on, and lines show the frustum that still culls.

use crate::look;
use bevy::{gizmos::config::GizmoConfigStore, math::ops, prelude::*};
use bevy_gpu_culling::prelude::FreezeCulling;

/// Draws the frozen frustum of each camera that has one, and removes it when the camera thaws.
pub struct FreezePlugin;

impl Plugin for FreezePlugin {
    fn build(&self, app: &mut App) {
        app.add_systems(Startup, thicken_lines)
            .add_systems(Update, show_frustum);
    }
}

/// The lines of a frozen frustum.
#[derive(Component)]
struct FrozenLines;

fn thicken_lines(mut store: ResMut<GizmoConfigStore>) {
    store.config_mut::<FrustumGizmoConfigGroup>().0.line.width = 3.0;
}

fn show_frustum(
    mut commands: Commands,
    frozen: Query<&FreezeCulling>,
    lines: Query<Entity, With<FrozenLines>>,
) {
    match (
        frozen.iter().find_map(|freeze| freeze.frustum),
        lines.iter().next(),
    ) {
        (Some(frustum), None) => {
            commands.spawn((
                FrozenLines,
                frustum,
                ShowFrustumGizmo {
                    color: Some(Color::linear_rgb(5.0, 2.6, 0.5)),
                },
            ));
        }
        (None, Some(entity)) => commands.entity(entity).despawn(),
        _ => {}
    }
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
