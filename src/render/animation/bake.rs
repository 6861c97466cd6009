//! Poses from a scene's skeletons and Bevy's clips, made off the main thread.

use super::{
    component::{AnimationSource, InstanceAnimation},
    error::AnimationError,
    poses::{AnimationPoses, PoseClip, check_seconds},
    skeleton::Skeleton,
};
use crate::render::names::AssetNames;
use bevy::{
    animation::AnimationClip,
    mesh::skinning::SkinnedMeshInverseBindposes,
    prelude::*,
    tasks::{AsyncComputeTaskPool, Task, futures::check_ready},
};

/// On an entity with an [`InstanceScene`](crate::render::InstanceScene): its skinned meshes become
/// parts, too, and clips are baked for them in the background (feature `animation`).
///
/// Each part gets an [`InstanceAnimation`] and is drawn as soon as its poses are there. Then
/// [`AnimationBaked`] is triggered on the part. Parts and scenes with the same skeleton and clips
/// share their poses. To change something, insert the component again: the parts are spawned again.
/// They go with the [`InstanceScene`](crate::render::InstanceScene), not with this component.
///
/// ```
/// # use bevy::prelude::*;
/// # use bevy_gpu_culling::prelude::*;
/// fn spawn(
///     mut commands: Commands,
///     assets: Res<AssetServer>,
///     mut sets: ResMut<Assets<InstanceSet>>,
/// ) -> Result {
///     let herd = (0..1000).map(|i| Transform::from_xyz(i as f32 * 2.0, 0.0, 0.0));
///     commands.spawn((
///         InstanceScene(assets.load("fox.glb#Scene0")),
///         BakeAnimation::looping([assets.load("fox.glb#Animation0")]),
///         GpuInstances(sets.add(InstanceSet::from_transforms(herd)?)),
///     ));
///     Ok(())
/// }
/// ```
///
/// A clip moves what it has curves for by `Transform`: joints, and the nodes above them. Curves of
/// other properties, events and morph targets are left out.
#[derive(Component, Reflect, Clone, Debug, PartialEq)]
#[reflect(Component, Default, Clone, PartialEq)]
pub struct BakeAnimation {
    /// The clips. An [`AnimationState`](super::AnimationState) names them by their index.
    pub clips: Vec<ClipToBake>,
    /// The least number of poses per second. By default (`None`), each clip gets as few as are
    /// close to it: 24 at least and 120 at most.
    pub rate: Option<f32>,
    /// [`InstanceAnimation::source`] of the parts.
    pub source: AnimationSource,
    /// [`InstanceAnimation::blend_seconds`] of the parts.
    pub blend_seconds: f32,
}

/// A clip that is to be baked.
#[derive(Reflect, Clone, Debug, PartialEq)]
#[reflect(Clone, PartialEq)]
pub struct ClipToBake {
    /// The clip.
    pub clip: Handle<AnimationClip>,
    /// Whether it begins again at its end. If not, its last pose stays.
    pub loops: bool,
}

impl Default for BakeAnimation {
    fn default() -> Self {
        let InstanceAnimation {
            source,
            blend_seconds,
            ..
        } = InstanceAnimation::default();
        Self {
            clips: Vec::new(),
            rate: None,
            source,
            blend_seconds,
        }
    }
}

impl BakeAnimation {
    /// Clips that begin again at their end.
    #[must_use]
    pub fn looping(clips: impl IntoIterator<Item = Handle<AnimationClip>>) -> Self {
        let to_bake = |clip| ClipToBake { clip, loops: true };
        Self {
            clips: clips.into_iter().map(to_bake).collect(),
            ..default()
        }
    }

    /// Adds a clip that stays in its last pose.
    #[must_use]
    pub fn and_once(mut self, clip: Handle<AnimationClip>) -> Self {
        self.clips.push(ClipToBake { clip, loops: false });
        self
    }

    /// Takes each instance's state from the set's data, from this word on.
    #[must_use]
    pub fn with_states_in_data(mut self, first_word: u32) -> Self {
        self.source = AnimationSource::InData { first_word };
        self
    }

    /// What a part of its scene plays.
    pub(in crate::render) fn animation(&self, poses: Handle<AnimationPoses>) -> InstanceAnimation {
        InstanceAnimation {
            poses,
            source: self.source,
            blend_seconds: self.blend_seconds,
        }
    }
}

/// The clips of a part of a scene were baked, or could not be.
#[derive(EntityEvent, Reflect, Clone, Debug)]
#[reflect(opaque, Event, Clone, Debug)]
pub struct AnimationBaked {
    /// The part.
    pub entity: Entity,
    /// What is wrong with the clips, if anything.
    pub result: Result<(), AnimationError>,
}

/// On a part of a scene that waits for its poses: what they are made from.
#[derive(Component, Clone, PartialEq)]
pub(in crate::render) struct SkinToBake {
    scene: AssetId<WorldAsset>,
    skeleton: Skeleton,
    clips: Vec<ClipToBake>,
    /// The bits of the rate.
    rate: Option<u32>,
}

impl SkinToBake {
    pub fn new(scene: AssetId<WorldAsset>, skeleton: &Skeleton, bake: &BakeAnimation) -> Self {
        Self {
            scene,
            skeleton: skeleton.clone(),
            clips: bake.clips.clone(),
            rate: bake.rate.map(f32::to_bits),
        }
    }
}

/// What was baked, and what is being baked.
#[derive(Resource, Default)]
pub(in crate::render) struct BakedPoses {
    baked: Vec<(SkinToBake, AssetId<AnimationPoses>)>,
    running: Vec<(SkinToBake, Task<Result<AnimationPoses, AnimationError>>)>,
}

