//! The plugin's settings, and the sets of its systems.

use super::tuning::TuningSource;
use crate::cull::{Compaction, CullerOptions, CullingTier, meshlets::MeshletExpansion};
use bevy::{
    prelude::*,
    render::{RenderApp, extract_resource::ExtractResource},
};

/// Adds GPU-driven culling of instance sets ([`GpuInstances`](crate::render::GpuInstances)) to an
/// app.
///
/// ```no_run
/// use bevy::prelude::*;
/// use bevy_gpu_culling::prelude::*;
///
/// App::new().add_plugins((DefaultPlugins, GpuCullingPlugin::default())).run();
/// ```
///
/// Settings other than the defaults:
///
/// ```
/// # use bevy_gpu_culling::prelude::*;
/// let plugin = GpuCullingPlugin::from(GpuCullingSettings {
///     lod_pixels: 0.5,
///     ..Default::default()
/// });
/// ```
#[derive(Clone, Debug, Default)]
pub struct GpuCullingPlugin {
    /// The initial settings.
    pub settings: GpuCullingSettings,
}

impl From<GpuCullingSettings> for GpuCullingPlugin {
    fn from(settings: GpuCullingSettings) -> Self {
        Self { settings }
    }
}

/// Settings of the culling. A change takes effect in the next frame.
///
/// A change from or to the tier `Cpu` uploads every set again. It loses sets that were dropped on
/// the CPU ([`InstanceSet::asset_usage`](crate::instance::InstanceSet::asset_usage)).
#[derive(Resource, ExtractResource, Reflect, Clone, Debug, PartialEq)]
#[extract_app(RenderApp)]
#[reflect(Resource, Default, Clone, PartialEq)]
pub struct GpuCullingSettings {
    /// The tier. `None`, the default, takes the best that the adapter supports.
    pub tier: Option<CullingTier>,
    /// How visible instances become lists. The default, [`Compaction::Auto`], takes the best
    /// ordered one for the frame's number of tests; see [`Compaction`] for the others.
    pub compaction: Compaction,
    /// How visible instances of meshes of meshlets ([`MeshletMesh3d`]) become visible meshlets. The
    /// default, [`MeshletExpansion::Auto`], divides. All ways draw the same.
    /// [`CullingReport::expansion`] says which one is in use.
    ///
    /// [`MeshletMesh3d`]: crate::render::MeshletMesh3d
    /// [`CullingReport::expansion`]: crate::render::CullingReport::expansion
    pub expansion: MeshletExpansion,
    /// The source of [`Compaction::Auto`]'s thresholds. With the feature `tune`, the default is the
    /// tuning that is kept for this adapter, if any; without it, a fixed rule. The log says which
    /// one is used.
    pub tuning: TuningSource,
    /// Whether the compute kernels have bounds checks, for debugging. The default is `false`.
    pub shader_checks: bool,
    /// Whether a small scene is culled at the start, and compared with the CPU. If a tier's kernels
    /// cull it wrongly, the next lower tier is taken, and the log says so. It waits for the GPU
    /// once. In a browser, which cannot wait, nothing is tested. The default is `false`.
    pub self_test: bool,
    /// Number of survivor ids that each arena has room for from the start. `None`, the default, is
    /// 16,777,216 (64 MiB), or fewer if there are fewer tests. An arena that proves too small
    /// grows, and logs a warning.
    pub survivor_capacity: Option<u32>,
    /// Largest number of bytes of new sets that one frame uploads, so that no frame waits for a
    /// large set. `None`, the default, is 268,435,456 (256 MiB: 16 million instances). The first
    /// frame uploads a quarter of it, the next half, and every frame at least 1,024 instances. The
    /// part of a new set that has arrived is drawn, see
    /// [`InstanceUploadProgress`](crate::render::InstanceUploadProgress). Changes of sets that have
    /// arrived are not limited.
    pub upload_budget: Option<u64>,
    /// The greatest error, in pixels, with which cameras draw levels of detail
    /// ([`InstanceLods`](crate::render::InstanceLods)). 0 draws full meshes. The default is 1.
    pub lod_pixels: f32,
    /// The same for shadow views, in pixels of the camera that their light is seen from. The
    /// default is 2.
    pub shadow_lod_pixels: f32,
    /// Instances whose bounding sphere is seen with a diameter of less than this number of pixels
    /// are not drawn, in cameras and shadow views. 0, the default, draws every size. Sets with
    /// [`InstanceLods::fade`](crate::render::InstanceLods::fade) fade away in cameras before.
    pub min_pixels: f32,
    /// Number of instances, in all sets with levels of detail, from which cameras without a prepass
    /// draw the finer half of the levels of all sets in a separate pass first, so that near
    /// instances of one set hide far ones of another before these are shaded. It needs two such
    /// sets or more, of at least 4,096 instances on average; sets with
    /// [`NoInstanceSorting`](crate::render::NoInstanceSorting) do not count. The default is
    /// 262,144; `u32::MAX` always draws set after set, which suits GPUs that draw in tiles.
    pub near_levels_from: u32,
    /// Colors what views that hide instances draw
    /// ([`InstanceOcclusion`](crate::render::InstanceOcclusion)), for debugging: green what they
    /// draw first, orange what is late. It multiplies the vertex colors of meshes that have them,
    /// in main passes; the main pass of a camera with a prepass draws both together, in their own
    /// colors. The default is `false`.
    pub color_occlusion: bool,
}

