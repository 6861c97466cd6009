//! What a set plays.

use super::{playing::blend_ticks, poses::AnimationPoses};
use crate::{
    instance::InstanceSet,
    render::{components::GpuInstances, told::Told},
};
use bevy::{asset::AsAssetId, math::UVec4, prelude::*};

/// On a set whose mesh has joints: instances move as [`AnimationPoses`] say, each with a clip, a
/// time and a speed. The CPU has no work while they play.
///
/// `BakeAnimation` (feature `animation`) on an [`InstanceScene`](crate::render::InstanceScene)
/// inserts it on the parts of a scene that have a skin. By hand, it goes on an entity with a
/// [`Mesh3d`] that has the attributes `JOINT_INDEX` and `JOINT_WEIGHT`, and without Bevy's
/// `SkinnedMesh`. Until the poses are there, the set is not drawn.
///
/// It works with any material whose vertex stage is Bevy's, in the picture, in prepasses with their
/// motion vectors, and in shadow maps; with levels of detail that have joints, too, with impostors,
/// ranges and [`Wind`](crate::render::Wind). The spheres by which instances are culled hold every
/// pose. A [`CullingRadius`](crate::render::CullingRadius) must, too; a mesh whose vertices are
/// only on the GPU needs one.
///
/// Rays and pointers hit meshes as they are without a pose. A vertex shader of your own gets the
/// pose from `bevy_gpu_culling::draw_animation`. Sets cannot be posed that are drawn from a
/// `MeshUniform` per survivor ([`InstanceMeshUniforms`](crate::render::InstanceMeshUniforms), a
/// vertex shader for meshes) or by meshlets ([`MeshletMesh3d`](crate::render::MeshletMesh3d)).
#[derive(Component, Reflect, Clone, Debug, PartialEq)]
#[reflect(Component, Default, Clone, PartialEq)]
pub struct InstanceAnimation {
    /// The clips. They are not saved with a world.
    #[reflect(ignore)]
    pub poses: Handle<AnimationPoses>,
    /// What each instance plays.
    pub source: AnimationSource,
    /// How long a change from clip to clip takes. The default is 0.2; with 0, it is sudden.
    pub blend_seconds: f32,
}

impl Default for InstanceAnimation {
    fn default() -> Self {
        Self {
            poses: Handle::default(),
            source: AnimationSource::default(),
            blend_seconds: 0.2,
        }
    }
}

/// Where the [`AnimationState`](super::AnimationState)s of instances come from.
#[derive(Reflect, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[reflect(Default, Clone, PartialEq)]
pub enum AnimationSource {
    /// Nowhere: all play the first clip, each at its own time.
    #[default]
    Automatic,
    /// In the set's data, from this word on. So with 0, an instance's data is its state, or begins
    /// with it.
    InData {
        /// Index of the first of two words.
        first_word: u32,
    },
}

impl AsAssetId for InstanceAnimation {
    type Asset = AnimationPoses;

    fn as_asset_id(&self) -> AssetId<AnimationPoses> {
        self.poses.id()
    }
}

impl From<Handle<AnimationPoses>> for InstanceAnimation {
    fn from(poses: Handle<AnimationPoses>) -> Self {
        Self { poses, ..default() }
    }
}

/// What an extraction reads of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::render) struct SetAnimation {
    pub poses: AssetId<AnimationPoses>,
    /// How long a change takes, in ticks.
    blend: u32,
    source: AnimationSource,
}

impl InstanceAnimation {
    /// The longest change, in seconds.
    const MAX_BLEND: f32 = 100.0;

    fn has_good_blend(&self) -> bool {
        (0.0..=Self::MAX_BLEND).contains(&self.blend_seconds)
    }

    pub(in crate::render) fn extracted(&self) -> SetAnimation {
        let seconds = if self.has_good_blend() {
            self.blend_seconds
        } else {
            0.0
        };
        SetAnimation {
            poses: self.poses.id(),
            blend: blend_ticks(seconds),
            source: self.source,
        }
    }

