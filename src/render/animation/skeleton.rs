//! The skeleton of a skinned mesh in a scene, and its poses in clips.

use super::{
    error::AnimationError,
    joint::JointPacking,
    poses::{PoseClip, check_matrices},
};
use bevy::{
    animation::{AnimationClip, AnimationTargetId, animated_field},
    math::{Affine3A, Mat4},
    mesh::skinning::{SkinnedMesh, SkinnedMeshInverseBindposes},
    platform::collections::HashMap,
    prelude::*,
};

/// What moves a skinned mesh: the joints, and all entities above them.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::render) struct Skeleton {
    /// A parent comes before its children.
    bones: Vec<Bone>,
    /// The bone of each joint.
    joints: Vec<usize>,
    pub inverse_bindposes: Handle<SkinnedMeshInverseBindposes>,
}

/// An entity that moves joints.
#[derive(Clone, Copy, Debug)]
struct Bone {
    parent: Option<usize>,
    /// What clips call it; `None` if none moves it.
    target: Option<AnimationTargetId>,
    /// Where it is if no clip moves it.
    rest: Transform,
}

impl PartialEq for Bone {
    // By bits: what was baked is found again if a number is NaN.
    fn eq(&self, other: &Self) -> bool {
        let bits = |bone: &Self| {
            let Transform {
                translation,
                rotation,
                scale,
            } = bone.rest;
            let rest = [translation.extend(0.0), rotation.into(), scale.extend(0.0)];
            rest.map(|part: Vec4| part.to_array().map(f32::to_bits))
        };
        (self.parent, self.target) == (other.parent, other.target) && bits(self) == bits(other)
    }
}

/// The skeleton of a skinned entity of a scene.
pub(in crate::render) fn skeleton_of(scene: &World, skin: &SkinnedMesh) -> Skeleton {
    let mut skeleton = Skeleton {
        bones: Vec::new(),
        joints: Vec::new(),
        inverse_bindposes: skin.inverse_bindposes.clone(),
    };
    let mut known: HashMap<Entity, usize> = HashMap::default();
    for joint in &skin.joints {
        // The joint, and above it what is not known yet.
        let above = core::iter::successors(Some(*joint), |entity| {
            Some(scene.get::<ChildOf>(*entity)?.parent())
        });
        let new: Vec<_> = above
            .take_while(|entity| !known.contains_key(entity))
            .collect();
        for entity in new.into_iter().rev() {
            let parent = scene.get::<ChildOf>(entity);
            skeleton.bones.push(Bone {
                parent: parent.and_then(|parent| known.get(&parent.parent()).copied()),
                target: scene.get::<AnimationTargetId>(entity).copied(),
                rest: scene.get::<Transform>(entity).copied().unwrap_or_default(),
            });
            known.insert(entity, skeleton.bones.len() - 1);
        }
        skeleton.joints.push(known[joint]);
    }
    skeleton
}

/// Rates of which the first is taken whose poses are close to the clip. Exporters write keyframes
/// at the first three.
const RATES: [f32; 8] = [24.0, 25.0, 30.0, 48.0, 50.0, 60.0, 96.0, 120.0];
/// How far a joint may be from its place in the clip, as a share of the skeleton's size.
const MAX_OFF: f32 = 3e-4;
/// How far it may be turned from its rotation in the clip, in radians.
const MAX_TURN: f32 = 2e-3;

impl Skeleton {
    /// Where the joints are in the mesh's space, without a pose.
    pub fn pivots(&self, inverse_bindposes: &[Mat4]) -> Vec<Vec3> {
        let joints = 0..self.joints.len();
        let place = |joint| Vec3::from(unbound(inverse_bindposes, joint).inverse().translation);
        // A bind pose that flattens has no place.
        let finite = |place: Vec3| if place.is_finite() { place } else { Vec3::ZERO };
        joints.map(|joint| finite(place(joint))).collect()
    }

    /// The poses of a clip, with one at its first and one at its last moment: at least `rate` per
    /// second, or as few as are close to the clip. The clips before have `count` poses.
    ///
    /// # Errors
    /// [`AnimationError::TooManyMatrices`].
    pub fn poses(
        &self,
        clip: &AnimationClip,
        inverse_bindposes: &[Mat4],
        (rate, loops): (Option<f32>, bool),
        count: usize,
    ) -> Result<PoseClip, AnimationError> {
        let check = |rate: f32| {
            let more = segments(clip.duration(), rate) as usize + 1;
            check_matrices(count + more, self.joints.len())
        };
        check(rate.unwrap_or(RATES[0]))?;
        let at = |rate: f32| self.poses_at(clip, inverse_bindposes, rate);
        let poses = match rate {
            Some(rate) => at(rate),
            None => {
                let pivots = self.pivots(inverse_bindposes);
                let rates = RATES.into_iter().take_while(|rate| check(*rate).is_ok());
                let tried = rates.map(at).map(|poses| {
                    let off = self.distance(clip, inverse_bindposes, (&pivots, &poses));
                    (off, poses)
                });
                let mut best: Option<(f32, _)> = None;
                for (off, poses) in tried {
                    if best.as_ref().is_none_or(|(least, _)| off < *least) {
                        best = Some((off, poses));
                    }
                    if off <= 1.0 {
                        break;
                    }
                }
                best.map_or_else(Vec::new, |(_, poses)| poses)
            }
        };
        Ok(PoseClip {
            poses,
            seconds: clip.duration(),
            loops,
        })
    }

