//! What is known of an entity with a scatter: its set, and its windows.

use super::{
    component::Scatter,
    window::{side_of, slots, tile_of, window_around},
};
use crate::instance::{GpuWritten, InstanceBounds, InstanceSet};
use bevy::{camera::visibility::RenderLayers, prelude::*};
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

/// What is known of an entity.
pub(super) struct KnownScatter {
    pub plan: ScatterPlan,
    pub set: Handle<InstanceSet>,
    /// Tiles along a side of a window.
    pub side: u32,
    windows: Vec<Window>,
    /// Whether a map is not loaded yet, or cannot be read.
    pub waits: bool,
}

/// A camera, and the tile that it is in. A window without a camera is free.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Window {
    camera: Option<Entity>,
    center: Option<IVec2>,
}

/// The cameras around which instances grow.
pub(super) type Cameras<'w, 's> = Query<
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

impl KnownScatter {
    pub fn new(entity: Entity, scatter: Arc<Scatter>) -> Self {
        Self {
            plan: ScatterPlan {
                entity,
                set: AssetId::default(),
                scatter,
                slots: Arc::default(),
                maps_revision: 0,
                rule: None,
            },
            set: Handle::default(),
            side: 0,
            windows: Vec::new(),
            waits: true,
        }
    }

    /// Takes another component. The windows are laid out again.
    pub fn change(&mut self, scatter: Arc<Scatter>) {
        let side = side_of(scatter.radius, scatter.tile_size());
        self.plan.scatter = scatter;
        self.waits = true;
        if self.side != side {
            self.side = side;
            self.set = Handle::default();
        }
        self.windows
            .iter_mut()
            .for_each(|window| window.center = None);
    }

    /// Moves the windows to where the cameras are. Returns whether a camera came, went, or is in
    /// another tile.
    pub fn follow(
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
    pub fn lay_out(&mut self, sets: &mut Assets<InstanceSet>) -> Result<(), String> {
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
