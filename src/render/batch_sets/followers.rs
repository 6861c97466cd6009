//! Takes the items of followers out of Bevy's phases.
//!
//! Bevy queues an item for each entity that comes into a view, and keeps it until the entity
//! leaves. In each frame it sorts all items, prepares each one, and calls its draw function. One
//! item per batch set and view draws all members, so the others cost and draw nothing. They wait
//! here, in case that the leader leaves the view or the batch set falls apart.
//!
//! ```text
//! Bevy queues    A B C        A leaves the view      D (alone), then B alone
//! in the phase   A            B                      B D
//! wait here      B C          C                      C (with a new leader, or back as well)
//! ```

use super::BatchSets;
use crate::render::{
    cpu_times::{CpuClock, CpuStage},
    set_draws::SetDraws,
    settings::GpuCullingSystems,
    views::index_of_view,
};
use bevy::{
    ecs::system::SystemParam,
    platform::collections::{HashMap, HashSet},
    prelude::*,
    render::{
        GpuResourceAppExt, Render, RenderSystems,
        camera::{DirtySpecializations, ExtractedCamera},
        render_phase::{
            BinnedPhaseItem, BinnedRenderPhase, BinnedRenderPhaseType, InputUniformIndex,
            ViewBinnedRenderPhases,
        },
        sync_world::{MainEntity, MainEntityHashMap},
        view::{
            ExtractedView, RenderShadowMapVisibleEntities, RenderVisibleEntities,
            RenderVisibleEntitiesClass, RetainedViewEntity,
        },
    },
};

/// The items of followers in phases of one kind, by view.
#[derive(Resource)]
struct Followers<P: BinnedPhaseItem>(HashMap<RetainedViewEntity, FollowersOfView<P>>);

impl<P: BinnedPhaseItem> Default for Followers<P> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

/// The items of a view that are not in its phase.
struct FollowersOfView<P: BinnedPhaseItem> {
    items: MainEntityHashMap<Follower<P>>,
    /// Number of them by their batch set.
    counts: HashMap<u32, u32>,
    /// [`BatchSets::found_in`] when they were looked at last.
    found_in: u64,
}

/// An item that is not in its phase.
struct Follower<P: BinnedPhaseItem> {
    /// The batch set that its leader draws, by its index in the view.
    set: u32,
    keys: (P::BatchSetKey, P::BinKey),
    entity: Entity,
}

/// What Bevy sees in each view.
#[derive(SystemParam)]
struct VisibleMeshes<'w, 's> {
    cameras: Query<
        'w,
        's,
        (&'static ExtractedView, &'static RenderVisibleEntities),
        With<ExtractedCamera>,
    >,
    lights: Query<'w, 's, &'static RenderShadowMapVisibleEntities>,
}

impl VisibleMeshes<'_, '_> {
    /// The meshes that Bevy sees in a view.
    fn of(&self, key: &RetainedViewEntity) -> Option<&RenderVisibleEntitiesClass> {
        let is_camera = |view: &ExtractedView| view.retained_view_entity == *key;
        let camera = self.cameras.iter().find(|(view, _)| is_camera(view));
        let visible = match camera {
            Some((_, visible)) => Some(visible),
            None => (self.lights.iter())
                .find_map(|light| light.subviews.get(key))
                .map(|(_, visible)| visible),
        };
        visible?.get::<Mesh3d>()
    }
}

/// Takes followers out of the phases of a kind.
pub(super) fn add<P: BinnedPhaseItem>(render_app: &mut SubApp) {
    render_app.init_gpu_resource::<Followers<P>>().add_systems(
        Render,
        take_out_followers::<P>
            .run_if(resource_exists::<ViewBinnedRenderPhases<P>>)
            .after(GpuCullingSystems::Prepare)
            .before(RenderSystems::PrepareResourcesBatchPhases),
    );
}