    fn poses_at(
        &self,
        clip: &AnimationClip,
        inverse_bindposes: &[Mat4],
        rate: f32,
    ) -> Vec<Vec<Affine3A>> {
        let seconds = clip.duration();
        let segments = segments(seconds, rate);
        let times = (0..=segments).map(|at| seconds * (at as f32 / segments as f32));
        let poses = times.map(|time| self.pose(clip, time, inverse_bindposes));
        poses.collect()
    }

    /// How far the clip is from its poses, between them; 1 is the most that is close.
    fn distance(
        &self,
        clip: &AnimationClip,
        inverse_bindposes: &[Mat4],
        (pivots, poses): (&[Vec3], &[Vec<Affine3A>]),
    ) -> f32 {
        let segments = poses.len() - 1;
        let places = || poses.iter().flat_map(|pose| pose.iter().zip(pivots));
        let places = || places().map(|(joint, pivot)| joint.transform_point3(*pivot));
        let low = places().reduce(Vec3::min).unwrap_or_default();
        let high = places().reduce(Vec3::max).unwrap_or_default();
        let size = low.distance(high).max(f32::MIN_POSITIVE);
        let packing = JointPacking::of(poses.iter().flatten());
        let mut farthest = 0.0f32;
        for (at, pair) in poses.windows(2).enumerate() {
            let share = 0.5;
            let time = clip.duration() * ((at as f32 + share) / segments as f32);
            let exact = self.pose(clip, time, inverse_bindposes);
            let joints = pair[0].iter().zip(&pair[1]).zip(exact.iter().zip(pivots));
            for ((a, b), (exact, pivot)) in joints {
                let [a, b] = [a, b].map(|joint| packing.pack(joint, *pivot));
                let mixed = packing.unpack(packing.mix(a, b, share), *pivot);
                let [mine, theirs] = [&mixed, exact].map(|joint| joint.transform_point3(*pivot));
                let turn = Mat3::from(mixed.matrix3 - exact.matrix3);
                let turn = turn
                    .to_cols_array()
                    .map(f32::abs)
                    .into_iter()
                    .fold(0.0, f32::max);
                let scale = exact.matrix3.x_axis.length().max(f32::MIN_POSITIVE);
                let off = mine.distance(theirs) / size / MAX_OFF;
                farthest = farthest.max(off).max(turn / scale / MAX_TURN);
            }
        }
        farthest
    }

    /// The matrices of all joints at a time.
    fn pose(&self, clip: &AnimationClip, time: f32, inverse_bindposes: &[Mat4]) -> Vec<Affine3A> {
        let mut places: Vec<Affine3A> = Vec::with_capacity(self.bones.len());
        for bone in &self.bones {
            let mut at = bone.rest;
            if let Some(target) = bone.target {
                let moved =
                    clip.sample_clamped(animated_field!(Transform::translation), target, time);
                at.translation = moved.unwrap_or(at.translation);
                let turned =
                    clip.sample_clamped(animated_field!(Transform::rotation), target, time);
                at.rotation = turned.unwrap_or(at.rotation);
                let scaled = clip.sample_clamped(animated_field!(Transform::scale), target, time);
                at.scale = scaled.unwrap_or(at.scale);
            }
            let parent = bone
                .parent
                .map_or(Affine3A::IDENTITY, |parent| places[parent]);
            places.push(parent * at.compute_affine());
        }
        let joints = self.joints.iter().enumerate();
        joints
            .map(|(joint, bone)| places[*bone] * unbound(inverse_bindposes, joint))
            .collect()
    }
}

/// Number of poses of a clip minus one.
fn segments(seconds: f32, rate: f32) -> u32 {
    // A whole number of keyframes stays one, whatever rounding does to it.
    (seconds * rate - 1e-3).ceil().max(1.0) as u32
}

/// The inverse bind pose of a joint.
fn unbound(inverse_bindposes: &[Mat4], joint: usize) -> Affine3A {
    let bind = inverse_bindposes.get(joint);
    bind.map_or(Affine3A::IDENTITY, |bind| Affine3A::from_mat4(*bind))
}
