//! Animations of instances: clips that were baked to poses of joints, played by the vertex stage
//! [Dudash 2007].
//!
//! 1. `poses`: the asset, clips as matrices of joints; `joint`: a joint in a pose.
//! 2. `state`: what one instance plays, in 8 bytes; `playing`: where a clip is then. Both are the
//!    twin of the vertex stage.
//! 3. `component`: what a set plays.
//! 4. `spheres`: spheres around a mesh in all poses.
//! 5. `table`: which poses there are, and the clock, for both worlds.
//! 6. `texture`: the poses on the GPU.
//! 7. `bake`: poses from a scene's skeleton and Bevy's clips (feature `animation`).

#[cfg(feature = "animation")]
mod bake;
mod component;
mod error;
mod joint;
mod playing;
mod poses;
mod rows;
#[cfg(feature = "animation")]
mod skeleton;
mod spheres;
mod state;
mod table;
mod texture;

#[cfg(feature = "animation")]
pub use bake::{AnimationBaked, BakeAnimation, ClipToBake};
pub use component::{AnimationSource, InstanceAnimation};
pub use error::AnimationError;
pub use poses::{AnimationPoses, PoseClip};
pub use state::AnimationState;

#[cfg(feature = "animation")]
pub(super) use bake::{BakedPoses, SkinToBake, bake_animations, forget_baked};
pub(super) use component::{SetAnimation, SlotAnimation, warn_of_bad_animations};
#[cfg(feature = "animation")]
pub(super) use skeleton::{Skeleton, skeleton_of};
pub(super) use spheres::sphere_in_poses;
pub(super) use table::{AnimationClock, PoseTable, extract_clock, find_poses};
pub(super) use texture::{POSES_BINDING, PoseTexture, poses_layout};
