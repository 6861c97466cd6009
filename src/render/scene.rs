//! Scenes as instances: each mesh of a loaded scene becomes a set's entity.
//!
//! 1. `component`: [`InstanceScene`], and the event when it is spawned.
//! 2. `parts`: what a scene's world has to draw, and what a set cannot have of it.
//! 3. `gltf`: nodes of glTF files that have instances themselves.
//! 4. `spawn`: spawns the parts when the scene is loaded, and again when it changes.

mod component;
#[cfg(feature = "gltf")]
mod gltf;
mod parts;
mod spawn;

pub(super) use component::ScenePart;
pub use component::{InstanceScene, InstanceSceneReady};

#[cfg(feature = "gltf")]
pub(super) use gltf::install as install_gltf;

#[cfg(feature = "animation")]
use super::animation::{BakeAnimation, BakedPoses, bake_animations, forget_baked};
#[cfg(feature = "animation")]
use bevy::animation::AnimationClip;
use bevy::{app::SpawnScene, prelude::*};

/// Adds the types and systems of the main world that spawn scenes.
pub(super) fn build(app: &mut App) {
    app.register_type::<InstanceScene>()
        .register_type::<ScenePart>()
        .register_type::<InstanceSceneReady>()
        .add_systems(
            SpawnScene,
            spawn::spawn_scenes.run_if(resource_exists::<Assets<WorldAsset>>),
        );
    #[cfg(feature = "animation")]
    app.register_type::<BakeAnimation>()
        .init_resource::<BakedPoses>()
        .add_systems(
            SpawnScene,
            (
                forget_baked.before(spawn::spawn_scenes),
                bake_animations.after(spawn::spawn_scenes),
            )
                .run_if(resource_exists::<Assets<AnimationClip>>),
        );
    #[cfg(feature = "gltf")]
    gltf::build(app);
}
