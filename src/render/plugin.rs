//! Wiring: what the plugin adds to the main world and to the render world.

use super::{
    animation::{
        AnimationClock, AnimationPoses, InstanceAnimation, PoseTable, extract_clock, find_poses,
        warn_of_bad_animations,
    },
    batch_sets::BatchSets,
    bounds::{update_bounds, warn_of_missing_meshes},
    components::{
        AFTER_FRUSTA, CullingRadius, FreezeCulling, GpuInstances, InstanceMeshUniforms,
        NoInstanceSorting, freeze_frusta,
    },
    cpu_times::CpuClock,
    culler::{GpuCuller, init_culler},
    detach::DetachedInstance,
    draw::{
        self, DrawSet, DrawSetDepthOnly, DrawSetPrepass, redirect_wireframes, register_wireframes,
    },
    draw_slots::DrawSlots,
    expanded::ExpandedUniforms,
    extract::extract_sets,
    gpu_written::InstanceBuffers,
    impostors,
    lods::{
        self, attach_impostors, resolve_lods, warn_of_bad_details, warn_of_bad_ranges,
        warn_of_unused_impostors,
    },
    materials::{
        DrawShaders, DrawnFaces, InstancedShaders, MaterialAliases, ReshownSets, SetPipelines,
        SetPrepassPipelines, alias_materials, extract_imports, extract_reshown,
        warn_of_missing_materials,
    },
    mesh_metadata::{CompressedMeshes, find_compressed_meshes},
    mesh_spheres::{MeshSpheres, forget_changed_meshes},
    meshlets::{self, GpuMeshlets, MeshLevels, MeshletRoom, extract_meshlets, prepare_meshlets},
    occlusion::{self, InstanceOcclusion, NoOcclusionCulling, equip_cameras},
    offset::InstanceOffset,
    prepare::prepare_culling,
    record::record_culling,
    report::{CullingReport, ReportInbox, finish_culling, receive_report},
    saved, scatter, scene,
    set_asset::InstanceSetLoader,
    set_draws::SetDraws,
    settings::{GpuCullingSettings, GpuCullingSystems},
    touched::{TouchedInstances, note_touched},
    upload::{InstanceUploadProgress, UploadInbox, receive_uploads},
    views::{CameraDetail, ShadowOrigin, extract_freeze, extract_shadow_origin},
    wind::{Wind, warn_of_bad_winds},
    withheld,
};
use crate::instance::{InstanceId, InstanceSet, InstanceTransform};
use bevy::{
    asset::AssetEventSystems,
    camera::visibility::VisibilitySystems,
    core_pipeline::{
        core_3d::{AlphaMask3d, Opaque3d, Transparent3d},
        deferred::{AlphaMask3dDeferred, Opaque3dDeferred},
        prepass::{AlphaMask3dPrepass, Opaque3dPrepass},
        schedule::camera_driver,
    },
    pbr::{Shadow, Transmissive3d, collect_meshes_for_gpu_building},
    prelude::*,
    render::{
        ExtractSchedule, GpuResourceAppExt, Render, RenderApp, RenderStartup, RenderSystems,
        extract_component::ExtractComponentPlugin,
        extract_resource::extract_resource,
        render_phase::{AddRenderCommand, DrawFunctions},
        renderer::{RenderGraph, RenderGraphSystems},
    },
};

/// Present in each world to which the plugin has added its part.
#[derive(Resource)]
struct Installed;

/// Whether the renderer has the phases into which sets are queued.
pub(crate) fn has_phases(app: &App) -> bool {
    let render_world = app.get_sub_app(RenderApp).map(SubApp::world);
    render_world.is_some_and(|world| {
        world.contains_resource::<DrawFunctions<Opaque3d>>()
            && world.contains_resource::<DrawFunctions<Transmissive3d>>()
            && world.contains_resource::<DrawFunctions<Shadow>>()
    })
}

