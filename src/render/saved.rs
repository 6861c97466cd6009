//! What the reflection of the components must know for a world to be saved and loaded.
//!
//! A handle is saved as the path of its asset, and a value without fields as `serde` writes it.
//! Each needs a registration besides the component's.

use super::animation::AnimationPoses;
use crate::{instance::InstanceSet, meshlet::MeshletMesh};
use bevy::{
    asset::ReflectHandle,
    prelude::*,
    reflect::{ReflectDeserialize, ReflectSerialize},
};
use core::ops::Range;

/// Registers what the components hold. The assets are there.
pub(super) fn build(app: &mut App) {
    app.register_asset_reflect::<InstanceSet>()
        .register_asset_reflect::<AnimationPoses>()
        .register_asset_reflect::<MeshletMesh>()
        // Bevy does not register it for its `WorldAssetRoot`.
        .register_type::<Handle<WorldAsset>>()
        .register_type_data::<Handle<WorldAsset>, ReflectHandle>()
        // Nor its shaders.
        .register_type::<Handle<Shader>>()
        .register_type_data::<Handle<Shader>, ReflectHandle>();
    #[cfg(feature = "meshlets")]
    app.register_asset_reflect::<crate::meshlet::MeshLods>();
    // Parts of levels of detail, and the margins of ranges.
    app.register_type::<Range<u32>>()
        .register_type_data::<Range<u32>, ReflectSerialize>()
        .register_type_data::<Range<u32>, ReflectDeserialize>()
        .register_type::<Range<f32>>()
        .register_type_data::<Range<f32>, ReflectSerialize>()
        .register_type_data::<Range<f32>, ReflectDeserialize>();
}
