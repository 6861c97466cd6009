//! What the rows of requests keep.

use super::requests::views_of;
use crate::cull::{
    layout::ViewPlanes,
    plan::bands::bands,
    request::{CullFrame, CullRequest, CullView, ErrorRange, Order},
};

/// The planes of each request's rows, without [`RowRings`]. If a request without levels and ranges
/// has the same transform and the same views as the request before it, both share their planes,
/// also if their radii differ, as long as both have a size.
pub(super) struct RequestPlanes<'a> {
    last: Option<&'a CullRequest>,
    planes: Vec<ViewPlanes>,
    /// The rows share views: all that they have of their own is their bands.
    share: bool,
}

impl<'a> RequestPlanes<'a> {
    /// `spare` is a list whose memory is used again.
    pub fn new(share: bool, mut spare: Vec<ViewPlanes>) -> Self {
        spare.clear();
        Self {
            last: None,
            planes: spare,
            share,
        }
    }

    /// The list, to be used again.
    pub fn into_spare(self) -> Vec<ViewPlanes> {
        self.planes
    }

    /// Whether the planes that are kept hold for spheres of all sizes.
    fn are_of_all_sizes(&self) -> bool {
        let has_size = self.last.is_some_and(|last| last.sphere.radius > 0.0);
        has_size && self.planes.iter().all(|planes| planes.band.flags == 0)
    }

    /// The planes of a request, and whether they differ from the request before.
    pub fn of(&mut self, frame: &CullFrame, request: &'a CullRequest) -> (&[ViewPlanes], bool) {
        let radius = request.sphere.radius;
        let is_plain = |request: &CullRequest| {
            let errors = ErrorRange {
                levels_before: 0,
                ..request.errors
            };
            let is_whole = request.range.is_none() && errors == ErrorRange::default();
            request.coarser.is_none() && is_whole && !request.thins()
        };
        let same = |last: &CullRequest| {
            last.world_from_local == request.world_from_local
                && last.views == request.views
                && last.resting == request.resting
                && is_plain(last)
                && is_plain(request)
                && (last.sphere.radius == radius || self.are_of_all_sizes())
                && last.is_far_first() == request.is_far_first()
        };
        if request.views.is_empty() {
            return (&[], false);
        }
        let is_new = !self.last.is_some_and(same);
        if is_new {
            let views = views_of(frame, &request.views);
            self.planes.clear();
            for (slot, (_, view)) in views.enumerate() {
                let planes = match self.share {
                    true => ViewPlanes::default(),
                    false => planes_of(view, request, slot),
                };
                let bands = bands(view.lod_eye(), request);
                let rows = bands.map(|band| ViewPlanes { band, ..planes });
                self.planes.extend(rows);
            }
        }
        self.last = Some(request);
        (&self.planes, is_new)
    }
}

/// What a request keeps in its `slot`-th view, apart from its bands.
fn planes_of(view: &CullView, request: &CullRequest, slot: usize) -> ViewPlanes {
    let world = &request.world_from_local;
    let planes = match request.rests_in(slot) {
        true => CullView::nothing(),
        false => view.planes_in(world),
    };
    ViewPlanes {
        order: match request.order {
            Order::FarFirst => view.far_first_in(world),
            _ => view.order_in(world, request.sphere.radius),
        },
        ..planes
    }
}
