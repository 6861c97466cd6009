//! The main world: makes the sets, and follows the cameras and the maps.

use super::{
    component::Scatter,
    maps::{ScatterError, check_map},
    window::{side_of, slots, tile_of, window_around},
};
use crate::{
    instance::{GpuWritten, InstanceBounds, InstanceSet},
    render::{
        bounds::update_bounds,
        components::{AFTER_FRUSTA, GpuInstances},
        settings::GpuCullingSystems,
        told::Told,
    },
};
use bevy::{
    asset::{AssetEventSystems, UntypedAssetId},
    camera::visibility::RenderLayers,
    ecs::{query::QueryData, system::SystemParam},
    platform::collections::HashMap,
    prelude::*,
    shader::Source,
};
use std::sync::Arc;

/// A set that is to be filled.
#[derive(Clone, Debug)]
pub(super) struct ScatterPlan {
    pub entity: Entity,
    pub set: AssetId<InstanceSet>,
    pub scatter: Arc<Scatter>,
    /// The tile of each slot.
    pub slots: Arc<[Option<IVec2>]>,
    /// Grows when a map changes.
    pub maps_revision: u32,
    /// The text of the rule.
    pub rule: Option<Arc<str>>,
}

/// What the render world fills. The list is another one if something changed.
#[derive(Resource, Clone, Default)]
pub(super) struct ScatterPlans(pub Arc<Vec<ScatterPlan>>);

/// Adds the main world's part.
pub(in crate::render) fn build(app: &mut App) {
    app.register_type::<Scatter>()
        .init_resource::<ScatterPlans>()
        .add_systems(
            PostUpdate,
            plan_scatters
                .in_set(GpuCullingSystems::UpdateBounds)
                .after(AFTER_FRUSTA)
                .after(AssetEventSystems)
                .before(update_bounds),
        );
}

/// What is known of an entity.
struct Planned {
    plan: ScatterPlan,
    set: Handle<InstanceSet>,
    /// Tiles along a side of a window.
    side: u32,
    windows: Vec<Window>,
    /// Whether a map is not loaded yet, or cannot be read.
    waits: bool,
}

/// A camera, and the tile that it is in. A window without a camera is free.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Window {
    camera: Option<Entity>,
    center: Option<IVec2>,
}

#[derive(QueryData)]
#[query_data(mutable)]
pub(super) struct ScatterEntity {
    entity: Entity,
    scatter: Ref<'static, Scatter>,
    instances: &'static mut GpuInstances,
    transform: &'static GlobalTransform,
    layers: Option<&'static RenderLayers>,
}

/// The cameras around which instances grow.
type Cameras<'w, 's> = Query<
    'w,
    's,
    (
        Entity,
        &'static Camera,
        &'static GlobalTransform,
        Option<&'static RenderLayers>,
    ),
    With<Camera3d>,
>;

/// The images that maps are, and the shaders that rules are.
#[derive(SystemParam)]
pub(super) struct Maps<'w, 's> {
    images: Option<Res<'w, Assets<Image>>>,
    events: Option<MessageReader<'w, 's, AssetEvent<Image>>>,
    shaders: Option<Res<'w, Assets<Shader>>>,
    shader_events: Option<MessageReader<'w, 's, AssetEvent<Shader>>>,
    server: Option<Res<'w, AssetServer>>,
}

/// The asset that was added or changed.
fn changed_asset<A: Asset>(event: &AssetEvent<A>) -> Option<UntypedAssetId> {
    match event {
        AssetEvent::Added { id } | AssetEvent::Modified { id } => Some(id.untyped()),
        _ => None,
    }
}

impl Maps<'_, '_> {
    /// Images and shaders that were added or changed since the last call.
    fn read_changed(&mut self, changed: &mut Vec<UntypedAssetId>) {
        changed.clear();
        if let Some(events) = &mut self.events {
            changed.extend(events.read().filter_map(changed_asset));
        }
        if let Some(events) = &mut self.shader_events {
            changed.extend(events.read().filter_map(changed_asset));
        }
    }

    /// An asset that is not there, and whether it is still loading.
    fn missing(&self, map: &'static str, id: UntypedAssetId) -> (ScatterError, bool) {
        let server = self.server.as_ref();
        let state = server.and_then(|server| server.get_load_state(id));
        let is_loading = state.is_some_and(|state| !state.is_failed());
        (ScatterError::NotLoaded { map }, is_loading)
    }

    /// The text of the rule, or what is wrong with it, and whether it is still loading.
    fn rule(&self, scatter: &Scatter) -> Result<Option<Arc<str>>, (ScatterError, bool)> {
        let Some(handle) = &scatter.rule else {
            return Ok(None);
        };
        let shader = self.shaders.as_ref().and_then(|all| all.get(handle));
        match shader.map(|shader| &shader.source) {
            Some(Source::Wgsl(text)) => Ok(Some(Arc::from(&**text))),
            Some(_) => Err((ScatterError::Rule, false)),
            None => Err(self.missing("rule", handle.id().untyped())),
        }
    }

