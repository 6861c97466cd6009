//! Planes that rows share. In a large plan, requests with the same transform have the same planes
//! in a view. So a view that moves changes as many planes as there are transforms, and no rows:
//! planes keep their places from frame to frame.

use super::{Plan, bands::bands, planner::views_of};
use crate::cull::{
    layout::{RowSource, ViewOrder, ViewPlanes},
    request::{CullFrame, CullRequest, CullView, DistanceRange, ErrorRange, LodEye, Order},
};
use core::ops::Range;
use glam::Affine3A;
use hashbrown::HashMap;

/// Largest number of planes. More take as much as rows do.
const MAX_PLANES: usize = 1 << 16;

/// Planes get places again if there are more than this number besides twice those that rows needed
/// then.
const MORE_PLANES: usize = 256;

/// Index of the planes that keep nothing.
const NOTHING: u32 = 0;

/// Which planes the rows of a plan share.
#[derive(Default)]
pub(in crate::cull) struct SharedPlanes {
    groups: Vec<Group>,
    /// A group with each transform, unless it has moved since.
    places: HashMap<GroupKey, usize>,
    /// The group of each request.
    of_requests: Vec<usize>,
    /// How the views saw levels and distances when the rows were measured, without their positions.
    eyes: Vec<Option<LodEye>>,
    /// What the rows of each request were measured by.
    measured: Vec<Measure>,
    /// Index of the planes of each group in each view, group after group; [`NOTHING`] if no row has
    /// needed them yet.
    known: Vec<u32>,
    /// The group and the view of all planes, from the second one on. Some may be of rows that rest
    /// by now.
    owners: Vec<(usize, u32)>,
    /// The views that the planes are of.
    views: Vec<CullView>,
    /// If there are more planes than this, all get places again.
    max_planes: usize,
    /// The next frame looks at all requests.
    is_new: bool,
    /// The requests that the plan has grown by.
    new: Range<usize>,
    /// All rows of the frame were measured again: views see levels and distances in another way.
    pub has_measured: bool,
}

/// What decides which distances the rows of a request keep, apart from what makes another plan.
#[derive(Clone, Copy, PartialEq)]
struct Measure {
    range: Option<DistanceRange>,
    fade: f32,
    thin_below: f32,
    errors: ErrorRange,
}

impl Measure {
    fn of(request: &CullRequest) -> Self {
        Self {
            range: request.range,
            fade: request.fade,
            thin_below: request.thin_below,
            errors: request.errors,
        }
    }
}

/// The bits of a transform, and whether the requests are far first.
type GroupKey = ([u32; 12], bool);

/// Requests with the same transform.
#[derive(Clone, Copy)]
struct Group {
    world_from_local: Affine3A,
    is_far_first: bool,
    /// Number of its requests.
    users: usize,
}

impl Group {
    fn of(request: &CullRequest) -> Self {
        Self {
            world_from_local: request.world_from_local,
            is_far_first: request.order == Order::FarFirst,
            users: 1,
        }
    }

    fn key(&self) -> GroupKey {
        let bits = self.world_from_local.to_cols_array().map(f32::to_bits);
        (bits, self.is_far_first)
    }

    /// What its rows keep in a view, apart from their [`RowSource`]s.
    fn planes_in(&self, view: &CullView) -> ViewPlanes {
        let world = &self.world_from_local;
        let mut planes = view.planes_in(world);
        planes.order = match self.is_far_first {
            true => view.far_first_in(world),
            // Rows have their own radius.
            false => view.order_in(world, 0.0),
        };
        planes.order.is_near_first = 1;
        if let Some(eye) = view.lod_eye() {
            planes.band.eye = eye.position;
        }
        planes
    }
}

impl SharedPlanes {
    /// Has the rows of a plan share their planes, unless these are too many: the plan was just
    /// built for the frame.
    pub fn share(&mut self, plan: &mut Plan, frame: &CullFrame) {
        self.group(frame);
        if self.are_many(frame) {
            return;
        }
        plan.start_sharing();
        self.eyes = eyes_of(frame);
        self.measured = frame.requests.iter().map(Measure::of).collect();
        self.update(plan, frame, &[]);
    }