impl BakedPoses {
    fn forget(&mut self, is_old: impl Fn(&SkinToBake) -> bool) {
        self.baked.retain(|(key, _)| !is_old(key));
        self.running.retain(|(key, _)| !is_old(key));
    }
}

/// Forgets what was baked of scenes or clips that have changed.
pub(in crate::render) fn forget_baked(
    mut baked: ResMut<BakedPoses>,
    mut scenes: MessageReader<AssetEvent<WorldAsset>>,
    mut clips: MessageReader<AssetEvent<AnimationClip>>,
    mut poses: MessageReader<AssetEvent<AnimationPoses>>,
) {
    // Poses that nothing plays any more are gone.
    for event in poses.read() {
        if let AssetEvent::Removed { id } = event {
            baked.baked.retain(|(_, poses)| poses != id);
        }
    }
    for event in clips.read() {
        if let AssetEvent::Modified { id } | AssetEvent::Removed { id } = event {
            baked.forget(|key| key.clips.iter().any(|of| of.clip.id() == *id));
        }
    }
    for event in scenes.read() {
        if let AssetEvent::Modified { id } | AssetEvent::Removed { id } = event {
            baked.forget(|key| key.scene == *id);
        }
    }
}

/// Starts to bake, and gives parts what has been baked.
pub(in crate::render) fn bake_animations(
    mut commands: Commands,
    mut waiting: Query<(Entity, &SkinToBake, Option<&mut InstanceAnimation>)>,
    clips: Res<Assets<AnimationClip>>,
    bindposes: Res<Assets<SkinnedMeshInverseBindposes>>,
    mut poses: ResMut<Assets<AnimationPoses>>,
    mut baked: ResMut<BakedPoses>,
    server: Option<Res<AssetServer>>,
) {
    let BakedPoses { baked, running } = &mut *baked;
    if waiting.is_empty() && running.is_empty() {
        return;
    }
    let mut failed = Vec::new();
    baked.retain(|(_, id)| poses.contains(*id));
    let mut made = Vec::new();
    running.retain_mut(|(key, task)| match check_ready(task) {
        Some(Ok(result)) => {
            let handle = poses.add(result);
            baked.push((key.clone(), handle.id()));
            made.push(handle);
            false
        }
        Some(Err(error)) => {
            failed.push((key.clone(), error));
            false
        }
        None => true,
    });
    for (entity, skin, animation) in &mut waiting {
        let known = baked.iter().find(|(known, _)| known == skin);
        let failure = failed.iter().find(|(known, _)| known == skin);
        let result = match (known, failure) {
            (Some((_, id)), _) => match poses.get_strong_handle(*id) {
                Some(handle) => {
                    // What an app has set meanwhile stays.
                    if let Some(mut animation) = animation {
                        animation.poses = handle;
                    }
                    Ok(())
                }
                None => continue,
            },
            (None, Some((_, error))) => Err(error.clone()),
            (None, None) if let Some(clip) = unloadable(skin, server.as_deref()) => {
                Err(AnimationError::NotLoaded { clip })
            }
            (None, None) => {
                if running.iter().all(|(known, _)| known != skin) {
                    let task = start(skin, &clips, &bindposes);
                    running.extend(task.map(|task| (skin.clone(), task)));
                }
                continue;
            }
        };
        if let Err(error) = &result {
            error!(
                "BakeAnimation: a skinned mesh of {} is not drawn on {entity}: {error}",
                AssetNames(server.as_deref()).of(skin.scene)
            );
        }
        let mut entity = commands.entity(entity);
        entity.try_remove::<SkinToBake>();
        entity.trigger(|entity| AnimationBaked { entity, result });
    }
}

/// The first clip that could not be loaded.
fn unloadable(key: &SkinToBake, server: Option<&AssetServer>) -> Option<usize> {
    let has_failed =
        |of: &ClipToBake| server.is_some_and(|server| server.load_state(of.clip.id()).is_failed());
    key.clips.iter().position(has_failed)
}

/// The most poses per second.
const MAX_RATE: f32 = 1000.0;

/// Bakes in the background; `None` if something is not loaded.
fn start(
    key: &SkinToBake,
    clips: &Assets<AnimationClip>,
    bindposes: &Assets<SkinnedMeshInverseBindposes>,
) -> Option<Task<Result<AnimationPoses, AnimationError>>> {
    let loaded = |of: &ClipToBake| Some((clips.get(&of.clip)?.clone(), of.loops));
    let clips: Option<Vec<_>> = key.clips.iter().map(loaded).collect();
    let clips = clips?;
    let unbind = bindposes.get(&key.skeleton.inverse_bindposes)?.to_vec();
    let skeleton = key.skeleton.clone();
    let rate = key.rate.map(f32::from_bits);
    let baked = async move { bake(&skeleton, &clips, &unbind, rate) };
    Some(AsyncComputeTaskPool::get().spawn(baked))
}

/// The poses of a skeleton in clips, which say whether they begin again.
fn bake(
    skeleton: &Skeleton,
    clips: &[(AnimationClip, bool)],
    unbind: &[Mat4],
    rate: Option<f32>,
) -> Result<AnimationPoses, AnimationError> {
    if let Some(rate) = rate.filter(|rate| !(0.0..=MAX_RATE).contains(rate)) {
        return Err(AnimationError::Rate(rate));
    }
    let mut baked: Vec<PoseClip> = Vec::with_capacity(clips.len());
    let mut count = 0;
    for (at, (clip, loops)) in clips.iter().enumerate() {
        check_seconds(at, clip.duration())?;
        let poses = skeleton.poses(clip, unbind, (rate, *loops), count)?;
        count += poses.poses.len();
        baked.push(poses);
    }
    AnimationPoses::around(skeleton.pivots(unbind), baked)
}

#[cfg(test)]
mod tests;