    /// The first map that is not there, or that cannot be read. Whether it is still loading.
    fn problem(&self, scatter: &Scatter) -> Option<(ScatterError, bool)> {
        let mut first = self.rule(scatter).err();
        for (map, handle) in scatter.maps() {
            let Some(handle) = handle else { continue };
            let image = self.images.as_ref().and_then(|images| images.get(handle));
            let found = match image {
                Some(image) => check_map(map, image).err().map(|error| (error, false)),
                None => Some(self.missing(map, handle.id().untyped())),
            };
            // What never becomes right is told before what is only late.
            if found.is_some() && first.as_ref().is_none_or(|(_, is_loading)| *is_loading) {
                first = found;
            }
        }
        first
    }
}

/// What [`plan_scatters`] remembers.
#[derive(Default)]
pub(super) struct Memory {
    planned: HashMap<Entity, Planned>,
    told: Told<(Entity, String)>,
    /// Images and shaders that changed.
    changed: Vec<UntypedAssetId>,
}

/// The components that are gone, and what they leave.
#[derive(SystemParam)]
pub(super) struct Removed<'w, 's> {
    scatters: RemovedComponents<'w, 's, Scatter>,
    instances: Query<'w, 's, &'static mut GpuInstances, Without<Scatter>>,
}

/// Makes sets for scatters, moves their windows along with the cameras, and notes what changed.
pub(super) fn plan_scatters(
    mut scatters: Query<ScatterEntity>,
    mut removed: Removed,
    cameras: Cameras,
    mut maps: Maps,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut plans: ResMut<ScatterPlans>,
    mut memory: Local<Memory>,
) {
    let Memory {
        planned,
        told,
        changed,
    } = &mut *memory;
    maps.read_changed(changed);
    let mut is_new = false;
    for entity in removed.scatters.read() {
        let Some(old) = planned.remove(&entity) else {
            continue;
        };
        is_new = true;
        // Without the component, nothing grows.
        if let Ok(mut instances) = removed.instances.get_mut(entity)
            && instances.0 == old.set
        {
            instances.0 = Handle::default();
        }
    }
    for mut item in &mut scatters {
        let entity = item.entity;
        let is_known = planned.contains_key(&entity);
        if item.scatter.is_changed() || !is_known && item.scatter.problem().is_none() {
            is_new = true;
            if let Some(problem) = item.scatter.problem() {
                let text = format!(
                    "{} is {}, which must be {}",
                    problem.field, problem.value, problem.wanted
                );
                if told.is_new((entity, text.clone())) {
                    warn!("Scatter on {entity} plants nothing: {text}");
                }
                planned.remove(&entity);
                item.instances.0 = Handle::default();
                continue;
            }
            let scatter = Arc::new(Scatter::clone(&item.scatter));
            let side = side_of(&scatter);
            let known = planned.entry(entity).or_insert_with(|| Planned {
                plan: ScatterPlan {
                    entity,
                    set: AssetId::default(),
                    scatter: scatter.clone(),
                    slots: Arc::default(),
                    maps_revision: 0,
                    rule: None,
                },
                set: Handle::default(),
                side: 0,
                windows: Vec::new(),
                waits: true,
            });
            known.plan.scatter = scatter;
            known.waits = true;
            if known.side != side {
                known.side = side;
                known.set = Handle::default();
            }
            // The windows are laid out again.
            known
                .windows
                .iter_mut()
                .for_each(|window| window.center = None);
        }
        let Some(known) = planned.get_mut(&entity) else {
            continue;
        };
        let has_changed = |id: UntypedAssetId| changed.contains(&id);
        let maps_changed = known.plan.scatter.assets().any(has_changed);
        if maps_changed {
            known.plan.maps_revision += 1;
            known.waits = true;
            is_new = true;
        }
        let waited = known.waits;
        if known.waits {
            let problem = maps.problem(&known.plan.scatter);
            known.waits = problem.is_some();
            known.plan.rule = maps.rule(&known.plan.scatter).unwrap_or_default();
            if let Some((problem, false)) = problem {
                let text = problem.to_string();
                if told.is_new((entity, text.clone())) {
                    warn!("Scatter on {entity} plants nothing: {text}");
                }
            }
        }
        let moved = known.follow(&cameras, item.transform, item.layers);
        if moved || known.waits != waited {
            is_new = true;
            if let Err(text) = known.lay_out(&mut sets)
                && told.is_new((entity, text.clone()))
            {
                warn!("Scatter on {entity} plants nothing: {text}");
            }
        }
        if item.instances.0 != known.set {
            item.instances.0 = known.set.clone();
        }
    }
    if is_new {
        let mut list: Vec<_> = planned.values().map(|known| known.plan.clone()).collect();
        list.sort_unstable_by_key(|plan| plan.entity);
        plans.0 = Arc::new(list);
    }
}

