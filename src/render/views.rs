//! Bevy's views, as the engine tests them.

use super::{components::FreezeCulling, lods::ShadowPixels, settings::GpuCullingSettings};
use crate::cull::{CullView, LodEye};
use bevy::{
    camera::primitives::Frustum,
    ecs::{query::QueryData, system::SystemParam},
    math::{FloatOrd, Vec4},
    pbr::{ExtractedPointLight, LightEntity, ShadowView},
    platform::collections::HashMap,
    prelude::*,
    render::{
        Extract,
        camera::ExtractedCamera,
        sync_world::{MainEntity, RenderEntity},
        view::{
            ExtractedView, RenderShadowLodOrigin, RenderShadowMapVisibleEntities,
            RenderVisibleEntities, RenderVisibleEntitiesClass, RetainedViewEntity,
        },
    },
};

/// The kind of a view. It decides which planes are tested (see [`CullView`]).
#[derive(Reflect, Clone, Copy, Debug, PartialEq, Eq)]
#[reflect(Clone, Debug, PartialEq)]
pub enum ViewKind {
    /// A camera.
    Camera,
    /// A cascade of a directional light.
    Cascade,
    /// A face of a point light's cube.
    PointFace,
    /// A spot light.
    Spot,
}

/// A view of a frame, as reports name it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FrameView {
    /// Bevy's key of the view, the same in every frame.
    pub key: RetainedViewEntity,
    pub kind: ViewKind,
    /// The shadow pass's name; empty for a camera.
    pub name: String,
    /// Whether instances fade: in cameras, unless their culling is frozen.
    pub fades: bool,
}

impl FrameView {
    /// The camera that the view belongs to; `None` if all cameras share it.
    pub fn camera(&self) -> Option<MainEntity> {
        match self.kind {
            ViewKind::Camera => Some(self.key.main_entity),
            ViewKind::Cascade => Some(self.key.auxiliary_entity),
            ViewKind::PointFace | ViewKind::Spot => None,
        }
    }

    /// The name in reports and verdicts: `camera`, or the shadow pass's name.
    pub fn display_name(&self) -> String {
        match self.kind {
            ViewKind::Camera => "camera".to_owned(),
            _ => self.name.clone(),
        }
    }
}

/// The order of the views of a frame. Bevy's order of entities may change between frames; the
/// engine's tables should not.
pub(super) fn view_order(key: &RetainedViewEntity) -> impl Ord + use<> {
    (key.main_entity, key.auxiliary_entity, key.subview_index)
}

/// The view at an index of [`CullFrame::views`](crate::cull::CullFrame::views): the views of a
/// frame, and behind them, for sets that are not culled, all of them once more.
pub(super) fn view_at(views: &[FrameView], index: u32) -> Option<&FrameView> {
    views.get(index as usize % views.len().max(1))
}

/// The index of the view with this key in a frame's views.
pub(super) fn index_of_view(views: &[FrameView], key: &RetainedViewEntity) -> Option<u32> {
    let wanted = view_order(key);
    let found = views.binary_search_by_key(&wanted, |view| view_order(&view.key));
    found.ok().map(|index| index as u32)
}

/// What a view is made from.
#[derive(QueryData)]
pub(super) struct ViewData {
    view: &'static ExtractedView,
    frustum: &'static Frustum,
    camera: Option<&'static ExtractedCamera>,
    frozen: Option<&'static ExtractedFreeze>,
    visible: Option<&'static RenderVisibleEntities>,
    shadow: Option<(&'static ShadowView, &'static LightEntity)>,
}

/// A camera's frozen frustum in the render world.
#[derive(Component)]
pub(super) struct ExtractedFreeze(Frustum);

/// All views of the frame, and the entities that each of them sees.
#[derive(SystemParam)]
pub(super) struct Views<'w, 's> {
    views: Query<'w, 's, ViewData>,
    lights: Query<
        'w,
        's,
        (
            Option<&'static ExtractedPointLight>,
            &'static RenderShadowMapVisibleEntities,
        ),
    >,
    settings: Res<'w, GpuCullingSettings>,
    shadow_origin: Option<Res<'w, RenderShadowLodOrigin>>,
}

