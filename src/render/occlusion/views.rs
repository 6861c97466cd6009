//! Which cameras and lights hide, and by which of their passes.

use super::{component::InstanceOcclusion, pause::OcclusionPauses};
use crate::{
    cull::{DepthBuffer, OcclusionView},
    render::views::{ExtractedFreeze, clip_from_world},
};
use bevy::{
    camera::{MainPassResolutionOverride, Viewport},
    core_pipeline::{
        Core3d,
        prepass::{DeferredPrepass, DepthPrepass, MotionVectorPrepass, NormalPrepass},
        schedule::RootNonCameraView,
    },
    ecs::{
        query::{QueryData, ROQueryItem},
        schedule::ScheduleLabel,
        system::SystemParam,
    },
    log::warn_once,
    math::Vec4Swizzles,
    pbr::{ExtractedAtmosphere, LightEntity, Shadow, ShadowView, ViewLightEntities},
    platform::hash::FixedHasher,
    prelude::*,
    render::{
        camera::{ExtractedCamera, TemporalJitter},
        occlusion_culling::OcclusionCulling,
        render_phase::ViewBinnedRenderPhases,
        view::{ExtractedView, NoIndirectDrawing, RetainedViewEntity, ViewDepthStencilTexture},
    },
};
use core::hash::BuildHasher;

/// By which passes a view hides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::render) enum HidingWay {
    /// Early in the main pass, then what is late in a separate pass.
    Forward,
    /// Early and late in Bevy's prepasses, then what is visible in the main pass.
    Prepass,
    /// A light: early in Bevy's pass of its shadow map, then what is late in a separate pass.
    Shadow,
}

/// What decides whether a camera hides.
#[derive(QueryData)]
pub(in crate::render) struct CameraData {
    view: &'static ExtractedView,
    camera: &'static ExtractedCamera,
    depth: &'static ViewDepthStencilTexture,
    own: Option<&'static InstanceOcclusion>,
    has_bevys: Has<OcclusionCulling>,
    has_depth_prepass: Has<DepthPrepass>,
    has_normal_prepass: Has<NormalPrepass>,
    has_motion_prepass: Has<MotionVectorPrepass>,
    is_deferred: Has<DeferredPrepass>,
    is_direct: Has<NoIndirectDrawing>,
    is_frozen: Has<ExtractedFreeze>,
    is_jittered: Has<TemporalJitter>,
    has_sky: Has<ExtractedAtmosphere>,
    resolution: Option<&'static MainPassResolutionOverride>,
}

/// Cameras that are told to hide.
type WithOcclusion = Or<(With<InstanceOcclusion>, With<OcclusionCulling>)>;

/// The views that may hide.
#[derive(SystemParam)]
pub(in crate::render) struct HidingViews<'w, 's> {
    cameras: Query<'w, 's, CameraData, WithOcclusion>,
    shadows: Query<'w, 's, ShadowData>,
    lights: Query<'w, 's, &'static InstanceOcclusion>,
    /// The cascades of each camera.
    cascades: Query<'w, 's, (&'static ExtractedCamera, &'static ViewLightEntities)>,
    shadow_phases: Res<'w, ViewBinnedRenderPhases<Shadow>>,
    pauses: ResMut<'w, OcclusionPauses>,
}

/// A shadow map: a cascade, a face of a point light's cube, or a spot light's.
type ShadowData = (
    Entity,
    &'static ExtractedView,
    &'static ShadowView,
    &'static LightEntity,
    Option<&'static RootNonCameraView>,
);

/// A view that hides.
pub(in crate::render) struct HidingView {
    pub key: RetainedViewEntity,
    pub way: HidingWay,
    /// Whether the view hides because of [`InstanceOcclusion`].
    pub is_own: bool,
    may_pause: bool,
    clip_from_world: Mat4,
    is_jittered: bool,
    is_frozen: bool,
    near_pixels: f32,
    depth: DepthBuffer,
}

impl HidingViews<'_, '_> {
    /// Fills the list of the views that hide in this frame.
    pub fn collect(&mut self, all: &mut Vec<HidingView>) {
        let cameras = self.cameras.iter();
        let cameras = cameras.filter_map(|camera| HidingView::of_camera(&camera));
        let shadows = self.shadows.iter().filter_map(|data| self.of_light(data));
        all.clear();
        all.extend(cameras.chain(shadows));
        let may_pause = all.iter().filter(|view| view.may_pause);
        self.pauses.start_frame(may_pause.map(|view| view.key));
        all.retain(|view| !self.pauses.pauses(&view.key));
    }

