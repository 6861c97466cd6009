//! The asset: clips as matrices of joints.

use super::{
    error::AnimationError,
    joint::{JointPacking, PackedJoint},
};
use crate::cull::layout::greatest_stretch;
use bevy::{math::Affine3A, prelude::*};
use std::sync::Arc;

/// Ticks of the animations' clock per second.
pub(super) const TICKS_PER_SECOND: u32 = 1024;
/// Number of steps per tick, in which positions in clips are counted.
pub(super) const STEPS_PER_TICK: u32 = 32;
/// The longest clip in steps: [`position_in`](super::playing) multiplies it by a speed of 255 in 32
/// bits.
const MAX_STEPS: u32 = (1 << 24) - 32;
/// Maximum number of clips: [`AnimationState`](super::AnimationState) numbers them with a byte, of
/// which two values are no clip.
const MAX_CLIPS: usize = 254;
/// Maximum number of matrices. They take 256 MiB while they are baked.
const MAX_MATRICES: usize = 1 << 22;

/// One clip of [`AnimationPoses`].
#[derive(Clone, Debug)]
pub struct PoseClip {
    /// The poses at times that follow each other at the same distance, the first and the last
    /// moment included. A pose has one matrix per joint: from the mesh's space, in which its
    /// vertices are, to the instance's. That is the transform of the joint times its inverse bind
    /// pose.
    pub poses: Vec<Vec<Affine3A>>,
    /// How long the clip takes. At most 511 seconds.
    pub seconds: f32,
    /// Whether it begins again at its end. If not, its last pose stays.
    pub loops: bool,
}

/// Clips of a skinned mesh, baked to the matrices of its joints. An
/// [`InstanceAnimation`](super::InstanceAnimation) plays them on a set.
///
/// `BakeAnimation` (feature `animation`) makes them of a scene and of Bevy's `AnimationClip`s. All
/// poses of all sets lie in one texture. A joint takes 32 bytes per pose: a second of a figure with
/// 50 joints, at 30 poses per second, takes 48 kB. If a joint stretches more along one axis than
/// along another, or shears, all joints take 48 bytes.
///
/// Between two poses, a joint's pivot moves straight, and what is around it turns. Joints of 48
/// bytes are mixed by the numbers of their matrices.
#[derive(Asset, Reflect, Clone, Debug)]
#[reflect(opaque, Clone, Debug)]
pub struct AnimationPoses {
    joints: u32,
    clips: Arc<[Clip]>,
    packing: JointPacking,
    /// The point of each joint that moves straight.
    pivots: Arc<[Vec3]>,
    /// Pose after pose, joint after joint.
    packed: Arc<[PackedJoint]>,
    /// How much a joint stretches lengths at most.
    stretch: f32,
}

/// Where a clip is among the poses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Clip {
    /// Index of its first pose.
    pub first: u32,
    /// Number of poses minus one.
    pub segments: u32,
    /// Its length; at least 1.
    pub steps: u32,
    pub loops: bool,
}

/// The length of a clip in steps.
///
/// # Errors
/// [`AnimationError::Length`].
pub(super) fn check_seconds(clip: usize, seconds: f32) -> Result<f32, AnimationError> {
    let steps = seconds * (TICKS_PER_SECOND * STEPS_PER_TICK) as f32;
    let is_good = (0.0..=MAX_STEPS as f32).contains(&steps);
    is_good
        .then_some(steps)
        .ok_or(AnimationError::Length { clip, seconds })
}

/// Checks how many matrices there are, with one per pose and joint.
///
/// # Errors
/// [`AnimationError::TooManyMatrices`].
pub(super) fn check_matrices(poses: usize, joints: usize) -> Result<(), AnimationError> {
    // Poses without joints take memory, too.
    let matrices = poses.saturating_mul(joints.max(1));
    let limit = MAX_MATRICES;
    match matrices <= limit {
        true => Ok(()),
        false => Err(AnimationError::TooManyMatrices { matrices, limit }),
    }
}

/// Checks a clip whose poses must have `expected` joints. Returns its length in steps.
fn check_clip(clip: usize, given: &PoseClip, expected: usize) -> Result<f32, AnimationError> {
    if given.poses.is_empty() || expected == 0 {
        return Err(AnimationError::NoPoses { clip });
    }
    let steps = check_seconds(clip, given.seconds)?;
    for (pose, joints) in given.poses.iter().enumerate() {
        if joints.len() != expected {
            return Err(AnimationError::JointCount {
                clip,
                pose,
                joints: joints.len(),
                expected,
            });
        }
        if let Some(joint) = joints.iter().position(|joint| !joint.is_finite()) {
            return Err(AnimationError::NonFinite { clip, pose, joint });
        }
    }
    Ok(steps)
}

