//! What a plan was made from, to see whether it still holds.

use super::requests::views_of;
use crate::cull::{
    gpu::version::Version,
    layout::BLOCK,
    plan::memory::emptied,
    request::{
        BoundingSphere, CoarserLevel, CullFrame, CullRequest, DrawShape, FurtherShape,
        OcclusionView, Order,
    },
    store::{ResidentSets, region::SetId},
};
use glam::Affine3A;
use std::sync::Arc;

/// What a plan depends on, except the planes of the views.
pub(super) struct PlanInputs {
    /// [`ResidentSets::version`].
    sets: Version,
    requests: Vec<RequestInputs>,
    /// Whether some request `is_hollow`.
    has_hollow: bool,
    /// Views of all requests, request after request.
    pub views: Vec<u32>,
    /// Further shapes of all requests, request after request.
    more: Vec<FurtherShape>,
    /// The views in which instances may be hidden.
    occlusion: Vec<HidingInputs>,
}

/// What a plan depends on of a view in which instances may be hidden.
struct HidingInputs {
    view: u32,
    key: u64,
    is_frozen: bool,
    requests: Vec<u32>,
}

struct RequestInputs {
    key: u64,
    set: SetId,
    /// `None` if the set is not resident.
    resident: Option<ResidentInputs>,
    /// Whether its set went while it rested: the plan has rows for a set that is not resident.
    is_hollow: bool,
    world_from_local: Affine3A,
    sphere: BoundingSphere,
    full_sphere: Option<BoundingSphere>,
    shape: DrawShape,
    coarser: Option<Arc<[CoarserLevel]>>,
    fades: bool,
    thins: bool,
    /// See [`ErrorRange::levels_before`](crate::cull::ErrorRange).
    levels_before: u32,
    order: Order,
    /// End of its views in [`PlanInputs::views`].
    views_end: usize,
    /// End of its shapes in [`PlanInputs::more`].
    more_end: usize,
}

/// What a plan depends on of a resident set.
#[derive(Clone, Copy, PartialEq)]
struct ResidentInputs {
    /// [`Set::placed`].
    placed: Option<Version>,
    len: u32,
}

impl ResidentInputs {
    fn of(sets: &ResidentSets, id: SetId) -> Option<Self> {
        let set = sets.get(id)?;
        Some(Self {
            placed: set.placed(),
            len: set.len,
        })
    }

    /// Whether the set has the same regions with as many blocks each. Regions are whole blocks.
    fn has_blocks_of(self, other: Self) -> bool {
        self.placed == other.placed && self.len.div_ceil(BLOCK) == other.len.div_ceil(BLOCK)
    }
}

impl RequestInputs {
    /// Whether the plan of a request stays, except its transform, its set, its views and further
    /// shapes.
    fn plans_like(&self, request: &CullRequest) -> bool {
        (self.key, self.set) == (request.key, request.set)
            && (self.sphere, self.full_sphere) == (request.sphere, request.full_sphere)
            && self.shape == request.shape
            && self.coarser == request.coarser
            && self.fades == (request.fade > 0.0)
            && self.thins == request.thins()
            && self.levels_before == request.errors.levels_before
            && self.order == request.order
    }
}

impl PlanInputs {
    /// What the plan of a frame is made from, in the memory of what an `old` one was made from.
    pub fn of(
        frame: &CullFrame,
        occlusion: &[OcclusionView],
        sets: &ResidentSets,
        old: Option<Self>,
    ) -> Self {
        let (requests, views, more) = match old {
            Some(old) => (emptied(old.requests), emptied(old.views), emptied(old.more)),
            None => Default::default(),
        };
        let mut inputs = Self {
            sets: sets.version(),
            requests,
            has_hollow: false,
            views,
            more,
            occlusion: occlusion
                .iter()
                .map(|view| HidingInputs {
                    view: view.view,
                    key: view.key,
                    is_frozen: view.is_frozen,
                    requests: view.requests.clone(),
                })
                .collect(),
        };
        inputs.grow(frame, sets);
        inputs
    }

    /// Whether the plan has rows for sets that went.
    pub fn has_hollow(&self) -> bool {
        self.has_hollow
    }

    /// Number of requests.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Adds the requests of a frame behind those that it knows.
    pub fn grow(&mut self, frame: &CullFrame, sets: &ResidentSets) {
        let Self {
            requests,
            views,
            more,
            ..
        } = self;
        for request in frame.requests.iter().skip(requests.len()) {
            views.extend(views_of(frame, &request.views).map(|(view, _)| view));
            more.extend_from_slice(&request.more);
            requests.push(RequestInputs {
                key: request.key,
                set: request.set,
                resident: ResidentInputs::of(sets, request.set),
                is_hollow: false,
                world_from_local: request.world_from_local,
                sphere: request.sphere,
                full_sphere: request.full_sphere,
                shape: request.shape,
                coarser: request.coarser.clone(),
                fades: request.fade > 0.0,
                thins: request.thins(),
                levels_before: request.errors.levels_before,
                order: request.order,
                views_end: views.len(),
                more_end: more.len(),
            });
        }
    }

