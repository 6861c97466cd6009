//! Separate passes over the sets of Bevy's phases.

use bevy::{
    camera::{MainPassResolutionOverride, Viewport},
    core_pipeline::core_3d::{AlphaMask3d, Opaque3d},
    ecs::{query::QueryData, system::SystemParam},
    log::error,
    prelude::*,
    render::{
        camera::ExtractedCamera,
        diagnostic::RecordDiagnostics,
        render_phase::{
            BinnedPhaseItem, BinnedRenderPhase, DrawError, DrawFunctions, PhaseItem,
            PhaseItemExtraIndex, TrackedRenderPass, ViewBinnedRenderPhases,
        },
        render_resource::{RenderPassDescriptor, StoreOp},
        renderer::RenderContext,
        sync_world::MainEntity,
        view::{ExtractedView, ViewDepthStencilTexture, ViewTarget},
    },
};

/// What a pass into a camera's main targets needs.
#[derive(QueryData)]
pub(in crate::render) struct CameraTargets {
    camera: &'static ExtractedCamera,
    pub view: &'static ExtractedView,
    target: &'static ViewTarget,
    depth: &'static ViewDepthStencilTexture,
    resolution: Option<&'static MainPassResolutionOverride>,
}

/// The phases of Bevy's opaque main pass.
#[derive(SystemParam)]
pub(in crate::render) struct OpaquePhases<'w> {
    opaque: Res<'w, ViewBinnedRenderPhases<Opaque3d>>,
    masked: Res<'w, ViewBinnedRenderPhases<AlphaMask3d>>,
}

impl CameraTargetsItem<'_, '_> {
    /// Draws the opaque and masked items of the entities that `is_drawn` accepts, in a separate
    /// pass. `entity` is the camera's in `world`.
    pub fn draw(
        &self,
        label: &'static str,
        phases: &OpaquePhases<'_>,
        (world, entity): (&World, Entity),
        is_drawn: impl Fn(MainEntity) -> bool,
        context: &mut RenderContext<'_, '_>,
    ) {
        let key = self.view.retained_view_entity;
        let (Some(opaque), Some(masked)) = (phases.opaque.get(&key), phases.masked.get(&key))
        else {
            return;
        };
        if !has_items(opaque, &is_drawn) && !has_items(masked, &is_drawn) {
            return;
        }
        let diagnostics = context.diagnostic_recorder();
        let diagnostics = diagnostics.as_deref();
        let color_attachments = [Some(self.target.get_color_attachment())];
        let mut pass = context.begin_tracked_render_pass(RenderPassDescriptor {
            label: Some(label),
            color_attachments: &color_attachments,
            depth_stencil_attachment: Some(self.depth.get_attachment(StoreOp::Store)),
            timestamp_writes: None,
            occlusion_query_set: None,
            multiview_mask: None,
        });
        let span = diagnostics.pass_span(&mut pass, label);
        let viewport = self.camera.viewport.as_ref();
        if let Some(viewport) = Viewport::from_viewport_and_override(viewport, self.resolution) {
            pass.set_camera_viewport(&viewport);
        }
        for drawn in [
            draw_items(opaque, &is_drawn, (world, entity), &mut pass),
            draw_items(masked, &is_drawn, (world, entity), &mut pass),
        ] {
            if let Err(error) = drawn {
                error!(
                    "the pass \"{label}\" failed: {error:?}. Instances may be missing in this frame. Please report this"
                );
            }
        }
        span.end(&mut pass);
    }
}

/// Whether a phase has items whose entities `is_drawn` accepts.
fn has_items<P: BinnedPhaseItem>(
    phase: &BinnedRenderPhase<P>,
    is_drawn: &impl Fn(MainEntity) -> bool,
) -> bool {
    let mut bins = phase.unbatchable_meshes.values();
    bins.any(|bin| bin.entities.keys().any(|entity| is_drawn(*entity)))
}

/// Draws the items of a phase whose entities `is_drawn` accepts, as the phase itself does. The
/// entities must be sets.
pub(in crate::render) fn draw_items<'w, P: BinnedPhaseItem>(
    phase: &BinnedRenderPhase<P>,
    is_drawn: &impl Fn(MainEntity) -> bool,
    (world, view): (&'w World, Entity),
    pass: &mut TrackedRenderPass<'w>,
) -> Result<(), DrawError> {
    let functions = world.resource::<DrawFunctions<P>>();
    let mut functions = functions.write();
    // The phase itself may be drawn later in this frame: functions must know new archetypes.
    functions.prepare(world);
    for ((batch_set, bin), bin_entities) in &phase.unbatchable_meshes {
        for (main_entity, entity) in &bin_entities.entities {
            if !is_drawn(*main_entity) {
                continue;
            }
            // A set's draws read nothing of Bevy's instance buffers.
            let item = P::new(
                batch_set.clone(),
                bin.clone(),
                (*entity, *main_entity),
                0..1,
                PhaseItemExtraIndex::None,
            );
            if let Some(function) = functions.get_mut(PhaseItem::draw_function(&item)) {
                function.draw(world, pass, view, &item)?;
            }
        }
    }
    Ok(())
}
