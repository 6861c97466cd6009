//! Bevy's views, as the engine tests them.

mod detail;
mod eyes;
mod frame_view;

pub use detail::CameraDetail;
use detail::Detail;
pub(super) use eyes::clip_from_world;
use eyes::{CameraEye, LodRule, planes, shadow_pixels_of, with_lods};
pub use frame_view::ViewKind;
pub(super) use frame_view::{
    FrameView, ViewFades, follow_views, index_of_view, view_at, view_order,
};

use super::{components::FreezeCulling, lods::ShadowPixels, settings::GpuCullingSettings};
use crate::cull::CullView;
use bevy::{
    camera::{RenderTarget, ShadowLodOrigin, primitives::Frustum},
    core_pipeline::core_3d::Opaque3d,
    ecs::{query::QueryData, system::SystemParam},
    pbr::{ExtractedPointLight, LightEntity, Shadow, ShadowView, ViewLightEntities},
    platform::collections::HashMap,
    prelude::*,
    render::{
        Extract,
        camera::ExtractedCamera,
        render_phase::ViewBinnedRenderPhases,
        sync_world::RenderEntity,
        view::{
            ExtractedView, RenderShadowMapVisibleEntities, RenderVisibleEntities,
            RenderVisibleEntitiesClass,
        },
    },
};

/// What a camera's view is made from.
#[derive(QueryData)]
pub(super) struct CameraData {
    view: &'static ExtractedView,
    frustum: &'static Frustum,
    frozen: Option<&'static ExtractedFreeze>,
    detail: Option<&'static CameraDetail>,
    visible: Option<&'static RenderVisibleEntities>,
    cascades: Option<&'static ViewLightEntities>,
}

/// What the view of a shadow map is made from.
#[derive(QueryData)]
pub(super) struct ShadowData {
    view: &'static ExtractedView,
    frustum: &'static Frustum,
    shadow: &'static ShadowView,
    light: &'static LightEntity,
}

/// A camera's frozen frustum in the render world.
#[derive(Component)]
pub(super) struct ExtractedFreeze(Frustum);

/// All views that Bevy draws meshes in this frame, and the entities that each of them sees.
#[derive(SystemParam)]
pub(super) struct Views<'w, 's> {
    cameras: Query<'w, 's, CameraData, With<ExtractedCamera>>,
    shadows: Query<'w, 's, ShadowData>,
    lights: Query<
        'w,
        's,
        (
            Option<&'static ExtractedPointLight>,
            &'static RenderShadowMapVisibleEntities,
        ),
    >,
    /// Cameras for 2D and for user interfaces have none.
    opaque_phases: Res<'w, ViewBinnedRenderPhases<Opaque3d>>,
    /// Lights that are not drawn keep their views, without a phase.
    shadow_phases: Res<'w, ViewBinnedRenderPhases<Shadow>>,
    settings: Res<'w, GpuCullingSettings>,
    shadow_origin: Res<'w, ShadowOrigin>,
    /// The eyes of all cameras that draw meshes, by their main entities.
    eyes: Local<'s, Vec<CameraEye>>,
    spare: Local<'s, Vec<SetView<'static>>>,
}

/// A view of the frame.
pub(super) struct SetView<'a> {
    pub view: FrameView<&'a str>,
    pub cull: CullView,
    /// Bevy's list of the meshes that it queues in this view, by visibility, render layers, range
    /// and `Aabb`.
    pub visible: Option<&'a RenderVisibleEntitiesClass>,
}

impl SetView<'_> {
    /// The list, empty, for another frame's views: a list that is collected in place keeps its
    /// memory.
    pub fn emptied(mut views: Vec<SetView<'_>>) -> Vec<SetView<'static>> {
        views.clear();
        views.into_iter().map_while(|_| None).collect()
    }
}

impl Views<'_, '_> {
    /// The detail of the settings.
    pub fn detail(&self) -> Detail {
        Detail::of(&self.settings)
    }