    /// Whether there are too many planes. Requests that move get separate ones.
    pub fn are_many(&self, frame: &CullFrame) -> bool {
        self.groups.len() * frame.views.len() > MAX_PLANES
    }

    /// Groups all requests.
    fn group(&mut self, frame: &CullFrame) {
        self.is_new = true;
        self.groups.clear();
        self.places.clear();
        self.of_requests.clear();
        for request in &frame.requests {
            self.group_one(request);
        }
    }

    /// Puts the next request into a group. Returns that group.
    fn group_one(&mut self, request: &CullRequest) -> usize {
        let group = Group::of(request);
        let key = group.key();
        let known = self.places.get(&key).copied();
        let place = match known.filter(|place| self.groups[*place].key() == key) {
            Some(place) => {
                self.groups[place].users += 1;
                place
            }
            None => {
                self.groups.push(group);
                self.places.insert(key, self.groups.len() - 1);
                self.groups.len() - 1
            }
        };
        self.of_requests.push(place);
        place
    }

    /// Adds the requests of a frame behind those that it knows, in a plan that has
    /// [grown](Plan::grow) by them.
    pub fn grow(&mut self, plan: &mut Plan, frame: &CullFrame) {
        plan.share_new_rows();
        let known = self.of_requests.len();
        for request in frame.requests.iter().skip(known) {
            self.measured.push(Measure::of(request));
            self.group_one(request);
        }
        self.new = known..frame.requests.len();
    }

    /// Gives the rows of a frame their planes. `moved` are the requests with another transform.
    pub fn update(&mut self, plan: &mut Plan, frame: &CullFrame, moved: &[usize]) {
        let eyes = eyes_of(frame);
        self.has_measured = self.eyes != eyes;
        if self.has_measured {
            self.eyes = eyes;
            for request in 0..frame.requests.len() {
                measure(plan, frame, request);
            }
        }
        let mut remeasure = |request: usize| {
            let now = Measure::of(&frame.requests[request]);
            if core::mem::replace(&mut self.measured[request], now) != now {
                self.has_measured = true;
                measure(plan, frame, request);
            }
        };
        match &frame.changed {
            Some(changed) => changed.iter().copied().for_each(&mut remeasure),
            None => (0..frame.requests.len()).for_each(&mut remeasure),
        }
        for &request in moved {
            measure(plan, frame, request);
            self.move_request(request, &frame.requests[request]);
        }
        let count = frame.views.len();
        self.is_new |= self.views.len() != count || plan.planes.len() > self.max_planes;
        if self.is_new {
            self.known.clear();
            self.owners.clear();
            plan.planes.clear();
            plan.planes.push(CullView::nothing());
        } else if self.views == frame.views {
            for group in moved.iter().map(|request| self.of_requests[*request]) {
                let known = self.known.get(group * count..(group + 1) * count);
                let views = known.into_iter().flatten().zip(&frame.views);
                for (planes, view) in views.filter(|(planes, _)| **planes != NOTHING) {
                    plan.planes[*planes as usize] = self.groups[group].planes_in(view);
                }
            }
        } else {
            for (planes, (group, view)) in plan.planes.iter_mut().skip(1).zip(&self.owners) {
                *planes = self.groups[*group].planes_in(&frame.views[*view as usize]);
            }
        }
        self.known.resize(self.groups.len() * count, NOTHING);
        self.views.clone_from(&frame.views);
        // The host reads the order of far-first rows.
        let is_far_first = self.groups.iter().any(|group| group.is_far_first);
        match &frame.changed {
            Some(changed) if !is_far_first && !self.is_new => {
                let changed = changed.iter().chain(moved).copied();
                for request in changed.chain(self.new.clone()) {
                    self.set_rows(plan, frame, request);
                }
            }
            _ => {
                for request in 0..frame.requests.len() {
                    self.set_rows(plan, frame, request);
                }
            }
        }
        if self.is_new {
            self.max_planes = 2 * plan.planes.len() + MORE_PLANES;
        }
        self.is_new = false;
        self.new = 0..0;
    }

