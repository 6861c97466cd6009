//! Where a clip is at a moment.

use super::poses::{Clip, TICKS_PER_SECOND};
use core::time::Duration;

/// A moment of the animations' clock: whole ticks, and what is left of a tick.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moment {
    pub ticks: u32,
    pub rest: f32,
}

impl From<Duration> for Moment {
    fn from(time: Duration) -> Self {
        let per_second = u128::from(TICKS_PER_SECOND);
        let parts = time.as_nanos() * per_second;
        let second = 1_000_000_000;
        Self {
            // They wrap around after 48 days.
            ticks: (parts / second) as u32,
            rest: (parts % second) as f32 / second as f32,
        }
    }
}

/// Where a clip is that was at a phase some time ago, in steps from its beginning. In whole
/// numbers, so that a clip that has looped for days is as exact as at first.
///
/// A clip of 64 steps takes 2 ticks. At a speed of 48 (1.5), 3 ticks after it was at phase 64 (16
/// steps), it is at (3 * 48 + 16) % 64 = 32: in its middle.
pub(super) fn position_in(clip: Clip, (ticks, rest): (u32, f32), speed: u8, phase: u8) -> f32 {
    let length = clip.steps;
    let first = u32::from(phase) * length / 256;
    let speed = u32::from(speed);
    let at = match clip.loops {
        true => (ticks % length * speed + first) % length,
        false => (ticks.min(length) * speed + first).min(length),
    };
    (at as f32 + rest * speed as f32).min(length as f32)
}

/// Two poses, and the share of the second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Between {
    pub first: u32,
    pub second: u32,
    pub share: f32,
}

/// The poses around a position in a clip.
pub(super) fn poses_at(clip: Clip, position: f32) -> Between {
    let at = position / clip.steps as f32 * clip.segments as f32;
    let before = (at as u32).min(clip.segments.saturating_sub(1));
    Between {
        first: clip.first + before,
        second: clip.first + (before + 1).min(clip.segments),
        share: (at - before as f32).clamp(0.0, 1.0),
    }
}

/// A time of blending in ticks; 0 for none.
pub(super) fn blend_ticks(seconds: f32) -> u32 {
    (seconds * TICKS_PER_SECOND as f32) as u32
}