/// A view of the frame.
pub(super) struct SetView<'a> {
    pub view: FrameView,
    pub cull: CullView,
    /// Bevy's list of the view's meshes.
    visible: Option<&'a RenderVisibleEntitiesClass>,
}

impl SetView<'_> {
    /// Whether Bevy queues the entity in this view, by its visibility, render layers, range and
    /// `Aabb`.
    pub fn sees(&self, entity: MainEntity) -> bool {
        let sees = |class: &RenderVisibleEntitiesClass| {
            class.entity_pair_is_visible(Entity::PLACEHOLDER, entity)
        };
        self.visible.is_some_and(sees)
    }
}

impl Views<'_, '_> {
    /// The greatest error with which cameras draw levels of detail, in pixels.
    pub fn lod_pixels(&self) -> f32 {
        self.settings.lod_pixels.max(0.0)
    }

    /// The least diameter that is drawn, in pixels; 0 if every size is.
    pub fn least_pixels(&self) -> f32 {
        self.settings.least_pixels.max(0.0)
    }

    /// Whether what views that hide draw is colored.
    pub fn colors_occlusion(&self) -> bool {
        self.settings.color_occlusion
    }

    /// How shadow views see instances that are thinned out.
    pub fn shadow_pixels(&self) -> ShadowPixels {
        self.shadow_pixels_of(&self.camera_eyes())
    }

    fn shadow_pixels_of(&self, eyes: &[CameraEye]) -> ShadowPixels {
        let drawing = eyes.iter().filter(|eye| eye.draws_meshes);
        ShadowPixels::of_cameras(drawing.map(|eye| (eye.pixels, eye.is_orthographic)))
    }

    /// Every view that can draw meshes, by [`view_order`].
    pub fn collect(&self) -> Vec<SetView<'_>> {
        let eyes = self.camera_eyes();
        let mut views: Vec<_> = self
            .views
            .iter()
            .filter_map(|view| self.resolve(view, &eyes))
            .collect();
        views.sort_by_key(|view| view_order(&view.view.key));
        views
    }

    fn resolve<'a>(
        &'a self,
        data: ViewDataItem<'a, '_>,
        eyes: &[CameraEye],
    ) -> Option<SetView<'a>> {
        let key = data.view.retained_view_entity;
        let clip = clip_from_world(data.view);
        let seen = planes(data.frustum).seen_through(&clip);
        let Some((shadow, light)) = data.shadow else {
            data.camera?;
            let cull = match data.frozen {
                Some(frozen) => planes(&frozen.0).with_eye(),
                None => seen.with_near_of(&clip),
            };
            return Some(SetView {
                view: FrameView {
                    key,
                    kind: ViewKind::Camera,
                    name: String::new(),
                    fades: data.frozen.is_none(),
                },
                // Also if the frustum is frozen: the order is for what is seen.
                cull: self.with_lods(
                    cull.without_far().sorted_toward(toward_viewer(data.view)),
                    eyes,
                    &key,
                    LodRule {
                        pixels: self.settings.lod_pixels,
                        fades: data.frozen.is_none(),
                        is_shadow: false,
                        origin: None,
                    },
                ),
                visible: data.visible?.get::<Mesh3d>(),
            });
        };
        let (kind, light_entity) = match *light {
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
            _ => self.shadow_origin.as_ref().map(|origin| origin.0),
        };
        let rule = LodRule {
            pixels: self.settings.shadow_lod_pixels,
            fades: false,
            is_shadow: true,
            origin,
        };
        cull = self.with_lods(cull, eyes, &key, rule);
        Some(SetView {
            view: FrameView {
                key,
                kind,
                name: shadow.pass_name.clone(),
                fades: false,
            },
            cull,
            visible: visible.subviews.get(&key)?.get::<Mesh3d>(),
        })
    }
}

