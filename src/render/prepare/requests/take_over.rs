//! Requests that stay as they are: only their views are listed again.

use super::Requests;
use crate::render::{
    extracted_set::ExtractedSet,
    groups::Joined,
    set_draws::{BevyInstance, no_request},
};
use bevy::{math::Affine3, pbr::RenderMeshQueueData};

impl Requests<'_, '_, '_> {
    /// Adds the request of the entity at a place of the frame's sets as the previous frame had it,
    /// if nothing that it was made from has changed. Returns whether it did.
    pub(super) fn take_over(
        &mut self,
        (place, set): (usize, &ExtractedSet),
        instance: &RenderMeshQueueData<'_>,
        of_bevy: BevyInstance,
    ) -> bool {
        let Some(before) = self.draws.before(place) else {
            return false;
        };
        let store = self.culler.store();
        let is_placed = self.draws.sets_stay || store.placed(set.set) == before.placed;
        if !is_placed
            || before.alone != Some(of_bevy)
            || before.made_in < set.changed_in
            || before.entity != set.entity
            || self.aliases.visited.contains(&set.entity)
            || before.mesh_id != instance.mesh_asset_id()
            || before.may_be_hidden != self.may_be_hidden(set, before.mesh, before.thinning)
        {
            return false;
        }
        let slots = (place, before.slots);
        let Some(uniform) = self.uniforms.get(set.entity, instance) else {
            return false;
        };
        let offset = set.offset.map(Affine3::from);
        if !self.slots.keep(slots, set.entity, &uniform, offset) {
            return false;
        }
        let mut drawn = before.clone();
        let Some(request) = self.draws.requests_before.get_mut(drawn.of.request) else {
            return false;
        };
        let mut request = core::mem::replace(request, no_request());
        self.list_views(place, set, &mut request.views);
        if drawn.near_levels.is_some() {
            self.count_leveled(set);
        }
        drawn.made_in = self.sets.extracted_in;
        drawn.of = Joined {
            request: self.draws.frame.requests.len(),
            shape: 0,
        };
        self.draws.frame.requests.push(request);
        self.draws.add(place, drawn);
        true
    }
}