    /// Follows the frame, if its plan differs in few numbers only, apart from the planes of its
    /// views: `moved` are then the requests with another transform, or whose set has another
    /// length, but no other blocks. The frame may have more requests, behind those that are known.
    /// Returns false if it needs another plan.
    pub fn follow(
        &mut self,
        frame: &CullFrame,
        occlusion: &[OcclusionView],
        sets: &ResidentSets,
        moved: &mut Vec<usize>,
    ) -> bool {
        moved.clear();
        let known = self.requests.len();
        if known > frame.requests.len() || !self.have_occlusion_of(occlusion) {
            return false;
        }
        let changed_sets = sets.changed_since(self.sets);
        let all_follow = match (&frame.changed, changed_sets) {
            (Some(changed), Some(changed_sets)) => {
                let changed_sets: Vec<_> = changed_sets.collect();
                let of_sets = self.requests_of(&changed_sets);
                let of_sets = of_sets.iter().filter(|index| !changed.contains(*index));
                let sets = (!changed_sets.is_empty()).then_some(sets);
                let mut indices = (changed.iter().filter(|index| **index < known)).chain(of_sets);
                indices.all(|index| self.follow_one(frame, *index, sets, moved))
            }
            _ => (0..known).all(|index| self.follow_one(frame, index, Some(sets), moved)),
        };
        if !all_follow {
            return false;
        }
        self.sets = sets.version();
        true
    }

    /// The requests of these sets. Most changes of sets concern sets that no request names.
    fn requests_of(&self, sets: &[SetId]) -> Vec<usize> {
        if sets.is_empty() {
            return Vec::new();
        }
        let all = self.requests.iter().enumerate();
        let found = all.filter(|(_, known)| sets.contains(&known.set));
        found.map(|(index, _)| index).collect()
    }

    /// Follows a request, and its set if some set changed.
    fn follow_one(
        &mut self,
        frame: &CullFrame,
        index: usize,
        sets: Option<&ResidentSets>,
        moved: &mut Vec<usize>,
    ) -> bool {
        let (Some(known), Some(request)) = (self.requests.get(index), frame.requests.get(index))
        else {
            return false;
        };
        let before = index.checked_sub(1).map(|before| &self.requests[before]);
        let (first_view, first_more) =
            before.map_or((0, 0), |before| (before.views_end, before.more_end));
        let seeing = &self.views[first_view..known.views_end];
        let more = &self.more[first_more..known.more_end];
        let views = views_of(frame, &request.views).map(|(view, _)| view);
        if !known.plans_like(request)
            || !have_same_shapes(more, &request.more)
            || !views.eq(seeing.iter().copied())
        {
            return false;
        }
        let rests = !request.is_tested();
        let known = &mut self.requests[index];
        if known.is_hollow && !rests {
            return false;
        }
        let mut is_moved = known.world_from_local != request.world_from_local;
        known.world_from_local = request.world_from_local;
        if let Some(sets) = sets {
            let resident = ResidentInputs::of(sets, request.set);
            if resident != known.resident {
                match (known.resident, resident) {
                    (Some(before), Some(now)) if now.has_blocks_of(before) => is_moved = true,
                    (Some(_), None) if rests => {
                        (known.is_hollow, self.has_hollow) = (true, true);
                    }
                    _ => return false,
                }
                known.resident = resident;
            }
        }
        if is_moved {
            moved.push(index);
        }
        true
    }

    fn have_occlusion_of(&self, occlusion: &[OcclusionView]) -> bool {
        let known = self.occlusion.iter();
        known.len() == occlusion.len()
            && known.zip(occlusion).all(|(known, view)| {
                (known.view, known.key, known.is_frozen) == (view.view, view.key, view.is_frozen)
                    && known.requests == view.requests
            })
    }
}

/// Whether further shapes draw the same. Their errors are not read.
fn have_same_shapes(known: &[FurtherShape], now: &[FurtherShape]) -> bool {
    let levels = |more: &FurtherShape| more.coarser.as_deref().map_or(0, <[_]>::len);
    known.len() == now.len()
        && known.iter().zip(now).all(|(known, now)| {
            let count = levels(known);
            count == levels(now)
                && (0..=count).all(|level| known.at_level(level) == now.at_level(level))
        })
}
