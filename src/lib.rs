//! GPU-driven culling for Bevy: one entity draws up to a hundred million instances.
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
//! Only `bevy` is on by default.
//!
//! | feature | what it adds | what it costs |
//! | --- | --- | --- |
//! | `animation` | [`BakeAnimation`](prelude::BakeAnimation): skinned scenes as instances, with their clips | Bevy's animations |
//! | `bevy` | the plugin; without it, the crate is the engine alone | |
//! | `gizmos` | [`CullingGizmosPlugin`](prelude::CullingGizmosPlugin): lines around sets, blocks and frozen frusta | Bevy's gizmos |
//! | `gltf` | instances in glTF files (`EXT_mesh_gpu_instancing`) become sets | Bevy's glTF loader |
//! | `lods` | [levels of detail](meshlet::MeshLods): another name of `meshlets` | see `meshlets` |
//! | `meshlets` | building, saving and loading [meshes of meshlets](meshlet) and [levels of detail](meshlet::MeshLods) | a C++ compiler, for meshoptimizer |
//! | `overlay` | [`CullingOverlayPlugin`](prelude::CullingOverlayPlugin): counters in Bevy's diagnostics overlay | Bevy's UI and audio crates; on Linux, ALSA's headers (`libasound2-dev`) |
//! | `picking` | [`InstanceRayCast`](prelude::InstanceRayCast), [`InstanceQuery`](prelude::InstanceQuery) and [`InstancePickingPlugin`](prelude::InstancePickingPlugin): rays, regions and pointers find individual instances | Bevy's picking crate |
//! | `serde` | `Serialize` and `Deserialize` of [`InstanceSet`](instance::InstanceSet) and [`InstanceTransform`](instance::InstanceTransform); files need no feature | |
//! | `study` | compactions and expansions that `Auto` never takes, to measure them; includes `testing` | a longer build |
//! | `testing` | internals for tests: tables, CPU twins, a check of a frame's survivors | |
//! | `tune` | [`cull::tune`]: thresholds of [`Compaction::Auto`](cull::Compaction::Auto), measured and kept per adapter | a few small crates |
#![cfg_attr(
    not(all(
        feature = "animation",
        feature = "bevy",
        feature = "gizmos",
        feature = "gltf",
        feature = "meshlets",
        feature = "overlay",
        feature = "picking",
        feature = "serde",
        feature = "tune"
    )),
    allow(
        rustdoc::broken_intra_doc_links,
        reason = "the docs name items of every feature"
    )
)]

pub mod cull;
#[cfg(feature = "bevy")]
pub mod diagnostics;
mod file_head;
pub mod instance;
pub mod meshlet;
mod parallel;
#[cfg(feature = "bevy")]
mod plugin;
#[cfg(feature = "bevy")]
pub mod render;

/// All that most apps need: `use bevy_gpu_culling::prelude::*;`
pub mod prelude {
    pub use crate::cull::{Compaction, CullingTier, Expansion, meshlets::MeshletExpansion};
    #[cfg(feature = "overlay")]
    pub use crate::diagnostics::{CullingOverlayPlugin, OverlayDetail};
    pub use crate::instance::{
        GpuWritten, InstanceError, InstanceId, InstanceRegion, InstanceSet, InstanceTransform,
        PackedInstance, PackedQuat, ScaleKind,
    };
    #[cfg(all(feature = "bevy", feature = "meshlets"))]
    pub use crate::meshlet::MeshLods;
    #[cfg(feature = "bevy")]
    pub use crate::meshlet::{LodSettings, MeshletMesh, MeshletSettings};
    #[cfg(feature = "bevy")]
    pub use crate::render::MeshletMesh3d;
    #[cfg(feature = "bevy")]
    pub use crate::render::{
        AggregateDetail, AnimationPoses, AnimationSource, AnimationState, BakeImpostor,
        CameraDetail, CullingRadius, CullingReport, DetachedInstance, FreezeCulling,
        GpuCullingPlugin, GpuCullingSettings, GpuCullingSystems, GpuInstances, ImpostorAtlas,
        ImpostorAtlas3d, ImpostorBaked, ImpostorPlugin, ImpostorSides, ImpostorStage,
        InstanceAnimation, InstanceCommands, InstanceImpostor, InstanceLod, InstanceLods,
        InstanceMeshUniforms, InstanceOcclusion, InstanceOffset, InstanceScene, InstanceSceneReady,
        InstanceTint, InstanceTintPlugin, InstanceUploadProgress, InstanceVisibilityRange, LodMesh,
        NoInstanceSorting, NoOcclusionCulling, Scatter, TintedMaterial, TuningSource, ViewKind,
        Wind,
    };
    #[cfg(feature = "animation")]
    pub use crate::render::{AnimationBaked, BakeAnimation};
    #[cfg(all(feature = "bevy", feature = "meshlets"))]
    pub use crate::render::{BuildLods, BuildMeshlets, LodsBuilt, MeshLods3d, MeshletsBuilt};
    #[cfg(feature = "gizmos")]
    pub use crate::render::{CullingGizmosPlugin, ShowCullingGizmos};
    #[cfg(feature = "picking")]
    pub use crate::render::{
        InstanceHit, InstancePickingPlugin, InstancePickingSettings, InstanceQuery, InstanceRayCast,
    };
}

/// The examples of README and guide are compiled with the tests.
#[cfg(all(doctest, feature = "bevy"))]
mod documents {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[cfg(feature = "animation")]
    #[doc = include_str!("../docs/guide/animation.md")]
    struct Animation;
    #[doc = include_str!("../docs/guide/files.md")]
    struct Files;
    #[doc = include_str!("../docs/guide/getting-started.md")]
    struct GettingStarted;
    #[doc = include_str!("../docs/guide/gltf.md")]
    struct Gltf;
    #[cfg(feature = "picking")]
    #[doc = include_str!("../docs/guide/picking.md")]
    struct Picking;
    #[cfg(feature = "meshlets")]
    #[doc = include_str!("../docs/guide/lod.md")]
    struct Lod;
    #[doc = include_str!("../docs/guide/many-meshes.md")]
    struct ManyMeshes;
    #[doc = include_str!("../docs/guide/settings.md")]
    struct Settings;
    #[doc = include_str!("../docs/guide/editing.md")]
    struct Editing;
    #[doc = include_str!("../docs/guide/everything-moves.md")]
    struct EverythingMoves;
    #[doc = include_str!("../docs/guide/large-worlds.md")]
    struct LargeWorlds;
    #[doc = include_str!("../docs/guide/testing.md")]
    struct Testing;
    #[doc = include_str!("../docs/guide/gpu-written.md")]
    struct GpuWritten;
    #[doc = include_str!("../docs/guide/scatter.md")]
    struct Scatter;
    #[doc = include_str!("../docs/guide/meshlets.md")]
    struct Meshlets;
    #[doc = include_str!("../docs/guide/materials-and-shaders.md")]
    struct MaterialsAndShaders;
    #[doc = include_str!("../docs/guide/occlusion.md")]
    struct Occlusion;
    #[cfg(feature = "gizmos")]
    #[doc = include_str!("../docs/guide/troubleshooting.md")]
    struct Troubleshooting;
}