impl Default for GpuCullingSettings {
    fn default() -> Self {
        Self {
            tier: None,
            compaction: Compaction::default(),
            expansion: MeshletExpansion::default(),
            tuning: TuningSource::default(),
            shader_checks: false,
            self_test: false,
            survivor_capacity: None,
            upload_budget: None,
            lod_pixels: 1.0,
            shadow_lod_pixels: 2.0,
            min_pixels: 0.0,
            near_levels_from: 1 << 18,
            color_occlusion: false,
        }
    }
}

impl GpuCullingSettings {
    /// The budget if [`Self::upload_budget`] is `None`: 256 MiB.
    pub const DEFAULT_UPLOAD_BUDGET: u64 = 256 << 20;

    /// The engine's options.
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

    /// Number of bytes of new sets that a frame may upload.
    pub(super) fn upload_bytes(&self) -> u64 {
        (self.upload_budget).unwrap_or(Self::DEFAULT_UPLOAD_BUDGET)
    }

    /// Whether one culler serves both settings.
    pub(super) fn same_culler(&self, other: &Self) -> bool {
        let of_culler = |settings: &Self| {
            let checks = (settings.shader_checks, settings.self_test);
            let compaction = (settings.compaction, settings.tuning);
            (
                settings.tier,
                compaction,
                checks,
                settings.survivor_capacity,
            )
        };
        of_culler(self) == of_culler(other)
    }
}

/// The sets of the plugin's systems, in order.
#[derive(SystemSet, Clone, Debug, PartialEq, Eq, Hash)]
pub enum GpuCullingSystems {
    /// `PreUpdate`: counters of an earlier frame arrive in
    /// [`CullingReport`](crate::render::CullingReport) and in the diagnostics, upload progress as
    /// [`InstanceUploadProgress`](crate::render::InstanceUploadProgress). Sets that are wanted only
    /// on the GPU are released.
    Report,
    /// `PostUpdate`: the `Aabb` of sets, frozen frusta.
    UpdateBounds,
    /// `ExtractSchedule`: changed instances are uploaded.
    Extract,
    /// `Render`: materials get our vertex stage and draw functions.
    AliasMaterials,
    /// `Render`: views and sets become the frame's tables.
    Prepare,
    /// `RenderGraph`, before [`Record`](Self::Record): your compute passes that write instances
    /// ([`InstanceBuffers`](crate::render::InstanceBuffers)). The plugin fills each
    /// [`Scatter`](crate::render::Scatter) there.
    WriteInstances,
    /// `RenderGraph`, before the cameras: the compute passes of the culling.
    Record,
    /// `Core3d`, right before `main_opaque_pass_3d`: the near levels of detail of all sets are
    /// drawn, if they [are drawn first](GpuCullingSettings::near_levels_from).
    DrawNearLevels,
    /// `Core3d`, between `main_opaque_pass_3d` and the passes of what is transmissive or
    /// transparent: cameras with [`InstanceOcclusion`](crate::render::InstanceOcclusion) and
    /// without a prepass draw what is late. Color and depth have all opaque and masked instances
    /// only after it, so order your systems that read them after this set.
    DrawLate,
    /// `RenderGraph`, after the submit: the readback of counters starts.
    Finish,
}