impl AnimationPoses {
    /// Checks and packs clips. A state names them by their index. All joints turn around the origin
    /// of the mesh: better are [pivots](Self::around).
    ///
    /// # Errors
    /// [`AnimationError`] says which clip has what.
    pub fn new(clips: impl IntoIterator<Item = PoseClip>) -> Result<Self, AnimationError> {
        Self::around([], clips)
    }

    /// The same with the place of each joint in the mesh's space, without a pose, around which it
    /// turns between two poses. Joints without one turn around the origin.
    ///
    /// # Errors
    /// [`AnimationError`] says which clip has what.
    pub fn around(
        pivots: impl IntoIterator<Item = Vec3>,
        clips: impl IntoIterator<Item = PoseClip>,
    ) -> Result<Self, AnimationError> {
        let clips: Vec<_> = clips.into_iter().collect();
        if clips.len() > MAX_CLIPS {
            return Err(AnimationError::TooManyClips(clips.len()));
        }
        let first = clips.first().ok_or(AnimationError::NoClips)?;
        let expected = first.poses.first().map_or(0, Vec::len);
        let count: usize = clips.iter().map(|clip| clip.poses.len()).sum();
        check_matrices(count, expected)?;
        let mut packed = Vec::with_capacity(count * expected);
        let mut pivots: Vec<_> = pivots.into_iter().take(expected).collect();
        pivots.resize(expected, Vec3::ZERO);
        if let Some(joint) = pivots.iter().position(|pivot| !pivot.is_finite()) {
            return Err(AnimationError::Pivot { joint });
        }
        let mut described = Vec::with_capacity(clips.len());
        let mut first = 0;
        for (clip, given) in clips.iter().enumerate() {
            let steps = check_clip(clip, given, expected)?;
            let poses = given.poses.len() as u32;
            described.push(Clip {
                first,
                segments: poses - 1,
                steps: (steps.round() as u32).max(1),
                loops: given.loops,
            });
            first += poses;
        }
        let matrices = || clips.iter().flat_map(|clip| clip.poses.iter().flatten());
        let packing = JointPacking::of(matrices());
        let stretches = matrices().map(|matrix| greatest_stretch(&matrix.matrix3));
        let stretch = stretches.fold(0.0, f32::max);
        let around = matrices().zip(pivots.iter().cycle());
        packed.extend(around.map(|(matrix, pivot)| packing.pack(matrix, *pivot)));
        Ok(Self {
            joints: expected as u32,
            clips: described.into(),
            packing,
            pivots: pivots.into(),
            packed: packed.into(),
            stretch,
        })
    }

    /// Number of joints of each pose.
    #[must_use]
    pub fn joint_count(&self) -> usize {
        self.joints as usize
    }

    /// Number of clips.
    #[must_use]
    pub fn clip_count(&self) -> usize {
        self.clips.len()
    }

    /// How long a clip takes, in seconds; `None` if there is no such clip.
    #[must_use]
    pub fn seconds(&self, clip: u8) -> Option<f32> {
        let clip = self.clips.get(usize::from(clip))?;
        Some(clip.steps as f32 / (TICKS_PER_SECOND * STEPS_PER_TICK) as f32)
    }

    /// The clip with a number, or the last one: as in the vertex stage.
    pub(super) fn clip(&self, clip: u8) -> Clip {
        let last = self.clips.len() - 1;
        self.clips[usize::from(clip).min(last)]
    }

    /// Number of poses of all clips.
    pub(super) fn pose_count(&self) -> u32 {
        self.packed.len() as u32 / self.joints
    }

    /// A joint in a pose.
    pub(super) fn joint(&self, pose: u32, joint: u32) -> PackedJoint {
        self.packed[(pose * self.joints + joint) as usize]
    }

    /// The matrix of a joint.
    pub(super) fn matrix(&self, packed: PackedJoint, joint: u32) -> Affine3A {
        self.packing.unpack(packed, self.pivot(joint as usize))
    }

    /// The place of a joint in the mesh's space, without a pose: [`Self::pose`] moves it to where
    /// the joint is. Joints are in the order of the skin. The origin if there is no such joint.
    #[must_use]
    pub fn pivot(&self, joint: usize) -> Vec3 {
        self.pivots.get(joint).copied().unwrap_or_default()
    }

    /// How much a joint stretches lengths at most.
    pub(super) fn stretch(&self) -> f32 {
        self.stretch
    }

    /// How joints are packed.
    pub(super) fn packing(&self) -> JointPacking {
        self.packing
    }

    /// Number of texels.
    pub(super) fn texel_count(&self) -> u64 {
        let packed = self.packed.len() as u64 * u64::from(self.packing.texels());
        self.clips.len() as u64 + u64::from(self.joints) + packed
    }

