//! The plugin's settings, and the sets of its systems.

use crate::cull::{Compaction, CullerOptions, CullingTier};
use bevy::{prelude::*, render::extract_resource::ExtractResource};

/// Adds GPU-driven culling of instance sets ([`GpuInstances`]) to an app.
///
/// ```no_run
/// use bevy::prelude::*;
/// use bevy_gpu_culling::prelude::*;
///
/// App::new().add_plugins((DefaultPlugins, GpuCullingPlugin::default())).run();
/// ```
///
/// The fields are the first values of [`GpuCullingSettings`], which can be changed at run time.
#[derive(Clone, Debug, Default)]
pub struct GpuCullingPlugin {
    /// The tier; `None`, the default, takes the best that the adapter supports.
    pub tier: Option<CullingTier>,
    /// How visible instances become lists. The default, [`Compaction::Auto`], takes the best ordered one for the
    /// frame's count; see [`Compaction`] for the others.
    pub compaction: Compaction,
    /// Keeps bounds checks in the compute kernels, for debugging. The default is `false`.
    pub shader_checks: bool,
    /// Survivor ids that each arena has room for from the start; `None`, the default, is 16,777,216 (64 MiB), or
    /// fewer when so many cannot survive. An arena that proves too small grows, with a warning.
    pub survivor_capacity: Option<u32>,
    /// Bytes of new sets that one frame uploads at most, so that it does not wait for a large one; `None`, the default,
    /// is 268,435,456 (256 MiB: 16 million instances). The first frame brings a quarter of it, the next half; at least
    /// 1,024 instances come in any frame. A new set is drawn as far as it has arrived, see [`InstanceUploadProgress`];
    /// changes to a set that is there come at once.
    pub upload_budget: Option<u64>,
}

/// Settings of the culling. A change takes effect in the next frame; one from or to the tier `Cpu` uploads every set
/// again (and loses those that were dropped on the CPU: [`InstanceSet::asset_usage`]).
#[derive(Resource, ExtractResource, Reflect, Clone, Debug, Default, PartialEq)]
#[reflect(Resource, Default, Clone, PartialEq)]
pub struct GpuCullingSettings {
    /// See [`GpuCullingPlugin::tier`].
    pub tier: Option<CullingTier>,
    /// See [`GpuCullingPlugin::compaction`].
    pub compaction: Compaction,
    /// See [`GpuCullingPlugin::shader_checks`].
    pub shader_checks: bool,
    /// See [`GpuCullingPlugin::survivor_capacity`].
    pub survivor_capacity: Option<u32>,
    /// See [`GpuCullingPlugin::upload_budget`].
    pub upload_budget: Option<u64>,
}

impl GpuCullingPlugin {
    /// [`Self::upload_budget`] where it is `None`: 256 MiB.
    pub const DEFAULT_UPLOAD_BUDGET: u64 = 256 << 20;

    /// The first settings.
    pub(crate) fn settings(&self) -> GpuCullingSettings {
        GpuCullingSettings {
            tier: self.tier,
            compaction: self.compaction,
            shader_checks: self.shader_checks,
            survivor_capacity: self.survivor_capacity,
            upload_budget: self.upload_budget,
        }
    }
}

impl GpuCullingSettings {
    pub(super) fn options(&self) -> CullerOptions {
        let default = CullerOptions::default();
        CullerOptions {
            tier: self.tier,
            compaction: self.compaction,
            shader_checks: self.shader_checks,
            survivor_capacity: self.survivor_capacity.unwrap_or(default.survivor_capacity),
            ..default
        }
    }

    /// Bytes of new sets that a frame may upload.
    pub(super) fn upload_bytes(&self) -> u64 {
        self.upload_budget
            .unwrap_or(GpuCullingPlugin::DEFAULT_UPLOAD_BUDGET)
    }

    /// Whether the same culler serves both.
    pub(super) fn same_culler(&self, other: &Self) -> bool {
        let same_budget = Self {
            upload_budget: self.upload_budget,
            ..other.clone()
        };
        *self == same_budget
    }
}

/// What the plugin's systems do, in order.
#[derive(SystemSet, Clone, Debug, PartialEq, Eq, Hash)]
pub enum GpuCullingSystems {
    /// `PreUpdate`: counters of some frames ago arrive in [`CullingReport`] and the diagnostics, upload progress in
    /// [`InstanceUploadProgress`]; sets that are wanted on the GPU only are released.
    Report,
    /// `PostUpdate`: the `Aabb` of sets, frozen frusta.
    UpdateBounds,
    /// `ExtractSchedule`: changed instances are uploaded.
    Extract,
    /// `Render`: materials get our vertex stage and draw functions.
    AliasMaterials,
    /// `Render`: views and sets become the frame's tables.
    Prepare,
    /// `RenderGraph`, before [`Record`](Self::Record): compute passes of yours that write instances
    /// ([`InstanceBuffers`]). Nothing of the plugin's runs in it.
    WriteInstances,
    /// `RenderGraph`, before the cameras: the compute passes.
    Record,
    /// `RenderGraph`, after the submit: counters are asked for.
    Finish,
}
