//! Bevy's views, as the engine tests them.

use super::components::FreezeCulling;
use crate::cull::CullView;
use bevy::{
    camera::primitives::Frustum,
    ecs::{query::QueryData, system::SystemParam},
    math::Vec4,
    pbr::{ExtractedPointLight, LightEntity, ShadowView},
    platform::collections::HashMap,
    prelude::*,
    render::{
        Extract,
        camera::ExtractedCamera,
        sync_world::{MainEntity, RenderEntity},
        view::{
            ExtractedView, RenderShadowMapVisibleEntities, RenderVisibleEntities,
            RenderVisibleEntitiesClass, RetainedViewEntity,
        },
    },
};

/// The kind of a view. It decides which planes are tested (see [`CullView`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

impl FrameView {
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
    /// Every view that can draw meshes, by [`view_order`].
    pub fn collect(&self) -> Vec<SetView<'_>> {
        let mut views: Vec<_> = self
            .views
            .iter()
            .filter_map(|view| self.resolve(view))
            .collect();
        views.sort_by_key(|view| view_order(&view.view.key));
        views
    }

    fn resolve<'a>(&'a self, data: ViewDataItem<'a, '_>) -> Option<SetView<'a>> {
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
                },
                // Also if the frustum is frozen: the order is for what is seen.
                cull: cull.without_far().sorted_toward(toward_viewer(data.view)),
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
        Some(SetView {
            view: FrameView {
                key,
                kind,
                name: shadow.pass_name.clone(),
            },
            cull,
            visible: visible.subviews.get(&key)?.get::<Mesh3d>(),
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

fn clip_from_world(view: &ExtractedView) -> Mat4 {
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