    /// Gives a request a separate group, unless it has one.
    fn move_request(&mut self, index: usize, request: &CullRequest) {
        let place = self.of_requests[index];
        // A request whose set has another length is moved, too.
        if self.groups[place].world_from_local == request.world_from_local {
            return;
        }
        if self.groups[place].users > 1 {
            self.groups[place].users -= 1;
            self.of_requests[index] = self.groups.len();
            self.groups.push(Group::of(request));
        } else {
            self.groups[place] = Group::of(request);
        }
    }

    /// Gives the rows of a request their planes.
    fn set_rows(&mut self, plan: &mut Plan, frame: &CullFrame, request: usize) {
        let asked = &frame.requests[request];
        let levels = asked.coarser.as_deref().map_or(0, <[_]>::len) + 1;
        let place = self.of_requests[request];
        let group = self.groups[place];
        for (slot, (view_index, view)) in views_of(frame, &asked.views).enumerate() {
            let rests = asked.rests_in(slot);
            let known = place * frame.views.len() + view_index as usize;
            let planes = match self.known[known] {
                _ if rests => NOTHING,
                NOTHING => {
                    let next = plan.planes.len() as u32;
                    plan.planes.push(group.planes_in(view));
                    self.owners.push((place, view_index));
                    self.known[known] = next;
                    next
                }
                known => known,
            };
            let rows = plan.part_range(request, slot * levels..(slot + 1) * levels);
            for part in rows {
                let part = plan.draws[part];
                let batch = &mut plan.batches[part.batch];
                batch.planes_of_rows[part.row as usize] = planes;
                batch.set_resting(part.chunk, part.row, rests);
                // The host sorts by these.
                if group.is_far_first {
                    batch.chunk_views[part.row as usize].planes.order = ViewOrder {
                        // A batch has room to sort near first if one of its rows is near first.
                        is_near_first: 0,
                        ..plan.planes[planes as usize].order
                    };
                }
            }
        }
    }
}

impl Plan {
    /// Has the rows share planes. They keep nothing yet.
    pub(in crate::cull) fn start_sharing(&mut self) {
        for batch in &mut self.batches {
            batch.sources.clear();
            batch.planes_of_rows.clear();
        }
        self.share_new_rows();
    }

    /// The same for rows that the plan got after the others.
    fn share_new_rows(&mut self) {
        for batch in &mut self.batches {
            let first_row = batch.sources.len() as u32;
            let chunks = &batch.chunks;
            let first_chunk = chunks.partition_point(|chunk| chunk.first_row < first_row);
            for chunk in &chunks[first_chunk..] {
                let rows = chunk.first_row as usize..(chunk.first_row + chunk.row_count) as usize;
                let rows = batch.chunk_views[rows].iter();
                let radius = chunk.sphere.w;
                (batch.sources).extend(rows.map(|row| RowSource::of(row, radius)));
            }
            batch
                .planes_of_rows
                .resize(batch.chunk_views.len(), NOTHING);
        }
    }

    /// Gives the `row`-th row of a request shared planes: it rests if they keep nothing.
    pub(in crate::cull) fn share_planes(&mut self, request: usize, row: usize, planes: u32) {
        for part in self.part_range(request, row..row + 1) {
            let part = self.draws[part];
            let batch = &mut self.batches[part.batch];
            batch.planes_of_rows[part.row as usize] = planes;
            batch.set_resting(part.chunk, part.row, planes == NOTHING);
        }
    }
}

/// How the views of a frame see levels and distances, without their positions.
fn eyes_of(frame: &CullFrame) -> Vec<Option<LodEye>> {
    let placeless = |eye| LodEye {
        position: glam::Vec3::ZERO,
        ..eye
    };
    let views = frame.views.iter();
    views.map(|view| view.lod_eye().map(placeless)).collect()
}

/// Measures the distances that a request's rows keep.
fn measure(plan: &mut Plan, frame: &CullFrame, index: usize) {
    let request = &frame.requests[index];
    let levels = request.coarser.as_deref().map_or(0, <[_]>::len) + 1;
    for (slot, (_, view)) in views_of(frame, &request.views).enumerate() {
        for (level, band) in bands(view.lod_eye(), request).enumerate() {
            let row = slot * levels + level;
            for part in plan.part_range(index, row..row + 1) {
                let part = plan.draws[part];
                plan.batches[part.batch].sources[part.row as usize].measure(&band);
            }
        }
    }
}
