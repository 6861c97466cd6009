//! The main world: makes the sets, and follows the cameras and the maps.

use super::{
    component::Scatter,
    maps::{ScatterError, check_map, check_on_gpu},
    planned::{Cameras, KnownScatter, ScatterPlan},
};
use crate::{
    instance::InstanceSet,
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

#[derive(QueryData)]
#[query_data(mutable)]
pub(super) struct ScatterEntity {
    entity: Entity,
    scatter: Ref<'static, Scatter>,
    instances: &'static mut GpuInstances,
    transform: &'static GlobalTransform,
    layers: Option<&'static RenderLayers>,
}

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
                Some(image) => check_map(map, image)
                    .and_then(|()| check_on_gpu(map, image))
                    .err()
                    .map(|error| (error, false)),
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
pub(super) struct PlanState {
    planned: HashMap<Entity, KnownScatter>,
    told: Told<(Entity, String)>,
    /// Images and shaders that changed.
    changed: Vec<UntypedAssetId>,
}

/// The components that are gone, and what they leave.
#[derive(SystemParam)]
pub(super) struct RemovedScatters<'w, 's> {
    scatters: RemovedComponents<'w, 's, Scatter>,
    instances: Query<'w, 's, &'static mut GpuInstances, Without<Scatter>>,
}

/// Says why nothing grows, once.
fn warn_new(told: &mut Told<(Entity, String)>, entity: Entity, text: String) {
    if told.is_new((entity, text.clone())) {
        warn!("Scatter on {entity} plants nothing: {text}");
    }
}

/// Makes sets for scatters, moves their windows along with the cameras, and notes what changed.
pub(super) fn plan_scatters(
    mut scatters: Query<ScatterEntity>,
    mut removed: RemovedScatters,
    cameras: Cameras,
    mut maps: Maps,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut plans: ResMut<ScatterPlans>,
    mut state: Local<PlanState>,
) {
    let PlanState {
        planned,
        told,
        changed,
    } = &mut *state;
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
                warn_new(told, entity, problem.to_string());
                planned.remove(&entity);
                item.instances.0 = Handle::default();
                continue;
            }
            let scatter = Arc::new(Scatter::clone(&item.scatter));
            let known = planned.entry(entity);
            let known = known.or_insert_with(|| KnownScatter::new(entity, scatter.clone()));
            known.change(scatter);
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
                warn_new(told, entity, problem.to_string());
            }
        }
        let moved = known.follow(&cameras, item.transform, item.layers);
        if moved || known.waits != waited {
            is_new = true;
            if let Err(text) = known.lay_out(&mut sets) {
                warn_new(told, entity, text);
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
