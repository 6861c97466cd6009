//! Bevy's views as the engine's.

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
        camera::ExtractedCamera,
        sync_world::MainEntity,
        view::{
            ExtractedView, RenderShadowMapVisibleEntities, RenderVisibleEntities,
            RenderVisibleEntitiesClass, RetainedViewEntity,
        },
    },
};

/// What kind of view it is: decides which planes are tested (see [`CullView`]).
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

/// All views of the frame, and who sees what.
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
    pub key: RetainedViewEntity,
    pub kind: ViewKind,
    pub name: String,
    pub cull: CullView,
    /// Bevy's list of the view's meshes.
    visible: Option<&'a RenderVisibleEntitiesClass>,
}

impl SetView<'_> {
    /// Whether Bevy queues the entity in this view: visibility, render layers, range, and the set's `Aabb`.
    pub fn sees(&self, entity: MainEntity) -> bool {
        let sees = |class: &RenderVisibleEntitiesClass| {
            class.entity_pair_is_visible(Entity::PLACEHOLDER, entity)
        };
        self.visible.is_some_and(sees)
    }
}

impl Views<'_, '_> {
    /// Every view that can draw meshes, `with_eyes` where something is culled by the way it faces.
    pub fn collect(&self, with_eyes: bool) -> Vec<SetView<'_>> {
        let mut views: Vec<_> = self
            .views
            .iter()
            .filter_map(|view| self.resolve(view, with_eyes))
            .collect();
        // The order of entities may change from frame to frame; tables should not.
        views.sort_by_key(|view| {
            (
                view.key.main_entity,
                view.key.auxiliary_entity,
                view.key.subview_index,
            )
        });
        views
    }

    fn resolve<'a>(&'a self, data: ViewDataItem<'a, '_>, with_eyes: bool) -> Option<SetView<'a>> {
        let key = data.view.retained_view_entity;
        let seen = |frustum: &Frustum| match with_eyes {
            true => planes(frustum).seen_through(&clip_from_world(data.view)),
            false => planes(frustum),
        };
        let Some((shadow, light)) = data.shadow else {
            data.camera?;
            let cull = match data.frozen {
                Some(frozen) => planes(&frozen.0).with_eye(),
                None => seen(data.frustum),
            };
            return Some(SetView {
                key,
                kind: ViewKind::Camera,
                name: String::new(),
                cull: cull.without_far(),
                visible: data.visible?.get::<Mesh3d>(),
            });
        };
        let (kind, light_entity) = match *light {
            LightEntity::Directional { light_entity, .. } => (ViewKind::Cascade, light_entity),
            LightEntity::Point { light_entity, .. } => (ViewKind::PointFace, light_entity),
            LightEntity::Spot { light_entity } => (ViewKind::Spot, light_entity),
        };
        let (light, visible) = self.lights.get(light_entity).ok()?;
        let mut cull = seen(data.frustum);
        if kind == ViewKind::Cascade {
            cull = cull.without_near();
        }
        if let Some(light) = light {
            cull = cull.within(light.transform.translation(), light.range);
        }
        Some(SetView {
            key,
            kind,
            name: shadow.pass_name.clone(),
            cull,
            visible: visible.subviews.get(&key)?.get::<Mesh3d>(),
        })
    }
}

fn planes(frustum: &Frustum) -> CullView {
    // Bevy has the bottom before the top.
    let [left, right, bottom, top, near, far] = frustum
        .half_spaces
        .map(|half_space| -> Vec4 { half_space.normal_d() });
    CullView::from_planes([left, right, top, bottom, near, far])
}

fn clip_from_world(view: &ExtractedView) -> Mat4 {
    view.clip_from_world
        .unwrap_or_else(|| view.clip_from_view * view.world_from_view.to_matrix().inverse())
}

/// Copies frozen frusta to the render world and removes those that have thawed.
pub(super) fn extract_freeze(
    mut commands: Commands,
    cameras: bevy::render::Extract<
        Query<(&bevy::render::sync_world::RenderEntity, &FreezeCulling)>,
    >,
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
