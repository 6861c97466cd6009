//! A backend of `bevy_picking`.

use super::{indices::SpatialIndices, ray_cast::InstanceRayCast};
use bevy::{
    camera::visibility::RenderLayers,
    picking::{
        PickingSystems,
        backend::{HitData, PointerHits, ray::RayMap},
        mesh_picking::{
            MeshPickingCamera,
            ray_cast::{MeshRayCastSettings, RayCastVisibility},
        },
        prelude::Pickable,
    },
    prelude::*,
};

/// Makes single instances pickable (feature `picking`): `Pointer` events on a set's entity carry an
/// [`InstanceHit`](super::InstanceHit) in [`HitData::extra`].
///
/// As with Bevy's `MeshPickingPlugin`, all sets are pickable, [`Pickable::IGNORE`] on an entity
/// leaves it out, and [`InstancePickingSettings`] makes picking opt-in.
///
/// A set may change between the ray and the event, for example because another pointer clicked in
/// the same frame. So ask the hit for the instance's index; sets with ids find it wherever it is.
///
/// ```
/// # use bevy::prelude::*;
/// # use bevy_gpu_culling::prelude::*;
/// fn remove_on_click(
///     click: On<PointerClick>,
///     entities: Query<&GpuInstances>,
///     mut sets: ResMut<Assets<InstanceSet>>,
/// ) {
///     if let Some(hit) = click.hit.extra_as::<InstanceHit>()
///         && let Ok(instances) = entities.get(click.entity)
///         && let Some(mut set) = sets.get_mut(&instances.0)
///         && let Some(index) = hit.index_in(&set)
///         && let Err(error) = set.swap_remove(index)
///     {
///         error!("the instance stays: {error}");
///     }
/// }
/// # App::new().add_observer(remove_on_click);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct InstancePickingPlugin;

impl Plugin for InstancePickingPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<InstancePickingSettings>()
            .register_type::<InstancePickingSettings>()
            .init_resource::<SpatialIndices>()
            .add_systems(PreUpdate, update_hits.in_set(PickingSystems::Backend));
    }
}

/// Settings of [`InstancePickingPlugin`], as Bevy's `MeshPickingSettings` are.
#[derive(Resource, Reflect)]
#[reflect(Resource, Default)]
pub struct InstancePickingSettings {
    /// Whether only cameras with `MeshPickingCamera` pick, and only sets with [`Pickable`] are
    /// picked. The default is false.
    pub require_markers: bool,
    /// Which sets are picked, by their entity's visibility. The default is the sets that a view
    /// sees.
    pub ray_cast_visibility: RayCastVisibility,
}

impl Default for InstancePickingSettings {
    fn default() -> Self {
        Self {
            require_markers: false,
            ray_cast_visibility: RayCastVisibility::VisibleInView,
        }
    }
}

/// What decides what a camera picks.
type PickingCamera = (
    &'static Camera,
    &'static GlobalTransform,
    Has<MeshPickingCamera>,
    Option<&'static RenderLayers>,
);

/// Reports the instances under each pointer.
fn update_hits(
    settings: Res<InstancePickingSettings>,
    rays: Res<RayMap>,
    // Others draw no sets.
    cameras: Query<PickingCamera, With<Camera3d>>,
    pickables: Query<&Pickable>,
    layers: Query<&RenderLayers>,
    mut ray_cast: InstanceRayCast,
    mut hits: MessageWriter<PointerHits>,
) {
    for (&id, &ray) in rays.iter() {
        let Ok((camera, place, is_marked, camera_layers)) = cameras.get(id.camera) else {
            continue;
        };
        if settings.require_markers && !is_marked {
            continue;
        }
        let camera_layers = camera_layers.cloned().unwrap_or_default();
        let filter = |entity| {
            let pickable = pickables.get(entity).ok();
            let layers = layers.get(entity).cloned().unwrap_or_default();
            (!settings.require_markers || pickable.is_some())
                && pickable.is_none_or(|pickable| pickable.is_hoverable)
                && camera_layers.intersects(&layers)
        };
        let blocks = |entity| {
            let pickable = pickables.get(entity);
            pickable.is_ok_and(|pickable| pickable.should_block_lower)
        };
        let how = MeshRayCastSettings {
            visibility: settings.ray_cast_visibility,
            filter: &filter,
            early_exit_test: &blocks,
        };
        let eye = Some(place.translation());
        let picks = ray_cast.cast_ray_seen_from(eye, ray, &how).into_iter();
        let picks = picks.map(|(entity, hit)| {
            let (point, normal) = (Some(hit.point), Some(hit.normal));
            let data = HitData::new_with_extra(id.camera, hit.distance, point, normal, hit.clone());
            (entity, data)
        });
        let picks: Vec<_> = picks.collect();
        if !picks.is_empty() {
            hits.write(PointerHits::new(id.pointer, picks, camera.order as f32));
        }
    }
}