    /// Whether some view draws no instance below some size.
    pub fn have_min_size(&self) -> bool {
        let of_settings = self.detail();
        let mut cameras = self.drawing_cameras();
        let has = |detail: Detail| detail.min_pixels() > 0.0;
        has(of_settings) || cameras.any(|camera| has(of_settings.with(camera.detail)))
    }

    /// Whether what views that hide draw is colored.
    pub fn colors_occlusion(&self) -> bool {
        self.settings.color_occlusion
    }

    /// How shadow views see instances that are thinned out.
    pub fn shadow_pixels(&self) -> ShadowPixels {
        shadow_pixels_of(&self.eyes)
    }

    /// The cameras that draw meshes.
    fn drawing_cameras(&self) -> impl Iterator<Item = CameraDataItem<'_, '_>> {
        let cameras = self.cameras.iter();
        cameras.filter(|camera| {
            let key = &camera.view.retained_view_entity;
            self.opaque_phases.contains_key(key)
        })
    }

    /// The shadow maps that are drawn. Cascades are taken from their cameras: when a hidden light
    /// is shown again, Bevy leaves its old cascades behind, with the keys of the new ones.
    fn drawn_shadows(&self) -> impl Iterator<Item = ShadowDataItem<'_, '_>> {
        let cascades = self.drawing_cameras().filter_map(|camera| camera.cascades);
        let cascades = cascades
            .flat_map(|cascades| &cascades.lights)
            .filter_map(|cascade| self.shadows.get(*cascade).ok());
        let is_shared =
            |map: &ShadowDataItem| !matches!(map.light, LightEntity::Directional { .. });
        let all = cascades.chain(self.shadows.iter().filter(is_shared));
        all.filter(|map| {
            let key = &map.view.retained_view_entity;
            self.shadow_phases.contains_key(key)
        })
    }

    /// Starts a frame, and lends a list for [its views](Self::collect).
    pub fn start_frame(&mut self) -> Vec<SetView<'static>> {
        let mut eyes = core::mem::take(&mut *self.eyes);
        eyes.clear();
        eyes.extend(self.drawing_cameras().map(|camera| {
            let frozen = camera.frozen.map(|frozen| &frozen.0);
            let detail = self.detail().with(camera.detail);
            CameraEye::new(camera.view, frozen, detail)
        }));
        eyes.sort_unstable_by_key(|eye| eye.camera);
        *self.eyes = eyes;
        core::mem::take(&mut *self.spare)
    }

    /// Takes an emptied list back.
    pub fn give_back(&mut self, views: Vec<SetView<'static>>) {
        *self.spare = views;
    }

    /// Every view that draws meshes, by [`view_order`], in an empty list.
    pub fn collect<'a>(&'a self, mut views: Vec<SetView<'a>>) -> Vec<SetView<'a>> {
        let cameras = self.drawing_cameras();
        views.extend(cameras.map(|camera| self.of_camera(camera)));
        let shadows = self.drawn_shadows();
        views.extend(shadows.filter_map(|map| self.of_shadow(map)));
        views.sort_unstable_by_key(|view| view_order(&view.view.key));
        views
    }

    fn of_camera<'a>(&self, data: CameraDataItem<'a, '_>) -> SetView<'a> {
        let key = data.view.retained_view_entity;
        let clip = clip_from_world(data.view);
        let cull = match data.frozen {
            Some(frozen) => planes(&frozen.0).with_eye(),
            None => {
                let seen = planes(data.frustum).seen_through(&clip);
                seen.with_near_of(&clip)
            }
        };
        let fades = match data.frozen {
            Some(_) => ViewFades::Nothing,
            None if self.detail().with(data.detail).fades => ViewFades::All,
            None => ViewFades::Ranges,
        };
        let rule = LodRule {
            fades: fades == ViewFades::All,
            is_shadow: false,
            origin: None,
        };
        // Also if the frustum is frozen: the order is for what is seen.
        let cull = cull.without_far().sorted_toward(toward_viewer(data.view));
        SetView {
            view: FrameView {
                key,
                kind: ViewKind::Camera,
                name: "",
                fades,
            },
            cull: with_lods(cull, &key, &self.eyes, self.detail(), rule),
            visible: data.visible.and_then(RenderVisibleEntities::get::<Mesh3d>),
        }
    }

    fn of_shadow<'a>(&'a self, data: ShadowDataItem<'a, '_>) -> Option<SetView<'a>> {
        let key = data.view.retained_view_entity;
        let clip = clip_from_world(data.view);
        let seen = planes(data.frustum).seen_through(&clip);
        let (kind, light_entity) = match *data.light {
            LightEntity::Directional { light_entity, .. } => (ViewKind::Cascade, light_entity),
            LightEntity::Point { light_entity, .. } => (ViewKind::PointFace, light_entity),
            LightEntity::Spot { light_entity } => (ViewKind::Spot, light_entity),
        };
        let (light, visible) = self.lights.get(light_entity).ok()?;
        let mut cull = match kind {
            // A caster may lie before the near plane: its depth is not clipped.
            ViewKind::Cascade => seen.without_near(),
            _ => seen.with_near_of(&clip),
        };
        if let Some(light) = light {
            cull = cull.within(light.transform.translation(), light.range);
        }
        // Point and spot lights share one origin among all cameras, as in Bevy.
        let origin = match kind {
            ViewKind::Cascade => None,
            _ => self.shadow_origin.0,
        };
        let rule = LodRule {
            fades: false,
            is_shadow: true,
            origin,
        };
        Some(SetView {
            view: FrameView {
                key,
                kind,
                name: &data.shadow.pass_name,
                fades: ViewFades::Nothing,
            },
            cull: with_lods(cull, &key, &self.eyes, self.detail(), rule),
            visible: visible.subviews.get(&key)?.1.get::<Mesh3d>(),
        })
    }
}

