//! What one instance plays, in 8 bytes, and the twin of `shaders/draw/animation.wesl`.

use super::{
    playing::{Between, Moment, blend_ticks, poses_at, position_in},
    poses::{AnimationPoses, STEPS_PER_TICK},
};
use bevy::{math::Affine3A, prelude::*};
use bytemuck::{Pod, Zeroable};
use core::time::Duration;

/// A speed of 1 in [`AnimationState::speed`]: steps per tick.
const SPEED_ONE: f32 = STEPS_PER_TICK as f32;
/// [`AnimationState::previous`]: nothing is left.
const NO_CLIP: u8 = u8::MAX;
/// The same, and the clip has always begun.
const ENDLESS: u8 = u8::MAX - 1;

/// What one instance plays: a clip, since when, how fast, and which clip it leaves.
///
/// It is two words of the set's data
/// ([`InstanceSet::with_data`](crate::instance::InstanceSet::with_data)), or part of them. A state
/// that was written once plays on by itself. Times are of Bevy's [`Time`], which a paused app
/// stops, in 1024ths of a second; they hold for 24 days.
///
/// ```
/// # use bevy_gpu_culling::prelude::*;
/// # use core::time::Duration;
/// # fn edit(set: &mut InstanceSet, time: &bevy::prelude::Time, poses: &AnimationPoses) -> Result<(), InstanceError> {
/// const WALK: u8 = 0;
/// const RUN: u8 = 1;
/// // Figure 3 begins to walk.
/// let walk = AnimationState::play(WALK, time.elapsed());
/// set.set_data(3, walk)?;
/// // Later, it changes to running.
/// let run = walk.change_to(RUN, time.elapsed(), poses).with_speed(1.25);
/// set.set_data(3, run)?;
/// # Ok(())
/// # }
/// ```
///
/// A compute pass that writes states writes the same two words: the tick at which the clip began;
/// and from the lowest byte on the clip, the clip that it leaves (255 if none; 254 if none, and the
/// clip also plays if its beginning lies ahead), the speed in 32nds, and where the left clip was,
/// in 256ths of its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct AnimationState {
    /// The tick at which the clip began.
    start: u32,
    /// The clip.
    clip: u8,
    /// The clip that it leaves; [`NO_CLIP`] if none.
    previous: u8,
    /// In 32nds. If 0, the clip stands at `phase`.
    speed: u8,
    /// Where the left clip was at `start`, in 256ths of its length.
    phase: u8,
}

impl AnimationState {
    /// Plays a clip from its beginning on, at its own speed. `now` is [`Time::elapsed`].
    #[must_use]
    pub fn play(clip: u8, now: Duration) -> Self {
        Self {
            start: Moment::from(now).ticks,
            clip,
            previous: NO_CLIP,
            speed: SPEED_ONE as u8,
            phase: 0,
        }
    }

    /// Stands still in a clip, at a share of its length from 0 to 1.
    #[must_use]
    pub fn stopped(clip: u8, share: f32) -> Self {
        Self {
            start: 0,
            clip,
            previous: NO_CLIP,
            speed: 0,
            phase: (share * 256.0).round() as u8,
        }
    }

    /// As if the clip had begun earlier by this time: figures that begin together need not step
    /// together.
    #[must_use]
    pub fn begun_before(self, time: Duration) -> Self {
        let Moment { ticks, rest } = time.into();
        Self {
            // To the nearest tick: durations from seconds are rounded.
            start: self.start.wrapping_sub(ticks + u32::from(rest >= 0.5)),
            ..self
        }
    }

    /// Plays at this speed from the beginning of the clip on: 1 is the clip's own. It is rounded to
    /// a 32nd, and at most 7.97. At 0, the clip stands. Of a clip that plays already,
    /// [`Self::change_speed`] keeps the place.
    #[must_use]
    pub fn with_speed(self, speed: f32) -> Self {
        Self {
            speed: (speed * SPEED_ONE).round() as u8,
            ..self
        }
    }

    /// Plays on at another speed from where it is. At 0, it stands there, to a 256th of the clip's
    /// length. A change of clips that is under way ends.
    #[must_use]
    pub fn change_speed(self, speed: f32, now: Duration, poses: &AnimationPoses) -> Self {
        let at = self.position(poses, now.into());
        let clip = poses.clip(self.clip);
        let changed = Self::play(self.clip, now).with_speed(speed);
        if changed.speed == 0 {
            return Self::stopped(self.clip, at / clip.steps as f32);
        }
        let before = (at / f32::from(changed.speed)).round() as u32;
        Self {
            start: changed.start.wrapping_sub(before),
            ..changed
        }
    }

    /// Plays another clip from its beginning on, at the same speed, or at 1 if it stood. Where the
    /// clip is now, to a 256th of its length, is blended out, as
    /// [`InstanceAnimation::blend_seconds`](super::InstanceAnimation) says.
    #[must_use]
    pub fn change_to(self, clip: u8, now: Duration, poses: &AnimationPoses) -> Self {
        let left = poses.clip(self.clip);
        let at = self.position(poses, now.into());
        let speed = if self.speed == 0 {
            SPEED_ONE as u8
        } else {
            self.speed
        };
        Self {
            start: Moment::from(now).ticks,
            clip,
            previous: self.clip,
            phase: (at / left.steps as f32 * 256.0).round() as u8,
            speed,
        }
    }