/// Takes the items of followers out of all phases of a kind, and puts those back that follow nobody
/// any more.
fn take_out_followers<P: BinnedPhaseItem>(
    mut phases: ResMut<ViewBinnedRenderPhases<P>>,
    mut followers: ResMut<Followers<P>>,
    draws: Res<SetDraws>,
    batch_sets: Res<BatchSets>,
    dirty: Res<DirtySpecializations>,
    visible: VisibleMeshes,
    clock: Res<CpuClock>,
) {
    let _timer = clock.start(CpuStage::Prepare);
    followers.0.retain(|key, _| phases.contains_key(key));
    for (key, phase) in phases.iter_mut() {
        let of_view = followers.0.entry(*key).or_default();
        if let Some(visible) = visible.of(key) {
            // Bevy has removed these items from the phase, or replaced them.
            for entity in dirty.iter_to_dequeue(*key, visible) {
                of_view.take(*entity);
            }
        }
        let view = index_of_view(&draws.views, key);
        let set_of = |entity| batch_sets.set_of(view? as usize, draws.place_in_frame(entity)?);
        if core::mem::replace(&mut of_view.found_in, batch_sets.found_in) != batch_sets.found_in {
            of_view.find_again(phase, set_of);
        }
        of_view.follow(phase, set_of);
    }
}

impl<P: BinnedPhaseItem> Default for FollowersOfView<P> {
    fn default() -> Self {
        Self {
            items: MainEntityHashMap::default(),
            counts: HashMap::default(),
            found_in: 0,
        }
    }
}

impl<P: BinnedPhaseItem> FollowersOfView<P> {
    fn add(&mut self, main: MainEntity, item: Follower<P>) {
        self.take(main);
        *self.counts.entry(item.set).or_default() += 1;
        self.items.insert(main, item);
    }

    fn take(&mut self, main: MainEntity) -> Option<Follower<P>> {
        let item = self.items.remove(&main)?;
        if let Some(count) = self.counts.get_mut(&item.set) {
            *count -= 1;
        }
        Some(item)
    }

    /// Other batch sets were found: puts the items back that are in none.
    fn find_again(
        &mut self,
        phase: &mut BinnedRenderPhase<P>,
        set_of: impl Fn(MainEntity) -> Option<u32>,
    ) {
        self.counts.clear();
        for (main, mut item) in core::mem::take(&mut self.items) {
            match set_of(main) {
                Some(set) => {
                    item.set = set;
                    self.add(main, item);
                }
                None => item.put_back(main, phase),
            }
        }
    }

    /// Leaves one item of each batch set in the phase.
    fn follow(
        &mut self,
        phase: &mut BinnedRenderPhase<P>,
        set_of: impl Fn(MainEntity) -> Option<u32>,
    ) {
        let mut led = HashSet::new();
        let mut found = Vec::new();
        for (keys, bin) in &phase.unbatchable_meshes {
            for (main, entity) in &bin.entities {
                if let Some(set) = set_of(*main)
                    && !led.insert(set)
                {
                    let (keys, entity) = (keys.clone(), *entity);
                    found.push((*main, Follower { set, keys, entity }));
                }
            }
        }
        for (main, item) in found {
            phase.remove(main);
            self.add(main, item);
        }
        let sets = self.counts.iter().filter(|(_, count)| **count > 0);
        let leaderless: Vec<_> = sets
            .map(|(set, _)| *set)
            .filter(|set| !led.contains(set))
            .collect();
        for set in leaderless {
            let next = self.items.iter().find(|(_, item)| item.set == set);
            let next = next.map(|(main, _)| *main);
            if let Some((main, item)) = next.and_then(|main| Some((main, self.take(main)?))) {
                item.put_back(main, phase);
            }
        }
    }
}

impl<P: BinnedPhaseItem> Follower<P> {
    fn put_back(self, main: MainEntity, phase: &mut BinnedRenderPhase<P>) {
        let (batch_set_key, bin_key) = self.keys;
        // The index is for items that Bevy batches.
        let index = InputUniformIndex::default();
        let as_before = BinnedRenderPhaseType::UnbatchableMesh;
        phase.add(
            batch_set_key,
            bin_key,
            (self.entity, main),
            index,
            as_before,
        );
    }
}