/// Adds the main world's part of the plugin. Returns false if it was added before.
pub(crate) fn install_main(app: &mut App, settings: GpuCullingSettings) -> bool {
    if app.world().contains_resource::<Installed>() {
        return false;
    }
    app.insert_resource(Installed);
    app.init_asset::<InstanceSet>()
        .init_asset::<AnimationPoses>()
        .register_asset_loader(InstanceSetLoader)
        .register_type::<GpuInstances>()
        .register_type::<CullingRadius>()
        .register_type::<InstanceOffset>()
        .register_type::<FreezeCulling>()
        .register_type::<InstanceMeshUniforms>()
        .register_type::<NoInstanceSorting>()
        .register_type::<InstanceOcclusion>()
        .register_type::<NoOcclusionCulling>()
        .register_type::<CameraDetail>()
        .register_type::<Wind>()
        .register_type::<InstanceAnimation>()
        .register_type::<DetachedInstance>()
        .register_type::<GpuCullingSettings>()
        .register_type::<CullingReport>()
        .register_type::<InstanceTransform>()
        .register_type::<InstanceId>()
        .register_type::<InstanceUploadProgress>()
        .insert_resource(settings)
        .init_resource::<CullingReport>()
        .init_resource::<ReportInbox>()
        .init_resource::<CpuClock>()
        .init_resource::<UploadInbox>()
        .init_resource::<MeshSpheres>()
        .init_resource::<CompressedMeshes>()
        .init_resource::<PoseTable>()
        .add_message::<InstanceUploadProgress>()
        .add_plugins((
            ExtractComponentPlugin::<InstanceOcclusion>::default(),
            ExtractComponentPlugin::<CameraDetail>::default(),
        ))
        .configure_sets(
            PostUpdate,
            GpuCullingSystems::UpdateBounds
                .after(AFTER_FRUSTA)
                // As Bevy's own bounds do: an edited asset is seen in the frame of the edit.
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
                (
                    (
                        attach_impostors,
                        forget_changed_meshes,
                        resolve_lods,
                        find_poses,
                        update_bounds,
                    )
                        .chain(),
                    find_compressed_meshes,
                )
                    .run_if(resource_exists::<Assets<Mesh>>),
                warn_of_missing_meshes,
                warn_of_bad_ranges,
                warn_of_bad_details,
                warn_of_unused_impostors,
                warn_of_bad_winds,
                warn_of_bad_animations,
                freeze_frusta,
                equip_cameras,
            )
                .in_set(GpuCullingSystems::UpdateBounds),
        );
    lods::build(app);
    impostors::build(app);
    meshlets::build(app);
    #[cfg(feature = "picking")]
    super::picking::build(app);
    scatter::build(app);
    scene::build(app);
    saved::build(app);
    #[cfg(feature = "testing")]
    app.init_resource::<super::verify::Verifier>();
    true
}

/// Adds what needs plugins that may be added after this one.
#[cfg(feature = "gltf")]
pub(crate) fn finish_main(app: &mut App) {
    scene::install_gltf(app);
}

/// Adds the render world's part of the plugin, once. The worlds share inboxes and clock.
pub(crate) fn install_render(app: &mut App) {
    let shaders = DrawShaders::load(app);
    let world = app.world();
    let inbox = world.resource::<ReportInbox>().clone();
    let uploads = world.resource::<UploadInbox>().clone();
    let clock = world.resource::<CpuClock>().clone();
    let settings = world.resource::<GpuCullingSettings>().clone();
    #[cfg(feature = "testing")]
    let verifier = world.resource::<super::verify::Verifier>().clone();
    let Some(render_app) = app.get_sub_app_mut(RenderApp) else {
        return;
    };
    if render_app.world().contains_resource::<Installed>() {
        return;
    }
    #[cfg(feature = "testing")]
    super::verify::build_render(render_app, verifier);
    withheld::build_render(render_app);
    draw::build_render(render_app);
    occlusion::build_render(render_app);
    scatter::build_render(render_app);
    // The settings are inserted, too: the renderer starts before the first extraction.
    render_app
        .insert_resource(Installed)
        .insert_resource(settings)
        .insert_resource(inbox)
        .insert_resource(clock)
        .insert_resource(uploads)
        .insert_resource(shaders)
        .init_resource::<GpuCuller>()
        .init_resource::<InstanceBuffers>()
        .init_resource::<MeshletRoom>()
        .init_resource::<MeshLevels>()
        .init_resource::<CompressedMeshes>()
        .init_resource::<PoseTable>()
        .init_resource::<AnimationClock>()
        .init_resource::<InstancedShaders>()
        .init_resource::<MaterialAliases>()
        .init_resource::<ReshownSets>()
        .init_resource::<ShadowOrigin>()
        .init_resource::<TouchedInstances>()
        // They belong to a device: Bevy makes them again when it recovers from a lost one.
        .init_gpu_resource::<GpuMeshlets>()
        .init_gpu_resource::<DrawnFaces>()
        .init_gpu_resource::<BatchSets>()
        .init_gpu_resource::<SetDraws>()
        .init_gpu_resource::<DrawSlots>()
        .init_gpu_resource::<ExpandedUniforms>()
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
                GpuCullingSystems::Prepare
                    .after(RenderSystems::PrepareResources)
                    .before(RenderSystems::PrepareResourcesBatchPhases),
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
                extract_resource::<GpuCullingSettings, RenderApp, ()>.before(extract_sets),
                extract_resource::<MeshLevels, RenderApp, ()>,
                extract_resource::<CompressedMeshes, RenderApp, ()>,
                extract_resource::<PoseTable, RenderApp, ()>,
                extract_clock,
                (extract_sets, extract_meshlets).chain(),
                extract_imports,
                extract_reshown,
                extract_freeze,
                extract_shadow_origin,
            )
                .in_set(GpuCullingSystems::Extract),
        )
        .add_systems(
            Render,
            (
                alias_materials.in_set(GpuCullingSystems::AliasMaterials),
                note_touched
                    .in_set(RenderSystems::PrepareMeshes)
                    .before(collect_meshes_for_gpu_building),
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
                finish_culling.in_set(GpuCullingSystems::Finish),
            ),
        );
}
