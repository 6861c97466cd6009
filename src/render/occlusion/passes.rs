//! The late lists between a view's passes, and the draws of what is late.

use super::{
    component::InstanceOcclusion, lists::DrawnLists, pause::OcclusionPauses, views::HidingWay,
};
use crate::{
    cull::{DrawList, Gpu},
    render::{
        batch_sets::BatchSets,
        cpu_times::{CpuClock, CpuStage},
        culler::GpuCuller,
        meshlets::GpuMeshlets,
        phases::{CameraTargets, OpaquePhases, draw_items},
        record::TimedPasses,
        set_draws::SetDraws,
        settings::GpuCullingSystems,
    },
};
use bevy::{
    core_pipeline::{
        Core3d, Core3dSystems,
        core_3d::{main_opaque_pass_3d, main_transparent_pass_3d},
        deferred::node::late_deferred_prepass,
        mip_generation::experimental::depth::early_downsample_depth,
        prepass::node::late_prepass,
    },
    ecs::system::SystemParam,
    log::error,
    pbr::{
        EARLY_SHADOW_PASS, LATE_SHADOW_PASS, Shadow, ShadowView, ViewLightEntities,
        main_transmissive_pass_3d, per_view_shadow_pass, shared_shadow_pass,
    },
    prelude::*,
    render::{
        Render, RenderSystems,
        diagnostic::RecordDiagnostics,
        render_phase::ViewBinnedRenderPhases,
        render_resource::{RenderPassDescriptor, StoreOp, TextureUsages},
        renderer::{RenderContext, RenderDevice, RenderQueue, ViewQuery},
        view::{ExtractedView, RetainedViewEntity},
    },
};

/// Adds the systems to the render world.
pub(in crate::render) fn build_render(render_app: &mut SubApp) {
    render_app
        .init_resource::<DrawnLists>()
        .init_resource::<OcclusionPauses>()
        .add_systems(
            Render,
            // As Bevy does for its own occlusion culling, before depth textures are made.
            read_depth
                .in_set(RenderSystems::PrepareViews)
                .ambiguous_with(RenderSystems::PrepareViews),
        )
        .add_systems(
            Core3d,
            (
                record_late::<Prepass>
                    .after(early_downsample_depth)
                    .before(late_prepass)
                    .before(late_deferred_prepass),
                end_late::<Prepass>
                    .after(late_prepass)
                    .after(late_deferred_prepass)
                    .before(Core3dSystems::MainPass),
                (record_late::<Forward>, draw_late, end_late::<Forward>)
                    .chain()
                    .in_set(GpuCullingSystems::DrawLate)
                    .after(main_opaque_pass_3d)
                    .before(main_transmissive_pass_3d)
                    .before(main_transparent_pass_3d)
                    .in_set(Core3dSystems::MainPass),
                // Bevy's own late passes draw what is late once more, which changes nothing.
                (record_late_shadows, draw_late_shadows)
                    .chain()
                    .after(per_view_shadow_pass::<EARLY_SHADOW_PASS>)
                    .after(shared_shadow_pass::<EARLY_SHADOW_PASS>)
                    .before(per_view_shadow_pass::<LATE_SHADOW_PASS>)
                    .before(shared_shadow_pass::<LATE_SHADOW_PASS>),
            ),
        );
}

/// Lets the depth of cameras that hide be read.
fn read_depth(mut cameras: Query<&mut Camera3d, With<InstanceOcclusion>>) {
    for mut camera in &mut cameras {
        let usages = TextureUsages::from(camera.depth_texture_usages);
        let wanted = usages | TextureUsages::TEXTURE_BINDING;
        if usages != wanted {
            camera.depth_texture_usages = wanted.into();
        }
    }
}

/// The way of a camera that hides, as a constant: systems are functions of a type.
trait CameraWay: Send + Sync + 'static {
    const WAY: HidingWay;
}

struct Forward;
struct Prepass;

impl CameraWay for Forward {
    const WAY: HidingWay = HidingWay::Forward;
}

impl CameraWay for Prepass {
    const WAY: HidingWay = HidingWay::Prepass;
}

/// Records late lists.
#[derive(SystemParam)]
struct LateLists<'w> {
    culling: ResMut<'w, GpuCuller>,
    meshlets: ResMut<'w, GpuMeshlets>,
    batch_sets: Res<'w, BatchSets>,
    lists: ResMut<'w, DrawnLists>,
    device: Res<'w, RenderDevice>,
    queue: Res<'w, RenderQueue>,
    clock: Res<'w, CpuClock>,
}

