//! Withholds items from Bevy's phases.
//!
//! Bevy queues an item for each entity that comes into a view, and keeps it until the entity
//! leaves. In each frame it sorts all items, prepares each one, and calls its draw function: for
//! 7,000 items, 10 ms. One item per batch set and view, its leader's, draws all members. The others
//! are withheld: they wait here until the leader leaves the view, or the batch set falls apart.
//!
//! ```text
//!                  A B C are queued    A leaves the view    D is queued, and is alone
//! in the phase     A                   B                    B D
//! withheld         B C                 C                    C
//! ```

use super::{
    batch_sets::BatchSets,
    cpu_times::{CpuClock, CpuStage},
    set_draws::SetDraws,
    settings::GpuCullingSystems,
    views::index_of_view,
};
use bevy::{
    core_pipeline::{
        core_3d::{AlphaMask3d, Opaque3d},
        deferred::{AlphaMask3dDeferred, Opaque3dDeferred},
        prepass::{AlphaMask3dPrepass, Opaque3dPrepass},
    },
    ecs::system::SystemParam,
    pbr::Shadow,
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

/// Withholds items from all phases in which members of batch sets may be.
pub(super) fn build_render(render_app: &mut SubApp) {
    add::<Opaque3d>(render_app);
    add::<AlphaMask3d>(render_app);
    add::<Opaque3dPrepass>(render_app);
    add::<AlphaMask3dPrepass>(render_app);
    add::<Opaque3dDeferred>(render_app);
    add::<AlphaMask3dDeferred>(render_app);
    add::<Shadow>(render_app);
}

/// The items that phases of one kind lack, by view.
#[derive(Resource)]
struct WithheldItems<P: BinnedPhaseItem> {
    views: HashMap<RetainedViewEntity, WithheldInView<P>>,
    scratch: Scratch<P>,
}

/// Lists that are empty between two views.
struct Scratch<P: BinnedPhaseItem> {
    /// The batch sets that have an item in the phase.
    led: HashSet<u32>,
    /// Items to withhold.
    found: Vec<(MainEntity, WithheldItem<P>)>,
    /// Batch sets whose items are all withheld.
    leaderless: Vec<u32>,
}

impl<P: BinnedPhaseItem> Default for WithheldItems<P> {
    fn default() -> Self {
        Self {
            views: HashMap::default(),
            scratch: Scratch {
                led: HashSet::default(),
                found: Vec::new(),
                leaderless: Vec::new(),
            },
        }
    }
}

/// The items that the phase of a view lacks.
struct WithheldInView<P: BinnedPhaseItem> {
    items: MainEntityHashMap<WithheldItem<P>>,
    /// Number of them by their batch set.
    counts: HashMap<u32, u32>,
    /// [`BatchSets::found_in`] when they were looked at last.
    found_in: u64,
}

/// An item that its phase lacks.
struct WithheldItem<P: BinnedPhaseItem> {
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

/// Withholds items from the phases of a kind.
fn add<P: BinnedPhaseItem>(render_app: &mut SubApp) {
    render_app
        .init_gpu_resource::<WithheldItems<P>>()
        .add_systems(
            Render,
            withhold_items::<P>
                .run_if(resource_exists::<ViewBinnedRenderPhases<P>>)
                .after(GpuCullingSystems::Prepare)
                .before(RenderSystems::PrepareResourcesBatchPhases),
        );
}

/// Withholds items from all phases of a kind, and puts those back that no leader draws any more.
fn withhold_items<P: BinnedPhaseItem>(
    mut phases: ResMut<ViewBinnedRenderPhases<P>>,
    mut withheld: ResMut<WithheldItems<P>>,
    draws: Res<SetDraws>,
    batch_sets: Res<BatchSets>,
    dirty: Res<DirtySpecializations>,
    visible: VisibleMeshes,
    clock: Res<CpuClock>,
) {
    let _timer = clock.start(CpuStage::Prepare);
    let WithheldItems { views, scratch } = &mut *withheld;
    views.retain(|key, _| phases.contains_key(key));
    for (key, phase) in phases.iter_mut() {
        let of_view = views.entry(*key).or_default();
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
        of_view.withhold(phase, set_of, scratch);
    }
}

impl<P: BinnedPhaseItem> Default for WithheldInView<P> {
    fn default() -> Self {
        Self {
            items: MainEntityHashMap::default(),
            counts: HashMap::default(),
            found_in: 0,
        }
    }
}

impl<P: BinnedPhaseItem> WithheldInView<P> {
    fn add(&mut self, main: MainEntity, item: WithheldItem<P>) {
        self.take(main);
        *self.counts.entry(item.set).or_default() += 1;
        self.items.insert(main, item);
    }

    fn take(&mut self, main: MainEntity) -> Option<WithheldItem<P>> {
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
    fn withhold(
        &mut self,
        phase: &mut BinnedRenderPhase<P>,
        set_of: impl Fn(MainEntity) -> Option<u32>,
        scratch: &mut Scratch<P>,
    ) {
        let Scratch {
            led,
            found,
            leaderless,
        } = scratch;
        led.clear();
        for (keys, bin) in &phase.unbatchable_meshes {
            for (main, entity) in &bin.entities {
                if let Some(set) = set_of(*main)
                    && !led.insert(set)
                {
                    let (keys, entity) = (keys.clone(), *entity);
                    found.push((*main, WithheldItem { set, keys, entity }));
                }
            }
        }
        for (main, item) in found.drain(..) {
            phase.remove(main);
            self.add(main, item);
        }
        let sets = self.counts.iter().filter(|(_, count)| **count > 0);
        let sets = sets.map(|(set, _)| *set);
        leaderless.extend(sets.filter(|set| !led.contains(set)));
        for set in leaderless.drain(..) {
            // Those that lost their set since they were withheld are no members any more.
            loop {
                let next = self.items.iter().find(|(_, item)| item.set == set);
                let next = next.map(|(main, _)| *main);
                let Some((main, item)) = next.and_then(|main| Some((main, self.take(main)?)))
                else {
                    break;
                };
                item.put_back(main, phase);
                if set_of(main) == Some(set) {
                    break;
                }
            }
        }
    }
}

impl<P: BinnedPhaseItem> WithheldItem<P> {
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
