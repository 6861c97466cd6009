//! The Bevy half: instance sets as ordinary mesh entities, tested by the engine and drawn by
//! Bevy's own phases.
//!
//! One frame, in order:
//!
//! 1. `bounds` (main world): the entity's `Aabb` surrounds the whole set, so Bevy's own visibility
//!    decides which views see the entity at all. `lods`: which levels of detail are loaded. `scene`
//!    spawns the meshes of scenes as entities with sets.
//! 2. `extract`: the entities that have sets. `upload`: changed ranges of sets, and new sets in
//!    slices. `gpu_written`: the buffers of sets that a compute pass of the app writes.
//! 3. `materials`: the entity's prepared material is filed once more under a private id, with our
//!    vertex stage and our draw functions, so that Bevy's systems specialize and queue the entity
//!    into every phase.
//! 4. `prepare`: all views of the frame and all sets become one
//!    [`CullFrame`](crate::cull::CullFrame). `groups` makes one request of entities that are
//!    tested alike. `set_draws` is what their draws look up, with the `set_meshes`. `meshlets`
//!    decides which sets are drawn by meshlets.
//! 5. `record`: the stages of the compaction, once, before any camera draws. `expanded`: one
//!    `MeshUniform` per survivor of the sets that Bevy's own vertex stages draw.
//! 6. `draw`: one indirect draw per phase item and page. `phases` draws the sets of a phase in
//!    separate passes.
//! 7. `occlusion`: between the passes of a view that hides, the lists of what its depth does not
//!    hide.
//! 8. `report`: the counters of an earlier frame, for `diagnostics`.
//!
//! `picking` casts rays at instances, on the CPU. `detach` makes entities of instances, and back.
//!
//! `culler` holds the engine, `settings` what the app chooses. `plugin` adds everything to the app.
//! `tint` is a material for sets and meshes, and `impostors` photographs meshes for cards: each has
//! its own plugin.
//! No file imports one that imports it: resources lie below the systems that use them.

mod animation;
mod batch_sets;
mod bindings;
mod bounds;
#[cfg(feature = "meshlets")]
mod builds;
mod components;
mod compression;
mod cpu_times;
mod culler;
mod detach;
mod draw;
mod draw_slots;
mod entity_uniforms;
mod expanded;
mod extract;
mod extracted_set;
mod files;
#[cfg(feature = "gizmos")]
mod gizmos;
mod gpu;
mod gpu_written;
mod groups;
mod history;
mod impostors;
mod lods;
mod materials;
mod mesh_metadata;
mod mesh_spheres;
mod meshlets;
mod names;
mod occlusion;
mod offset;
mod phases;
#[cfg(feature = "picking")]
mod picking;
pub(crate) mod plugin;
mod prepare;
mod record;
mod report;
mod saved;
mod scatter;
mod scene;
mod set_asset;
mod set_draws;
mod set_meshes;
mod settings;
mod table_ticks;
mod tint;
mod told;
mod touched;
mod tuning;
mod upload;
#[cfg(feature = "testing")]
pub mod verify;
mod views;
mod wind;
mod withheld;

#[cfg(feature = "animation")]
pub use animation::{AnimationBaked, BakeAnimation, ClipToBake};
pub use animation::{
    AnimationError, AnimationPoses, AnimationSource, AnimationState, InstanceAnimation, PoseClip,
};
pub use components::{
    CullingRadius, FreezeCulling, GpuInstances, InstanceMeshUniforms, NoInstanceSorting,
};
#[cfg(feature = "testing")]
pub use cpu_times::running_stage;
pub use cpu_times::{CpuStage, CpuTimes};
pub use detach::{DetachedInstance, InstanceCommands};
#[cfg(feature = "gizmos")]
pub use gizmos::{CullingGizmoConfigGroup, CullingGizmosPlugin, ShowCullingGizmos};
pub use gpu_written::{InstanceBuffer, InstanceBuffers};
pub use impostors::{
    BakeImpostor, ImpostorAtlas, ImpostorAtlas3d, ImpostorAtlasLoader, ImpostorAtlasSaver,
    ImpostorBaked, ImpostorCard, ImpostorError, ImpostorMaterial, ImpostorPlugin, ImpostorSides,
    ImpostorStage,
};
pub use lods::{
    AggregateDetail, InstanceImpostor, InstanceLod, InstanceLods, InstanceVisibilityRange, LodMesh,
};
#[cfg(feature = "meshlets")]
pub use lods::{
    BuildLods, BuiltLods, LodBuilds, LodsBuilt, MeshLods3d, MeshLodsLoader, MeshLodsSaver,
};
pub use meshlets::MeshletMesh3d;
#[cfg(feature = "testing")]
pub use meshlets::MeshletRoom;
#[cfg(feature = "meshlets")]
pub use meshlets::{
    BuildMeshlets, BuiltMeshlets, MeshletBuilds, MeshletMeshLoader, MeshletMeshSaver, MeshletsBuilt,
};
pub use occlusion::{InstanceOcclusion, NoOcclusionCulling};
pub use offset::InstanceOffset;
#[cfg(feature = "picking")]
pub use picking::{
    InstanceHit, InstancePickingPlugin, InstancePickingSettings, InstanceQuery, InstanceRayCast,
};
pub use report::{
    CullingReport, FrameWork, LevelReport, MeshletReport, OcclusionReport, SetReport, ViewReport,
};
pub use scatter::{Scatter, ScatterError};
pub use scene::{InstanceScene, InstanceSceneReady};
pub use set_asset::{InstanceSetLoader, InstanceSetLoaderSettings, InstanceSetSaver};
pub use settings::{GpuCullingPlugin, GpuCullingSettings, GpuCullingSystems};
pub use tint::{InstanceTint, InstanceTintPlugin, TintedMaterial};
pub use tuning::TuningSource;
pub use upload::InstanceUploadProgress;
pub use views::{CameraDetail, ViewKind};
pub use wind::Wind;