    /// The view of a shadow map; `None` if it does not hide.
    fn of_light(
        &self,
        (entity, view, shadow, light, root): ROQueryItem<'_, '_, ShadowData>,
    ) -> Option<HidingView> {
        let (LightEntity::Directional { light_entity, .. }
        | LightEntity::Point { light_entity, .. }
        | LightEntity::Spot { light_entity }) = *light;
        let own = self.lights.get(light_entity).ok()?;
        // The view of a light that is not drawn stays, without a phase.
        self.shadow_phases.get(&view.retained_view_entity)?;
        let schedule = match *light {
            // A cascade that no camera draws is a remainder of a light that was hidden.
            LightEntity::Directional { .. } => self.camera_of(entity)?.schedule,
            _ => root?.0,
        };
        // Only there the late lists are made.
        if schedule != Core3d.intern() {
            warn_once!(
                "InstanceOcclusion on {} hides no instances from shadow maps that another render graph than Core3d draws",
                view.retained_view_entity.main_entity.id()
            );
            return None;
        }
        HidingView::of_light(view, shadow, own)
    }

    /// The camera that draws a cascade.
    fn camera_of(&self, cascade: Entity) -> Option<&ExtractedCamera> {
        let mut cameras = self.cascades.iter();
        let found = cameras.find(|(_, cascades)| cascades.lights.contains(&cascade));
        found.map(|(camera, _)| camera)
    }
}

impl HidingView {
    fn of_camera(data: &CameraDataItem<'_, '_>) -> Option<Self> {
        let way = way_of(data)?;
        let depth = &data.depth.attachment;
        let viewport = data.camera.viewport.as_ref();
        let viewport = Viewport::from_viewport_and_override(viewport, data.resolution);
        let viewport = match viewport {
            Some(viewport) => viewport,
            None => Viewport {
                physical_size: data.camera.physical_target_size?,
                ..default()
            },
        };
        Some(Self {
            key: data.view.retained_view_entity,
            way,
            is_own: data.own.is_some(),
            // Bevy's prepasses are drawn anyway. What a frozen camera saw stays.
            may_pause: data.own.is_some_and(|own| own.may_pause)
                && way == HidingWay::Forward
                && !data.is_frozen,
            clip_from_world: clip_from_world(data.view),
            is_jittered: data.is_jittered,
            is_frozen: data.is_frozen,
            near_pixels: data.own.copied().unwrap_or_default().near_pixels,
            depth: DepthBuffer {
                texture: (**depth.depth_stencil_views().depth_only_view()?).clone(),
                samples: depth.texture.texture.sample_count(),
                origin: viewport.physical_position,
                size: viewport.physical_size,
                range: viewport.depth,
            },
        })
    }

    /// A shadow map. Culling is frozen in cameras alone.
    fn of_light(
        view: &ExtractedView,
        shadow: &ShadowView,
        own: &InstanceOcclusion,
    ) -> Option<Self> {
        let depth = &shadow.depth_attachment.depth_stencil_views;
        Some(Self {
            key: view.retained_view_entity,
            way: HidingWay::Shadow,
            is_own: true,
            may_pause: own.may_pause,
            clip_from_world: clip_from_world(view),
            is_jittered: false,
            is_frozen: false,
            near_pixels: own.near_pixels,
            depth: DepthBuffer {
                texture: (**depth.depth_only_view()?).clone(),
                samples: 1,
                origin: view.viewport.xy(),
                size: view.viewport.zw(),
                range: 0.0..1.0,
            },
        })
    }

    /// The view as the engine knows it, without the requests whose instances may be hidden. `view`
    /// is its index in the frame, `requests` an empty list.
    pub fn to_occlusion_view(&self, view: u32, requests: Vec<u32>) -> OcclusionView {
        OcclusionView {
            view,
            key: FixedHasher.hash_one(self.key),
            clip_from_world: self.clip_from_world,
            is_jittered: self.is_jittered,
            near_pixels: self.near_pixels,
            requests,
            is_frozen: self.is_frozen,
            depth: self.depth.clone(),
        }
    }
}

/// By which passes a camera hides; `None` if it does not.
fn way_of(data: &CameraDataItem<'_, '_>) -> Option<HidingWay> {
    let camera = data.view.retained_view_entity.main_entity.id();
    // Only there the late lists are made.
    if data.camera.schedule != Core3d.intern() {
        warn_once!(
            "InstanceOcclusion and OcclusionCulling hide no instances in the camera {camera}, which has another render \
             graph than Core3d"
        );
        return None;
    }
    let has_prepass = data.has_depth_prepass
        || data.has_normal_prepass
        || data.has_motion_prepass
        || data.is_deferred;
    if !has_prepass {
        data.own?;
        // The sky would be drawn over what is late.
        if data.has_sky {
            warn_once!(
                "InstanceOcclusion hides nothing in the camera {camera}, which has a sky (AtmosphereSettings) and a \
                 viewport, because Bevy's depth pyramid is of whole pictures: remove either"
            );
            return None;
        }
        return Some(HidingWay::Forward);
    }
    if data.has_bevys && data.has_depth_prepass && !data.is_direct {
        return Some(HidingWay::Prepass);
    }
    if data.own.is_some() {
        warn_once!(
            "InstanceOcclusion hides nothing in the camera {camera}, which has prepasses and either a viewport (Bevy's \
             depth pyramid is of whole pictures) or NoIndirectDrawing, which Bevy adds on adapters that cannot draw \
             indirectly: remove the viewport or the prepasses"
        );
    }
    None
}
