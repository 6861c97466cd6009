//! Fingers fly the camera: Bevy's free camera looks around with one; two that part fly ahead.

use bevy::{
    camera_controller::free_camera::{FreeCamera, FreeCameraState},
    input::touch::Touches,
    prelude::*,
};

/// Seconds of flight at the camera's speed for fingers that part by 100 pixels.
const SECONDS: f32 = 0.5;

/// Adds the flight with two fingers.
pub struct TouchPlugin;

impl Plugin for TouchPlugin {
    fn build(&self, app: &mut App) {
        app.add_systems(PreUpdate, fly.after(bevy::input::InputSystems));
    }
}

fn fly(
    touches: Res<Touches>,
    mut cameras: Query<(&mut Transform, &mut FreeCameraState, &FreeCamera)>,
) {
    let fingers: Vec<_> = touches.iter().collect();
    for (mut place, mut state, pilot) in &mut cameras {
        // It would look around with each of the fingers.
        state.enabled = fingers.len() < 2;
        if let [one, other] = fingers[..] {
            let now = one.position().distance(other.position());
            let before = one.previous_position().distance(other.previous_position());
            let speed = pilot.walk_speed * state.speed_multiplier;
            let ahead = place.forward();
            place.translation += ahead * ((now - before) / 100.0 * SECONDS * speed);
        }
    }
}
