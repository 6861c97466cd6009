//! Requests that stay as they are: only their views are listed again.

use super::Requests;
use crate::render::{
    entity_uniforms::EntityUniform,
    extracted_set::ExtractedSet,
    groups::RequestShape,
    set_draws::{BevyInstance, Drawn, no_request},
};
use bevy::{math::Affine3, pbr::RenderMeshQueueData};

impl Requests<'_, '_, '_> {
    /// Adds the request of the entity at a place of the frame's sets as the previous frame had it,
    /// if nothing that it was made from has changed. Returns whether it did.
    pub(super) fn take_over(
        &mut self,
        place: usize,
        set: &ExtractedSet,
        instance: &RenderMeshQueueData<'_>,
        of_bevy: BevyInstance,
    ) -> bool {
        let Some(before) = self.draws.before(place).filter(|before| before.is_own) else {
            return false;
        };
        let Some(uniform) = self.unchanged(before, set, instance, of_bevy) else {
            return false;
        };
        let mut drawn = before.clone();
        drawn.place = place;
        if !self.keep_slots(place, set, drawn.slots, &uniform) {
            return false;
        }
        let Some(request) = self.draws.requests_before.get_mut(drawn.of.request) else {
            return false;
        };
        let mut request = core::mem::replace(request, no_request());
        request.resting = self.list_views(place, set, drawn.may_rest, &mut request.views);
        drawn.made_in = self.sets.extracted_in;
        drawn.looked_at = self.sets.extracted_in;
        drawn.of = RequestShape {
            request: self.draws.frame.requests.len(),
            shape: 0,
        };
        self.draws.frame.requests.push(request);
        self.draws.add(place, drawn);
        true
    }

    /// The uniform of an entity, if nothing has changed that its request was made from, apart from
    /// its views and its uniform.
    pub(super) fn unchanged(
        &self,
        before: &Drawn,
        set: &ExtractedSet,
        instance: &RenderMeshQueueData<'_>,
        of_bevy: BevyInstance,
    ) -> Option<EntityUniform> {
        let store = self.culler.store();
        // What changed in the frame is known, and not what changed while no view saw the set.
        let is_recent = self.was_looked_at(before);
        let is_placed =
            is_recent && self.draws.sets_stay() || store.placed(set.set) == before.placed;
        let has_material = is_recent && !self.aliases.visited.contains(&set.entity)
            || self.aliases.used_by(set.entity) == before.material;
        if !is_placed
            || before.bevy != of_bevy
            || before.made_in < set.changed_in
            || before.entity != set.entity
            || !has_material
            || before.mesh_id != instance.mesh_asset_id()
            || before.may_be_hidden != self.may_be_hidden(set, before.mesh, before.thinning)
        {
            return None;
        }
        self.uniforms.get(set.entity, instance)
    }

    /// Whether all changes of what an entity draws before this frame are known.
    pub(super) fn was_looked_at(&self, drawn: &Drawn) -> bool {
        drawn.looked_at >= self.draws.notes.complete_since
    }

    /// Keeps the slots of an entity, if its uniform and its offset are as before.
    pub(super) fn keep_slots(
        &mut self,
        place: usize,
        set: &ExtractedSet,
        count: u32,
        uniform: &EntityUniform,
    ) -> bool {
        let offset = set.offset.map(Affine3::from);
        (self.slots).keep(place, count, set.entity, uniform, offset)
    }
}
