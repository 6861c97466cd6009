//! GPU-driven culling for Bevy: one entity draws a thousand to a hundred million instances.
//!
//! Add [`GpuCullingPlugin`](prelude::GpuCullingPlugin), and put an
//! [`InstanceSet`](prelude::InstanceSet) into [`GpuInstances`](prelude::GpuInstances) on an entity
//! with a mesh and any material. In each frame the GPU decides for each view which instances are
//! drawn. The CPU does the same work for a hundred instances and for a hundred million.
//!
//! [`cull`] shows a frame of the engine, [`render`] how it is part of Bevy's.
//!
//! # Rooms
//!
//! * [`instance`]: sets of instances as plain data.
//! * [`meshlet`]: meshes cut into meshlets, as plain data.
//! * [`cull`]: the engine. It needs wgpu, glam and bytemuck, and no Bevy (`--no-default-features`).
//! * [`render`]: the Bevy half.
//! * [`diagnostics`]: counters, GPU times, the overlay.
//!
//! # Features
//!
//! * `bevy` (default): the plugin.
//! * `meshlets` (default): building meshlets, and their files.
//! * `overlay` (default): [`CullingOverlayPlugin`](prelude::CullingOverlayPlugin), on Bevy's
//!   diagnostics overlay.
//! * `tune`: [`Compaction::Auto`](cull::Compaction::Auto) measures the adapter.
#![cfg_attr(
    not(feature = "bevy"),
    allow(rustdoc::broken_intra_doc_links, reason = "the docs name the plugin")
)]

pub mod cull;
#[cfg(feature = "bevy")]
pub mod diagnostics;
pub mod instance;
pub mod meshlet;
mod parallel;
#[cfg(feature = "bevy")]
mod plugin;
#[cfg(feature = "bevy")]
pub mod render;

/// All that most apps need: `use bevy_gpu_culling::prelude::*;`
pub mod prelude {
    pub use crate::cull::{Compaction, CullingTier};
    #[cfg(feature = "overlay")]
    pub use crate::diagnostics::CullingOverlayPlugin;
    pub use crate::instance::{
        GpuWritten, InstanceSet, InstanceTransform, PackedInstance, PackedQuat,
    };
    #[cfg(feature = "bevy")]
    pub use crate::meshlet::{MeshletMesh, MeshletSettings};
    #[cfg(feature = "bevy")]
    pub use crate::render::MeshletMesh3d;
    #[cfg(all(feature = "bevy", feature = "meshlets"))]
    pub use crate::render::{BuildMeshlets, MeshletsBuilt};
    #[cfg(feature = "bevy")]
    pub use crate::render::{
        CullingRadius, CullingReport, FreezeCulling, GpuCullingPlugin, GpuCullingSettings,
        GpuCullingSystems, GpuInstances, InstanceMeshUniforms, InstanceUploadProgress,
    };
}

/// Compiles the examples of the README with the tests.
#[cfg(all(doctest, feature = "overlay"))]
#[doc = include_str!("../README.md")]
struct Readme;