/// From where a camera sees levels of detail.
struct CameraEye {
    camera: MainEntity,
    position: Vec3,
    is_orthographic: bool,
    /// Pixels per world unit, at distance 1 if the camera is not orthographic.
    pixels: f32,
    /// Whether it can draw meshes.
    draws_meshes: bool,
}

impl Views<'_, '_> {
    /// The eyes of all cameras, by their main entities. A frozen camera sees levels from where it
    /// was frozen.
    fn camera_eyes(&self) -> Vec<CameraEye> {
        let cameras = self.views.iter().filter(|data| data.camera.is_some());
        let mut eyes: Vec<_> = cameras
            .map(|data| {
                let view = data.view;
                let frozen = data.frozen.map(|frozen| planes(&frozen.0).with_eye().eye());
                let frozen = frozen.filter(|eye| eye.w != 0.0);
                CameraEye {
                    camera: view.retained_view_entity.main_entity,
                    position: match frozen {
                        Some(eye) => eye.truncate() / eye.w,
                        None => view.world_from_view.translation(),
                    },
                    is_orthographic: view.clip_from_view.w_axis.w == 1.0,
                    pixels: 0.5 * view.viewport.w as f32 * view.clip_from_view.y_axis.y.abs(),
                    draws_meshes: data
                        .visible
                        .is_some_and(|visible| visible.get::<Mesh3d>().is_some()),
                }
            })
            .collect();
        eyes.sort_by_key(|eye| eye.camera);
        eyes
    }
}

/// How a view sees levels of detail.
#[derive(Clone, Copy)]
struct LodRule {
    /// The greatest error.
    pixels: f32,
    fades: bool,
    is_shadow: bool,
    /// The eye of levels, for a light that all cameras share.
    origin: Option<Vec3>,
}

impl Views<'_, '_> {
    /// The view with levels of detail as its camera sees them, or for a light that all cameras
    /// share, as the camera next to the light's origin of levels does.
    fn with_lods(
        &self,
        view: CullView,
        eyes: &[CameraEye],
        key: &RetainedViewEntity,
        rule: LodRule,
    ) -> CullView {
        let own = [key.main_entity, key.auxiliary_entity];
        let of_view = eyes.iter().find(|eye| own.contains(&eye.camera));
        let apart = |eye: &&CameraEye| {
            let origin = rule.origin;
            let apart = origin.map_or(0.0, |origin| eye.position.distance_squared(origin));
            FloatOrd(apart)
        };
        let Some(eye) = of_view.or_else(|| eyes.iter().min_by_key(apart)) else {
            return view;
        };
        let shadow = self.shadow_pixels_of(eyes);
        view.with_lods_of(LodEye {
            position: rule.origin.unwrap_or(eye.position),
            is_orthographic: eye.is_orthographic,
            // If a setting is not above 0, the quotient is infinite: no error is allowed, and no
            // size is too small.
            resolution: eye.pixels / rule.pixels.max(0.0),
            least_resolution: eye.pixels / self.settings.least_pixels.max(0.0),
            pixels: match rule.is_shadow {
                true if shadow.is_orthographic == eye.is_orthographic => shadow.pixels,
                true => 0.0,
                false => eye.pixels,
            },
            fades: rule.fades,
        })
    }
}

fn planes(frustum: &Frustum) -> CullView {
    // Bevy lists the bottom plane before the top plane, the engine after it.
    let [left, right, bottom, top, near, far] = frustum
        .half_spaces
        .map(|half_space| -> Vec4 { half_space.normal_d() });
    CullView::from_planes([left, right, top, bottom, near, far])
}

/// The matrix of a view, without jitter.
pub(super) fn clip_from_world(view: &ExtractedView) -> Mat4 {
    view.clip_from_world
        .unwrap_or_else(|| view.clip_from_view * view.world_from_view.to_matrix().inverse())
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
