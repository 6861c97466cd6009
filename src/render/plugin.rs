//! The plugin: wiring only.

use super::{
    bounds::{update_bounds, warn_of_missing_meshes},
    buffers::InstanceBuffers,
    clock::CpuClock,
    components::{
        AFTER_FRUSTA, CullingRadius, FreezeCulling, GpuInstances, InstanceMeshUniforms,
        freeze_frusta,
    },
    draw::{DrawSet, DrawSetDepthOnly, DrawSetPrepass},
    extract::{GpuCuller, extract_sets, init_culler},
    imports::{InstancedShaders, extract_imports},
    material::{MaterialAliases, alias_materials},
    meshlets::{self, DrawnFaces, GpuMeshlets, MeshletRoom, extract_meshlets, prepare_meshlets},
    pipeline::{DrawShaders, SetPipelines, SetPrepassPipelines},
    prepare::{SetDraws, prepare_culling, warn_of_missing_materials},
    record::{CullingReport, ReportInbox, finish_culling, receive_report, record_culling},
    slots::DrawSlots,
    tuning::TuningSource,
    uniforms::SurvivorUniforms,
    upload::{InstanceUploadProgress, UploadInbox, receive_uploads},
    verify::Verifier,
    wireframe::{redirect_wireframes, register_wireframes},
};
use crate::{
    cull::{Compaction, CullerOptions, CullingTier},
    instance::InstanceSet,
};
use bevy::{
    asset::AssetEventSystems,
    camera::visibility::VisibilitySystems,
    core_pipeline::{
        core_3d::{AlphaMask3d, Opaque3d, Transparent3d},
        deferred::{AlphaMask3dDeferred, Opaque3dDeferred},
        prepass::{AlphaMask3dPrepass, Opaque3dPrepass},
        schedule::camera_driver,
    },
    pbr::{Shadow, Transmissive3d},
    prelude::*,
    render::{
        ExtractSchedule, GpuResourceAppExt, Render, RenderApp, RenderStartup, RenderSystems,
        extract_resource::{ExtractResource, extract_resource},
        render_phase::{AddRenderCommand, DrawFunctions},
        renderer::{RenderGraph, RenderGraphSystems},
    },
};

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
    /// The source of [`Compaction::Auto`]'s thresholds. With the feature `tune`, the default is the
    /// tuning that is kept for this adapter, if any; without it, a fixed rule. The log says which one
    /// is used.
    pub tuning: TuningSource,
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
    /// See [`GpuCullingPlugin::tuning`].
    pub tuning: TuningSource,
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

/// In each world: the plugin has added to it what it adds.
#[derive(Resource)]
struct Installed;

impl Plugin for GpuCullingPlugin {
    /// What is there already is used at once. The rest waits for `finish`, so that the plugin may come before others.
    fn build(&self, app: &mut App) {
        if app.world().contains_resource::<AssetServer>() {
            self.install_main(app);
            if has_phases(app) {
                self.install_render(app);
            }
        }
    }

    fn finish(&self, app: &mut App) {
        if !app.world().contains_resource::<AssetServer>() {
            error!("GpuCullingPlugin does nothing: the app has no AssetPlugin. Add DefaultPlugins");
            return;
        }
        self.install_main(app);
        if has_phases(app) {
            self.install_render(app);
        } else if app.get_sub_app(RenderApp).is_some() {
            warn!("GpuCullingPlugin: the app has no PbrPlugin; no GpuInstances are drawn. Add it");
        } else {
            warn!("GpuCullingPlugin: the app has no renderer; no GpuInstances are drawn");
        }
    }
}

/// Whether the renderer has the phases into which sets are queued.
fn has_phases(app: &App) -> bool {
    let render_world = app.get_sub_app(RenderApp).map(SubApp::world);
    render_world.is_some_and(|world| {
        world.contains_resource::<DrawFunctions<Opaque3d>>()
            && world.contains_resource::<DrawFunctions<Transmissive3d>>()
            && world.contains_resource::<DrawFunctions<Shadow>>()
    })
}

impl GpuCullingPlugin {
    fn settings(&self) -> GpuCullingSettings {
        GpuCullingSettings {
            tier: self.tier,
            compaction: self.compaction,
            tuning: self.tuning,
            shader_checks: self.shader_checks,
            survivor_capacity: self.survivor_capacity,
            upload_budget: self.upload_budget,
        }
    }