impl LateLists<'_> {
    /// Records the late lists of a view that hides in this way, and lets its draws take what is
    /// late.
    fn record(&mut self, key: &RetainedViewEntity, way: HidingWay, context: &mut RenderContext) {
        let _timer = self.clock.start(CpuStage::Record);
        let culling = &mut *self.culling;
        let (Some(index), Some(culler)) = (self.lists.view(key, way), &mut culling.culler) else {
            return;
        };
        let recorder = context.diagnostic_recorder();
        let mut passes = TimedPasses {
            recorder: recorder.as_deref(),
        };
        let on = Gpu::new(self.device.wgpu_device(), &self.queue);
        let encoder = context.command_encoder();
        let recorded = culler.record_late(on, encoder, index, &mut passes);
        culling.recorded.passes += recorded.passes;
        culling.recorded.dispatches += recorded.dispatches;
        if let Some(meshlets) = &mut self.meshlets.culler {
            meshlets.record_late(culler, on.device, encoder, index, &mut passes);
        }
        if let Some(draws) = self.batch_sets.multi_draws() {
            draws.record_late(culler, encoder, index, &mut passes);
        }
        self.lists.set(key, way, DrawList::Late);
    }
}

/// Records the late lists of a camera that hides in this way.
fn record_late<W: CameraWay>(
    view: ViewQuery<&ExtractedView>,
    mut late: LateLists,
    mut context: RenderContext,
) {
    let key = view.into_inner().retained_view_entity;
    late.record(&key, W::WAY, &mut context);
}

/// Records the late lists of the shadow maps that are drawn with the current view.
fn record_late_shadows(
    view: ViewQuery<Option<&ViewLightEntities>>,
    views: Query<&ExtractedView, With<ShadowView>>,
    mut late: LateLists,
    mut context: RenderContext,
) {
    let entity = view.entity();
    for map in shadow_maps(entity, view.into_inner()) {
        if let Ok(view) = views.get(map) {
            late.record(&view.retained_view_entity, HidingWay::Shadow, &mut context);
        }
    }
}

/// The views of the shadow maps that may be drawn with a view: a camera's cascades, or itself if it
/// is a light's.
fn shadow_maps(view: Entity, cascades: Option<&ViewLightEntities>) -> impl Iterator<Item = Entity> {
    let cascades = cascades.into_iter().flat_map(|cascades| &cascades.lights);
    core::iter::once(view).chain(cascades.copied())
}

/// From then on, a camera that hides in this way draws what is visible.
fn end_late<W: CameraWay>(view: ViewQuery<&ExtractedView>, mut lists: ResMut<DrawnLists>) {
    let key = view.into_inner().retained_view_entity;
    lists.set(&key, W::WAY, DrawList::Visible);
}

/// Draws what is late of a camera's opaque and masked sets, in a separate pass right after Bevy's.
fn draw_late(
    world: &World,
    view: ViewQuery<CameraTargets>,
    phases: OpaquePhases,
    (draws, lists): (Res<SetDraws>, Res<DrawnLists>),
    mut context: RenderContext,
) {
    let entity = view.entity();
    let targets = view.into_inner();
    let key = &targets.view.retained_view_entity;
    if lists.view(key, HidingWay::Forward).is_some() {
        let is_drawn = |entity| draws.may_be_hidden(entity);
        let label = "gpu_culling late";
        targets.draw(label, &phases, (world, entity), is_drawn, &mut context);
    }
}

/// Draws what is late of the shadow maps of the current view, each in a separate pass.
fn draw_late_shadows(
    world: &World,
    view: ViewQuery<Option<&ViewLightEntities>>,
    views: Query<(&ExtractedView, &ShadowView)>,
    phases: Res<ViewBinnedRenderPhases<Shadow>>,
    (draws, lists): (Res<SetDraws>, Res<DrawnLists>),
    mut context: RenderContext,
) {
    let entity = view.entity();
    for map in shadow_maps(entity, view.into_inner()) {
        let Ok((view, shadow)) = views.get(map) else {
            continue;
        };
        let key = view.retained_view_entity;
        let (Some(_), Some(phase)) = (lists.view(&key, HidingWay::Shadow), phases.get(&key)) else {
            continue;
        };
        let diagnostics = context.diagnostic_recorder();
        let diagnostics = diagnostics.as_deref();
        let depth = &shadow.depth_attachment;
        let mut pass = context.begin_tracked_render_pass(RenderPassDescriptor {
            label: Some("gpu_culling late shadows"),
            color_attachments: &[],
            depth_stencil_attachment: Some(depth.get_attachment(StoreOp::Store)),
            timestamp_writes: None,
            occlusion_query_set: None,
            multiview_mask: None,
        });
        let span = diagnostics.pass_span(&mut pass, "gpu_culling late shadows");
        let is_drawn = |entity| draws.may_be_hidden(entity);
        if let Err(error) = draw_items(phase, &is_drawn, (world, map), &mut pass) {
            let name = &shadow.pass_name;
            error!(
                "the late draws of the shadow map {name} failed: {error:?}. Shadows may be missing in this frame. Please \
                 report this"
            );
        }
        span.end(&mut pass);
    }
}