    /// The clip that it plays.
    #[must_use]
    pub fn clip(self) -> u8 {
        self.clip
    }

    /// Its speed.
    #[must_use]
    pub fn speed(self) -> f32 {
        f32::from(self.speed) / SPEED_ONE
    }

    /// Whether a clip that does not loop is at its end.
    #[must_use]
    pub fn is_finished(self, now: Duration, poses: &AnimationPoses) -> bool {
        let clip = poses.clip(self.clip);
        !clip.loops && self.position(poses, now.into()) >= clip.steps as f32
    }

    /// What the instance with an index plays under
    /// [`AnimationSource::Automatic`](super::AnimationSource): the first clip, begun at some time.
    #[must_use]
    pub fn automatic(index: u32) -> Self {
        let state = index.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        let word = ((state >> ((state >> 28) + 4)) ^ state).wrapping_mul(277_803_737);
        Self {
            start: 0u32.wrapping_sub((word >> 22) ^ (word & 0xffff)),
            clip: 0,
            previous: ENDLESS,
            speed: SPEED_ONE as u8,
            phase: 0,
        }
    }

    /// Ticks since the clip began, and what is left of a tick; 0 before.
    fn since_start(self, now: Moment) -> (u32, f32) {
        let ticks = now.ticks.wrapping_sub(self.start);
        if self.previous != ENDLESS && ticks.cast_signed() < 0 {
            return (0, 0.0);
        }
        (ticks, now.rest)
    }

    /// Where the clip is, in steps.
    fn position(self, poses: &AnimationPoses, now: Moment) -> f32 {
        let clip = poses.clip(self.clip);
        if self.speed == 0 {
            return position_in(clip, (0, 0.0), 0, self.phase);
        }
        position_in(clip, self.since_start(now), self.speed, 0)
    }
}