    /// What the plugin adds to the main world, once.
    fn install_main(&self, app: &mut App) {
        if app.world().contains_resource::<Installed>() {
            return;
        }
        app.insert_resource(Installed);
        app.init_asset::<InstanceSet>()
            .register_type::<GpuInstances>()
            .register_type::<CullingRadius>()
            .register_type::<FreezeCulling>()
            .register_type::<InstanceMeshUniforms>()
            .register_type::<GpuCullingSettings>()
            .insert_resource(self.settings())
            .init_resource::<CullingReport>()
            .init_resource::<ReportInbox>()
            .init_resource::<Verifier>()
            .init_resource::<CpuClock>()
            .init_resource::<UploadInbox>()
            .add_message::<InstanceUploadProgress>()
            .configure_sets(
                PostUpdate,
                GpuCullingSystems::UpdateBounds
                    .after(AFTER_FRUSTA)
                    // As Bevy's own bounds: an edited asset is seen in the frame of the edit.
                    .after(AssetEventSystems)
                    .before(VisibilitySystems::CheckVisibility),
            )
            .add_systems(
                PreUpdate,
                (receive_report, receive_uploads).in_set(GpuCullingSystems::Report),
            )
            .add_systems(
                PostUpdate,
                (
                    update_bounds.run_if(resource_exists::<Assets<Mesh>>),
                    warn_of_missing_meshes,
                    freeze_frusta,
                )
                    .in_set(GpuCullingSystems::UpdateBounds),
            );
        meshlets::build(app);
        crate::diagnostics::register(app);
    }

    /// What it adds to the render world, once. The worlds share what goes between them.
    fn install_render(&self, app: &mut App) {
        let shaders = DrawShaders::load(app);
        let world = app.world();
        let (inbox, uploads) = (
            world.resource::<ReportInbox>().clone(),
            world.resource::<UploadInbox>().clone(),
        );
        let (clock, verifier) = (
            world.resource::<CpuClock>().clone(),
            world.resource::<Verifier>().clone(),
        );
        let settings = world.resource::<GpuCullingSettings>().clone();
        let Some(render_app) = app.get_sub_app_mut(RenderApp) else {
            return;
        };
        if render_app.world().contains_resource::<Installed>() {
            return;
        }
        // The render world starts before the first extraction.
        render_app
            .insert_resource(Installed)
            .insert_resource(settings)
            .insert_resource(inbox)
            .insert_resource(verifier)
            .insert_resource(clock)
            .insert_resource(uploads)
            .insert_resource(shaders)
            .init_resource::<GpuCuller>()
            .init_resource::<InstanceBuffers>()
            .init_resource::<MeshletRoom>()
            .init_resource::<InstancedShaders>()
            .init_resource::<MaterialAliases>()
            // Of one device: made again when Bevy recovers from a lost one.
            .init_gpu_resource::<GpuMeshlets>()
            .init_gpu_resource::<DrawnFaces>()
            .init_gpu_resource::<SetDraws>()
            .init_gpu_resource::<DrawSlots>()
            .init_gpu_resource::<SurvivorUniforms>()
            .init_gpu_resource::<SetPipelines>()
            .init_gpu_resource::<SetPrepassPipelines>()
            .add_render_command::<Opaque3d, DrawSet>()
            .add_render_command::<AlphaMask3d, DrawSet>()
            .add_render_command::<Transmissive3d, DrawSet>()
            .add_render_command::<Transparent3d, DrawSet>()
            .add_render_command::<Opaque3dPrepass, DrawSetPrepass>()
            .add_render_command::<Opaque3dPrepass, DrawSetDepthOnly>()
            .add_render_command::<AlphaMask3dPrepass, DrawSetPrepass>()
            .add_render_command::<Opaque3dDeferred, DrawSetPrepass>()
            .add_render_command::<AlphaMask3dDeferred, DrawSetPrepass>()
            .add_render_command::<Shadow, DrawSetPrepass>()
            .add_render_command::<Shadow, DrawSetDepthOnly>()
            .configure_sets(
                Render,
                (
                    GpuCullingSystems::AliasMaterials
                        .after(RenderSystems::PrepareAssets)
                        .before(RenderSystems::PrepareMeshes),
                    GpuCullingSystems::Prepare.in_set(RenderSystems::PrepareBindGroups),
                ),
            )
            .configure_sets(
                RenderGraph,
                (
                    GpuCullingSystems::WriteInstances
                        .in_set(RenderGraphSystems::Render)
                        .before(GpuCullingSystems::Record),
                    GpuCullingSystems::Record
                        .in_set(RenderGraphSystems::Render)
                        .before(camera_driver),
                    GpuCullingSystems::Finish.in_set(RenderGraphSystems::Finish),
                ),
            )
            .add_systems(RenderStartup, (init_culler, register_wireframes))
            .add_systems(
                ExtractSchedule,
                (
                    extract_resource::<GpuCullingSettings, ()>.before(extract_sets),
                    (extract_sets, extract_meshlets).chain(),
                    extract_imports,
                    super::views::extract_freeze,
                )
                    .in_set(GpuCullingSystems::Extract),
            )
            .add_systems(
                Render,
                (
                    alias_materials.in_set(GpuCullingSystems::AliasMaterials),
                    redirect_wireframes
                        .after(RenderSystems::QueueMeshes)
                        .before(RenderSystems::PhaseSort),
                    (prepare_culling, prepare_meshlets, warn_of_missing_materials)
                        .chain()
                        .in_set(GpuCullingSystems::Prepare),
                ),
            )
            .add_systems(
                RenderGraph,
                (
                    record_culling.in_set(GpuCullingSystems::Record),
                    (finish_culling, super::verify::verify_survivors)
                        .chain()
                        .in_set(GpuCullingSystems::Finish),
                ),
            );
    }
}