    /// Writes the texels: a texel per clip, a pivot per joint, and then all poses.
    pub(super) fn write_texels(&self, texels: &mut Vec<[u32; 4]>) {
        let before = self.clips.len() as u32 + self.joints;
        let size = self.joints * self.packing.texels();
        texels.extend(self.clips.iter().map(|clip| {
            let first = before + clip.first * size;
            [first, clip.segments, clip.steps, u32::from(clip.loops)]
        }));
        let pivots = self.pivots.iter();
        texels.extend(pivots.map(|pivot| pivot.extend(0.0).to_array().map(f32::to_bits)));
        let used = self.packing.texels() as usize;
        let packed = self.packed.iter().flat_map(|joint| &joint[..used]);
        texels.extend(packed.map(|texel| texel.to_array().map(f32::to_bits)));
    }

    /// What the directory holds of poses whose texels begin at `first`.
    pub(super) fn entry(&self, first: u32) -> [u32; 4] {
        let clips = self.clips.len() as u32;
        [first, self.joints, clips, self.packing.texels()]
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn clip(poses: usize, joints: usize, seconds: f32) -> PoseClip {
        let pose = |at: usize| {
            let joint = |joint: usize| {
                let at = Vec3::new(at as f32, joint as f32, 0.5);
                Affine3A::from_scale_rotation_translation(Vec3::ONE, Quat::IDENTITY, at)
            };
            (0..joints).map(joint).collect()
        };
        PoseClip {
            poses: (0..poses).map(pose).collect(),
            seconds,
            loops: true,
        }
    }

    #[test]
    fn texels_are_clips_pivots_and_then_poses() {
        let pivots = [Vec3::ZERO, Vec3::X];
        let clips = [clip(3, 2, 1.5), clip(1, 2, 0.0)];
        let poses = AnimationPoses::around(pivots, clips).unwrap();
        let mut texels = Vec::new();
        poses.write_texels(&mut texels);
        assert_eq!(texels.len() as u64, poses.texel_count());
        assert_eq!(texels.len(), 2 + 2 + 4 * 2 * 2);
        assert_eq!(texels[0], [4, 2, 1536 * 32, 1]);
        assert_eq!(texels[1], [4 + 3 * 2 * 2, 0, 1, 1]);
        assert_eq!(texels[3].map(f32::from_bits), [1.0, 0.0, 0.0, 0.0]);
        // Where the pivot of joint 1 is in pose 2, and its scale.
        let place = texels[4 + (2 * 2 + 1) * 2 + 1].map(f32::from_bits);
        assert_eq!(place, [3.0, 1.0, 0.5, 1.0]);
        assert_eq!(poses.entry(9), [9, 2, 2, 2]);
        assert_eq!((poses.seconds(0), poses.seconds(2)), (Some(1.5), None));
        assert_eq!(poses.matrix(poses.joint(2, 1), 1).translation.x, 2.0);
        assert_eq!(poses.pose_count(), 4);
    }

    #[test]
    fn what_is_wrong_with_clips_is_named() {
        let refused = |clips: Vec<PoseClip>| AnimationPoses::new(clips).unwrap_err();
        assert_eq!(refused(Vec::new()), AnimationError::NoClips);
        let many = vec![clip(1, 1, 1.0); 256];
        assert_eq!(refused(many), AnimationError::TooManyClips(256));
        for (poses, joints) in [(0, 2), (2, 0)] {
            let error = AnimationError::NoPoses { clip: 0 };
            assert_eq!(refused(vec![clip(poses, joints, 1.0)]), error);
        }
        let error = refused(vec![clip(2, 3, 1.0), clip(2, 2, 1.0)]);
        assert_eq!(
            error,
            AnimationError::JointCount {
                clip: 1,
                pose: 0,
                joints: 2,
                expected: 3
            }
        );
        for seconds in [-0.1, 512.0, f32::INFINITY] {
            let error = AnimationError::Length { clip: 0, seconds };
            assert_eq!(refused(vec![clip(2, 2, seconds)]), error);
        }
        assert!(AnimationPoses::new([clip(2, 2, 511.0)]).is_ok());
        // As many as there may be, and one more.
        assert_eq!(check_matrices(MAX_MATRICES / 2, 2), Ok(()));
        let (matrices, limit) = (MAX_MATRICES + 1, MAX_MATRICES);
        let error = AnimationError::TooManyMatrices { matrices, limit };
        assert_eq!(check_matrices(matrices, 1), Err(error));
        let mut bad = clip(2, 2, 1.0);
        bad.poses[1][1].translation.y = f32::NAN;
        let error = AnimationError::NonFinite {
            clip: 0,
            pose: 1,
            joint: 1,
        };
        assert_eq!(refused(vec![bad]), error);
    }
}