impl Planned {
    /// Moves the windows to where the cameras are. Returns whether a camera came, went, or is in
    /// another tile.
    fn follow(
        &mut self,
        cameras: &Cameras,
        transform: &GlobalTransform,
        layers: Option<&RenderLayers>,
    ) -> bool {
        let ours = layers.cloned().unwrap_or_default();
        let to_local = transform.affine().inverse();
        let tile_size = self.plan.scatter.tile_size();
        let sees = |camera: &Camera, layers: Option<&RenderLayers>| {
            camera.is_active && layers.unwrap_or(&RenderLayers::default()).intersects(&ours)
        };
        let mut moved = false;
        for window in &mut self.windows {
            let camera = window.camera.and_then(|camera| cameras.get(camera).ok());
            let stays = camera.is_some_and(|(_, camera, _, layers)| sees(camera, layers));
            if !stays && window.camera.is_some() {
                *window = Window::default();
                moved = true;
            }
        }
        for (entity, camera, place, layers) in cameras {
            if !sees(camera, layers) {
                continue;
            }
            let local = to_local.transform_point3(place.translation());
            let center = tile_of(local, tile_size);
            let windows = &mut self.windows;
            let own = windows
                .iter()
                .position(|window| window.camera == Some(entity));
            let free = || windows.iter().position(|window| window.camera.is_none());
            let index = match own.or_else(free) {
                Some(index) => index,
                None => {
                    windows.push(Window::default());
                    windows.len() - 1
                }
            };
            let now = Window {
                camera: Some(entity),
                center,
            };
            moved |= windows[index] != now;
            windows[index] = now;
        }
        moved
    }

    /// Gives the tiles their slots, and the set its room and its bounds.
    fn lay_out(&mut self, sets: &mut Assets<InstanceSet>) -> Result<(), String> {
        let scatter = &self.plan.scatter;
        let centers: Vec<_> = self.windows.iter().map(|window| window.center).collect();
        let slots = match self.waits {
            // What grew before a map was exchanged is gone.
            true => vec![None; (self.side * self.side) as usize * centers.len()],
            false => slots(&centers, self.side),
        };
        let bounds = bounds_of(scatter, &centers, self.side);
        let tile = Scatter::TILE_CELLS * Scatter::TILE_CELLS;
        let is_same = slots.len() == self.plan.slots.len() && self.set != Handle::default();
        self.plan.slots = slots.into();
        if is_same && let Some(mut set) = sets.get_mut(&self.set) {
            return set
                .set_written_bounds(bounds)
                .map_err(|error| error.to_string());
        }
        let capacity = u32::try_from(self.plan.slots.len() as u64 * u64::from(tile));
        let capacity = capacity.unwrap_or(u32::MAX);
        let around = GpuWritten::within(bounds.min, bounds.max)
            .with_scales(bounds.max_scale)
            .with_noted_writes(true);
        match InstanceSet::gpu_written(capacity, around) {
            Ok(set) => {
                self.set = sets.add(set);
                self.plan.set = self.set.id();
                Ok(())
            }
            Err(error) => {
                self.set = Handle::default();
                self.plan.set = AssetId::default();
                let windows = self.windows.len();
                Err(format!(
                    "{windows} windows of cameras are too many: {error}"
                ))
            }
        }
    }
}

/// A box around everything that may grow in the windows.
fn bounds_of(scatter: &Scatter, centers: &[Option<IVec2>], side: u32) -> InstanceBounds {
    let size = scatter.tile_size();
    let windows = centers.iter().flatten();
    let windows =
        windows.map(|center| window_around(*center, side).map(|tile| tile.as_vec2() * size));
    let around = windows.reduce(|[low, high], [min, max]| [low.min(min), high.max(max)]);
    let [min, max] = around.unwrap_or_default();
    // Rounding.
    let slack = (min.abs().max(max.abs()) * 1e-6).max_element();
    let (low, high) = match &scatter.height_map {
        Some(_) => {
            let all = &scatter.map_heights;
            let within = |height: f32| height.clamp(all.start, all.end);
            (within(scatter.heights.start), within(scatter.heights.end))
        }
        None => (0.0, 0.0),
    };
    let thick = low.abs().max(high.abs()) * 1e-6;
    InstanceBounds {
        min: Vec3::new(min.x - slack, low - thick, min.y - slack),
        max: Vec3::new(max.x + slack, high + thick, max.y + slack),
        max_scale: scatter.scales.end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_box_is_around_all_windows_and_the_heights_that_grow() {
        let scatter = Scatter {
            spacing: 0.5,
            radius: 16.0,
            height_map: Some(Handle::default()),
            map_heights: -5.0..20.0,
            heights: f32::NEG_INFINITY..8.0,
            scales: 0.5..3.0,
            ..default()
        };
        let centers = [Some(IVec2::ZERO), None, Some(IVec2::new(4, -2))];
        let bounds = bounds_of(&scatter, &centers, 3);
        let near = |a: Vec3, b: Vec3| a.abs_diff_eq(b, 1e-3);
        assert!(
            near(bounds.min, Vec3::new(-16.0, -5.0, -48.0)),
            "{bounds:?}"
        );
        assert!(near(bounds.max, Vec3::new(96.0, 8.0, 32.0)), "{bounds:?}");
        assert_eq!(bounds.max_scale, 3.0);
        let none = bounds_of(&scatter, &[None], 3);
        assert!(none.min.is_finite() && none.min.cmple(none.max).all());
    }
}
