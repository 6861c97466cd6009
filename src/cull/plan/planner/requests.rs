//! What a request has in a frame: its views, its levels and shapes, and whether it may be hidden.

use crate::cull::{
    layout::BLOCK,
    plan::PlanLimits,
    request::{CullFrame, CullRequest, CullView, DrawShape, OcclusionView},
    store::{ResidentSets, region::Region},
};

/// The views of a request that the frame has, with their indices.
pub(in crate::cull::plan) fn views_of<'a>(
    frame: &'a CullFrame,
    views: &'a [u32],
) -> impl Iterator<Item = (u32, &'a CullView)> {
    let found = |view: &u32| Some((*view, frame.views.get(*view as usize)?));
    views.iter().filter_map(found)
}

/// The place of view `view` among a request's views.
pub(in crate::cull) fn slot_of(frame: &CullFrame, request: usize, view: u32) -> Option<usize> {
    let request = frame.requests.get(request)?;
    views_of(frame, &request.views).position(|(index, _)| index == view)
}

/// The requests whose instances may be hidden in a view: not the requests that are thinned out,
/// because what is kept grows. Their late lists take two rows per level, which one batch must hold
/// for each region.
pub(in crate::cull) fn hidden_requests<'a>(
    frame: &'a CullFrame,
    view: &'a OcclusionView,
    sets: &'a ResidentSets,
    limits: PlanLimits,
) -> impl Iterator<Item = usize> + 'a {
    let fits = move |region: &Region| region.capacity.div_ceil(BLOCK) <= limits.counts / 2;
    view.requests
        .iter()
        .map(|request| *request as usize)
        .filter(move |request| {
            frame.requests.get(*request).is_some_and(|request| {
                !request.is_far_first()
                    && !request.thins()
                    && sets
                        .get(request.set)
                        .is_some_and(|set| set.regions.iter().all(fits))
            })
        })
}

/// The further shapes of a request at a level of detail.
pub(in crate::cull) fn further_shapes(
    request: &CullRequest,
    level: usize,
) -> impl Iterator<Item = DrawShape> {
    request.more.iter().map(move |more| more.at_level(level))
}
