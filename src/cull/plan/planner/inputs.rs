//! What a plan was made from, to see whether it still holds.

use super::requests::views_of;
use crate::cull::{
    gpu::version::Version,
    occlusion::OcclusionView,
    plan::{BoundingSphere, DrawShape},
    request::{CoarserLevel, CullFrame, CullRequest, FurtherShape, Order},
    store::{ResidentSets, Set, region::SetId},
};
use core::ops::Range;
use glam::Affine3A;
use std::sync::Arc;

/// What a plan depends on, except the planes of the views.
pub(super) struct PlanInputs {
    /// [`ResidentSets::version`].
    sets: Version,
    requests: Vec<RequestInputs>,
    /// [`Set::version`] of each request's set; `None` if it is not resident.
    versions: Vec<Option<Version>>,
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

#[derive(PartialEq)]
struct RequestInputs {
    key: u64,
    set: SetId,
    world_from_local: Affine3A,
    sphere: BoundingSphere,
    shape: DrawShape,
    coarser: Option<Arc<[CoarserLevel]>>,
    fades: bool,
    thins: bool,
    /// See [`ErrorRange::levels_before`].
    levels_before: u32,
    order: Order,
    /// End of its views in [`PlanInputs::views`].
    views_end: usize,
    /// End of its shapes in [`PlanInputs::more`].
    more_end: usize,
}

impl RequestInputs {
    fn new(request: &CullRequest, views_end: usize, more_end: usize) -> Self {
        Self {
            key: request.key,
            set: request.set,
            world_from_local: request.world_from_local,
            sphere: request.sphere,
            shape: request.shape,
            coarser: request.coarser.clone(),
            fades: request.fade > 0.0,
            thins: request.thins(),
            levels_before: request.errors.levels_before,
            order: request.order,
            views_end,
            more_end,
        }
    }
}

impl PlanInputs {
    pub fn of(frame: &CullFrame, occlusion: &[OcclusionView], sets: &ResidentSets) -> Self {
        let (mut requests, mut views, mut more) = (Vec::new(), Vec::new(), Vec::new());
        for request in &frame.requests {
            views.extend(views_of(frame, &request.views).map(|(view, _)| view));
            more.extend_from_slice(&request.more);
            requests.push(RequestInputs::new(request, views.len(), more.len()));
        }
        Self {
            sets: sets.version(),
            versions: versions(frame, sets).collect(),
            requests,
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
        }
    }

    /// Each request's views.
    fn views(&self) -> impl Iterator<Item = Range<usize>> {
        let mut first = 0;
        let ends = self.requests.iter().map(|request| request.views_end);
        ends.map(move |end| core::mem::replace(&mut first, end)..end)
    }

    /// Whether the requests have the further shapes that they had.
    fn have_shapes_of(&self, frame: &CullFrame) -> bool {
        let known = self.requests.iter().zip(&frame.requests);
        let mut first = 0;
        known.fold(true, |same, (known, request)| {
            let range = core::mem::replace(&mut first, known.more_end)..known.more_end;
            same && self.more[range] == request.more[..]
        })
    }

    /// Whether `frame` would produce the same plan (only the planes of its views may differ). True
    /// in steady state.
    pub fn still_hold(
        &mut self,
        frame: &CullFrame,
        occlusion: &[OcclusionView],
        sets: &ResidentSets,
    ) -> bool {
        if !self.have_requests_of(frame)
            || !self.have_shapes_of(frame)
            || !self.have_occlusion_of(occlusion)
        {
            return false;
        }
        // Most changes concern sets that no request names.
        let stay =
            self.sets == sets.version() || versions(frame, sets).eq(self.versions.iter().copied());
        if stay {
            self.sets = sets.version();
        }
        stay
    }

    fn have_occlusion_of(&self, occlusion: &[OcclusionView]) -> bool {
        let known = self.occlusion.iter();
        known.len() == occlusion.len()
            && known.zip(occlusion).all(|(known, view)| {
                (known.view, known.key, known.is_frozen) == (view.view, view.key, view.is_frozen)
                    && known.requests == view.requests
            })
    }

    fn have_requests_of(&self, frame: &CullFrame) -> bool {
        let known = self.requests.iter().zip(self.views());
        self.requests.len() == frame.requests.len()
            && known.zip(&frame.requests).all(|((known, range), request)| {
                let views = views_of(frame, &request.views).map(|(view, _)| view);
                *known == RequestInputs::new(request, known.views_end, known.more_end)
                    && views.eq(self.views[range].iter().copied())
            })
    }
}

/// The version of the set of each request.
fn versions(frame: &CullFrame, sets: &ResidentSets) -> impl Iterator<Item = Option<Version>> {
    let requests = frame.requests.iter();
    requests.map(|request| sets.get(request.set).and_then(Set::version))
}