    /// What is wrong with it on a set that has as many words of data.
    fn problem(&self, words: u32) -> Option<String> {
        if !self.has_good_blend() {
            return Some(format!(
                "blend_seconds is {}, which must be between 0 and 100, so changes are sudden",
                self.blend_seconds
            ));
        }
        match self.source {
            AnimationSource::InData { first_word } if first_word.saturating_add(2) > words => {
                Some(format!(
                    "states are in words {first_word} and {} of the data, of which the set has {words} per instance, so \
                     all play the first clip. Give the set an AnimationState per instance (InstanceSet::with_data)",
                    first_word.saturating_add(1)
                ))
            }
            _ => None,
        }
    }
}

/// The animation of a set as its draw slots have it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::render) struct SlotAnimation {
    /// Index of the poses in the directory ([`PoseTable`](super::PoseTable)).
    poses: u32,
    /// How much poses stretch lengths at most.
    pub stretch: f32,
    blend: u32,
    source: AnimationSource,
}

impl SlotAnimation {
    /// `poses` is the place of the set's poses in the directory, and `stretch` their greatest.
    pub fn new(animation: &SetAnimation, (poses, stretch): (u32, f32)) -> Self {
        Self {
            poses,
            stretch,
            blend: animation.blend,
            source: animation.source,
        }
    }

    /// `DrawSlot::animation` in `shaders/draw/instance.wesl`, for a set with as many words of data.
    pub fn words(self, data_words: u32) -> UVec4 {
        let states = match self.source {
            AnimationSource::InData { first_word }
                if first_word.saturating_add(2) <= data_words =>
            {
                first_word + 1
            }
            _ => 0,
        };
        UVec4::new(self.poses, self.blend, states, 0)
    }
}

/// Animations that were inserted or changed, or whose set was.
type ChangedAnimation = Or<(
    Changed<InstanceAnimation>,
    Changed<GpuInstances>,
    AssetChanged<GpuInstances>,
)>;

/// Warns of animations that cannot be as they ask.
pub(in crate::render) fn warn_of_bad_animations(
    animations: Query<(Entity, &InstanceAnimation, &GpuInstances), ChangedAnimation>,
    sets: Res<Assets<InstanceSet>>,
    mut told: Local<Told<Entity>>,
) {
    for (entity, animation, instances) in &animations {
        let words = sets.get(&instances.0).map(|set| set.data_size() as u32 / 4);
        if let Some(problem) = words.and_then(|words| animation.problem(words))
            && told.is_new(entity)
        {
            warn!("InstanceAnimation on {entity}: {problem}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_that_the_data_lacks_are_automatic() {
        let with = |first_word| InstanceAnimation {
            source: AnimationSource::InData { first_word },
            ..default()
        };
        let words = |animation: &InstanceAnimation, data_words| {
            SlotAnimation::new(&animation.extracted(), (7, 1.0)).words(data_words)
        };
        assert_eq!(words(&with(0), 2), UVec4::new(7, 204, 1, 0));
        assert_eq!(words(&with(2), 4), UVec4::new(7, 204, 3, 0));
        assert_eq!(words(&with(1), 2), UVec4::new(7, 204, 0, 0));
        assert_eq!(words(&with(u32::MAX - 1), 4).z, 0);
        assert_eq!(words(&InstanceAnimation::default(), 4).z, 0);
        assert!(with(0).problem(2).is_none() && with(1).problem(2).is_some());
        assert!(with(u32::MAX - 1).problem(4).is_some());
        for blend_seconds in [-1.0, f32::NAN, 101.0] {
            let bad = InstanceAnimation {
                blend_seconds,
                ..default()
            };
            assert!(bad.problem(0).is_some());
            assert_eq!(words(&bad, 0).y, 0);
        }
    }
}
