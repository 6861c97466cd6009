//! The Bevy half: instance sets as ordinary mesh entities, culled by the engine and drawn by Bevy's own phases.
//!
//! One frame, in order:
//!
//! 1. `bounds` (main world): the entity's `Aabb` is that of the whole set, so Bevy's own visibility decides
//!    which views see the entity at all.
//! 2. `extract`: entities with sets are noted; `upload`: changed ranges of sets, and new sets slice by slice; `buffers` has
//!    those that a compute pass of the user's writes.
//! 3. `material`: the entity's prepared material is filed once more under a private id, with our vertex stage and
//!    our draw functions, so that Bevy's systems specialise and queue the entity into every phase.
//! 4. `prepare`: all views of the frame and all sets become one [`CullFrame`](crate::cull::CullFrame).
//!    `meshlets` add which of them are drawn by meshlets.
//! 5. `record`: the stages of the compaction, once, before any camera draws.
//!    `uniforms`: a `MeshUniform` for each survivor of sets that are drawn by Bevy's own vertex stages.
//! 6. `draw`: one indirect draw for each phase item and page.
//! 7. `readback`: counters of some frames ago, for `diagnostics`.

mod bounds;
mod buffers;
mod clock;
mod components;
mod draw;
mod extract;
mod history;
mod imports;
mod material;
mod meshlets;
mod names;
mod pipeline;
mod plugin;
mod prepare;
mod record;
mod slots;
mod tuning;
mod uniforms;
mod upload;
pub mod verify;
mod views;
mod wireframe;

pub use buffers::{InstanceBuffer, InstanceBuffers};
pub use clock::{CpuStage, CpuTimes};
pub use components::{CullingRadius, FreezeCulling, GpuInstances, InstanceMeshUniforms};
pub use meshlets::MeshletMesh3d;
#[doc(hidden)]
pub use meshlets::MeshletRoom;
#[cfg(feature = "meshlets")]
pub use meshlets::{
    BuildMeshlets, MeshletBuilds, MeshletMeshLoader, MeshletMeshSaver, MeshletsBuilt,
};
pub use plugin::{GpuCullingPlugin, GpuCullingSettings, GpuCullingSystems};
pub use record::{CullingReport, MeshletReport, ViewReport};
pub use tuning::TuningSource;
pub use upload::InstanceUploadProgress;
pub use views::ViewKind;