impl AnimationPoses {
    /// The matrices of all joints of an instance with this state, from the mesh's space to the
    /// instance's: for what a figure holds in its hand. `blend_seconds` is the
    /// [`InstanceAnimation`](super::InstanceAnimation)'s.
    #[must_use]
    pub fn pose(&self, state: AnimationState, now: Duration, blend_seconds: f32) -> Vec<Affine3A> {
        let now = Moment::from(now);
        let clip = self.clip(state.clip);
        let to = poses_at(clip, state.position(self, now));
        let (ticks, rest) = state.since_start(now);
        let blend = blend_ticks(blend_seconds);
        let blends = state.previous < ENDLESS && state.speed > 0 && ticks < blend;
        let from = blends.then(|| {
            let left = self.clip(state.previous);
            let at = position_in(left, (ticks, rest), state.speed, state.phase);
            (poses_at(left, at), (ticks as f32 + rest) / blend as f32)
        });
        let packing = self.packing();
        let at = |between: Between, joint: u32| {
            let [a, b] = [between.first, between.second].map(|pose| self.joint(pose, joint));
            packing.mix(a, b, between.share)
        };
        let joints = 0..self.joint_count() as u32;
        joints
            .map(|joint| {
                let to = at(to, joint);
                let mixed = match from {
                    Some((from, share)) => packing.mix(at(from, joint), to, share),
                    None => to,
                };
                self.matrix(mixed, joint)
            })
            .collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::render::animation::PoseClip;

    /// Clips whose only joint moves from 0 to 1 along an axis, in `seconds` each.
    fn poses(clips: &[(Vec3, f32, bool)]) -> AnimationPoses {
        let clip = |(axis, seconds, loops): &(Vec3, f32, bool)| {
            let pose = |at: u32| vec![Affine3A::from_translation(*axis * (at as f32 / 4.0))];
            PoseClip {
                poses: (0..=4).map(pose).collect(),
                seconds: *seconds,
                loops: *loops,
            }
        };
        AnimationPoses::new(clips.iter().map(clip)).unwrap()
    }

    fn at(poses: &AnimationPoses, state: AnimationState, seconds: f32) -> Vec3 {
        let now = Duration::from_secs_f32(seconds);
        poses.pose(state, now, 0.5)[0].translation.into()
    }

    fn seconds(seconds: f32) -> Duration {
        Duration::from_secs_f32(seconds)
    }

    #[test]
    fn clips_play_from_their_start_on() {
        let poses = poses(&[(Vec3::X, 2.0, true), (Vec3::Y, 1.0, false)]);
        let walk = AnimationState::play(0, seconds(1.0));
        for (now, x) in [(0.5, 0.0), (1.0, 0.0), (1.3, 0.15), (2.0, 0.5), (3.5, 0.25)] {
            let found = at(&poses, walk, now);
            assert!(found.distance(Vec3::X * x) < 1e-3, "{now}: {found}");
        }
        let fast = walk.with_speed(1.5);
        assert!((at(&poses, fast, 1.5).x - 0.375).abs() < 1e-3);
        assert!((at(&poses, walk.begun_before(seconds(0.5)), 1.5).x - 0.5).abs() < 1e-3);
        assert_eq!(at(&poses, AnimationState::stopped(0, 0.75), 99.0).x, 0.75);
        let once = AnimationState::play(1, seconds(1.0));
        assert!((at(&poses, once, 1.25).y - 0.25).abs() < 1e-3);
        assert_eq!(at(&poses, once, 9e4).y, 1.0);
        let is_finished = |now| once.is_finished(seconds(now), &poses);
        assert!(!is_finished(1.9) && is_finished(2.1) && !walk.is_finished(seconds(99.0), &poses));
        // A clip that is not there is the last one.
        let none = AnimationState::play(7, seconds(0.0));
        assert!((at(&poses, none, 0.5).y - 0.5).abs() < 1e-3);
    }

    #[test]
    fn a_change_blends_from_where_the_figure_is() {
        let poses = poses(&[(Vec3::X, 2.0, true), (Vec3::Y, 1.0, true)]);
        let walk = AnimationState::play(0, seconds(0.0));
        let run = walk.change_to(1, seconds(1.0), &poses);
        assert_eq!((run.clip(), run.speed()), (1, 1.0));
        // The left clip plays on, and its share goes from 1 to 0 in half a second.
        for (now, x, y) in [
            (1.0, 0.5, 0.0),
            (1.25, 0.5 * 0.625, 0.5 * 0.25),
            (1.5, 0.0, 0.5),
            (1.75, 0.0, 0.75),
        ] {
            let found = at(&poses, run, now);
            assert!(
                found.distance(Vec3::new(x, y, 0.0)) < 3e-3,
                "{now}: {found}"
            );
        }
    }

    #[test]
    fn a_speed_changes_without_a_jump() {
        let poses = poses(&[(Vec3::X, 2.0, true), (Vec3::Y, 1.0, true)]);
        let walk = AnimationState::play(0, seconds(0.0));
        let fast = walk.change_speed(2.0, seconds(0.8), &poses);
        for (now, x) in [(0.8, 0.4), (1.0, 0.6), (1.5, 0.1)] {
            let found = at(&poses, fast, now).x;
            assert!((found - x).abs() < 2e-3, "{now}: {found}");
        }
        let stopped = fast.change_speed(0.0, seconds(1.0), &poses);
        assert!((at(&poses, stopped, 77.0).x - 0.6).abs() < 3e-3);
        let again = stopped.change_speed(1.0, seconds(80.0), &poses);
        assert!((at(&poses, again, 80.5).x - 0.85).abs() < 3e-3);
        let run = stopped.change_to(1, seconds(90.0), &poses);
        assert_eq!(run.speed(), 1.0);
        let half = at(&poses, run, 90.25);
        assert!((half.y - 0.125).abs() < 2e-3, "{half}");
    }

    #[test]
    fn a_state_is_two_words() {
        let state = AnimationState {
            start: 0x0102_0304,
            clip: 5,
            previous: 6,
            speed: 7,
            phase: 8,
        };
        let words: [u32; 2] = bytemuck::cast(state);
        assert_eq!(words, [0x0102_0304, 0x0807_0605]);
    }

    #[test]
    fn a_figure_that_plays_by_itself_never_stands_still() {
        let poses = poses(&[(Vec3::X, 500.0, true)]);
        for index in 0..20 {
            let state = AnimationState::automatic(index);
            for days in [0, 1, 24, 25, 30, 48] {
                let now = Duration::from_secs(days * 24 * 3600);
                let [a, b] =
                    [now, now + seconds(0.5)].map(|now| state.position(&poses, now.into()));
                assert_ne!(a, b, "instance {index} after {days} days");
            }
        }
    }

    #[test]
    fn a_clip_that_has_looped_for_days_is_exact() {
        let poses = poses(&[(Vec3::X, 500.0, true)]);
        let fast = AnimationState::play(0, Duration::ZERO).with_speed(7.97);
        let days = Duration::from_secs(20 * 24 * 3600) + seconds(0.5);
        let steps = u128::from(Moment::from(days).ticks) * 255;
        let expected = (steps % u128::from(poses.clip(0).steps)) as f32;
        assert_eq!(fast.position(&poses, days.into()), expected);
        // It is at its start again after wrapping around.
        let late = AnimationState {
            start: u32::MAX - 511,
            ..AnimationState::play(0, Duration::ZERO)
        };
        assert_eq!(
            late.position(
                &poses,
                Moment {
                    ticks: 512,
                    rest: 0.0
                }
            ),
            1024.0 * 32.0
        );
    }

    #[test]
    fn figures_that_choose_for_themselves_do_not_step_together() {
        let poses = poses(&[(Vec3::X, 1.0, true)]);
        let mut tenths = [0; 10];
        for index in 0..10_000 {
            let x = at(&poses, AnimationState::automatic(index), 3.0).x;
            tenths[((x * 10.0) as usize).min(9)] += 1;
        }
        assert!(
            tenths.iter().all(|count| (800..1200).contains(count)),
            "{tenths:?}"
        );
    }
}
