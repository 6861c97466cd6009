//! Requests that move, or whose sets get or lose a few instances, or that come behind the others,
//! without another plan.

use super::{OpenBatches, Plan, PlanLimits, PlanRequest};
use crate::cull::{
    request::CullFrame,
    store::{ResidentSets, region::Region},
};
use core::ops::Range;
use glam::Affine3A;

/// What a request of a plan has become. Its set has as many blocks in each region as before.
pub(in crate::cull) struct MendedRequest<'a> {
    /// Transform from the set's space to the world.
    pub world_from_local: &'a Affine3A,
    /// The set's regions, in order.
    pub regions: &'a [Region],
    /// Number of instances in the set.
    pub len: u32,
}

impl<'a> MendedRequest<'a> {
    /// What a request of the frame has become. `None` if its set is not resident: it then has no
    /// rows.
    pub fn of(frame: &'a CullFrame, sets: &'a ResidentSets, index: usize) -> Option<Self> {
        let request = frame.requests.get(index)?;
        let set = sets.get(request.set)?;
        Some(Self {
            world_from_local: &request.world_from_local,
            regions: &set.regions,
            len: set.len,
        })
    }

    /// Number of instances in a region.
    fn instances_in(&self, region: usize) -> u32 {
        let before = self.regions[..region].iter();
        let before = before.fold(0u32, |sum, region| sum.saturating_add(region.capacity));
        let left = self.len.saturating_sub(before);
        self.regions
            .get(region)
            .map_or(0, |region| left.min(region.capacity))
    }
}

impl Plan {
    /// Gives a request its new transform and length. The planes of its rows follow with
    /// [`Self::set_planes`].
    pub(in crate::cull) fn mend(&mut self, request: usize, to: &MendedRequest<'_>) {
        let mut last = None;
        for part in self.all_parts(request) {
            let part = self.draws[part];
            // The rows of a set in one region are of one chunk.
            if last.replace((part.batch, part.chunk)) == Some((part.batch, part.chunk)) {
                continue;
            }
            let batch = &mut self.batches[part.batch];
            batch.chunks[part.chunk as usize].place(to.world_from_local);
            batch.resize_chunk(part.chunk, to.instances_in(part.region));
            batch.mends.chunks.push(part.chunk);
        }
    }

    /// Starts a frame whose plan is the plan of the frame before. What changes of it is noted.
    pub(in crate::cull) fn start_mends(&mut self) {
        for batch in &mut self.batches {
            batch.mends.follow = true;
            batch.mends.chunks.clear();
            batch.mends.rows.clear();
            batch.mends.views.clear();
        }
    }

    /// Any entry of the tables may have changed.
    pub(in crate::cull) fn mend_all(&mut self) {
        for batch in &mut self.batches {
            batch.mends.follow = false;
        }
    }

    /// Adds requests behind those that the plan has, which keep their rows. Their own rows come
    /// last in their batches. The plan is the same as if all were built at once; it must have no
    /// siblings, whose commands come behind all rows.
    pub(in crate::cull) fn grow<'a>(
        &mut self,
        requests: impl Iterator<Item = PlanRequest<'a>>,
        limits: PlanLimits,
    ) {
        self.mend_all();
        let mut open = OpenBatches::default();
        for (at, batch) in self.batches.iter().enumerate() {
            open.set_last(batch.page, at);
        }
        // The number of all rows.
        self.requests.pop();
        self.add(requests, limits, open);
    }

    /// Indices of all draws of a request.
    pub(in crate::cull) fn all_parts(&self, request: usize) -> Range<usize> {
        let rows = self.requests.get(request..request + 2);
        let rows = rows.map_or(0, |both| both[1].first - both[0].first);
        self.part_range(request, 0..rows as usize)
    }
}