/// The axis along which Bevy sorts blended entities
/// ([`ViewRangefinder3d`](bevy::render::render_phase::ViewRangefinder3d)).
fn toward_viewer(view: &ExtractedView) -> Vec3 {
    let view_from_world = view.world_from_view.affine().inverse();
    view_from_world.matrix3.row(2).into()
}

/// Copies frozen frusta to the render world, and removes those whose component is gone.
pub(super) fn extract_freeze(
    mut commands: Commands,
    cameras: Extract<Query<(&RenderEntity, &FreezeCulling)>>,
    old: Query<Entity, With<ExtractedFreeze>>,
) {
    let mut frozen = HashMap::new();
    for (entity, freeze) in &cameras {
        if let Some(frustum) = freeze.frustum {
            frozen.insert(entity.id(), frustum);
        }
    }
    for entity in &old {
        if !frozen.contains_key(&entity) {
            commands.entity(entity).remove::<ExtractedFreeze>();
        }
    }
    for (entity, frustum) in frozen {
        commands.entity(entity).insert(ExtractedFreeze(frustum));
    }
}

/// The point that the levels of detail of point and spot lights are measured from. Bevy chooses it
/// in the same way, but also among cameras for 2D.
#[derive(Resource, Default)]
pub(super) struct ShadowOrigin(Option<Vec3>);

/// Chooses the origin: an entity with [`ShadowLodOrigin`], otherwise a 3D camera of a window,
/// otherwise any 3D camera.
pub(super) fn extract_shadow_origin(
    mut origin: ResMut<ShadowOrigin>,
    marked: Extract<Query<Entity, With<ShadowLodOrigin>>>,
    cameras: Extract<Query<(Entity, &RenderTarget), With<Camera3d>>>,
    places: Extract<Query<&GlobalTransform>>,
) {
    let is_windows =
        |(_, target): &(Entity, &RenderTarget)| matches!(target, RenderTarget::Window(_));
    let of_windows = cameras.iter().filter(is_windows);
    let chosen = marked
        .iter()
        .min()
        .or_else(|| of_windows.map(|(camera, _)| camera).min())
        .or_else(|| cameras.iter().map(|(camera, _)| camera).min());
    let place = chosen.and_then(|entity| places.get(entity).ok());
    origin.0 = place.map(GlobalTransform::translation);
}
