//! Requests as a plan takes them.

use super::{planes::RequestPlanes, requests::further_shapes};
use crate::cull::{
    layout::ViewPlanes,
    plan::{PlanRequest, RowRings},
    request::{CullFrame, CullRequest, DrawShape, Order},
    store::ResidentSets,
};
use crate::instance::ScaleKind;
use core::ops::Range;

/// What the requests of a frame draw and keep, from some request on.
#[derive(Default)]
pub(super) struct ResolvedRequests {
    first: usize,
    planes: Vec<ViewPlanes>,
    shapes: Vec<DrawShape>,
    more: Vec<DrawShape>,
    /// Of each request, its rows in `planes`, and where its shapes and further shapes end.
    ends: Vec<(Range<usize>, usize, usize)>,
}

impl ResolvedRequests {
    /// If the rows `share` views, they have no planes.
    pub fn of(frame: &CullFrame, first: usize, share: bool) -> Self {
        let requests = frame.requests.get(first..).unwrap_or_default();
        let mut resolved = Self {
            first,
            shapes: Vec::with_capacity(requests.len()),
            ends: Vec::with_capacity(requests.len()),
            ..Self::default()
        };
        let Self {
            planes,
            shapes,
            more,
            ends,
            ..
        } = &mut resolved;
        let mut each = RequestPlanes::new(share, Vec::new());
        let mut first_row = 0;
        for request in requests {
            let (rows, is_new) = each.of(frame, request);
            if is_new {
                first_row = planes.len();
                planes.extend_from_slice(rows);
            }
            shapes.push(request.shape);
            shapes.extend(request.coarser_levels().iter().map(|level| level.shape));
            let levels = 0..request.level_count();
            more.extend(levels.flat_map(|level| further_shapes(request, level)));
            let rows = match request.views.is_empty() {
                true => 0..0,
                false => first_row..planes.len(),
            };
            ends.push((rows, shapes.len(), more.len()));
        }
        resolved
    }

    /// The requests, as a plan takes them.
    pub fn requests<'a>(
        &'a self,
        frame: &'a CullFrame,
        sets: &'a ResidentSets,
    ) -> impl Iterator<Item = PlanRequest<'a>> {
        let mut first = (0, 0);
        let requests = frame.requests.iter().skip(self.first).zip(&self.ends);
        requests.map(move |(request, (rows, shapes_end, more_end))| {
            let set = sets.get(request.set);
            let end = (*shapes_end, *more_end);
            let (first_shape, first_more) = core::mem::replace(&mut first, end);
            PlanRequest {
                regions: set.map_or(&[], |set| &set.regions),
                len: set.map_or(0, |set| set.len),
                scale: set.map_or(ScaleKind::One, |set| set.channels.scale),
                world_from_local: request.world_from_local,
                sphere: request.sphere,
                shapes: &self.shapes[first_shape..end.0],
                more: &self.more[first_more..end.1],
                fades: request.fade > 0.0,
                thins: request.thins(),
                rows: &self.planes[rows.clone()],
                rings: Some(rings_of(request)),
                row_group: 1,
                lists: 1,
            }
        })
    }
}

/// The order in which a request's rows list their survivors.
pub(super) fn rings_of(request: &CullRequest) -> RowRings {
    RowRings {
        radius: request.sphere.radius,
        is_near_first: request.order == Order::NearFirst,
    }
}
