//! What can be wrong with clips.

use thiserror::Error;

/// Why [`AnimationPoses::new`](super::AnimationPoses::new) refused its input, or why nothing was
/// baked.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum AnimationError {
    /// There is no clip.
    #[error("there is no clip; give at least one")]
    NoClips,
    /// There are too many clips.
    #[error("{0} clips are more than 254; leave some out, or make two assets of them")]
    TooManyClips(usize),
    /// A clip has no pose, or one without joints.
    #[error("clip {clip} has no poses, or no joints; give at least one of each")]
    NoPoses {
        /// Index of the clip.
        clip: usize,
    },
    /// Poses have different numbers of joints.
    #[error(
        "pose {pose} of clip {clip} has {joints} joints, and pose 0 of clip 0 has {expected}; give all the same"
    )]
    JointCount {
        /// Index of the clip.
        clip: usize,
        /// Index of the pose.
        pose: usize,
        /// Its number of joints.
        joints: usize,
        /// Number of joints of the first pose.
        expected: usize,
    },
    /// A length is negative, not finite, or more than 511 seconds.
    #[error("clip {clip} takes {seconds} seconds, which must be between 0 and 511; cut it")]
    Length {
        /// Index of the clip.
        clip: usize,
        /// Its length.
        seconds: f32,
    },
    /// A matrix is not finite.
    #[error("joint {joint} of pose {pose} of clip {clip} is not finite; check its transforms")]
    NonFinite {
        /// Index of the clip.
        clip: usize,
        /// Index of the pose.
        pose: usize,
        /// Index of the joint.
        joint: usize,
    },
    /// A pivot is not finite.
    #[error("the pivot of joint {joint} is not finite; check the joint's bind pose")]
    Pivot {
        /// Index of the joint.
        joint: usize,
    },
    /// Poses per second are not a number between 0 and 1000.
    #[error("{0} poses per second are not between 0 and 1000; use None to have a rate chosen")]
    Rate(f32),
    /// A clip could not be loaded.
    #[error(
        "clip {clip} could not be loaded; check its label, and that Bevy's feature gltf_animation is on"
    )]
    NotLoaded {
        /// Index of the clip.
        clip: usize,
    },
    /// There are too many matrices. A short file may ask for gigabytes of them.
    #[error(
        "the poses of all clips have {matrices} matrices, one per joint, which are more than {limit}; bake fewer per \
         second, or cut the clips"
    )]
    TooManyMatrices {
        /// Number of poses times number of joints.
        matrices: usize,
        /// The largest number.
        limit: usize,
    },
}
