//! A tower of bricks, wound like the thread of a screw: 4,000 instances, most of them small.

use super::shape::random;
use bevy::math::{Quat, Vec2, Vec3};
use bevy_gpu_culling::instance::{InstanceSet, PackedInstance};

const BRICKS: u32 = 4200;
/// The turn from a brick to the next one is `2 atan(TURN)`: there are about 48 bricks per round.
const TURN: f32 = 0.065_5;
const PER_ROUND: u32 = 48;
/// Each brick is this much smaller than the one before, and so is everything about it.
const SHRINK: f32 = 0.999_72;
/// Of the first brick: its distance from the axis, and how much higher the next one is.
const RADIUS: f32 = 8.0;
const RISE: f32 = 0.0125;

/// The file.
pub fn file() -> Vec<u8> {
    let (mut instances, mut scales) = (Vec::new(), Vec::new());
    // The direction from the axis, and half of its angle as a quaternion around y, of any length.
    let (mut direction, mut half_turn) = (Vec2::X, Vec2::X);
    let (mut height, mut scale) = (0.0f32, 1.0f32);
    for brick in 0..BRICKS {
        let (round, at) = (brick / PER_ROUND, brick % PER_ROUND);
        let is_window = round % 8 >= 4 && round % 8 < 7 && at % 8 < 2;
        if !is_window {
            let loose = |use_of_it| random(brick * 4 + use_of_it) - 0.5;
            let radius = (RADIUS + 0.12 * loose(0)) * scale;
            let position = Vec3::new(direction.x * radius, height, direction.y * radius);
            // The product of the turn around y and a small one, whose length may be more than 1.
            let (x, y, z) = (0.05 * loose(1), 0.05 * loose(2), 0.05 * loose(3));
            let (sin, cos) = (-half_turn.y, half_turn.x);
            let rotation = Quat::from_xyzw(
                cos * x + sin * z,
                cos * y + sin,
                cos * z - sin * x,
                cos - sin * y,
            );
            instances.push(PackedInstance::new(position, rotation));
            scales.push(scale);
        }
        direction = turned(turned(direction));
        half_turn = turned(half_turn);
        height += RISE * scale;
        scale *= SHRINK;
    }
    let set = InstanceSet::from_packed(instances).unwrap();
    let set = set.with_scales(scales).unwrap().sorted();
    set.to_bytes().unwrap()
}

/// Turned by `atan(TURN)`. Its length is 1 again, as far as a float can say.
fn turned(direction: Vec2) -> Vec2 {
    let Vec2 { x, y } = direction;
    let (x, y) = (x - TURN * y, y + TURN * x);
    let length = (x * x + y * y).sqrt();
    Vec2::new(x / length, y / length)
}
